"""The model of a fine-tuning run, its vocabulary, and how its labels count."""

import dataclasses

import numpy as np

import keras_recbert
from keras_recbert.builder.encoder import encoder_class
from keras_recbert.builder.words import LEARNED, RANDOM, vector_dim
from keras_recbert.convert.open_checkpoint import open_checkpoint
from keras_recbert.convert.token_table import is_folder, read_token_table
from keras_recbert.models.memory_estimate import check_step
from keras_recbert.models.registry import get_card
from keras_recbert.text.learned_vectors import learn_vectors
from keras_recbert.text.vocabulary import learn_vocabulary, load_vocabulary
from keras_recbert.text.word_vectors import read_word_vectors
from keras_recbert.text.word_vocabulary import learn_words


def build_model(config, task, vocabulary, precision, vectors=None):
    """The model of a run, untrained."""
    arguments = model_arguments(config, vocabulary, precision, vectors)
    arguments["max_sequence_length"] = row_length(config, task)
    packer_arguments = dict(task.packer_arguments)
    if config.reads_windows():
        arguments["long_texts"] = "windows"
        packer_arguments.pop("truncation", None)  # windows leave nothing out
    arguments = {**task.head_arguments, **packer_arguments, **arguments}
    return keras_recbert.build(config.model, task=task.head, **arguments)


def model_arguments(config, vocabulary, precision, vectors=None):
    """What `build` takes for a run of any task, but for the length of the rows."""
    arguments = {
        "weights": config.weights,
        "vocabulary": vocabulary,
        "dropout": config.dropout,
        "pooling": config.pooling,
        "layer": config.layer,
        "combine": config.combine,
        "concatenate": config.concatenate,
        "freeze": config.freeze,
        "lora_rank": config.lora_rank,
        "layerwise_decay": config.layerwise_decay,
        "dtype": precision.policy,
        **config.overrides,
    }
    if vectors is not None:
        arguments["vectors"] = vectors
    if config.num_oov_buckets:
        arguments["num_oov_buckets"] = config.num_oov_buckets
    if config.gradient_checkpointing:
        arguments["gradient_checkpointing"] = True
    if config.learning_rate is not None:
        arguments["learning_rate"] = config.learning_rate
    if config.lowercase is not None:
        arguments["lowercase"] = config.lowercase
    if config.window_pooling is not None:
        arguments["window_pooling"] = config.window_pooling
    return arguments


def row_length(config, task):
    """Word pieces of a row: those of config or task, or what the weights allow."""
    if config.max_sequence_length is not None:
        return config.max_sequence_length
    length = task.max_sequence_length
    if config.weights is None:
        return length
    sizes = open_checkpoint(config.weights).sizes
    positions = sizes.get("max_sequence_length", length)
    if positions < length:
        print(
            f"Rows have {positions} word pieces: {config.weights} has no more "
            "positions.",
            flush=True,
        )
    return min(positions, length)


def reads_words(config):
    """Whether the encoder of a run reads words, not word pieces."""
    return encoder_class(get_card(config.model).encoder).reads_words


def learns_vectors(config):
    """Whether a run learns the vectors of its words from its texts."""
    if config.vectors is None:
        return reads_words(config) and config.weights is None
    return config.vectors == LEARNED


def run_vocabulary(config, texts):
    """Vocabulary of a run, which is learned if none is given, and vectors of its words.

    Args:
        config: `FineTuningConfig`.
        texts: function that gives an iterable of str, the texts of the run.

    Returns:
        Tuple of a list of str and of `WordVectors` or None.
    """
    if learns_vectors(config):
        return _learn(config, texts)
    if is_folder(config.vectors):
        table = read_token_table(config.vectors)
        given = config.vocabulary
        return list(table.words) if given is None else load_vocabulary(given), table
    if config.vocabulary is not None:
        vocabulary = load_vocabulary(config.vocabulary)
        if config.vectors in (None, RANDOM):
            return vocabulary, None
        return vocabulary, read_word_vectors(config.vectors, vocabulary)
    if config.weights is not None:
        return open_checkpoint(config.weights).vocabulary, None
    lowercase = config.lowercase is not False
    if reads_words(config):
        vectors = None if config.vectors == RANDOM else config.vectors
        return _learn_words(config, texts, vectors)
    print(f"Learning {config.vocabulary_size:,} word pieces ...", flush=True)
    size = config.vocabulary_size
    return learn_vocabulary(texts(), size, lowercase=lowercase), None


