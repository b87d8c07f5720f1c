"""The optimizers that the papers pre-train with."""

from keras_recbert.tasks.fine_tuning_optimizer import (
    NOT_DECAYED,
    WarmupLinearDecay,
)
from keras_recbert.tasks.optimizers import Adadelta, AdamW


def pretraining_optimizer(config):
    """Optimizer and schedule of a pre-training run.

    Adam with decoupled weight decay (Devlin et al. 2018, appendix A.2; Lei et al.
    2022, table 3), with AMSGrad (Aksoy et al. 2020, section 4.2), or AdaDelta (Liu
    2020, chapter 3); linear warm-up, then linear decay or none; clipping by the norm
    of all gradients; accumulation; an average of the weights.

    Args:
        config: `PretrainingConfig`, resolved.

    Returns:
        `keras.optimizers.Optimizer`. Its `iterations` count optimizer steps, whatever
        the accumulation.
    """
    schedule = WarmupLinearDecay(
        config.learning_rate,
        config.steps,
        config.warmup_steps / config.steps,
        decay=config.decay,
        accumulation_steps=config.accumulation_steps,
    )
    arguments = {
        "epsilon": config.epsilon,
        "weight_decay": config.weight_decay or None,
        "global_clipnorm": config.clipnorm,
        "sum_rows": True,
        "gradient_accumulation_steps": (
            config.accumulation_steps if config.accumulation_steps > 1 else None
        ),
    }
    if config.ema_momentum is not None:
        arguments |= {"use_ema": True, "ema_momentum": config.ema_momentum}
    if config.optimizer == "adadelta":
        optimizer = Adadelta(schedule, rho=config.beta_1, **arguments)
    else:
        optimizer = AdamW(
            schedule,
            beta_1=config.beta_1,
            beta_2=config.beta_2,
            amsgrad=config.amsgrad,
            **{**arguments, "weight_decay": config.weight_decay},
        )
    if config.weight_decay:
        optimizer.exclude_from_weight_decay(var_names=NOT_DECAYED)
    return optimizer
