"""From a name to a model."""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor

from keras_recbert.core.names import check_arguments
from keras_recbert.keras_backend import require_tensorflow
from keras_recbert.models import zoo  # noqa: F401  registers the names
from keras_recbert.models.registry import get_card, list_models


def build(name, task=None, weights=None, **overrides):
    """Builds a model of the zoo.

    Args:
        name: str. One of `keras_recbert.list_models()`.
        task: None for the bare encoder; `"classifier"`, `"multilabel_classifier"`,
            `"regressor"`, or the task of a head of your own (`keras_recbert.heads`)
            for an encoder with a head that takes raw texts; `"pretrainer"` for one
            with the heads of its pre-training `objectives`.
        weights: str or path. A BERT to start from: a Hugging Face folder, a
            checkpoint of google-research/bert or of the Model Garden, a TF Hub
            SavedModel, or a preset of this package; see
            `keras_recbert.convert.open_checkpoint`. Its vocabulary comes along (not
            how a preset cut its texts: `sequence_length`, `truncation`). A recurrent
            encoder starts as near to it as it can; `weights_report` of the encoder
            says what was copied and what is new. The head of a
            `BertForSequenceClassification` comes along for the same task, labels and
            `pooling="first"`. A `num_layers` below the
            checkpoint's takes the first layers. A preset that was built by this
            `name`, with whatever overrides, gives its own sizes.
        **overrides: sizes that differ from the card's: `num_layers`, `hidden_dim`,
            `num_heads`, `intermediate_dim`, `recurrent_dim`, `vocabulary_size`,
            `max_sequence_length`, `num_segments`, `dropout`, and what the kind of
            block takes beside (`step_size`, `gate`, ...);
            `gradient_checkpointing=True`, which trains in less memory and more time;
            `implementation`, see `explain`; `dtype`. With a task also its arguments,
            such as `num_classes`, `vocabulary`, `objectives`, and `layer`, the block
            that the head reads.

    Returns:
        `keras_recbert.models.backbone.RecBertBackbone`, or a
        `keras_recbert.tasks` model.

    Raises:
        ValueError: if the name, the task or an override is unknown, or sizes do not
            fit each other or those of `weights`; says what was expected and the
            nearest valid thing.
        FileNotFoundError: if there is nothing at `weights`.
        ImportError: if Keras does not run on TensorFlow; says how to switch.

    Example:

    >>> encoder = keras_recbert.build("swish_tiny", vocabulary_size=1000)
    >>> model = keras_recbert.build(
    ...     "swish_tiny", task="classifier", num_classes=2, vocabulary="vocab.txt"
    ... )
    """
    require_tensorflow()
    card = get_card(name)
    if task is not None:
        from keras_recbert.tasks.task_models import (
            check_task,
            make_model,
            packer_of,
            split_arguments,
        )

        check_task(task)
    checkpoint = None
    if weights is not None:
        from keras_recbert.convert.open_checkpoint import open_checkpoint

        checkpoint = open_checkpoint(weights)
    if task is None:
        backbone = _build_backbone(card, overrides, checkpoint)
        if checkpoint is not None and checkpoint.vocabulary is not None:
            backbone.preprocessor = _make_preprocessor(checkpoint, backbone)
        return backbone
    from keras_recbert.tasks.text_model import take_text_arguments

    task_arguments, sizes = split_arguments(task, overrides)
    if task == "pretrainer":
        _check_pretrained(card)
        num_layers = _sizes(card, checkpoint)["num_layers"]
        sizes |= _pretrained_heads(task_arguments, {"num_layers": num_layers, **sizes})
    head_too = False
    if checkpoint is not None:
        _take_vocabulary(checkpoint, task_arguments)
        head_too = _takes_head(task, task_arguments, checkpoint)
    packer = packer_of(task)
    tokenizer, text = take_text_arguments(task_arguments, packer)
    if tokenizer is not None and checkpoint is None:
        sizes.setdefault("vocabulary_size", tokenizer.vocabulary_size)
    backbone = _build_backbone(card, sizes, checkpoint)
    preprocessor = tokenizer and packer(
        tokenizer, **{"max_sequence_length": backbone.max_sequence_length, **text}
    )
    model = make_model(task, backbone, preprocessor, task_arguments)
    if task == "pretrainer" and checkpoint is not None:
        from keras_recbert.convert.pretraining_heads import load_heads

        backbone.weights_report = load_heads(model.heads, backbone, checkpoint)
    if head_too:
        from keras_recbert.convert.huggingface_head import load_head

        backbone.weights_report = load_head(model.head.dense, backbone, checkpoint)
    return model


