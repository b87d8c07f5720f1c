"""Classifiers and regressors pass to and from Hugging Face with equal scores."""

import numpy as np
import pytest
import torch
import transformers
from foreign_berts import (
    SIZES,
    edit_json,
    edit_tensors,
    transformers_bert,
    write_huggingface_folder,
)
from harness import assert_close, randomize
from toy_texts import reviews, tiny_model

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError

NAMES = {0: "bad", 1: "so so", 2: "good"}
OWN = {key: size for key, size in SIZES.items() if key != "vocabulary_size"}
IDS = np.array([[2, 5, 6, 12, 3], [2, 9, 3, 0, 0]])
TEXTS, _ = reviews(6)


def write_classifier(folder, **config):
    model = transformers_bert("BertForSequenceClassification", **config)
    return write_huggingface_folder(folder, model)


def their_logits(model):
    with torch.no_grad():
        mask = torch.tensor(IDS != 0).long()
        return model(input_ids=torch.tensor(IDS), attention_mask=mask).logits.numpy()


def our_logits(model):
    ids = IDS.astype("int32")
    mask = (ids != 0).astype("int32")
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
    return model(batch)


# From Hugging Face -----------------------------------------------------------------


def test_a_classifier_loads_with_its_labels(tmp_path):
    theirs = write_classifier(tmp_path, id2label=NAMES)
    ours = keras_recbert.load(tmp_path)
    assert type(ours) is keras_recbert.tasks.TextClassifier
    assert ours.label_names == ["bad", "so so", "good"]
    assert ours.pooling == "first"
    assert_close(our_logits(ours), their_logits(theirs), 1e-5)
    assert ours.predict(["ab A", "f"], verbose=0).shape == (2, 3)
    report = ours.encoder.weights_report
    assert not report.unused and not report.new
    assert report.copied["head/kernel"] == ("classifier.weight",)


def test_a_classifier_is_built_where_the_labels_agree(tmp_path, recwarn):
    theirs = write_classifier(tmp_path, id2label=NAMES)
    expected = their_logits(theirs)
    for labels in ({}, {"num_classes": 3}, {"label_names": ["bad", "so so", "good"]}):
        model = keras_recbert.build(
            "bert_tiny", task="classifier", weights=tmp_path, **OWN, **labels
        )
        assert model.label_names == ["bad", "so so", "good"]
        assert_close(our_logits(model), expected, 1e-5)
    assert not [one for one in recwarn if "head" in str(one.message)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_classes": 2},
        {"label_names": ["good", "so so", "bad"]},
        {"num_classes": 3, "pooling": "mean"},
        {"num_classes": 3, "layer": "all"},
    ],
)
def test_other_labels_get_a_new_head_and_a_warning(tmp_path, arguments):
    write_classifier(tmp_path, id2label=NAMES)
    with pytest.warns(UserWarning, match="has a head for .*its head starts random"):
        model = keras_recbert.build(
            "bert_tiny", task="classifier", weights=tmp_path, **OWN, **arguments
        )
    unused = model.encoder.weights_report.unused
    assert set(unused) == {"classifier.weight", "classifier.bias"}


def test_one_label_is_a_score(tmp_path):
    theirs = write_classifier(tmp_path, num_labels=1, problem_type="regression")
    ours = keras_recbert.load(tmp_path)
    assert type(ours) is keras_recbert.tasks.TextRegressor
    assert_close(our_logits(ours), their_logits(theirs)[:, 0], 1e-5)
    built = keras_recbert.build("bert_tiny", task="regressor", weights=tmp_path, **OWN)
    assert_close(our_logits(built), their_logits(theirs)[:, 0], 1e-5)


def test_labels_without_names(tmp_path):
    write_classifier(tmp_path)
    assert keras_recbert.load(tmp_path).label_names == ["LABEL_0", "LABEL_1"]
    edit_json(tmp_path / "config.json", id2label=None)
    assert keras_recbert.load(tmp_path).label_names == ["LABEL_0", "LABEL_1"]


def test_heads_of_other_kinds_leave_the_encoder(tmp_path):
    write_classifier(tmp_path, problem_type="multi_label_classification")
    encoder = keras_recbert.load(tmp_path)
    assert type(encoder).__name__ == "RecBertEncoder"
    assert "classifier.weight" in encoder.weights_report.unused


