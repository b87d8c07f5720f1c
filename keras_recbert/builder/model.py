"""From a name to a model."""

import warnings

from keras_recbert.builder.encoder import (
    build_encoder,
    check_class,
    complete_arguments,
    encoder_class,
    make_preprocessor,
    sizes_of,
)
from keras_recbert.builder.words import set_vectors, take_vocabulary, take_words
from keras_recbert.keras_backend import require_tensorflow
from keras_recbert.models.registry import get_card


def build(name, task=None, weights=None, **overrides):
    """Builds a model of the zoo.

    Args:
        name: str. One of `keras_recbert.list_models()`.
        task: None for the bare encoder; `"classifier"`, `"multilabel_classifier"`,
            `"regressor"`, or the task of a head of your own (`keras_recbert.heads`)
            for an encoder with a head that takes raw texts; a dict of several heads
            by name, such as `{"tone": {"task": "classifier", "num_classes": 3},
            "stars": "regressor"}`, see `keras_recbert.tasks.TextModel`;
            `"pretrainer"` for one with the heads of its pre-training `objectives`.
        weights: str or path. A BERT to start from: a Hugging Face folder, a
            checkpoint of google-research/bert or of the Model Garden, a TF Hub
            SavedModel, or a preset of this package; or one on a hub, as
            `"hf://user/name"`; see `keras_recbert.convert.open_checkpoint`. Its
            vocabulary comes along (not how a preset cut its texts: `sequence_length`,
            `truncation`). A recurrent
            encoder starts as near to it as it can; `weights_report` of the encoder
            says what was copied and what is new. The head of a
            `BertForSequenceClassification` comes along for the same task, labels and
            `pooling="first"`. A `num_layers` below the
            checkpoint's takes the first layers. A preset that was built by this
            `name`, with whatever overrides, gives its own sizes. An encoder that is no
            BERT, such as a student, starts from a preset of an equal one.
        **overrides: sizes that differ from the card's: `num_layers`, `hidden_dim`,
            `num_heads`, `intermediate_dim`, `recurrent_dim`, `vocabulary_size`,
            `max_sequence_length`, `num_segments`, `dropout`, and what the kind of
            block takes beside (`step_size`, `gate`, ...);
            `gradient_checkpointing=True`, which trains in less memory and more time;
            `implementation`, see `explain`; `dtype`. With a task also its arguments,
            such as `num_classes`, `vocabulary`, `objectives`, `layer`, the block (or
            several, see `combine`) that the head reads, and `long_texts="windows"`,
            which truncates no text.
            Of an encoder of words, such as `"bilstm_student"`, with a task and without:
            `vectors`, the path of a file of word vectors, or of the folder of a BERT,
            for its word pieces and their vectors (of `"bi_attentive_student"`, too), at
            `vector_dim` by their principal components; and `texts`, whose words are
            the vocabulary; see `keras_recbert.text.learn_words`, whose `max_words` and
            `min_frequency` it takes, too; `num_oov_buckets`, rows of embeddings for all
            other words, by their hash.

    Returns:
        `keras_recbert.models.recbert_encoder.RecBertEncoder`, or a
        `keras_recbert.tasks` model.

    Raises:
        ValueError: if the name, the task or an override is unknown, or sizes do not
            fit each other or those of `weights`; says what was expected and the
            nearest valid thing.
        FileNotFoundError: if there is nothing at `weights` or `vectors`.
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
            make_model,
            packer_of,
            read_task,
            split_arguments,
        )

        task = read_task(task)
    checkpoint = None
    if weights is not None:
        from keras_recbert.convert.open_checkpoint import open_checkpoint

        checkpoint = open_checkpoint(weights)
        check_class(card, checkpoint)
    if task is None:
        return _bare_encoder(card, overrides, checkpoint)
    from keras_recbert.tasks.text_arguments import take_text_arguments

    overrides, vectors, kind = take_words(card, overrides)
    if checkpoint is not None and card.encoder != "RecBertEncoder":
        kind = _take_tokenizer(checkpoint, vectors, overrides)
    task_arguments, sizes = split_arguments(task, overrides)
    if task == "pretrainer":
        _check_pretrained(card)
        num_layers = sizes_of(card, checkpoint)["num_layers"]
        sizes |= _pretrained_heads(task_arguments, {"num_layers": num_layers, **sizes})
    head_too = False
    if checkpoint is not None:
        words = checkpoint.vocabulary
        take_vocabulary(checkpoint, words, task_arguments, "of `weights`")
        head_too = _takes_head(task, task_arguments, checkpoint)
    packer = packer_of(task, task_arguments.get("long_texts"))
    tokenizer, text = take_text_arguments(task_arguments, packer, kind)
    if tokenizer is not None and checkpoint is None:
        sizes.setdefault("vocabulary_size", tokenizer.vocabulary_size)
    encoder = build_encoder(card, sizes, checkpoint)
    if vectors is not None:
        set_vectors(encoder, tokenizer.vocabulary, vectors)
    preprocessor = tokenizer and packer(
        tokenizer, **{"max_sequence_length": encoder.max_sequence_length, **text}
    )
    model = make_model(task, encoder, preprocessor, task_arguments)
    if task == "pretrainer" and checkpoint is not None:
        from keras_recbert.convert.pretraining_heads import load_heads

        encoder.weights_report = load_heads(model.heads, encoder, checkpoint)
    if head_too:
        from keras_recbert.convert.huggingface_head import load_head

        encoder.weights_report = load_head(model.head.dense, encoder, checkpoint)
    return model


def _bare_encoder(card, overrides, checkpoint):
    """An encoder without a head; of a known vocabulary with a preprocessor."""
    if checkpoint is not None:
        encoder = build_encoder(card, overrides, checkpoint)
        if checkpoint.vocabulary is not None:
            encoder.preprocessor = make_preprocessor(checkpoint, encoder)
        return encoder
    sizes, vectors, kind = take_words(card, overrides)
    if vectors is None and not encoder_class(card.encoder).reads_words:
        return build_encoder(card, overrides)
    from keras_recbert.tasks.text_arguments import take_text_arguments
    from keras_recbert.text.text_preprocessor import TextPreprocessor

    tokenizer, text = take_text_arguments(sizes, TextPreprocessor, kind)
    if tokenizer is not None:
        sizes.setdefault("vocabulary_size", tokenizer.vocabulary_size)
    encoder = build_encoder(card, sizes)
    if tokenizer is not None:
        length = encoder.max_sequence_length
        text = {"max_sequence_length": length, **text}
        encoder.preprocessor = TextPreprocessor(tokenizer, **text)
    if vectors is not None:
        set_vectors(encoder, tokenizer.vocabulary, vectors)
    return encoder


def _take_tokenizer(checkpoint, vectors, overrides):
    """Class of the tokenizer of a checkpoint, whose buckets go into `overrides`."""
    if vectors is not None:
        raise ValueError(
            f"The word vectors are those of {checkpoint.path}. Received: `vectors` "
            "beside `weights`. Leave one out."
        )
    if checkpoint.num_oov_buckets:
        overrides["num_oov_buckets"] = checkpoint.num_oov_buckets
    return checkpoint.tokenizer


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
    complete_arguments(get_card(name), sizes, checkpoint)
    return checkpoint


def _check_pretrained(card):
    if card.encoder != "RecBertEncoder":
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
    first = arguments.get("pooling") in (None, "first")
    others = ("layer", "relu_units")
    if not same or not first or any(arguments.get(key) is not None for key in others):
        given = {
            key: arguments.get(key) for key in (*others, "label_names", "num_classes")
        }
        warnings.warn(
            f"{checkpoint.path} has a head for {head.label_names or 'one score'} on "
            "the pooled first token of the last block. The model that is built "
            "differs, so its head starts random. Received: "
            f"pooling={arguments.get('pooling')!r}, "
            + ", ".join(f"{key}={value!r}" for key, value in given.items())
            + ".",
            stacklevel=3,
        )
        return False
    arguments["pooling"] = "first"
    if head.label_names is not None:
        arguments["label_names"] = list(head.label_names)
    return True
