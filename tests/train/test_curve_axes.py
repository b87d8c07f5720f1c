import math
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from keras_recbert.train.curve_axes import fit_axes

STEPS = np.arange(100, 1600, 100)


def axis_of(*curves, scale="linear", band=None):
    axis = Figure().subplots()
    for values in curves:
        axis.plot(STEPS[: len(values)], values)
    if band:
        axis.fill_between(STEPS, *band)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_axes(axis, scale)
        axis.figure.canvas.draw()
    return axis


def labels(axis):
    return [float(text.get_text()) for text in axis.get_ticklabels()]


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize(
    "values",
    [
        8000 * np.exp(-0.3 * np.arange(15)) + 30,  # over three decades
        31 + 2 * np.exp(-0.3 * np.arange(15)),  # within a tenth of one
        np.linspace(1260, 410, 15),
        np.full(15, 57.0),
        np.full(15, 1e-7),
    ],
)
def test_curves_end_between_labelled_ticks(values, scale):
    axis = axis_of(values, scale=scale)
    for ticks, found in (
        (labels(axis.xaxis), STEPS),
        (labels(axis.yaxis), values),
    ):
        assert ticks[0] <= found.min() * (1 + 1e-9)
        assert ticks[-1] >= found.max() * (1 - 1e-9)
        assert 3 <= len(ticks) <= 15
    low, high = axis.get_ylim()
    assert low < min(values) and high > max(values)
    assert axis.get_xlim()[0] == 0
    assert not axis.texts


@pytest.mark.parametrize("value", [0.0, 50.0, -1.0])
def test_a_constant_is_in_the_middle(value):
    low, high = axis_of(np.full(4, value)).get_ylim()
    assert low < value < high
    assert (low + high) / 2 == pytest.approx(value)


def test_many_decades_have_a_label_each():
    found = labels(axis_of(np.logspace(9, -3, 15), scale="log").yaxis)
    assert found == [10.0**power for power in range(-3, 10)]


def test_bands_are_inside():
    middle = np.linspace(5, 4, 15)
    axis = axis_of(middle, band=(middle - 1.3, middle + 1.3))
    assert axis.get_ylim()[0] < 2.7 and axis.get_ylim()[1] > 6.3


@pytest.mark.parametrize(("scale", "peak"), [("linear", 50.0), ("log", 1e300)])
def test_a_jump_is_named_and_leaves_the_others_readable(scale, peak):
    values = np.linspace(1, 0.2, 15)
    values[3] = peak
    axis = axis_of(values, 0.9 * np.linspace(1, 0.2, 15), scale=scale)
    (text,) = axis.texts
    assert text.get_text() == f"{peak:.3g}"
    assert text.xy[0] == STEPS[3]
    assert 1 < axis.get_ylim()[1] < 5


def test_a_rising_loss_is_no_jump():
    axis = axis_of(np.linspace(1, 0.01, 15), [0.6, 0.7, 3.0])
    assert axis.get_ylim()[1] > 3
    assert not axis.texts


@pytest.mark.parametrize("values", [[], [math.nan] * 4, [math.inf, -math.inf]])
def test_without_a_number_it_says_so(values):
    (text,) = axis_of(values, scale="log").texts
    assert text.get_text() == "no finite value"


def test_what_is_no_number_is_left_out():
    axis = axis_of([math.inf, 90.0, 80.0, math.nan], scale="log")
    assert axis.get_ylim()[0] < 80 and 90 < axis.get_ylim()[1] < 100
