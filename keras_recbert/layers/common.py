"""Initial values shared by the layers, and checks of their sizes."""

from numbers import Integral

import keras


def bert_initializer():
    """Truncated normal of deviation 0.02 (BERT's released code)."""
    return keras.initializers.TruncatedNormal(stddev=0.02)


def check_positive(**sizes):
    """Raises `ValueError` for a size that is no positive whole number."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            raise ValueError(
                f"`{name}` must be a whole number of at least 1. "
                f"Received: {name}={size!r}."
            )


def check_rate(**rates):
    """Raises `ValueError` for a dropout rate outside `[0, 1)`."""
    for name, rate in rates.items():
        if not isinstance(rate, (int, float)) or not 0 <= rate < 1:
            raise ValueError(
                f"`{name}` must be a number in [0, 1). Received: {name}={rate!r}."
            )
