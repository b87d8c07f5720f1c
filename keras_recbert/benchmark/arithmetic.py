"""What the formulas say a step costs: the yardstick for growth."""

from keras_recbert.benchmark.comparisons import sizes_of


def sizes_of_candidate(candidate):
    """Sizes of the encoder that a candidate builds, `block` among them."""
    job = candidate.job
    return sizes_of(job["name"], **job.get("overrides", job.get("sizes", {})))


def step_flops(sizes, shape, pass_):
    """Floating-point operations of the matrix products of a step.

    A product of `(m, k)` and `(k, n)` counts `2 m k n`; a training step counts three
    times the forward pass. Embeddings, element-wise work and the optimizer count
    nothing.

    Args:
        sizes: dict of arguments of `RecBertEncoder`.
        shape: `comparisons.Shape`.
        pass_: `"forward"` or `"train"`.
    """
    kind, config = _kind_and_config(sizes)
    token = 2 * kind.count_weights(config)
    if "num_heads" in config:
        token += 4 * shape.sequence_length * config["hidden_dim"]
    forward = sizes["num_layers"] * shape.batch_size * shape.sequence_length * token
    return 3 * forward if pass_ == "train" else forward


def stored_bytes(sizes, shape, pass_):
    """Bytes of activations that a float32 step cannot do without.

    Training keeps of each layer what its gradient reads (attention weights among
    them: a fused attention needs less); a forward pass keeps one layer at a time.
    """
    kind, config = _kind_and_config(sizes)
    token = kind.count_kept(config, shape.sequence_length)
    layers = sizes["num_layers"] if pass_ == "train" else 1
    return 4 * layers * shape.batch_size * shape.sequence_length * token


def _kind_and_config(sizes):
    # Here, as the process that starts the workers has no TensorFlow of its own.
    from keras_recbert.blocks import get_block

    kind, width = get_block(sizes["block"]), sizes["hidden_dim"]
    own = {key: sizes[key] for key in kind.arguments if key in sizes}
    return kind, {"hidden_dim": width, **kind.complete(width, own)}
