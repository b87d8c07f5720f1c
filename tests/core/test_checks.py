"""Checks of arguments: what is refused, and what the message says."""

import numpy as np
import pytest

from keras_recbert.core.checks import check_integer, check_rate, check_seed


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "9", None, np.float64(3.0)])
def test_no_whole_number(value):
    with pytest.raises(ValueError, match="`size` must be a whole number of at least 1"):
        check_integer(size=value)


def test_bounds():
    check_integer(0, 3, first=0, last=np.int64(3))
    with pytest.raises(ValueError, match="from 0 to 3. Received: last=4."):
        check_integer(0, 3, first=0, last=4)


@pytest.mark.parametrize("rate", [1.0, -0.1, True, "0.1", float("nan")])
def test_no_rate(rate):
    with pytest.raises(ValueError, match=r"`dropout` must be a number in \[0, 1\)"):
        check_rate(dropout=rate)
    check_rate(dropout=0)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_no_seed(seed):
    with pytest.raises(ValueError, match=f"from 0 to .*seed={seed}"):
        check_seed(seed)