def load(path):
    """Loads a model that was saved, or a BERT of another tool.

    Args:
        path: str or path. A folder written by `save_preset`; a file `model.keras`;
            or a BERT that `build(weights=...)` reads, which gives the plain encoder
            in the sizes of the checkpoint, and of a `BertForSequenceClassification`
            the classifier or regressor.

    Returns:
        The model that was saved: `RecBertBackbone`, `TextClassifier`,
        `TextRegressor`, `TextModel`, or of a `.keras` file also `Pretrainer`. Of a
        BERT, a `RecBertBackbone` with `weights_report`; or a task model with its
        labels, whose `backbone` has the report.

    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ValueError: if a file is damaged, or is not what its card says; naming file
            and tensor.
    """
    require_tensorflow()
    from keras_recbert.convert.open_checkpoint import is_preset, open_checkpoint

    if str(path).endswith(".keras"):
        from keras_recbert.convert.load_keras import load_model

        return _trained(load_model(path))
    if is_preset(path):
        from keras_recbert.convert.preset import load_preset

        return _trained(load_preset(path, _classes()))
    from keras_recbert.convert.warm_start import load_weights

    checkpoint = open_checkpoint(path)
    backbone = _encoder_class("RecBertBackbone")(**checkpoint.sizes, name="bert")
    backbone.weights_report = load_weights(backbone, checkpoint)
    backbone.started_from = _started_from(backbone, checkpoint)
    preprocessor = None
    if checkpoint.vocabulary is not None:
        preprocessor = _make_preprocessor(checkpoint, backbone)
    if checkpoint.head is None:
        backbone.preprocessor = preprocessor
        return backbone
    from keras_recbert.convert.huggingface_head import load_head
    from keras_recbert.tasks.task_models import make_model

    arguments = {"pooling": "first"}
    if checkpoint.head.label_names is not None:
        arguments["label_names"] = checkpoint.head.label_names
    task = "regressor" if checkpoint.head.label_names is None else "classifier"
    model = make_model(task, backbone, preprocessor, arguments)
    backbone.weights_report = load_head(model.head.dense, backbone, checkpoint)
    return model


def save_preset(model, directory, metrics=None, overwrite=False, **card):
    """Writes a model into a folder that `load` reads; `model.save_preset` does it too.

    Args:
        model: `RecBertBackbone`, `TextClassifier` or `TextRegressor`.
        directory: str or path. A folder that does not exist yet.
        metrics: optional dict of JSON, such as `{"SST-2 dev accuracy": 91.4}`.
        overwrite: bool. Replaces `directory` if it is a preset and nothing else.
        **card: `source` and `license`, str: where the weights come from, and under
            what terms they may be used.

    Raises:
        FileExistsError, TypeError, ValueError: see
            `keras_recbert.convert.preset.write_preset`.
    """
    from keras_recbert.convert.preset import write_preset

    write_preset(model, directory, metrics, overwrite=overwrite, **card)


def _trained(model):
    """A model that was saved, so that a head put on it knows."""
    getattr(model, "backbone", model).started_from = "preset"
    return model


def check_weights(name, weights, **overrides):
    """Raises what `build(name, weights=weights)` would raise, and builds nothing.

    Args:
        name, weights, overrides: as for `build`; arguments of a task are not checked.

    Returns:
        `keras_recbert.convert.checkpoint.Checkpoint`.
    """
    require_tensorflow()
    from keras_recbert.convert.open_checkpoint import open_checkpoint

    checkpoint = open_checkpoint(weights)
    from keras_recbert.tasks.task_models import split_arguments

    _, sizes = split_arguments("classifier", overrides)
    _arguments(get_card(name), sizes, checkpoint)
    return checkpoint


def count_parameters(name, **overrides):
    """Number of parameters of an encoder, counted without filling its weights.

    The model is built for real, but its variables get shapes only: counting
    `trans_blstm_large` needs no 3 GB.

    Args:
        name: str. One of `keras_recbert.list_models()`.
        **overrides: as for `build`.

    Returns:
        int.
    """
    require_tensorflow()
    return _unfilled(lambda: build(name, **overrides).count_params())


def explain(model, **overrides):
    """Says what each kind of layer of an encoder runs on this machine, and why.

    Args:
        model: str or path. A name of the zoo, or what `load` takes. Of a name, and of
            anything but a `.keras` file, no weights are filled.
        **overrides: arguments of the encoder to change, such as
            `implementation="loop"`.

    Returns:
        `keras_recbert.models.explain.Explanation`; `print` it.

    Raises:
        ValueError, FileNotFoundError: as `build` and `load`.
    """
    require_tensorflow()
    from keras_recbert.models.explain import explain as explain_encoder

    cls, arguments = _encoder_and_arguments(model, overrides)
    return _unfilled(lambda: explain_encoder(_encoder_class(cls)(**arguments)))


