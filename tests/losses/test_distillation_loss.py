"""What a student loses against its teacher, by loops written from the thesis."""

import keras
import numpy as np
import pytest

from keras_recbert.losses import DistillationLoss, TeacherAgreement

RNG = np.random.default_rng(0)
TEACHER = RNG.normal(0, 3, (7, 3))
STUDENT = RNG.normal(0, 2, (7, 3))
LABELS = np.array([0, 2, np.nan, 1, np.nan, 2, 0])


def softmax(row):
    powers = [np.exp(value - max(row)) for value in row]
    return [power / sum(powers) for power in powers]


def squared_distance(teacher, student):
    """Liu 2020, equation 3.4."""
    return sum((z_t - z_s) ** 2 for z_t, z_s in zip(teacher, student, strict=True))


def softened(teacher, student, temperature):
    """Liu 2020, section 3.2: the objective of Hinton et al. 2015, with its T^2."""
    expected = softmax([z / temperature for z in teacher])
    found = softmax([z / temperature for z in student])
    pairs = zip(expected, found, strict=True)
    return -(temperature**2) * sum(p * np.log(q) for p, q in pairs)


def found(loss, y_true, y_pred):
    loss.reduction = None
    tensors = [keras.ops.convert_to_tensor(y, "float32") for y in (y_true, y_pred)]
    return np.array(loss(*tensors))


def test_logits():
    expected = [squared_distance(*z) for z in zip(TEACHER, STUDENT, strict=True)]
    np.testing.assert_allclose(
        found(DistillationLoss(), TEACHER, STUDENT), expected, rtol=1e-5
    )
    of_lists = DistillationLoss()(TEACHER.tolist(), STUDENT.tolist())
    np.testing.assert_allclose(of_lists, np.mean(expected), rtol=1e-5)


def test_one_column_is_scores():
    teacher, student = TEACHER[:, :1], STUDENT[:, :1]
    y_true = np.concatenate([teacher, LABELS[:, None]], axis=1)
    for weight in (0.0, 0.5):
        columns, rows = (
            found(DistillationLoss(label_weight=weight), y_true, y)
            for y in (student, student[:, 0])
        )
        np.testing.assert_allclose(columns, rows, rtol=1e-6)
    with pytest.raises(ValueError, match="Scores have no probabilities"):
        found(DistillationLoss("probabilities"), teacher, student)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_softened_probabilities(temperature):
    expected = [softened(*z, temperature) for z in zip(TEACHER, STUDENT, strict=True)]
    loss = DistillationLoss("probabilities", temperature)
    np.testing.assert_allclose(found(loss, TEACHER, STUDENT), expected, rtol=1e-5)


def test_labels_weigh_where_there_are_some():
    expected = []
    for teacher, student, label in zip(TEACHER, STUDENT, LABELS, strict=True):
        value = squared_distance(teacher, student)
        if not np.isnan(label):
            value = 0.7 * value - 0.3 * np.log(softmax(student)[int(label)])
        expected.append(value)
    y_true = np.concatenate([TEACHER, LABELS[:, None]], axis=1)
    loss = DistillationLoss(label_weight=0.3)
    np.testing.assert_allclose(found(loss, y_true, STUDENT), expected, rtol=1e-5)
    # What is not needed may be there.
    np.testing.assert_allclose(
        found(DistillationLoss(), y_true, STUDENT),
        found(DistillationLoss(), TEACHER, STUDENT),
    )


def test_scores():
    teacher, student = TEACHER[:, :1], STUDENT[:, 0]
    labels = np.array([1.5, -1, np.nan, 0, 2, 3, np.nan])
    distance = (teacher[:, 0] - student) ** 2
    usual = (labels - student) ** 2
    expected = np.where(np.isnan(labels), distance, 0.5 * distance + 0.5 * usual)
    y_true = np.concatenate([teacher, labels[:, None]], axis=1)
    loss = DistillationLoss(label_weight=0.5)
    np.testing.assert_allclose(found(loss, y_true, student), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="Scores have no probabilities"):
        found(DistillationLoss("probabilities"), teacher, student)


def test_gradients_keep_their_size_whatever_the_temperature():
    """What T^2 is for: near the teacher they are those of T = 1, but for the factor
    that softening the probabilities themselves brings."""
    teacher = np.zeros((1, 2))
    sizes = []
    for temperature in (1.0, 4.0):
        student = keras.Variable([[1e-3, -1e-3]])
        loss = DistillationLoss("probabilities", temperature)
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(keras.ops.convert_to_tensor(teacher), student.value)
        sizes.append(np.abs(tape.gradient(value, student.value)).max())
    np.testing.assert_allclose(sizes[0], sizes[1], rtol=1e-3)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_keras_distils_to_the_same_but_for_constants(temperature):
    """Its KL divergence lacks the teacher's entropy; its squares have no factor T^2.

    Its default, the name of the divergence, takes logits for probabilities.
    """
    teacher, student = (z.astype("float32") for z in (TEACHER, STUDENT))
    loss = DistillationLoss("probabilities", temperature)
    own = loss(teacher, student) - loss(teacher, teacher)

    def of_keras(loss):
        loss = keras.distillation.LogitsDistillation(temperature, loss)
        return loss.compute_loss(teacher, student)

    divergence = of_keras(keras.losses.KLDivergence())
    np.testing.assert_allclose(own, divergence, rtol=1e-4)
    own = DistillationLoss()(teacher, student)
    squares = of_keras(keras.losses.MeanSquaredError())
    np.testing.assert_allclose(own, temperature**2 * 3 * squares, rtol=1e-4)


def test_nan_labels_give_finite_gradients():
    import tensorflow as tf

    y_true = np.concatenate([TEACHER, LABELS[:, None]], axis=1).astype("float32")
    student = tf.Variable(STUDENT.astype("float32"))
    with tf.GradientTape() as tape:
        value = DistillationLoss(label_weight=0.5)(y_true, student)
    assert np.isfinite(tape.gradient(value, student)).all()


def test_agreement():
    metric = TeacherAgreement()
    metric.update_state(TEACHER, STUDENT)
    equal = TEACHER.argmax(1) == STUDENT.argmax(1)
    assert 0 < equal.mean() < 1
    np.testing.assert_allclose(float(metric.result()), equal.mean(), rtol=1e-6)


def test_config_makes_it_again():
    loss = DistillationLoss("probabilities", 3.0, 0.25)
    again = DistillationLoss.from_config(loss.get_config())
    assert again.get_config() == loss.get_config()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"objective": "kl"}, "`objective` must be one of logits, probabilities"),
        ({"temperature": 0}, "`temperature` must be a number above 0 and finite"),
        ({"temperature": "2"}, "`temperature` must be a number.*temperature='2'"),
        ({"temperature": 2.0}, "softens probabilities. Received: temperature=2.0"),
        ({"label_weight": 1.5}, r"`label_weight` must be a number in \[0, 1\]"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        DistillationLoss(**arguments)


def test_wrong_targets():
    with pytest.raises(ValueError, match="3 logits of the teacher and the label"):
        found(DistillationLoss(label_weight=0.5), TEACHER, STUDENT)
    with pytest.raises(ValueError, match="3 logits of the teacher an example"):
        found(DistillationLoss(), TEACHER[:, :2], STUDENT)
