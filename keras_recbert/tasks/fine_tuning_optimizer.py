"""The optimizer that BERT is fine-tuned with."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_recbert")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from 0, then linear decay to 0 at the last step.

    Devlin et al. 2018, appendix A.2 ("warmup over the first ... steps, and linear
    decay of the learning rate").

    Args:
        learning_rate: float. Highest rate, reached after the warm-up.
        total_steps: int. Optimizer steps of the whole run.
        warmup_fraction: float in [0, 1]. Part of `total_steps` spent warming up.

    Raises:
        ValueError: if an argument is out of range.
    """

    def __init__(self, learning_rate, total_steps, warmup_fraction=0.1):
        super().__init__()
        if not learning_rate > 0:
            raise ValueError(
                f"`learning_rate` must be above 0. Received: {learning_rate!r}."
            )
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

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1.0  # the first step is no idle one
        warmup = max(1.0, self.warmup_fraction * self.total_steps)
        decay = max(1.0, self.total_steps + 1.0 - warmup)
        rising = step / warmup
        falling = (self.total_steps + 1.0 - step) / decay
        return self.learning_rate * ops.clip(ops.minimum(rising, falling), 0.0, 1.0)

    def get_config(self):
        return {
            "learning_rate": self.learning_rate,
            "total_steps": self.total_steps,
            "warmup_fraction": self.warmup_fraction,
        }


def fine_tuning_optimizer(
    total_steps, learning_rate=5e-5, warmup_fraction=0.1, weight_decay=0.01
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

    Returns:
        `keras.optimizers.AdamW`.
    """
    optimizer = keras.optimizers.AdamW(
        WarmupLinearDecay(learning_rate, total_steps, warmup_fraction),
        weight_decay=weight_decay,
        epsilon=1e-6,
        global_clipnorm=1.0,
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "alpha"])
    return optimizer
