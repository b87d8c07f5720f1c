"""What a training run is, as data: a recipe file or the flags of a command."""

import dataclasses
import math

from keras_recbert.core.checks import check_seed
from keras_recbert.core.mappings import from_mapping, read_yaml
from keras_recbert.objectives import read_objectives
from keras_recbert.own_data_options import check_own_data, table_name


class RunConfig:
    """What the options of every run have in common."""

    def changes(self, stopped):
        """What must be the same to resume a run, and is not.

        Args:
            stopped: dict of the fields of that run, as JSON gives them back.

        Returns:
            str such as `steps=10 (now 20)`; empty if nothing stands against it.
        """
        # Options that there were not yet when it was stopped had their defaults.
        stopped = {**dataclasses.asdict(type(self)()), **stopped}
        free = self._free_options()
        return ", ".join(
            f"{name}={stopped[name]!r} (now {value!r})"
            for name, value in dataclasses.asdict(self).items()
            if name not in free and stopped[name] != value
        )

    def _free_options(self):
        """Options that may change when a run resumes."""
        return ["output_dir", "strategy", "overwrite"]

    def _check_shared(self):
        """Checks the options that both kinds of run have."""
        check_seed(self.seed)
        _check(self.precision in PRECISIONS, self, "precision", " or ".join(PRECISIONS))
        paths = ("data_dir", "corpus", "output_dir", "weights", "vocabulary")
        for name in (*paths, "train", "validation", "test"):
            if getattr(self, name, None) == "":
                raise ValueError(
                    f"`{name}` is an empty path. Name one, or leave {name} out."
                )
        self._check_overrides()

    def _check_overrides(self):
        """Refuses sizes that would silently take the place of an option."""
        options = {field.name: field.name for field in dataclasses.fields(self)}
        options["dtype"] = "precision"
        for name in self.overrides:
            if name in options:
                raise ValueError(
                    f"`{options[name]}` is an option of its own. Received: {name!r} in "
                    f"overrides={self.overrides!r}. Write {options[name]} beside "
                    "overrides."
                )


