"""The feed-forward sub-layer of a BERT, for the recurrent layer that replaces it."""

import numpy as np

PATHS = {
    "kernel": "intermediate_dense/kernel",
    "bias": "intermediate_dense/bias",
    "out": "output_dense/kernel",
    "out_bias": "output_dense/bias",
}


class FeedForwardUnits:
    """The strongest units of a feed-forward sub-layer, in their order.

    Those with the largest `|W[:, j]| |V[j, :]|`. What a recurrent layer has beyond
    them adds nothing at the start: it is as it was built, and its outputs are
    multiplied with zero.

    Args:
        checkpoint: `keras_recbert.convert.checkpoint.Checkpoint` of a plain BERT.
        block: str. Prefix of its weights, `"block_0"`.
        width: int. Most units to keep.
    """

    def __init__(self, checkpoint, block, width):
        paths = {key: f"{block}/feed_forward/{path}" for key, path in PATHS.items()}
        self.names = {
            key: checkpoint.origins[path].names for key, path in paths.items()
        }
        kernel, bias, out, self.out_bias = map(checkpoint.weight, paths.values())
        strength = np.linalg.norm(kernel, axis=0) * np.linalg.norm(out, axis=1)
        kept = np.sort(np.argsort(-strength, kind="stable")[:width])
        self.kernel, self.bias, self.out = kernel[:, kept], bias[kept], out[kept]
        self.num_kept, self.num_units = len(kept), len(bias)

    def __str__(self):
        return f"{self.num_kept} of {self.num_units} units"

    def assign(self, *changes):
        """Assigns `(weight, value, source, how)` and reports it."""
        report = {}
        for weight, value, source, how in changes:
            weight.assign(value)
            report[weight.path] = self.names.get(source, ()), how
        return report
