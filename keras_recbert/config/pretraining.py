"""What a pre-training run is, as data: a recipe file or the flags of a command."""

import dataclasses
import math
from typing import ClassVar

from keras_recbert.config.run import STRATEGIES, RunConfig, check
from keras_recbert.objectives import read_objectives

OPTIMIZERS = ("adamw", "adadelta")
CHECKPOINT_EVERY = 500  # steps; what a default is near to


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
        weights: A pretrained BERT with the vocabulary of the corpus to start from; as
            of `recbert finetune`.
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

    command: ClassVar[str] = "pretrain"
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
            check(getattr(self, name) >= 1, self, name, "at least 1")
        rate = self.learning_rate
        check(0 < rate < math.inf, self, "learning_rate", "above 0 and finite")
        warmup, every = self.warmup_steps, self.checkpoint_every
        within = warmup is None or 0 <= warmup <= self.steps
        check(within, self, "warmup_steps", f"from 0 to steps={self.steps}")
        check(every is None or every >= 1, self, "checkpoint_every", "at least 1")
        for name in ("beta_1", "beta_2", "dropout"):
            check(0 <= getattr(self, name) < 1, self, name, "in [0, 1)")
        finite = 0 < self.epsilon < math.inf
        check(finite, self, "epsilon", "above 0 and finite")
        finite = 0 <= self.weight_decay < math.inf
        check(finite, self, "weight_decay", "at least 0 and finite")
        norm, momentum = self.clipnorm, self.ema_momentum
        check(norm is None or norm > 0, self, "clipnorm", "above 0")
        averages = momentum is None or 0 < momentum < 1
        check(averages, self, "ema_momentum", "above 0 and below 1")
        check(self.sequence_length >= 8, self, "sequence_length", "at least 8")
        check(self.optimizer in OPTIMIZERS, self, "optimizer", " or ".join(OPTIMIZERS))
        valid = (*STRATEGIES, "multi_worker")
        check(self.strategy in valid, self, "strategy", " or ".join(valid))
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
        check(longer, self, "long_sequence_length", rule)
        check(0 < self.long_fraction < 1, self, "long_fraction", "above 0 and below 1")
        size = self.long_batch_size
        check(size is None or size >= 1, self, "long_batch_size", "at least 1")

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


def _divisor_near(number, target):
    """The divisor of a number whose ratio to a target is nearest to 1.

    If no divisor is within a factor of 10, the target itself.
    """
    divisors = [n for n in range(1, 10 * target + 1) if number % n == 0]
    nearest = min(divisors, key=lambda n: abs(math.log(n / target)))
    return nearest if number <= target or 10 * nearest >= target else target