@dataclasses.dataclass
class FineTuningConfig(RunConfig):
    """One fine-tuning run.

    Args:
        model: Name of the encoder, see `recbert list`.
        task: Data set, one of `recbert list --tasks`; by default sst2. Of a table of
            your own: classifier or regressor, by default what its labels look like; or
            multilabel_classifier.
        data_dir: Folder with the files of the task, its own or the one above.
        tfds: Read the task through TensorFlow Datasets instead (downloads it).
        train: A table of your own to train on instead of a task: .csv, .tsv, .jsonl
            (one JSON object a line) or .parquet.
        validation: A table like it that decides which epoch is kept; by default a part
            of the training table.
        test: A table like it to predict at the end, and to score if it has labels.
        text_column: Column of the texts, or two columns of pairs; guessed by default.
        label_column: Column of the labels; guessed by default.
        label_separator: What stands between the labels in a cell of a
            multilabel_classifier; by default |, ; or a comma, the first that is there.
        encoding: Encoding of the tables; by default UTF-8, or Windows-1252 for a file
            that is not UTF-8.
        validation_fraction: Part of the training table to validate on if there is no
            validation table; by default 0.1. The same text is never on both sides.
        output_dir: Folder for everything the run writes; by default
            runs/TASK-MODEL-seedSEED, of a table runs/FILE-MODEL-seedSEED.
        weights: A pretrained BERT to start from: a folder of Hugging Face, Google's
            TF1, the Model Garden or TF Hub, or a preset. Its vocabulary is used.
        vocabulary: A vocab.txt; by default the one of the weights, or one that is
            learned from the training texts.
        vocabulary_size: Word pieces to learn if no vocabulary is given.
        lowercase: Lower-case texts and strip accents (an uncased vocabulary); by
            default what the weights say, true without weights.
        epochs: Passes over the training examples.
        early_stopping: Stop after so many epochs without a better main score.
        class_weights: balanced: each class counts the same in the loss, however many
            examples it has. By default each example does.
        batch_size: Examples per step, over all devices.
        learning_rate: Highest learning rate; by default 3e-4 from scratch and from a
            preset of a pre-training run, 5e-5 from another BERT.
        warmup_fraction: Part of all steps in which the learning rate rises.
        weight_decay: Decoupled weight decay, not on biases and LayerNorm.
        dropout: Dropout rate of encoder and head.
        pooling: What the head reads: mean (of all outputs) or first (BERT's pooled
            first token); by default first from another BERT that has a pooler, else
            mean.
        freeze: What is not trained: embeddings, encoder, or the number of the lowest
            blocks (and the embeddings).
        lora_rank: Train adapters of this rank and the head only.
        layerwise_decay: In (0, 1]: what the learning rate is multiplied with once
            for the highest block and once more for each below.
        max_sequence_length: Word pieces of an example, longer ones are truncated; by
            default 128, or as many positions as the weights have if that is less.
        precision: float32; bfloat16 (computed in bfloat16, weights kept in float32);
            or auto, the one that suits this machine, whose matrix rate is measured.
            Another machine may choose another, so name one for a run to repeat.
        gradient_checkpointing: Keep only the inputs of the blocks for the backward
            pass and compute the rest again: less memory, more time, same numbers.
        strategy: auto, one_device, mirrored (all GPUs of this machine) or tpu.
        seed: Seed of initial weights, order, dropout and splits.
        limit: Train on the first LIMIT examples only.
        checkpoint_every: Steps between two checkpoints, from which a stopped run
            resumes; by default one a minute of training. There is one at the end of
            each epoch, too.
        export: Write a SavedModel of the best epoch into the output folder.
        overwrite: Replace what is in the output folder of a finished run, or of one
            with other options. A stopped run with these options resumes all the same.
        overrides: Sizes that differ from the model's, such as {num_layers: 2}.
    """

    model: str = "swish_small"
    task: str | None = None
    data_dir: str | None = None
    tfds: bool = False
    train: str | None = None
    validation: str | None = None
    test: str | None = None
    text_column: str | list[str] | None = None
    label_column: str | None = None
    label_separator: str | None = None
    encoding: str | None = None
    validation_fraction: float | None = None
    output_dir: str | None = None
    weights: str | None = None
    vocabulary: str | None = None
    vocabulary_size: int = 8000
    lowercase: bool | None = None
    epochs: int = 3
    early_stopping: int | None = None
    class_weights: str | None = None
    batch_size: int = 32
    learning_rate: float | None = None
    warmup_fraction: float = 0.1
    weight_decay: float = 0.01
    dropout: float = 0.1
    pooling: str | None = None
    freeze: int | str | None = None
    lora_rank: int | None = None
    layerwise_decay: float | None = None
    max_sequence_length: int | None = None
    precision: str = "float32"
    gradient_checkpointing: bool = False
    strategy: str = "auto"
    seed: int = 0
    limit: int | None = None
    checkpoint_every: int | None = None
    export: bool = True
    overwrite: bool = False
    overrides: dict[str, bool | int | float | str | list[int]] = dataclasses.field(
        default_factory=dict
    )

    def __post_init__(self):
        for name in ("epochs", "batch_size", "vocabulary_size"):
            _check(getattr(self, name) >= 1, self, name, "at least 1")
        rate = self.learning_rate
        valid = rate is None or 0 < rate < math.inf
        _check(valid, self, "learning_rate", "above 0 and finite")
        _check(0 <= self.warmup_fraction <= 1, self, "warmup_fraction", "in [0, 1]")
        finite = 0 <= self.weight_decay < math.inf
        _check(finite, self, "weight_decay", "at least 0 and finite")
        _check(0 <= self.dropout < 1, self, "dropout", "in [0, 1)")
        valid = (None, *POOLINGS)
        _check(self.pooling in valid, self, "pooling", " or ".join(POOLINGS))
        freezable = self.freeze in (None, "embeddings", "encoder") or (
            isinstance(self.freeze, int) and self.freeze >= 0
        )
        rule = "embeddings, encoder or a number of blocks"
        _check(freezable, self, "freeze", rule)
        rank, decay = self.lora_rank, self.layerwise_decay
        _check(rank is None or rank >= 1, self, "lora_rank", "at least 1")
        _check(decay is None or 0 < decay <= 1, self, "layerwise_decay", "in (0, 1]")
        length = self.max_sequence_length
        _check(length is None or length >= 8, self, "max_sequence_length", "at least 8")
        for name in ("limit", "checkpoint_every", "early_stopping"):
            value = getattr(self, name)
            _check(value is None or value >= 1, self, name, "at least 1")
        _check(self.strategy in STRATEGIES, self, "strategy", " or ".join(STRATEGIES))
        valid = self.class_weights in (None, "balanced")
        _check(valid, self, "class_weights", "balanced")
        if self.data_dir is not None and self.tfds:
            raise ValueError(
                "The examples come from one place. Received: both data_dir="
                f"{self.data_dir!r} and tfds=True. Leave one out."
            )
        self._check_shared()
        check_own_data(self)

    def run_dir(self):
        """Folder of the run."""
        task = self.resolved().task if self.train is None else table_name(self.train)
        return self.output_dir or f"runs/{task}-{self.model}-seed{self.seed}"

    def resolved(self, stopped=None):
        """This run with the default task; that of a table is guessed."""
        if self.train is not None or self.task is not None:
            return self
        return dataclasses.replace(self, task="sst2")

    def changes(self, stopped):
        """As `RunConfig.changes`; a run that names no task is one of the default."""
        return RunConfig.changes(self.resolved(), stopped)

    def _free_options(self):
        return [*super()._free_options(), "checkpoint_every", "export"]


