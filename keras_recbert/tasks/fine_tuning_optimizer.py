"""The optimizer that BERT is fine-tuned with."""

import dataclasses
import math

import keras
from keras import ops

from keras_recbert.tasks.optimizers import Adadelta, AdamW

# Parts of the names of weights that are neither matrices nor tables.
NOT_DECAYED = ["bias", "gamma", "beta", "alpha"]
OPTIMIZERS = ("adamw", "adadelta")
ADADELTA_RATE = 1.0  # Zeiler 2012; Liu 2020, section 3.4.1


def check_learning_rate(learning_rate):
    """Raises `ValueError` for a rate that is no number above 0."""
    if not 0 < learning_rate < math.inf:
        raise ValueError(
            "`learning_rate` must be above 0 and finite. Received: "
            f"learning_rate={learning_rate!r}."
        )


@keras.saving.register_keras_serializable("keras_recbert")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from 0, then linear decay to 0 at the last step.

    Devlin et al. 2018, appendix A.2 ("warmup over the first ... steps, and linear
    decay of the learning rate").

    Args:
        learning_rate: float. Highest rate, reached after the warm-up.
        total_steps: int. Optimizer steps of the whole run.
        warmup_fraction: float in [0, 1]. Part of `total_steps` spent warming up.
        decay: bool. False: the rate stays what it is after the warm-up.
        accumulation_steps: int. Calls of an optimizer that make up a step: Keras counts
            each call here when it accumulates gradients.

    Raises:
        ValueError: if an argument is out of range.
    """

    def __init__(
        self,
        learning_rate,
        total_steps,
        warmup_fraction=0.1,
        decay=True,
        accumulation_steps=1,
    ):
        super().__init__()
        check_learning_rate(learning_rate)
        if total_steps < 1:
            raise ValueError(
                f"`total_steps` must be at least 1. Received: {total_steps!r}."
            )
        if not 0 <= warmup_fraction <= 1:
            raise ValueError(
                f"`warmup_fraction` must be in [0, 1]. Received: {warmup_fraction!r}."
            )
        self.learning_rate = learning_rate
        self.total_steps = total_steps
        self.warmup_fraction = warmup_fraction
        self.decay = decay
        self.accumulation_steps = accumulation_steps

    def __call__(self, step):
        step = ops.floor_divide(step, self.accumulation_steps)
        step = ops.cast(step, "float32") + 1.0  # the first step is no idle one
        warmup = max(1.0, self.warmup_fraction * self.total_steps)
        rising = step / warmup
        if not self.decay:
            return self.learning_rate * ops.minimum(rising, 1.0)
        decay = max(1.0, self.total_steps + 1.0 - warmup)
        falling = (self.total_steps + 1.0 - step) / decay
        return self.learning_rate * ops.clip(ops.minimum(rising, falling), 0.0, 1.0)

    def get_config(self):
        return {
            "learning_rate": self.learning_rate,
            "total_steps": self.total_steps,
            "warmup_fraction": self.warmup_fraction,
            "decay": self.decay,
            "accumulation_steps": self.accumulation_steps,
        }


@keras.saving.register_keras_serializable("keras_recbert")
class LayerwiseAdamW(AdamW):
    """AdamW with a learning rate of its own for each weight.

    The rates are scaled, not the gradients, which Adam would scale back. Decoupled
    weight decay goes by the same rates; clipping sees all gradients as they are.

    Args:
        learning_rate: float or schedule. Rate of a weight whose factor is 1.
        rate_factors: dict of the path of a weight to what its rate is multiplied
            with.
        **kwargs: those of `keras.optimizers.AdamW`.

    Raises:
        ValueError: when built with a weight that has no factor.
    """

    def __init__(self, learning_rate, rate_factors, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.rate_factors = dict(rate_factors)

    def build(self, var_list):
        if self.built:
            return
        unknown = [v.path for v in var_list if v.path not in self.rate_factors]
        if unknown:
            raise ValueError(
                "`rate_factors` must have a factor for each trained weight. Missing: "
                f"{', '.join(unknown)}."
            )
        self._factors = [self.rate_factors[variable.path] for variable in var_list]
        super().build(var_list)

    def update_step(self, gradient, variable, learning_rate):
        rate = learning_rate * self._factors[self._get_variable_index(variable)]
        if self._use_weight_decay(variable):
            decay = ops.cast(self.weight_decay, variable.dtype)
            self.assign_sub(variable, variable * decay * ops.cast(rate, variable.dtype))
        super().update_step(gradient, variable, rate)

    def _apply_weight_decay(self, variables):
        """Left to `update_step`, which knows the rate of each weight."""

    def get_config(self):
        return {**super().get_config(), "rate_factors": dict(self.rate_factors)}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What `compile_for_fine_tuning` was called with.

    Args:
        total_steps: int; None where each `fit` counts its own.
        optimizer_arguments: dict.
        loss: `keras.losses.Loss`; None for that of the head.
        metrics: list of metrics; None for those of the head.
    """

    total_steps: int | None
    optimizer_arguments: dict
    loss: keras.losses.Loss | None = None
    metrics: list | None = None


def fine_tuning_optimizer(
    total_steps,
    learning_rate=5e-5,
    warmup_fraction=0.1,
    weight_decay=0.01,
    rate_factors=None,
    decay=True,
    optimizer="adamw",
):
    """AdamW of BERT's fine-tuning: Devlin et al. 2018, section 3.5, appendix A.

    Warm-up and linear decay, gradients clipped at a global norm of 1, decoupled
    weight decay on everything but biases and the scales of LayerNorm (and
    SwishRNN's vectors, which are neither matrices nor tables).

    Args:
        total_steps: int. Optimizer steps of the whole run.
        learning_rate: float. Highest learning rate.
        warmup_fraction: float. Part of `total_steps` spent warming up.
        weight_decay: float. Rate of the decay.
        rate_factors: optional dict of the path of a weight to what its learning
            rate is multiplied with; by default all have the same.
        decay: bool. False: the rate stays what it is after the warm-up.
        optimizer: str. `"adamw"`; or `"adadelta"`, whose rate is constant and which
            decays nothing, of Liu 2020, section 3.4.1 (rate 1.0, rho 0.95).

    Returns:
        `AdamW`, `LayerwiseAdamW` for `rate_factors`, or `Adadelta`.

    Raises:
        ValueError: for an unknown optimizer, or `"adadelta"` with `rate_factors`.
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(
            f"`optimizer` must be one of {', '.join(OPTIMIZERS)}. Received: "
            f"optimizer={optimizer!r}."
        )
    if optimizer == "adadelta":
        if rate_factors is not None:
            raise ValueError(
                "`layerwise_decay` is of AdamW. Received: optimizer='adadelta'. Leave "
                "one out."
            )
        return Adadelta(learning_rate, rho=0.95, global_clipnorm=1.0)
    schedule = WarmupLinearDecay(learning_rate, total_steps, warmup_fraction, decay)
    arguments = {"weight_decay": weight_decay, "epsilon": 1e-6, "global_clipnorm": 1.0}
    if rate_factors is None:
        adamw = AdamW(schedule, **arguments)
    else:
        adamw = LayerwiseAdamW(schedule, rate_factors, **arguments)
    adamw.exclude_from_weight_decay(var_names=NOT_DECAYED)
    return adamw