def _learn(config, texts):
    """Vocabulary and vectors of the texts of a run."""
    if config.vocabulary is not None:
        vocabulary = load_vocabulary(config.vocabulary)
    else:
        vocabulary, _ = _learn_words(config, texts, None)
    print(f"Learning vectors of {len(vocabulary):,} words ...", flush=True)
    vectors = learn_vectors(
        texts(),
        vocabulary,
        vector_dim(get_card(config.model), config.overrides),
        lowercase=config.lowercase is not False,
        seed=config.seed,
    )
    return vocabulary, vectors


def _learn_words(config, texts, vectors):
    """The most frequent words of the texts of a run, and vectors of a file."""
    return learn_words(
        texts(),
        vectors,
        config.max_words,
        config.min_frequency,
        lowercase=config.lowercase is not False,
    )


def check_memory(model, batches, batch_size, strategy):
    """Raises `ValueError` if a step cannot fit in memory, before anything is written.

    Args:
        model: the model of the run.
        batches: `keras_recbert.tasks.text_batches.BucketedBatches`.
        batch_size: int. Examples of each batch but the last.
        strategy: `tf.distribute.Strategy`; each device has its share of the rows.
    """
    lengths = batches.lengths
    last = batches.num_rows - batch_size * (len(lengths) - 1)
    rows = [batch_size] * (len(lengths) - 1) + [last]
    tokens, length = max(
        (n * length, length) for n, length in zip(rows, lengths, strict=True)
    )
    tokens /= strategy.num_replicas_in_sync
    if model.long_texts == "windows":
        # The longest rows are those of several windows: a batch of them has at least
        # the mean number.
        tokens *= batches.rows_per_example
    check_step(model, tokens, tokens * length)


def class_weights(config, task, labels):
    """Weight of each class in the loss, by id; None for one weight."""
    if config.class_weights is None:
        return None
    is_label = task.targets == ("label",) and task.label_names is not None
    if not is_label or np.ndim(labels) != 1:
        raise ValueError(
            "`class_weights` are for a classifier. Received: class_weights="
            f"{config.class_weights!r} for {task.name}, whose head is {task.head!r}."
        )
    from sklearn.utils.class_weight import compute_class_weight

    found = np.unique(labels)
    weights = compute_class_weight(config.class_weights, classes=found, y=labels)
    weights = dict(zip(found.tolist(), weights.tolist(), strict=True))
    return {id: weights.get(id, 1.0) for id in range(len(task.label_names))}


@dataclasses.dataclass(frozen=True)
class LabelScale:
    """Mean and standard deviation of labels, which training makes 0 and 1.

    An optimizer whose steps have the size of its learning rate does not get from a new
    head near 0 to labels such as 1 to 100.

    Args:
        mean, deviation: float.
    """

    mean: float
    deviation: float

    @classmethod
    def of(cls, labels):
        """That of labels; deviation 1 where all are equal."""
        deviation = float(np.std(labels, dtype=np.float64))
        return cls(float(np.mean(labels, dtype=np.float64)), deviation or 1.0)

    def apply(self, labels):
        """Labels to train on: float32."""
        labels = np.asarray(labels, np.float64)
        return ((labels - self.mean) / self.deviation).astype(np.float32)

    def undo(self, model):
        """Makes a model that learned such labels predict the ones they were.

        Args:
            model: `TextRegressor`.
        """
        head = model.head.dense
        head.kernel.assign(head.kernel * self.deviation)
        head.bias.assign(head.bias * self.deviation + self.mean)
