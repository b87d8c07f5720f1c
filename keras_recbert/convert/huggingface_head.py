"""The head of Hugging Face's `BertForSequenceClassification`, read and written."""

import dataclasses

import numpy as np

from keras_recbert.convert.checkpoint import CheckpointError, Origin, SequenceHead

ARCHITECTURE = "BertForSequenceClassification"
KERNEL, BIAS = "classifier.weight", "classifier.bias"
CLASSES, SCORE = "single_label_classification", "regression"


def read_head(config, shapes, width, where):
    """What a head tells apart, if a folder has one that a task here computes.

    Args:
        config: dict in `config.json`.
        shapes: dict of tensor name to shape.
        width: int. Width of the encoder.
        where: str. What stands before a key in messages.

    Returns:
        `SequenceHead`, or None: of another class, for several labels a text, or for
        several scores.

    Raises:
        CheckpointError: if its tensors or labels do not fit each other.
    """
    if config.get("architectures") != [ARCHITECTURE] or KERNEL not in shapes:
        return None
    num_labels = shapes[KERNEL][0] if shapes[KERNEL] else 0
    expected = {KERNEL: (num_labels, width), BIAS: (num_labels,)}
    for name, shape in expected.items():
        if tuple(shapes.get(name, ())) != shape:
            raise CheckpointError(
                f"{where}the head of a {ARCHITECTURE} must have the tensor {name!r} of "
                f"the shape {shape}. The shape in the files is {shapes.get(name)}."
            )
    kind = config.get("problem_type")
    if num_labels == 1 and kind in (None, SCORE):
        return SequenceHead(None)
    if num_labels < 2 or kind not in (None, CLASSES):
        return None
    return SequenceHead(_label_names(config.get("id2label"), num_labels, where))


def _label_names(names, num_labels, where):
    if names is None:
        return tuple(f"LABEL_{index}" for index in range(num_labels))
    ids = [str(index) for index in range(num_labels)]
    valid = isinstance(names, dict) and sorted(names) == sorted(ids)
    names = [names[index] for index in ids] if valid else names
    if not valid or not all(isinstance(name, str) for name in names):
        raise CheckpointError(
            f"{where}id2label must have a name for each id from 0 to {num_labels - 1}, "
            f"as {KERNEL!r} has {num_labels} rows. It is {str(names)[:200]}."
        )
    if len(set(names)) < num_labels:
        raise CheckpointError(
            f"{where}id2label must have different names. They are {names}. Edit it: "
            "two labels of one name cannot be told apart."
        )
    return tuple(names)


def load_head(head, encoder, checkpoint):
    """Fills the head of a task model from a checkpoint that has one.

    Args:
        head: layer, built. Its weights are called `kernel` and `bias`.
        encoder: `RecBertEncoder`, filled from the checkpoint.
        checkpoint: `Checkpoint` whose `head` is not None.

    Returns:
        `WeightsReport`, that of the encoder with the head added.

    Raises:
        CheckpointError: if a number is not finite.
    """
    shape = tuple(head.kernel.shape)
    origins = {
        "head/kernel": Origin((KERNEL,), shape[::-1], shape, transposed=True),
        "head/bias": Origin((BIAS,), shape[1:], shape[1:]),
    }
    source = dataclasses.replace(checkpoint, origins=origins, optional=())
    head.kernel.assign(source.weight("head/kernel"))
    head.bias.assign(source.weight("head/bias"))
    report = encoder.weights_report
    copied = {path: origin.names for path, origin in origins.items()}
    return dataclasses.replace(
        report,
        copied={**report.copied, **copied},
        unused=tuple(name for name in report.unused if name not in (KERNEL, BIAS)),
    )


def describe_head(model):
    """What `config.json` and the weights say of the head of a task model.

    Args:
        model: `TextClassifier` or `TextRegressor`.

    Returns:
        Tuple of a dict, part of the config, and a dict of name to array.

    Raises:
        ValueError: if the head is of another task, reads something else than BERT's
            pooled first token, or several windows.
    """
    if model.head.task not in ("classifier", "regressor"):
        raise ValueError(
            f"A {ARCHITECTURE} is written of a classifier or a regressor. Received: a "
            f"model with task={model.head.task!r}. A SavedModel or a preset keeps "
            "every head."
        )
    if model.head.relu_units is not None:
        raise ValueError(
            f"Hugging Face's {ARCHITECTURE} has one layer between BERT's pooled output "
            f"and the logits. Received: a head with relu_units={model.head.relu_units}."
            " A SavedModel or a preset keeps every head."
        )
    if model.long_texts == "windows":
        raise ValueError(
            f"Hugging Face's {ARCHITECTURE} reads one row of a text. Received: a model "
            "with long_texts='windows'. Write a SavedModel or a preset, which keep the "
            "windows; or fine-tune a model without."
        )
    layer = model.head.reading.layer
    if model.pooling != "first" or layer is not None:
        where = f"pooling={model.pooling!r}" + (
            "" if layer is None else f", layer={layer}"
        )
        raise ValueError(
            f"Hugging Face's {ARCHITECTURE} reads the pooled first token of the last "
            f"block only. Received: a model with {where}. Fine-tune one with "
            "pooling='first' (--pooling first); or write a SavedModel or a preset, "
            "which keep every head; or write the encoder alone: encoder = "
            "model.encoder; encoder.preprocessor = model.preprocessor; "
            "encoder.save_huggingface(folder)."
        )
    names = getattr(model.head, "label_names", None) or ["LABEL_0"]
    config = {
        "architectures": [ARCHITECTURE],
        "classifier_dropout": model.head_dropout,
        "problem_type": CLASSES if len(names) > 1 else SCORE,
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
    }
    kernel = np.ascontiguousarray(model.head.dense.kernel.numpy().T)
    return config, {KERNEL: kernel, BIAS: model.head.dense.bias.numpy()}
