"""Relative position buckets of T5 (Raffel et al. 2020, section 2.1)."""

import math

from keras import ops


def relative_position_bucket(relative_position, num_buckets=32, max_distance=128):
    """Maps signed distances between positions to bucket ids, both directions.

    Half of the buckets serve keys to the right of the query. Of each half, the
    first half are exact distances; the rest grow logarithmically up to
    `max_distance`, beyond which all distances share the last bucket.

    Args:
        relative_position: int32 tensor of any shape; key minus query position.
        num_buckets: int. Number of buckets, an even number.
        max_distance: int. Distance from which on the last bucket is used.

    Returns:
        int32 tensor in `[0, num_buckets)`, shape of `relative_position`.
    """
    half = num_buckets // 2
    exact = half // 2
    right = ops.cast(relative_position > 0, "int32") * half
    distance = ops.abs(relative_position)
    # `maximum` keeps log() away from 0; those entries are taken as exact.
    ratio = ops.cast(ops.maximum(distance, exact), "float32") / exact
    logarithmic = exact + ops.cast(
        ops.log(ratio) / math.log(max_distance / exact) * (half - exact), "int32"
    )
    logarithmic = ops.minimum(logarithmic, half - 1)
    return right + ops.where(distance < exact, distance, logarithmic)
