"""What a student learns from the logits of a teacher."""

import math
from numbers import Real

import keras
from keras import ops

OBJECTIVES = ("logits", "probabilities")


@keras.saving.register_keras_serializable("keras_recbert")
class DistillationLoss(keras.losses.Loss):
    """Distance of a student's logits from those of its teacher.

    Liu 2020, section 3.2. With logits `z_T` of the teacher and `z_S` of the student,
    the objective `"logits"` is their squared distance (equation 3.4),

        ||z_T - z_S||^2

    and `"probabilities"` the cross-entropy of their softened probabilities (Hinton et
    al. 2015, section 2; the factor keeps the size of the gradients),

        -T^2 sum_c softmax(z_T / T)[c] log softmax(z_S / T)[c]

    With `label_weight` above 0 an example that has a label loses `(1 - label_weight)`
    of that, and `label_weight` of its usual loss: the cross-entropy of the label, or
    the squared error of a score. One without a label loses the distance alone.

    Args:
        objective: str. `"logits"` or `"probabilities"`; of a score `"logits"`.
        temperature: float. `T` of `"probabilities"`.
        label_weight: float in [0, 1].

    Call arguments:
        y_true: float, `(batch_size, num_logits)`, the logits of the teacher; or
            `(batch_size, num_logits + 1)`, the label behind them: the id of a class, or
            a score; NaN where there is none.
        y_pred: float, `(batch_size, num_logits)`, the logits of the student; or
            `(batch_size,)` or `(batch_size, 1)`, scores.

    Returns:
        float, by default the mean over the examples.

    Raises:
        ValueError: if an argument is out of range, or, when called, if the logits of
            teacher and student differ in number, labels are missing, or scores are
            softened.
    """

    def __init__(
        self,
        objective="logits",
        temperature=1.0,
        label_weight=0.0,
        name="distillation_loss",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        if objective not in OBJECTIVES:
            raise ValueError(
                f"`objective` must be one of {', '.join(OBJECTIVES)}. Received: "
                f"objective={objective!r}."
            )
        if not (isinstance(temperature, Real) and 0 < temperature < math.inf):
            raise ValueError(
                "`temperature` must be a number above 0 and finite. Received: "
                f"temperature={temperature!r}."
            )
        if temperature != 1 and objective == "logits":
            raise ValueError(
                "`temperature` softens probabilities. Received: temperature="
                f"{temperature}, objective='logits'. Use objective='probabilities', or "
                "leave it out."
            )
        if not (isinstance(label_weight, Real) and 0 <= label_weight <= 1):
            raise ValueError(
                "`label_weight` must be a number in [0, 1]. Received: label_weight="
                f"{label_weight!r}."
            )
        self.objective = objective
        self.temperature = float(temperature)
        self.label_weight = float(label_weight)

    def call(self, y_true, y_pred):
        y_true, y_pred = map(ops.convert_to_tensor, (y_true, y_pred))
        if len(y_pred.shape) == 2 and y_pred.shape[-1] == 1:
            y_pred = y_pred[:, 0]
        is_score = len(y_pred.shape) == 1
        student = ops.expand_dims(y_pred, -1) if is_score else y_pred
        teacher, labels = split_targets(y_true, student, self.label_weight > 0)
        if self.objective == "logits":
            distance = ops.sum(ops.square(teacher - student), axis=-1)
        elif is_score:
            raise ValueError(
                "Scores have no probabilities. Received: objective='probabilities' "
                "with scores `(batch_size,)`. Use objective='logits'."
            )
        else:
            distance = self._softened(teacher, student)
        if labels is None:
            return distance
        has_label = ops.logical_not(ops.isnan(labels))
        labels = ops.where(has_label, labels, 0.0)
        if is_score:
            usual = ops.square(labels - y_pred)
        else:
            usual = ops.sparse_categorical_crossentropy(
                ops.cast(labels, "int32"), student, from_logits=True
            )
        share = self.label_weight * ops.cast(has_label, distance.dtype)
        return (1 - share) * distance + share * usual

    def _softened(self, teacher, student):
        temperature = self.temperature
        expected = ops.softmax(teacher / temperature)
        log_found = ops.log_softmax(student / temperature)
        return -(temperature**2) * ops.sum(expected * log_found, axis=-1)

    def get_config(self):
        return {
            **super().get_config(),
            "objective": self.objective,
            "temperature": self.temperature,
            "label_weight": self.label_weight,
        }


@keras.saving.register_keras_serializable("keras_recbert")
class TeacherAgreement(keras.metrics.Mean):
    """Part of the examples for which student and teacher choose the same class.

    Call arguments:
        y_true, y_pred: as of `DistillationLoss`, of classes.
    """

    def __init__(self, name="teacher_agreement", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        teacher, _ = split_targets(y_true, y_pred, False)
        equal = ops.equal(ops.argmax(teacher, axis=-1), ops.argmax(y_pred, axis=-1))
        return super().update_state(ops.cast(equal, self.dtype), sample_weight)


def split_targets(y_true, logits, needs_labels):
    """The logits of the teacher, and the labels behind them.

    Args:
        y_true: float, `(batch_size, num_logits)` or `(batch_size, num_logits + 1)`.
        logits: float, `(batch_size, num_logits)`, of the student.
        needs_labels: bool.

    Returns:
        Tuple of float `(batch_size, num_logits)`, and of float `(batch_size,)`, or None
        where no labels are needed.

    Raises:
        ValueError: if `y_true` has another number of columns.
    """
    num_logits = logits.shape[-1]
    found = y_true.shape[-1] if len(y_true.shape) == 2 else None
    valid = (num_logits + 1,) if needs_labels else (num_logits, num_logits + 1)
    if found not in valid:
        what = f"{num_logits} logits of the teacher"
        what += " and the label" if needs_labels else ""
        raise ValueError(
            f"`y_true` must hold {what} an example. Received: y_true of shape "
            f"{tuple(y_true.shape)}, and {num_logits} logits of the student."
        )
    teacher = y_true[:, :num_logits]
    return teacher, y_true[:, num_logits] if needs_labels else None
