import dataclasses

import numpy as np
import pytest
from toy_texts import VOCABULARY, reviews, tiny_model

from keras_recbert.config import FineTuningConfig
from keras_recbert.data.task_spec import TaskSpec
from keras_recbert.heads.reading import Reading
from keras_recbert.train.precision import Precision
from keras_recbert.train.run_model import LabelScale, build_model, class_weights

CLASSES = TaskSpec(
    name="toy",
    fields=("text",),
    head_arguments={"label_names": ("a", "b", "c")},
    metrics=("accuracy",),
)
SCORES = TaskSpec(name="toy", fields=("text",), head="regressor", metrics=("pearson",))


def test_balanced_weights_give_each_class_the_same_sum():
    labels = np.array([0, 0, 0, 0, 0, 1], np.int32)
    config = FineTuningConfig(class_weights="balanced")
    weights = class_weights(config, CLASSES, labels)
    assert weights[0] * 5 == pytest.approx(weights[1])
    assert sum(weights[label] for label in labels) == pytest.approx(6)
    assert weights[2] == 1.0  # no example has it
    assert class_weights(FineTuningConfig(), CLASSES, labels) is None
    with pytest.raises(ValueError, match="`class_weights` are for a classifier"):
        class_weights(config, SCORES, labels)


def test_scaled_labels_have_mean_0_and_deviation_1():
    labels = np.array([10, 20, 90, 100], np.float32)
    scale = LabelScale.of(labels)
    scaled = scale.apply(labels)
    assert scaled.dtype == np.float32
    assert np.mean(scaled) == pytest.approx(0, abs=1e-6)
    assert np.std(scaled) == pytest.approx(1, abs=1e-6)
    same = LabelScale.of(np.array([3, 3], np.float32))
    assert same.apply([3, 4]).tolist() == [0.0, 1.0]


def test_a_model_of_scaled_labels_predicts_the_labels():
    model = tiny_model(task="regressor")
    texts, _ = reviews(5)
    model.head.dense.bias.assign([0.25])
    before = model.predict(texts, verbose=0)
    LabelScale(50.0, 20.0).undo(model)
    after = model.predict(texts, verbose=0)
    np.testing.assert_allclose(after, 50 + 20 * before, rtol=1e-5)


def test_a_head_reads_where_the_options_say():
    config = FineTuningConfig(
        model="swish_tiny",
        pooling="mean",
        layer=1,
        concatenate="cls",
        overrides={"hidden_dim": 12, "num_heads": 2, "num_layers": 2},
    )
    precision = Precision("float32", "asked for")
    model = build_model(config, CLASSES, VOCABULARY, precision)
    assert model.head.reading == Reading("mean", 1, "cls")
    several = dataclasses.replace(config, layer=[0, -1], combine="weighted_sum")
    reading = build_model(several, CLASSES, VOCABULARY, precision).head.reading
    assert reading == Reading("mean", (0, 2), "cls", combine="weighted_sum")
    with pytest.raises(ValueError, match=r"to 2 .*Received: layer=3"):
        config = dataclasses.replace(config, layer=3)
        build_model(config, CLASSES, VOCABULARY, precision)
    with pytest.raises(ValueError, match="`combine` is of several layers"):
        FineTuningConfig(layer=1, combine="sum")
    for options in ({"layer": []}, {"combine": "mean"}, {"concatenate": "nsp"}):
        with pytest.raises(ValueError, match=f"`{next(iter(options))}` must be"):
            FineTuningConfig(**options)
