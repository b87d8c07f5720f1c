"""What a training run is, as data: a recipe file or the flags of a command."""

import dataclasses
import pathlib
import types
import typing

from keras_recbert.models.registry import nearest


@dataclasses.dataclass
class FineTuningConfig:
    """One fine-tuning run.

    Args:
        model: Name of the encoder, see `recbert list`.
        task: GLUE task: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte or wnli.
        data_dir: Folder with the official TSV files, GLUE's root or the task's own.
        tfds: Read the task through TensorFlow Datasets instead (downloads it).
        output_dir: Folder for everything the run writes; by default
            runs/TASK-MODEL-seedSEED.
        weights: A pretrained BERT to start from: a folder of Hugging Face, Google's
            TF1, the Model Garden or TF Hub, or a preset. Its vocabulary is used.
        vocabulary: A vocab.txt; by default the one of the weights, or one that is
            learned from the training texts.
        vocabulary_size: Word pieces to learn if no vocabulary is given.
        lowercase: Lower-case texts and strip accents (an uncased vocabulary); by
            default what the weights say, true without weights.
        epochs: Passes over the training examples.
        batch_size: Examples per step, over all devices.
        learning_rate: Highest learning rate; by default 5e-5 with weights (BERT,
            appendix A.3, tries 2e-5 to 5e-5) and 3e-4 from scratch.
        warmup_fraction: Part of all steps in which the learning rate rises.
        weight_decay: Decoupled weight decay, not on biases and LayerNorm.
        dropout: Dropout rate of encoder and head.
        pooling: What the head reads: mean (of all outputs; learns faster from scratch)
            or first (BERT's pooled first token).
        freeze: What is not trained: embeddings, encoder, or the number of the lowest
            blocks (and the embeddings).
        lora_rank: Train adapters of this rank and the head only.
        layerwise_decay: In (0, 1]: what the learning rate is multiplied with once
            for the highest block and once more for each below.
        max_sequence_length: Word pieces of an example, longer ones are truncated.
        precision: float32; bfloat16 (computed in bfloat16, weights kept in float32);
            or auto, the one that suits this machine, whose matrix rate is measured.
            Another machine may choose another, so name one for a run to repeat.
        gradient_checkpointing: Keep only the inputs of the blocks for the backward
            pass and compute the rest again: less memory, more time, same numbers.
        strategy: auto, one_device, mirrored (all GPUs of this machine) or tpu.
        seed: Seed of initial weights, order, dropout and splits.
        limit: Train on the first LIMIT examples only.
        export: Write a SavedModel of the best epoch into the output folder.
        overrides: Sizes that differ from the model's, such as {num_layers: 2}.
    """

    model: str = "swish_small"
    task: str = "sst2"
    data_dir: str | None = None
    tfds: bool = False
    output_dir: str | None = None
    weights: str | None = None
    vocabulary: str | None = None
    vocabulary_size: int = 8000
    lowercase: bool | None = None
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float | None = None
    warmup_fraction: float = 0.1
    weight_decay: float = 0.01
    dropout: float = 0.1
    pooling: str = "mean"
    freeze: int | str | None = None
    lora_rank: int | None = None
    layerwise_decay: float | None = None
    max_sequence_length: int = 128
    precision: str = "float32"
    gradient_checkpointing: bool = False
    strategy: str = "auto"
    seed: int = 0
    limit: int | None = None
    export: bool = True
    overrides: dict[str, int | float | str] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        for name in ("epochs", "batch_size", "vocabulary_size"):
            _check(getattr(self, name) >= 1, self, name, "at least 1")
        rate = self.learning_rate
        _check(rate is None or rate > 0, self, "learning_rate", "above 0")
        _check(0 <= self.warmup_fraction <= 1, self, "warmup_fraction", "in [0, 1]")
        _check(self.weight_decay >= 0, self, "weight_decay", "at least 0")
        _check(0 <= self.dropout < 1, self, "dropout", "in [0, 1)")
        freezable = self.freeze in (None, "embeddings", "encoder") or (
            isinstance(self.freeze, int) and self.freeze >= 0
        )
        rule = "embeddings, encoder or a number of blocks"
        _check(freezable, self, "freeze", rule)
        rank, decay = self.lora_rank, self.layerwise_decay
        _check(rank is None or rank >= 1, self, "lora_rank", "at least 1")
        _check(decay is None or 0 < decay <= 1, self, "layerwise_decay", "in (0, 1]")
        _check(self.max_sequence_length >= 8, self, "max_sequence_length", "at least 8")
        _check(self.limit is None or self.limit >= 1, self, "limit", "at least 1")
        _check(self.precision in PRECISIONS, self, "precision", " or ".join(PRECISIONS))
        _check(self.strategy in STRATEGIES, self, "strategy", " or ".join(STRATEGIES))
        if self.data_dir is not None and self.tfds:
            raise ValueError(
                "The examples come from one place. Received: both data_dir="
                f"{self.data_dir!r} and tfds=True. Leave one out."
            )

    def highest_learning_rate(self):
        """`learning_rate`, or the one that suits a run with or without weights."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 3e-4 if self.weights is None else 5e-5

    def run_dir(self):
        """Folder of the run."""
        return self.output_dir or f"runs/{self.task}-{self.model}-seed{self.seed}"


PRECISIONS = ("auto", "float32", "bfloat16")
STRATEGIES = ("auto", "one_device", "mirrored", "tpu")


def _check(valid, config, name, rule):
    if not valid:
        raise ValueError(
            f"`{name}` must be {rule}. Received: {name}={getattr(config, name)!r}."
        )


def read_recipe(path):
    """Reads a recipe, a YAML file with the fields of `FineTuningConfig`.

    `measured`, what the recipe gave when it was run, is skipped.

    Args:
        path: str or path.

    Returns:
        `FineTuningConfig`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and key, if a key is unknown or a value is of the
            wrong type or out of range; naming file and line, if it is no YAML.
    """
    import yaml

    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no recipe {path}.")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not valid YAML: {reason}.") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path}: a recipe is a mapping of keys to values.")
    values.pop("measured", None)
    fields = {field.name: field for field in dataclasses.fields(FineTuningConfig)}
    for key, value in values.items():
        if key not in fields:
            raise ValueError(
                f"{path}: unknown key {key!r}. {nearest(key, fields)}"
                f"Valid: {', '.join(fields)}."
            )
        if not _is_of(value, fields[key].type):
            raise ValueError(
                f"{path}: `{key}` must be of type {_type_name(fields[key].type)}. "
                f"Received: {value!r} of type {type(value).__name__}."
                + (
                    " YAML reads 3.0e-4 as a number, 3e-4 as a string."
                    if isinstance(value, str) and "e" in value
                    else ""
                )
            )
    try:
        return FineTuningConfig(**values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _is_of(value, kind):
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if any(typing.get_origin(kind) is dict for kind in kinds):
        return isinstance(value, dict) and all(isinstance(key, str) for key in value)
    if isinstance(value, bool):  # which Python takes for an int
        return bool in kinds
    if isinstance(value, int) and float in kinds:
        return True
    return isinstance(value, kinds)


def _type_name(kind):
    return getattr(kind, "__name__", str(kind))
