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
        sizes: dict of arguments of `RecBertBackbone`.
        shape: `comparisons.Shape`.
        pass_: `"forward"` or `"train"`.
    """
    dim = sizes["hidden_dim"]
    block = sizes["block"]
    token = 0
    if block != "blstm":
        token += 8 * dim**2 + 4 * shape.sequence_length * dim
    if block in ("transformer", "trans_blstm", "trans_blstm_half"):
        token += 4 * dim * sizes["intermediate_dim"]
    if block == "swish_rnn":
        token += 6 * dim * sizes["recurrent_dim"]
    if "blstm" in block:
        units = _units(sizes)
        token += 16 * units * (dim + units)
        if block != "trans_blstm_half":
            token += 4 * units * dim
    forward = sizes["num_layers"] * shape.batch_size * shape.sequence_length * token
    return 3 * forward if pass_ == "train" else forward


def stored_bytes(sizes, shape, pass_):
    """Bytes that a float32 step cannot do without, as textbooks count them.

    Training keeps of each layer what its gradient reads (attention weights among
    them: a fused attention needs less); a forward pass keeps one layer at a time.
    Training adds gradients and two moments to each weight.
    """
    dim, length = sizes["hidden_dim"], shape.sequence_length
    block = sizes["block"]
    token = 2 * dim  # what the two LayerNorms give
    if block != "blstm":
        token += 5 * dim + 2 * sizes["num_heads"] * length
    if block in ("transformer", "trans_blstm", "trans_blstm_half"):
        token += 2 * sizes["intermediate_dim"] + dim
    if block == "swish_rnn":
        token += 4 * sizes["recurrent_dim"] + dim
    if "blstm" in block:
        token += 12 * _units(sizes) + dim
    kept = sizes["num_layers"] if pass_ == "train" else 1
    return 4 * kept * shape.batch_size * length * token


def _units(sizes):
    half = sizes["block"] == "trans_blstm_half"
    default = sizes["hidden_dim"] // (2 if half else 1)
    return sizes.get("recurrent_dim", default)
