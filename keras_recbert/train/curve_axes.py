"""Axes of learning curves: readable at their ends, and beside a run that diverged."""

import math

import numpy as np

# What is this many times the bulk of all values has a number in place of a line, or
# the rest would lie flat on the bottom.
_OUTLIER = {"linear": 5.0, "log": 100.0}


def fit_axes(axis, scale="linear"):
    """Ends both axes at labelled ticks around the curves; begins steps at 0.

    Where a curve leaves the picture, because a loss has jumped to many times the
    others, the axis ends below that and the value stands there.

    Args:
        axis: `matplotlib.axes.Axes` with its curves and bands.
        scale: str. `"linear"` or `"log"`, of the values.
    """
    steps, values = _points(axis.lines)
    axis.set_ylim(1, 10)  # so that no limit is sought among values such as 1e300
    axis.set_yscale(scale)
    _set_ticks(axis.xaxis, _ticks(0.0, max([*steps, 1e-9])))
    is_drawn = np.isfinite(values) & ((values > 0) | (scale == "linear"))
    if not is_drawn.any():
        axis.text(0.5, 0.5, "no finite value", transform=axis.transAxes, ha="center")
        return
    limit = _OUTLIER[scale] * max(map(_bulk, axis.lines))
    is_outlier = is_drawn & (values > limit) & (limit > 0)
    inside = np.concatenate([values[is_drawn & ~is_outlier], _band(axis, limit)])
    low, high = inside.min(), inside.max()
    find = _log_ticks if scale == "log" else _ticks
    _set_ticks(axis.yaxis, find(low, high))
    if is_outlier.any():
        _name_the_largest(axis, np.where(is_outlier, values, -math.inf), steps)


def _points(lines):
    """Steps and values of all curves."""
    if not lines:
        return np.zeros(0), np.zeros(0)
    points = np.concatenate([line.get_xydata() for line in lines]).astype("float64")
    return points[:, 0], points[:, 1]


def _bulk(line):
    """What nine tenths of the values of a curve are below."""
    values = np.asarray(line.get_ydata(), "float64")
    values = values[np.isfinite(values)]
    return np.quantile(values, 0.9) if len(values) else -math.inf


def _band(axis, limit):
    """Values of the edges of bands, but those above the limit."""
    edges = [
        path.vertices[:, 1] for band in axis.collections for path in band.get_paths()
    ]
    values = np.concatenate([*edges, np.zeros(0)])
    is_drawn = np.isfinite(values) & (values <= limit)
    return values[is_drawn & ((values > 0) | (axis.get_yscale() == "linear"))]


def _ticks(low, high):
    """Round numbers, the first at or below `low` and the last at or above `high`."""
    from matplotlib.ticker import MaxNLocator

    if high - low <= 1e-6 * abs(high):  # a flat line, in the middle
        pad = 0.05 * abs(high) or 1.0
        low, high = low - pad, high + pad
    ticks = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    slack = 1e-9 * (high - low)
    first = np.flatnonzero(ticks <= low + slack)
    last = np.flatnonzero(ticks >= high - slack)
    return ticks[first[-1] if len(first) else 0 : (last[0] if len(last) else -1) + 1]


def _log_ticks(low, high):
    """As `_ticks`, of 1, 2 and 5 times powers of 10 where that is fine enough."""
    if high < 5 * low:
        ticks = _ticks(low, high)
        return ticks[ticks > 0]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(powers) <= 5 else (1,)
    ticks = np.array([factor * 10.0**power for power in powers for factor in factors])
    first = np.flatnonzero(ticks <= low * (1 + 1e-9))[-1]
    last = np.flatnonzero(ticks >= high * (1 - 1e-9))[0]
    return ticks[first : last + 1]


def _set_ticks(axis, ticks):
    from matplotlib.ticker import NullLocator

    axis.set_minor_locator(NullLocator())
    axis.set_ticks(ticks, [f"{round(tick, 12):g}" for tick in ticks])
    # A little room, so that what is drawn on the edge is seen.
    low, high = axis.get_transform().transform([ticks[0], ticks[-1]])
    room = 0.02 * (high - low)
    begin = low if axis.axis_name == "x" else low - room
    ends = axis.get_transform().inverted().transform([begin, high + room])
    axis.axes.set(**{f"{axis.axis_name}lim": ends})


def _name_the_largest(axis, values, steps):
    index = int(values.argmax())
    axis.annotate(
        f"{values[index]:.3g}",
        xy=(steps[index], 1.0),
        xycoords=axis.get_xaxis_transform(),
        xytext=(0, -18),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize="small",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        arrowprops={"arrowstyle": "->"},
    )
