"""The model of a fine-tuning run, its vocabulary, and how its labels count."""

import dataclasses

import numpy as np

import keras_recbert
from keras_recbert.convert.open_checkpoint import open_checkpoint
from keras_recbert.models.memory_estimate import check_step
from keras_recbert.text.vocabulary import learn_vocabulary, load_vocabulary

MAX_SEQUENCE_LENGTH = 128  # word pieces of an example, by default


def build_model(config, task, vocabulary, precision):
    """The model of a run, untrained."""
    arguments = {
        "weights": config.weights,
        "vocabulary": vocabulary,
        "max_sequence_length": row_length(config),
        "dropout": config.dropout,
        "pooling": config.pooling,
        "layer": config.layer,
        "concatenate": config.concatenate,
        "freeze": config.freeze,
        "lora_rank": config.lora_rank,
        "layerwise_decay": config.layerwise_decay,
        "dtype": precision.policy,
        **config.overrides,
    }
    if config.gradient_checkpointing:
        arguments["gradient_checkpointing"] = True
    if config.learning_rate is not None:
        arguments["learning_rate"] = config.learning_rate
    if config.lowercase is not None:
        arguments["lowercase"] = config.lowercase
    return keras_recbert.build(
        config.model, task=task.head, **task.head_arguments, **arguments
    )


def row_length(config):
    """Word pieces of an example: those of the config, or what the weights allow."""
    if config.max_sequence_length is not None:
        return config.max_sequence_length
    if config.weights is None:
        return MAX_SEQUENCE_LENGTH
    positions = open_checkpoint(config.weights).sizes["max_sequence_length"]
    if positions < MAX_SEQUENCE_LENGTH:
        print(
            f"Texts are truncated to {positions} word pieces: {config.weights} has no "
            "more positions.",
            flush=True,
        )
    return min(positions, MAX_SEQUENCE_LENGTH)


def run_vocabulary(config, texts):
    """Word pieces of the run, which are learned if none are given."""
    if config.vocabulary is not None:
        return load_vocabulary(config.vocabulary)
    if config.weights is not None:
        return open_checkpoint(config.weights).vocabulary
    print(f"Learning {config.vocabulary_size:,} word pieces ...", flush=True)
    return learn_vocabulary(
        texts, config.vocabulary_size, lowercase=config.lowercase is not False
    )


def check_memory(model, lengths, num_examples, batch_size, strategy):
    """Raises `ValueError` if a step cannot fit in memory, before anything is written.

    Args:
        model: the model of the run.
        lengths: tuple of int, of the rows of each batch, in ascending order.
        num_examples, batch_size: int. Rows of all batches, and of all but the last.
        strategy: `tf.distribute.Strategy`; each device has its share of the rows.
    """
    last = num_examples - batch_size * (len(lengths) - 1)
    rows = [batch_size] * (len(lengths) - 1) + [last]
    tokens, length = max(
        (n * length, length) for n, length in zip(rows, lengths, strict=True)
    )
    tokens /= strategy.num_replicas_in_sync
    check_step(model, tokens, tokens * length)


def class_weights(config, task, labels):
    """Weight of each class in the loss, by id; None for one weight."""
    if config.class_weights is None:
        return None
    if task.label_names is None or np.ndim(labels) != 1:
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
