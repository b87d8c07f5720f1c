"""Checks of arguments."""

from numbers import Integral, Real


def check_integer(least=1, most=None, **values):
    """Raises `ValueError` for a value that is no whole number in a range.

    Args:
        least: int.
        most: int, or None for no bound.
        **values: values by the names of their arguments.
    """
    for name, value in values.items():
        fits = isinstance(value, Integral) and not isinstance(value, bool)
        if not fits or value < least or (most is not None and value > most):
            span = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise ValueError(
                f"`{name}` must be a whole number {span}. Received: {name}={value!r}."
            )


def check_positive(**sizes):
    """Raises `ValueError` for a size that is no whole number of at least 1."""
    check_integer(**sizes)


def check_rate(**rates):
    """Raises `ValueError` for a dropout rate outside `[0, 1)`."""
    for name, rate in rates.items():
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= rate < 1:
            raise ValueError(
                f"`{name}` must be a number in [0, 1). Received: {name}={rate!r}."
            )


def check_seed(seed, name="seed"):
    """Raises `ValueError` for a seed that a generator of Keras or NumPy refuses."""
    if not 0 <= seed < 2**32:
        raise ValueError(
            f"`{name}` must be from 0 to 2**32 - 1. Received: {name}={seed}."
        )