def encoder_arguments(model, **overrides):
    """Arguments of the encoder of anything that has one.

    Args:
        model, overrides: as for `explain`.

    Returns:
        dict, for the class of the encoder.
    """
    return _encoder_and_arguments(model, overrides)[1]


def _encoder_and_arguments(model, overrides):
    """Name of the class of an encoder, and its arguments."""
    is_file = str(model).endswith(".keras")
    if model not in list_models() and (is_file or os.path.exists(model)):
        from keras_recbert.convert.open_checkpoint import is_preset, open_checkpoint

        if is_file:
            loaded = load(model)
            encoder = getattr(loaded, "backbone", loaded)
            cls, arguments = type(encoder).__name__, encoder.get_config()
        elif is_preset(model):
            from keras_recbert.convert.preset import read_preset

            preset = read_preset(model)
            cls, arguments = preset.encoder_class, preset.encoder_arguments
        else:
            cls = "RecBertBackbone"
            sizes = {"block": "transformer", **open_checkpoint(model).sizes}
            arguments = {"name": "bert", **sizes}
        valid = _encoder_class(cls).arguments(arguments)
        check_arguments(model, overrides, (*valid, "dtype"))
        return cls, {**arguments, **overrides}
    try:
        card = get_card(model)
    except ValueError as error:
        raise ValueError(
            f"{error} There is no file or folder {model} either."
        ) from None
    return card.encoder, _arguments(card, overrides, None)


def _unfilled(function):
    """Calls a function that builds models whose variables get shapes only."""

    def call():
        import keras

        with keras.StatelessScope(initialize_variables=False):
            return function()

    # Keras keeps a list of the variables that were never filled and fills them when
    # the next scope of this kind ends, here or in Keras itself. The list is one of
    # each thread, so in a thread of its own it goes when the thread does.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(call).result()


def _classes():
    """The classes a preset may name."""
    from keras_recbert.models import backbone  # noqa: F401  registers its class
    from keras_recbert.models.encoder import get_encoder, list_encoders
    from keras_recbert.tasks.text_classifier import TextClassifier
    from keras_recbert.tasks.text_model import TextModel
    from keras_recbert.tasks.text_regressor import TextRegressor

    encoders = map(get_encoder, list_encoders())
    classes = (*encoders, TextClassifier, TextModel, TextRegressor)
    return {cls.__name__: cls for cls in classes}


def _build_backbone(card, overrides, checkpoint=None):
    arguments = _arguments(card, overrides, checkpoint)
    backbone = _encoder_class(card.encoder)(**arguments)
    if checkpoint is not None:
        from keras_recbert.convert.warm_start import load_weights

        backbone.weights_report = load_weights(backbone, checkpoint)
        backbone.started_from = _started_from(backbone, checkpoint)
    return backbone


def _encoder_class(name):
    """The class of encoder of a name."""
    from keras_recbert.models import backbone  # noqa: F401  registers its class
    from keras_recbert.models.encoder import get_encoder

    return get_encoder(name)


def _started_from(backbone, checkpoint):
    """What `fine_tuning_defaults` goes by."""
    if checkpoint.format == "keras_recbert":
        return "preset"
    loaded = {**backbone.weights_report.copied, **backbone.weights_report.adapted}
    has_blocks = any(path.startswith("block_") for path in loaded)
    return "bert" if has_blocks else None


def _arguments(card, overrides, checkpoint):
    """Arguments of the encoder, checked to fit the checkpoint."""
    from keras_recbert.blocks import complete_config, get_block

    valid = _encoder_class(card.encoder).arguments(card.sizes)
    check_arguments(f"{card.name!r}", overrides, (*valid, "dtype"))
    if card.encoder != "RecBertBackbone":
        if checkpoint is not None:
            raise ValueError(
                f"`weights` start encoders of BERT's frame. {card.name!r} is a "
                f"{card.encoder}. Received: {checkpoint.path}. `keras_recbert.load` "
                "gives a saved model back."
            )
        return {**card.sizes, "name": card.name, **overrides}
    own = get_block(card.sizes["block"]).arguments
    sizes = _sizes(card, checkpoint)
    if overrides.get("hidden_dim", sizes["hidden_dim"]) != sizes["hidden_dim"]:
        # These follow the width unless they are named too.
        for size in ("num_heads", "intermediate_dim", "recurrent_dim"):
            sizes.pop(size, None)
    if "num_heads" not in own:
        sizes.pop("num_heads", None)
    arguments = {**sizes, "name": card.name, **overrides}
    if checkpoint is not None:
        from keras_recbert.convert.warm_start import check_sizes
        from keras_recbert.core.checks import check_positive

        # What neither the card nor the caller names is the checkpoint's.
        arguments = {**_open_sizes(checkpoint), **arguments}
        config = complete_config(arguments)
        numbers = [key for key, value in checkpoint.sizes.items() if type(value) is int]
        check_positive(**{key: config[key] for key in numbers if key in config})
        check_sizes(f"{card.name!r}", config, set(overrides), checkpoint)
    return arguments


