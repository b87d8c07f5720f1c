"""The heads that a BERT was pre-trained with, of checkpoints that still have them."""

import dataclasses

from keras_recbert.convert.checkpoint import Origin

# By format: our weight to whether it is stored as `(out, in)`, and the names it may
# have. Checkpoints converted in 2018 and 2019 kept TensorFlow's names of the norm.
_TRANSFORM = "cls.predictions.transform"
_TF1_TRANSFORM = "cls/predictions/transform"
MASKED_LM = {
    "Hugging Face": {
        "dense/kernel": (True, f"{_TRANSFORM}.dense.weight"),
        "dense/bias": (False, f"{_TRANSFORM}.dense.bias"),
        "norm/gamma": (
            False,
            f"{_TRANSFORM}.LayerNorm.weight",
            f"{_TRANSFORM}.LayerNorm.gamma",
        ),
        "norm/beta": (
            False,
            f"{_TRANSFORM}.LayerNorm.bias",
            f"{_TRANSFORM}.LayerNorm.beta",
        ),
        "bias": (False, "cls.predictions.bias", "cls.predictions.decoder.bias"),
    },
    "Google TF1": {
        "dense/kernel": (False, f"{_TF1_TRANSFORM}/dense/kernel"),
        "dense/bias": (False, f"{_TF1_TRANSFORM}/dense/bias"),
        "norm/gamma": (False, f"{_TF1_TRANSFORM}/LayerNorm/gamma"),
        "norm/beta": (False, f"{_TF1_TRANSFORM}/LayerNorm/beta"),
        "bias": (False, "cls/predictions/output_bias"),
    },
}
NEXT_SENTENCE = {
    "Hugging Face": {
        "kernel": (True, "cls.seq_relationship.weight"),
        "bias": (False, "cls.seq_relationship.bias"),
    },
    "Google TF1": {
        "kernel": (True, "cls/seq_relationship/output_weights"),
        "bias": (False, "cls/seq_relationship/output_bias"),
    },
}


def load_heads(heads, encoder, checkpoint):
    """Fills the heads of a pretrainer from a checkpoint that has them.

    A head is taken if it reads what it read there: the last block of as many, and
    nothing beside. Others start as in a model that is built anew.

    Args:
        heads: dict of the name of an objective to its `ObjectiveHead`, built.
        encoder: `RecBertEncoder`, filled from the checkpoint.
        checkpoint: `Checkpoint`.

    Returns:
        `WeightsReport`, that of the encoder with the heads added.

    Raises:
        CheckpointError: if a head is there in part, of another shape or damaged.
    """
    report = encoder.weights_report
    copied, new = dict(report.copied), dict(report.new)
    whole = encoder.config["num_layers"] == checkpoint.sizes["num_layers"]
    table = encoder.embeddings.token_embedding.embeddings
    for name, head in heads.items():
        names = {"masked_lm": MASKED_LM, "next_sentence": NEXT_SENTENCE}.get(name, {})
        names = names.get(checkpoint.format, {})
        lower = head.reading.layer is not None or head.reading.concatenate is not None
        if not whole or lower or not _held(names, checkpoint):
            names = {}
        weights = [weight for weight in head.layer.weights if weight is not table]
        origins = {
            weight.path: _origin(weight, names, checkpoint)
            for weight in weights
            if names
        }
        source = dataclasses.replace(checkpoint, origins=origins, optional=())
        for weight in weights:
            if names:
                weight.assign(source.weight(weight.path))
                copied[weight.path] = origins[weight.path].names
                new.pop(weight.path, None)
            elif weight.path not in copied:  # of a preset: the encoder has the head
                new.setdefault(weight.path, "as in a model that is built anew")
    used = {name for names in copied.values() for name in names}
    unused = tuple(name for name in report.unused if name not in used)
    return dataclasses.replace(report, copied=copied, new=new, unused=unused)


def _held(names, checkpoint):
    """Whether a checkpoint has any of the tensors of a head."""
    return any(
        theirs in checkpoint.shapes for _, *among in names.values() for theirs in among
    )


def _origin(weight, names, checkpoint):
    ours = next(name for name in names if f"/{weight.path}".endswith(f"/{name}"))
    transposed, *among = names[ours]
    theirs = next((name for name in among if name in checkpoint.shapes), among[0])
    shape = tuple(weight.shape)
    stored = shape[::-1] if transposed else shape
    return Origin((theirs,), stored, shape, transposed)
