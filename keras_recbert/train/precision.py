"""Chooses float32 or bfloat16 for a run, by a measurement where it runs."""

import dataclasses
import time

import tensorflow as tf

# Keras's name for each choice. "bfloat16" keeps weights and their updates in float32.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}

# How much faster matrix products must be for `auto` to take bfloat16. A training step
# is 65 % (narrow encoders) to 85 % (BERT-base) matrix products in float32; the rest
# gains nothing, and takes up to 1.5 times as long because of the casts. At a ratio r
# the step takes 0.65 / r + 0.35 * 1.5 of its time, which is 0.96 at r = 1.5: below
# that, a narrow encoder would lose digits and time.
THRESHOLD = 1.5

# Rows of a batch of 8 x 128 tokens, and BERT-base's feed-forward sub-layer.
ROWS, INNER, OUTER = 1024, 768, 3072
SECONDS = 0.5  # spent on the calls of a measurement, after the first ones


@dataclasses.dataclass(frozen=True)
class Precision:
    """The precision of a run, and why.

    Args:
        chosen: `"float32"` or `"bfloat16"`.
        reason: str. One sentence.
        gflops: dict of dtype to measured GFLOP/s; None where nothing was measured.
    """

    chosen: str
    reason: str
    gflops: dict | None = None

    @property
    def policy(self):
        """Name of the Keras dtype policy."""
        return POLICIES[self.chosen]


def choose_precision(requested, measure=None):
    """Decides what a run computes in.

    `"auto"` takes bfloat16 on a TPU, and elsewhere where matrix products are at least
    `THRESHOLD` times as fast in it as in float32. As it measures, two machines, or a
    busy and an idle one, may choose differently; name the precision for a run that
    others should repeat.

    Args:
        requested: `"auto"`, `"float32"` or `"bfloat16"`.
        measure: function without arguments that returns the GFLOP/s of both, by
            name; default: `measure_matrix_rates`.

    Returns:
        `Precision`.

    Raises:
        ValueError: if `requested` is something else.
    """
    if requested in POLICIES:
        return Precision(requested, "asked for")
    if requested != "auto":
        raise ValueError(
            "`precision` must be auto, float32 or bfloat16. Received: "
            f"precision={requested!r}."
        )
    if tf.config.list_logical_devices("TPU"):
        return Precision("bfloat16", "a TPU multiplies in bfloat16")
    rates = (measure or measure_matrix_rates)()
    ratio = rates["bfloat16"] / rates["float32"]
    chosen = "bfloat16" if ratio >= THRESHOLD else "float32"
    reason = (
        f"matrix products run at {rates['bfloat16']:,.0f} GFLOP/s in bfloat16 and "
        f"{rates['float32']:,.0f} in float32, {ratio:.2f} times as fast; bfloat16 "
        f"pays from {THRESHOLD} times"
    )
    return Precision(chosen, reason, rates)


def measure_matrix_rates(dtypes=tuple(POLICIES), rows=ROWS, seconds=SECONDS):
    """Measures how fast this machine multiplies matrices.

    Two products in a row, `(rows, 768) (768, 3072) (3072, 768)`, as in a feed-forward
    sub-layer; 32 such pairs on a GPU, which is done with one before the next call is
    under way. Runs on the device TensorFlow would take. The dtypes take turns and the
    fastest call of each counts: other work on the machine only ever slows one down.

    Args:
        dtypes: sequence of str.
        rows: int. Rows of the first matrix.
        seconds: float. Time for the calls measured; one of each dtype at least.

    Returns:
        dict of dtype to float, 10^9 floating-point operations a second.
    """
    pairs = 32 if tf.config.list_logical_devices("GPU") else 1

    @tf.function
    def products(x, up, down):
        for _ in range(pairs):
            x = tf.matmul(tf.matmul(x, up), down)
        return x[0, 0]

    def matrix(shape, dtype):
        # Deviations that keep the size of the numbers from product to product.
        values = tf.random.stateless_normal(shape, [0, 1], stddev=shape[0] ** -0.5)
        return tf.cast(values, dtype)

    def call(dtype):
        start = time.perf_counter()
        products(*matrices[dtype]).numpy()  # which waits for the device
        return time.perf_counter() - start

    shapes = ((rows, INNER), (INNER, OUTER), (OUTER, INNER))
    matrices = {dtype: [matrix(shape, dtype) for shape in shapes] for dtype in dtypes}
    for dtype in dtypes:
        call(dtype)  # traces, and wakes the threads
    times = {dtype: [] for dtype in dtypes}
    stop = time.perf_counter() + seconds
    while not times[dtypes[-1]] or time.perf_counter() < stop:
        for dtype in dtypes:
            times[dtype].append(call(dtype))
    operations = pairs * 2 * (2 * rows * INNER * OUTER)
    return {dtype: operations / min(times[dtype]) / 1e9 for dtype in dtypes}