@dataclasses.dataclass
class PretrainingConfig(RunConfig):
    """One pre-training run.

    Args:
        model: Name of the encoder, see `recbert list`.
        corpus: Folder written by `recbert prepare`.
        validation: Names of other prepared folders with the same vocabulary, such as
            {books: DIR}; scored at every checkpoint.
        output_dir: Folder for everything the run writes; by default
            runs/pretrain-MODEL-seedSEED.
        objectives: What is learned, by name: masked_lm, next_sentence, bigram_shift or
            causal_lm, each with its arguments, see `keras_recbert.objectives`.
        weights: A pretrained BERT with the vocabulary of the corpus to start from.
        steps: Optimizer steps.
        batch_size: Examples of an optimizer step, over all devices.
        accumulation_steps: How many pieces a batch is computed in, one after the
            other, when it does not fit in memory: the same step in less memory.
        sequence_length: Word pieces of an example.
        long_sequence_length: Word pieces of an example in the last part of the run
            (BERT: 512 after 128, appendix A.2).
        long_fraction: Part of the steps that have long examples.
        long_batch_size: Examples of a step then; by default as many word pieces as
            before.
        optimizer: adamw, or adadelta (Liu 2020 trains small students with it).
        learning_rate: Highest learning rate.
        warmup_steps: Steps in which the learning rate rises; by default a tenth of all,
            100 at most.
        decay: Whether it falls linearly to 0 afterwards, or stays.
        beta_1: Decay of Adam's mean of gradients; AdaDelta's rho.
        beta_2: Decay of Adam's mean of squared gradients.
        epsilon: Adam's or AdaDelta's constant.
        weight_decay: Decoupled weight decay, not on biases and LayerNorm.
        clipnorm: Largest norm of all gradients together; null for none.
        amsgrad: Adam's step by the largest mean of squares so far (Reddi 2018).
        ema_momentum: Average weights over the steps with this momentum; the run ends
            with the average.
        dropout: Dropout rate.
        checkpoint_every: Steps between two checkpoints; each is scored too. By default
            what divides the steps and is nearest to 500.
        keep_checkpoints: How many of the latest to keep.
        validation_examples: Examples of each validation corpus to score.
        precision: float32, bfloat16 or auto, as `recbert finetune`.
        gradient_checkpointing: Less memory, more time, same numbers.
        strategy: auto, one_device, mirrored, multi_worker (TF_CONFIG) or tpu.
        seed: Seed of initial weights, order, masks and dropout.
        overwrite: Replace what is in the output folder of a finished run, or of one
            with other options. A stopped run with these options resumes all the same.
        overrides: Sizes that differ from the model's, such as {num_layers: 2}.
    """

    model: str = "bert_small"
    corpus: str | None = None
    validation: dict[str, str] = dataclasses.field(default_factory=dict)
    output_dir: str | None = None
    objectives: dict[str, dict | None] = dataclasses.field(
        default_factory=lambda: {"masked_lm": None, "next_sentence": None}
    )
    weights: str | None = None
    steps: int = 10_000
    batch_size: int = 64
    accumulation_steps: int = 1
    sequence_length: int = 128
    long_sequence_length: int | None = None
    long_fraction: float = 0.1
    long_batch_size: int | None = None
    optimizer: str = "adamw"
    learning_rate: float = 1e-4
    warmup_steps: int | None = None
    decay: bool = True
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    weight_decay: float = 0.01
    clipnorm: float | None = 1.0
    amsgrad: bool = False
    ema_momentum: float | None = None
    dropout: float = 0.1
    checkpoint_every: int | None = None
    keep_checkpoints: int = 3
    validation_examples: int = 512
    precision: str = "float32"
    gradient_checkpointing: bool = False
    strategy: str = "auto"
    seed: int = 0
    overwrite: bool = False
    overrides: dict[str, bool | int | float | str | list[int]] = dataclasses.field(
        default_factory=dict
    )

    def __post_init__(self):
        for name in (
            "steps",
            "batch_size",
            "accumulation_steps",
            "keep_checkpoints",
            "validation_examples",
        ):
            _check(getattr(self, name) >= 1, self, name, "at least 1")
        rate = self.learning_rate
        _check(0 < rate < math.inf, self, "learning_rate", "above 0 and finite")
        warmup, every = self.warmup_steps, self.checkpoint_every
        within = warmup is None or 0 <= warmup <= self.steps
        _check(within, self, "warmup_steps", f"from 0 to steps={self.steps}")
        _check(every is None or every >= 1, self, "checkpoint_every", "at least 1")
        for name in ("beta_1", "beta_2", "dropout"):
            _check(0 <= getattr(self, name) < 1, self, name, "in [0, 1)")
        finite = 0 < self.epsilon < math.inf
        _check(finite, self, "epsilon", "above 0 and finite")
        finite = 0 <= self.weight_decay < math.inf
        _check(finite, self, "weight_decay", "at least 0 and finite")
        norm, momentum = self.clipnorm, self.ema_momentum
        _check(norm is None or norm > 0, self, "clipnorm", "above 0")
        averages = momentum is None or 0 < momentum < 1
        _check(averages, self, "ema_momentum", "above 0 and below 1")
        _check(self.sequence_length >= 8, self, "sequence_length", "at least 8")
        _check(self.optimizer in OPTIMIZERS, self, "optimizer", " or ".join(OPTIMIZERS))
        valid = (*STRATEGIES, "multi_worker")
        _check(self.strategy in valid, self, "strategy", " or ".join(valid))
        if every is not None:
            self.checkpoint_every = every = min(every, self.steps)
        every = every or _divisor_near(self.steps, CHECKPOINT_EVERY)
        if self.steps % every:
            raise ValueError(
                "`steps` must be a multiple of `checkpoint_every`. Received: steps="
                f"{self.steps}, checkpoint_every={every}. Try steps="
                f"{-(-self.steps // every) * every}."
            )
        self._check_long_examples()
        for length, batch_size, _ in self.phases():
            if batch_size % self.accumulation_steps:
                raise ValueError(
                    "`accumulation_steps` must divide the batches. Received: "
                    f"accumulation_steps={self.accumulation_steps} and {batch_size} "
                    f"examples of {length} word pieces a step."
                )
        self._check_shared()
        if "" in (*self.validation, *self.validation.values()):
            raise ValueError(
                "`validation` has an empty name or path. Received: validation="
                f"{self.validation!r}. Name both, such as books DIR."
            )
        read_objectives(self.objectives)  # raises what is wrong with them

    def _check_long_examples(self):
        if self.long_sequence_length is None:
            if self.long_batch_size is not None:
                raise ValueError(
                    "`long_batch_size` needs a `long_sequence_length`. Received: "
                    f"long_batch_size={self.long_batch_size} alone."
                )
            return
        longer = self.long_sequence_length > self.sequence_length
        rule = f"above sequence_length={self.sequence_length}"
        _check(longer, self, "long_sequence_length", rule)
        _check(0 < self.long_fraction < 1, self, "long_fraction", "above 0 and below 1")
        size = self.long_batch_size
        _check(size is None or size >= 1, self, "long_batch_size", "at least 1")

    def phases(self):
        """Parts of the run: tuples of sequence length, batch size and steps."""
        if self.long_sequence_length is None:
            return [(self.sequence_length, self.batch_size, self.steps)]
        long_steps = max(1, round(self.long_fraction * self.steps))
        quotient = self.sequence_length / self.long_sequence_length
        even = max(1, round(self.batch_size * quotient / self.accumulation_steps))
        size = self.long_batch_size or even * self.accumulation_steps
        return [
            (self.sequence_length, self.batch_size, self.steps - long_steps),
            (self.long_sequence_length, size, long_steps),
        ]

    def run_dir(self):
        """Folder of the run."""
        return self.output_dir or f"runs/pretrain-{self.model}-seed{self.seed}"

    def resolved(self, stopped=None):
        """This run with a number for each option whose default depends on others.

        Args:
            stopped: optional dict of the fields of a run that this one resumes, which
                had numbers for them.

        Returns:
            `PretrainingConfig`.
        """
        defaults = {
            "warmup_steps": min(100, self.steps // 10),
            "checkpoint_every": _divisor_near(self.steps, CHECKPOINT_EVERY),
        }
        left_open = [name for name in defaults if getattr(self, name) is None]
        given = {**defaults, **(stopped or {})}
        return dataclasses.replace(self, **{name: given[name] for name in left_open})

    def _free_options(self):
        left_open = ("warmup_steps", "checkpoint_every")
        left_open = [name for name in left_open if getattr(self, name) is None]
        return [*super()._free_options(), *left_open, "keep_checkpoints"]


POOLINGS = ("mean", "first")
PRECISIONS = ("auto", "float32", "bfloat16")
OPTIMIZERS = ("adamw", "adadelta")
STRATEGIES = ("auto", "one_device", "mirrored", "tpu")


CHECKPOINT_EVERY = 500  # steps; what a default is near to


def _divisor_near(number, target):
    """The divisor of a number whose ratio to a target is nearest to 1.

    If no divisor is within a factor of 10, the target itself.
    """
    divisors = [n for n in range(1, 10 * target + 1) if number % n == 0]
    nearest = min(divisors, key=lambda n: abs(math.log(n / target)))
    return nearest if number <= target or 10 * nearest >= target else target


def _check(valid, config, name, rule):
    if not valid:
        raise ValueError(
            f"`{name}` must be {rule}. Received: {name}={getattr(config, name)!r}."
        )


def recipe_class(path):
    """What a recipe is of, by its keys.

    Args:
        path: str or path.

    Returns:
        `FineTuningConfig` or `PretrainingConfig`.

    Raises:
        FileNotFoundError, ValueError: as `read_recipe`; if no key tells, or the keys
            are of both.
    """
    keys = read_yaml(path).keys()
    classes = (FineTuningConfig, PretrainingConfig)
    names = [{field.name for field in dataclasses.fields(cls)} for cls in classes]
    found = [
        cls
        for cls, own, other in zip(classes, names, reversed(names), strict=True)
        if keys & (own - other)
    ]
    if len(found) != 1:
        raise ValueError(
            f"{path}: expected a recipe of `recbert finetune`, with keys such as task "
            "and epochs, or of `recbert pretrain`, with keys such as objectives and "
            f"steps. It has: {', '.join(map(str, keys)) or 'no key'}."
        )
    return found[0]


def read_recipe(path, cls=FineTuningConfig):
    """Reads a recipe, a YAML file with the fields of a config.

    `measured`, what the recipe gave when it was run, is skipped.

    Args:
        path: str or path.
        cls: `FineTuningConfig` or `PretrainingConfig`.

    Returns:
        An instance of `cls`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and key, if a key is unknown or a value is of the
            wrong type or out of range; naming file and line, if it is not valid YAML.
    """
    values = read_yaml(path)
    values.pop("measured", None)
    return from_mapping(cls, values, path)
