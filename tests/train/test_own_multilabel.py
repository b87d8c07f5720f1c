"""A table whose cells hold any number of labels: the command, and what it writes."""

import csv
import json
import shlex

import numpy as np
import pytest
from own_tables import config, write_rows
from sklearn.metrics import f1_score
from toy_texts import reviews

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.train.multilabel_report import write_multilabel_report
from keras_recbert.train.own_data import load_own_data

NAMES = ["bad", "good", "long"]
COMMAND = shlex.split(
    "finetune --train train.csv --test test.csv --task multilabel_classifier "
    "--text-column review --label-column tags --output-dir run --no-export "
    "--model swish_tiny --vocabulary-size 90 --epochs 2 --batch-size 8 "
    "--learning-rate 1e-2 --max-sequence-length 32 "
    "--overrides num_layers 1 hidden_dim 16 num_heads 2"
)


@pytest.fixture
def tables(tmp_path):
    texts, labels = reviews(44)
    rows = []
    for index, (text, label) in enumerate(zip(texts, labels, strict=True)):
        tags = [NAMES[label]] * (index % 5 > 0) + ["long"] * (len(text) > 60)
        rows.append((text, "; ".join(tags)))
    write_rows(tmp_path / "train.csv", ("review", "tags"), rows[:34])
    write_rows(tmp_path / "test.csv", ("review", "tags"), rows[34:])
    return tmp_path


@pytest.mark.slow
def test_the_command(tables, monkeypatch, capsys):
    monkeypatch.chdir(tables)
    assert main(COMMAND) == 0
    out = capsys.readouterr().out
    assert "3 labels, with ';' between those of a text (--label-separator)" in out
    results = json.loads((tables / "run" / "results.json").read_text())
    scores = results["scores"]
    assert {
        "validation_micro_f1",
        "validation_macro_f1",
        "validation_accuracy",
    } < scores.keys()
    model = keras_recbert.load(tables / "run" / "model.keras")
    assert model.head.task == "multilabel_classifier"
    assert model.head.label_names == NAMES
    with (tables / "run" / "predictions.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["id", "review", "tags", "prediction", "score"]
    logits = model.predict([row["review"] for row in found], verbose=0)
    probabilities = 1 / (1 + np.exp(-logits))
    for row, p in zip(found, probabilities, strict=True):
        expected = [n for n, one in zip(NAMES, p, strict=True) if one >= 0.5]
        assert [tag for tag in row["prediction"].split(";") if tag] == expected
        sure = np.maximum(p, 1 - p).min()
        assert float(row["score"]) == pytest.approx(sure, abs=1e-5)
    targets = model.head.as_targets(
        [[tag.strip() for tag in row["tags"].split(";") if tag] for row in found]
    )
    micro = f1_score(targets, logits >= 0, average="micro", zero_division=0)
    assert scores["test_micro_f1"] == pytest.approx(micro)
    argv = "predict run/model.keras --input test.csv --output out.csv --text-column"
    assert main([*argv.split(), "review"]) == 0
    with (tables / "out.csv").open(newline="") as file:
        again = list(csv.DictReader(file))
    assert [row["prediction"] for row in again] == [
        row["prediction"].replace(";", "|") for row in found
    ]
    for a, b in zip(again, found, strict=True):
        assert float(a["score"]) == pytest.approx(float(b["score"]), abs=1e-5)
    report = (tables / "run" / "report_test.md").read_text()
    assert "| label | precision | recall | F1 | support |" in report


def test_what_does_not_fit_is_refused(tables):
    train = str(tables / "train.csv")
    with pytest.raises(ValueError, match="needs task='multilabel_classifier'"):
        config(train=train, label_separator="|")
    with pytest.raises(ValueError, match="are for a classifier. Received: class_we"):
        config(train=train, task="multilabel_classifier", class_weights="balanced")
    with pytest.raises(ValueError, match="needs a table of your own"):
        config(task="multilabel_classifier", data_dir="glue")
    unknown = write_rows(tables / "b.csv", ("review", "tags"), [("a", "good;new")])
    options = {"task": "multilabel_classifier", "label_column": "tags"}
    with pytest.raises(ValueError, match="b.csv:2: .* no label 'new' in column 'tags'"):
        load_own_data(config(train=train, validation=unknown, **options))


def test_labels_that_validation_lacks_are_noted(tables):
    more = write_rows(tables / "b.csv", ("review", "tags"), [("a", "good"), ("b", "")])
    data = load_own_data(
        config(
            train=str(tables / "train.csv"),
            validation=more,
            task="multilabel_classifier",
            label_column="tags",
        )
    )
    np.testing.assert_array_equal(
        data.validation.targets["label"], [[0, 1, 0], [0, 0, 0]]
    )
    assert "No validation example has the label 'bad', 'long'." in data.notes


def test_the_report_by_hand(tmp_path):
    from keras_recbert.data.examples import Examples

    labels = np.array([[1, 0], [0, 0], [1, 1]], "float32")
    examples = Examples({"text": ["a", "b", "c"]}, {"label": labels})
    logits = np.array([[1.0, 1.0], [-1.0, -1.0], [2.0, -1.0]])
    scores = write_multilabel_report(
        tmp_path, "validation", examples, logits, ("x|y", "z")
    )
    assert scores == pytest.approx(
        {
            "validation_micro_f1": 2 * 2 / (2 * 2 + 1 + 1),
            "validation_macro_f1": (1 + 0) / 2,
            "validation_accuracy": 1 / 3,
            "validation_majority_accuracy": 1 / 3,
        }
    )
    report = (tmp_path / "report_validation.md").read_text()
    assert "| x\\|y | 1.000 | 1.000 | 1.000 | 2 |" in report