def test_a_damaged_head_is_named(tmp_path):
    write_classifier(tmp_path, id2label=NAMES)
    for names, message in (
        ({"0": "a", "1": "b"}, "a name for each id from 0 to 2"),
        (["a", "b", "c"], "a name for each id from 0 to 2"),
        ({"0": "a", "1": "b", "2": 3}, "a name for each id from 0 to 2"),
        ({"0": "a", "1": "b", "2": "a"}, "must have different names"),
    ):
        edit_json(tmp_path / "config.json", id2label=names)
        with pytest.raises(CheckpointError, match=f"config.json: id2label.*{message}"):
            keras_recbert.load(tmp_path)
    edit_tensors(
        tmp_path / "model.safetensors",
        lambda t: t.update({"classifier.bias": np.zeros(2, "float32")}),
    )
    with pytest.raises(CheckpointError, match="'classifier.bias' of the shape"):
        keras_recbert.load(tmp_path)


def test_a_tensor_without_a_place_is_told(tmp_path, recwarn):
    write_classifier(tmp_path)
    keras_recbert.build("bert_tiny", weights=tmp_path, **OWN)
    assert not [one for one in recwarn if "nothing was made" in str(one.message)]
    edit_tensors(
        tmp_path / "model.safetensors",
        lambda t: t.update(
            {f"bert.adapter.{i}": np.ones(2, "float32") for i in "abcd"}
        ),
    )
    with pytest.warns(UserWarning, match="nothing was made.*'bert.adapter.a'.*and 1 m"):
        keras_recbert.load(tmp_path)


# To Hugging Face -------------------------------------------------------------------


def pipeline_scores(folder):
    """Scores of every label, in the order of the ids."""
    ask = transformers.pipeline("text-classification", str(folder), top_k=None)
    order = ask.model.config.id2label
    answers = [{one["label"]: one["score"] for one in answer} for answer in ask(TEXTS)]
    return np.array([[answer[order[i]] for i in sorted(order)] for answer in answers])


@pytest.mark.parametrize("arguments", [{}, {"lora_rank": 2}])
def test_the_pipeline_gives_the_scores_of_a_classifier(tmp_path, arguments):
    names = ["bad", "good", "neither"]
    model = tiny_model(label_names=names, pooling="first", **arguments)
    randomize(model)
    model.save_huggingface(tmp_path / "out")
    logits = model.predict(TEXTS, verbose=0)
    assert_close(
        pipeline_scores(tmp_path / "out"), model.answer(logits)["scores"], 1e-5
    )
    again = keras_recbert.load(tmp_path / "out")
    assert again.label_names == names
    assert_close(again.predict(TEXTS, verbose=0), logits, 1e-5)


def test_the_pipeline_gives_the_scores_of_a_regressor(tmp_path):
    model = tiny_model(task="regressor", pooling="first")
    randomize(model)
    model.save_huggingface(tmp_path / "out")
    expected = model.predict(TEXTS, verbose=0)
    assert_close(pipeline_scores(tmp_path / "out")[:, 0], expected, 1e-5)
    assert type(keras_recbert.load(tmp_path / "out")) is type(model)


def test_what_has_no_class_there_is_refused(tmp_path):
    model = tiny_model(pooling="mean")
    with pytest.raises(ValueError, match="pooled first token of .*pooling='mean'"):
        model.save_huggingface(tmp_path / "out")
    with pytest.raises(ValueError, match="plain BERT only"):
        tiny_model("swish_tiny", pooling="first").save_huggingface(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_model_without_a_vocabulary_says_that_it_has_no_tokenizer(tmp_path):
    encoder = keras_recbert.build("bert_tiny", vocabulary_size=20, **OWN)
    with pytest.warns(UserWarning, match="has no tokenizer.*copy vocab.txt and"):
        encoder.save_huggingface(tmp_path / "out")
    assert not (tmp_path / "out" / "vocab.txt").exists()


def test_a_head_of_another_task_is_not_written_as_one_of_classes(tmp_path):
    names = ["good", "long", "never"]
    model = tiny_model(task="multilabel_classifier", label_names=names, pooling="first")
    with pytest.raises(ValueError, match="Received: .*task='multilabel_classifier'"):
        model.save_huggingface(tmp_path / "out")
    assert not (tmp_path / "out").exists()