def _sizes(card, checkpoint):
    """Those of the card, or of a preset that was built by its name."""
    if checkpoint is None or checkpoint.name != card.name:
        return dict(card.sizes)
    return {**card.sizes, **checkpoint.sizes}


def _open_sizes(checkpoint):
    """What no name of the zoo fixes, as the checkpoint has it."""
    names = (
        "vocabulary_size",
        "max_sequence_length",
        "num_segments",
        "pretrained_heads",
    )
    return {n: checkpoint.sizes[n] for n in names if n in checkpoint.sizes}


def _check_pretrained(card):
    if card.encoder != "RecBertBackbone":
        raise ValueError(
            "A pretrainer's heads read encoders of BERT's frame. Received: "
            f"{card.name!r}, a {card.encoder}."
        )


def _pretrained_heads(task_arguments, sizes):
    """What the encoder of a pretrainer notes, whatever was noted before."""
    from keras_recbert.tasks.pretrainer import BERT_OBJECTIVES
    from keras_recbert.tasks.pretraining_checks import pretrained_heads

    if "pretrained_heads" in sizes:
        raise ValueError(
            "Where the heads of a pretrainer read follows from its objectives, `layer` "
            "and `concatenate` of each. Leave `pretrained_heads` out. Received: "
            f"pretrained_heads={sizes['pretrained_heads']!r}."
        )
    objectives = task_arguments.get("objectives", BERT_OBJECTIVES)
    return {"pretrained_heads": pretrained_heads(objectives, sizes["num_layers"])}


def _take_vocabulary(checkpoint, arguments):
    """Sets what `arguments` leave open about the text to the checkpoint's."""
    for key in ("lowercase", "strip_accents"):
        if getattr(checkpoint, key) is not None:
            arguments.setdefault(key, getattr(checkpoint, key))
    given = arguments.get("vocabulary")
    if checkpoint.vocabulary is None:
        return
    if given is not None:
        from keras_recbert.text.vocabulary import check_vocabulary, load_vocabulary

        is_path = isinstance(given, (str, os.PathLike))
        given = load_vocabulary(given) if is_path else check_vocabulary(given)
        if tuple(given) != checkpoint.vocabulary:
            raise ValueError(
                "`vocabulary` differs from that of `weights`: its embeddings would be "
                f"those of other word pieces. Received: {len(given)} word pieces; "
                f"{checkpoint.path} has {len(checkpoint.vocabulary)}. Leave it out to "
                "take the checkpoint's."
            )
    arguments["vocabulary"] = list(checkpoint.vocabulary)


def _takes_head(task, arguments, checkpoint):
    """Whether a task takes the head of a checkpoint; then sets its arguments so.

    Warns if there is one for the task, and other labels are asked for.
    """
    head = checkpoint.head
    wanted = {"classifier": False, "regressor": True}.get(task)
    if head is None or wanted is not (head.label_names is None):
        return False
    names, num_classes = arguments.get("label_names"), arguments.get("num_classes")
    same = head.label_names is None or (
        num_classes in (None, len(head.label_names))
        if names is None
        else tuple(names) == head.label_names
    )
    if not same or arguments.get("pooling") not in (None, "first"):
        given = {key: arguments.get(key) for key in ("label_names", "num_classes")}
        warnings.warn(
            f"{checkpoint.path} has a head for {head.label_names or 'one score'} on "
            "the pooled first token. The model that is built differs, so its head "
            f"starts random. Received: pooling={arguments.get('pooling')!r}, "
            + ", ".join(f"{key}={value!r}" for key, value in given.items())
            + ".",
            stacklevel=3,
        )
        return False
    arguments["pooling"] = "first"
    if head.label_names is not None:
        arguments["label_names"] = list(head.label_names)
    return True


def _make_preprocessor(checkpoint, backbone):
    from keras_recbert.text.text_preprocessor import TextPreprocessor
    from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

    tokenizer = WordPieceTokenizer(
        list(checkpoint.vocabulary), checkpoint.lowercase, checkpoint.strip_accents
    )
    return TextPreprocessor(tokenizer, max_sequence_length=backbone.max_sequence_length)
