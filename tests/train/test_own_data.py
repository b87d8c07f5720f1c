"""A user's own table: the command, the call, and what they write."""

import csv
import json
import os
import pathlib
import shlex
import subprocess
import sys

import numpy as np
import pandas
import pytest
from own_tables import OPTIONS, config, write_rows
from toy_texts import review_pairs, reviews

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.data.tables import read_table
from keras_recbert.train.own_data import load_own_data, write_predictions
from keras_recbert.train.training_run import FILES_OF_TASKS, FINE_TUNING

WORDS = ("bad", "good")
FLAGS = shlex.split(
    "--model swish_tiny --vocabulary-size 90 --epochs 2 --batch-size 8 --no-export "
    "--learning-rate 1e-2 --max-sequence-length 32 "
    "--overrides num_layers 1 hidden_dim 16 num_heads 2"
)
COMMAND = shlex.split(
    "finetune --train train.csv --validation more.csv --test test.csv "
    "--text-column review --label-column stars --output-dir run"
)


@pytest.fixture
def tables(tmp_path):
    """Writes train.csv, more.csv and test.csv, each with an id, a review and stars."""
    texts, labels = reviews(44)
    rows = [
        (f"{index:03}", text if index % 5 else f'{text}\nA "quote", too.', WORDS[label])
        for index, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    for name, part in (
        ("train", rows[:28]),
        ("more", rows[28:36]),
        ("test", rows[36:]),
    ):
        write_rows(tmp_path / f"{name}.csv", ("id", "review", "stars"), part)
    return tmp_path


# What a user types -------------------------------------------------------------


def test_the_command(tables, monkeypatch, capsys):
    monkeypatch.chdir(tables)
    assert main([*COMMAND, *FLAGS]) == 0
    out = capsys.readouterr().out
    assert "A classifier, because the labels are words (--task)." in out
    assert "28 rows to train on, 8 to validate on, 8 to test on." in out
    assert "report_test.md, predictions.csv)" in out
    results = json.loads((tables / "run" / "results.json").read_text())
    scores = results["scores"]
    assert {
        "validation_accuracy",
        "validation_macro_f1",
        "validation_loss",
    } < scores.keys()
    assert {"test_accuracy", "test_macro_f1"} < scores.keys()
    assert f"test accuracy: {scores['test_accuracy']:.4f}" in out
    assert results["task"] == "train"
    assert results["train_examples"] == 28

    with (tables / "test.csv").open(newline="") as file:
        given = list(csv.DictReader(file))
    with (tables / "run" / "predictions.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["id", "review", "stars", "prediction", "score"]
    assert [{k: row[k] for k in given[0]} for row in found] == given
    model = keras_recbert.load(tables / "run" / "model.keras")
    assert model.label_names == list(WORDS)
    logits = model.predict([row["review"] for row in given], verbose=0)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for row, probabilities in zip(found, expected, strict=True):
        assert row["prediction"] == WORDS[probabilities.argmax()]
        assert float(row["score"]) == pytest.approx(probabilities.max(), abs=1e-5)
    right = [row["prediction"] == row["stars"] for row in found]
    assert scores["test_accuracy"] == pytest.approx(np.mean(right))


def test_the_call(eager_steps, tables):
    model, results = keras_recbert.finetune(
        train=tables / "train.csv", output_dir=tables / "run", **OPTIONS
    )
    assert model.label_names == list(WORDS)
    assert results["validation_examples"] == {"validation": 3}
    assert set(os.listdir(tables / "run")) == {
        "vocab.txt",
        "model.keras",
        "preset",
        "history.csv",
        "learning_curve.png",
        "tensorboard",
        "results.json",
        "report_validation.md",
        "confusion_validation.png",
        "mistakes_validation.csv",
    }
    history = results["history"]["validation_accuracy"]
    assert results["scores"]["validation_accuracy"] == max(history)
    (chosen,) = [note for note in results["notes"] if "texts are in" in note]
    assert "'review', a text by its name (--text-column)" in chosen
    with pytest.raises(FileExistsError, match="a finished run"):
        keras_recbert.finetune(
            train=str(tables / "train.csv"), output_dir=tables / "run", **OPTIONS
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epoch": 3}, "finetune: unknown key 'epoch'. Did you mean 'epochs'"),
        ({"text_colum": "a"}, "Did you mean 'text_column'"),
        ({"epochs": "many"}, "`epochs` must be of type int"),
        ({"text_column": 3}, "`text_column` must be of type str | list"),
    ],
)
def test_a_wrong_option_of_the_call_is_told(options, message):
    with pytest.raises(ValueError) as caught:
        keras_recbert.finetune(**options)
    assert message in str(caught.value)


def test_the_call_is_there_without_tensorflow():
    script = (
        "import sys, keras_recbert, inspect\n"
        "names = inspect.signature(keras_recbert.finetune).parameters\n"
        "assert 'text_column' in names\n"
        "try: keras_recbert.finetune(trian='a.csv')\n"
        "except ValueError as error: assert \"mean 'train'\" in str(error), error\n"
        "else: assert False\n"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_scores_of_pairs_without_labels_in_the_test_table(
    eager_steps, tmp_path, capsys
):
    first, second, same = review_pairs(40)
    rows = [
        {"a": a, "b": b, "alike": 0.5 + label + index % 3}
        for index, (a, b, label) in enumerate(zip(first, second, same, strict=True))
    ]
    lines = [json.dumps(row) for row in rows[:32]]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    test = pandas.DataFrame(rows[32:]).drop(columns="alike")
    test.to_parquet(tmp_path / "test.parquet")
    model, results = keras_recbert.finetune(
        train=tmp_path / "train.jsonl",
        test=tmp_path / "test.parquet",
        text_column=["a", "b"],
        validation_fraction=0.25,
        output_dir=tmp_path / "run",
        **OPTIONS,
    )
    out = capsys.readouterr().out
    assert "A regressor, because the labels are numbers with fractions" in out
    assert "no column 'alike', so no scores on it" in out
    assert model.fields == ("text", "text_pair")
    assert "validation_pearson" in results["scores"]
    assert not any(name.startswith("test_") for name in results["scores"])
    written = pandas.read_csv(tmp_path / "run" / "predictions.csv")
    assert list(written) == ["id", "a", "b", "prediction", "score"]
    assert written["id"].tolist() == list(range(1, 9))
    assert (written["prediction"] == written["score"]).all()
    logits = model.predict((test["a"].tolist(), test["b"].tolist()), verbose=0)
    np.testing.assert_allclose(written["score"], logits, atol=1e-5)
    assert (tmp_path / "run" / "scatter_validation.png").is_file()


def test_every_file_of_a_report_is_one_of_a_run():
    assert set(FILES_OF_TASKS) < set(FINE_TUNING.files)
    assert (
        "report_test.md" in FILES_OF_TASKS
        and "scatter_validation.png" in FILES_OF_TASKS
    )


# What is read ------------------------------------------------------------------


def load(path, **options):
    return load_own_data(config(train=str(path), **options))


def test_numbers_as_labels_are_classes_in_their_order(tmp_path):
    rows = [(f"a text {i}", 1 + (7 * i) % 12) for i in range(120)]
    data = load(write_rows(tmp_path / "a.csv", ("text", "label"), rows))
    assert data.task.label_names == tuple(map(str, range(1, 13)))
    assert data.train.targets["label"].dtype == np.int32
    assert any("12 different whole numbers" in note for note in data.notes)
    scores = load(tmp_path / "a.csv", task="regressor")
    assert scores.task.label_names is None
    assert scores.task.metrics == ("pearson", "spearman")
    assert set(scores.train.targets["label"]) <= set(map(float, range(1, 13)))


def test_texts_and_labels_stay_as_written(tmp_path):
    rows = [("NA", "01"), ("null", "1")] * 3 + [(f"text {i}", "01") for i in range(30)]
    rows += [(f"more {i}", "1") for i in range(30)]
    data = load(write_rows(tmp_path / "a.csv", ("text", "label"), rows))
    assert data.task.label_names == ("01", "1")
    texts = data.train.fields["text"] + data.validation.fields["text"]
    assert {"NA", "null"} < set(texts)


def test_latin1_is_said_and_its_label_found(tmp_path):
    rows = [(f"café {i}", ("süß", "herb")[i % 2]) for i in range(40)]
    path = tmp_path / "a.csv"
    write_rows(path, ("text", "label"), rows, encoding="latin-1")
    data = load(path)
    assert data.task.label_names == ("herb", "süß")
    assert data.notes[0].startswith(f"{path}:2: not UTF-8")


@pytest.mark.parametrize("seed", [0, 1])
def test_the_split_keeps_labels_alike_and_duplicates_together(tmp_path, seed):
    rows = [
        (f"text number {i // 2}", ("rare", "a", "b", "a", "b")[i % 5])
        for i in range(200)
    ]
    rows = [
        (text.upper() if i % 2 else f" {text}  ", y) for i, (text, y) in enumerate(rows)
    ]
    path = write_rows(tmp_path / "a.csv", ("text", "label"), rows)
    data = load(path, seed=seed, validation_fraction=0.2)
    train, validation = (
        {" ".join(text.split()).lower() for text in part.fields["text"]}
        for part in (data.train, data.validation)
    )
    assert not train & validation
    assert len(data.train) + len(data.validation) == 200
    assert len(data.validation) == 40
    counts = np.bincount(data.validation.targets["label"], minlength=3)
    assert all(counts >= 4)
    again = load(path, seed=seed, validation_fraction=0.2)
    assert again.validation.fields == data.validation.fields
    again = load(path, seed=seed + 7, split_seed=seed, validation_fraction=0.2)
    assert again.validation.fields == data.validation.fields
    other = load(path, seed=seed + 7, validation_fraction=0.2)
    assert other.validation.fields != data.validation.fields


def test_a_label_of_one_text_stays_in_training_and_is_said(tmp_path):
    rows = [(f"a text {i}", "ab"[i % 2]) for i in range(40)] + [("only one", "c")]
    data = load(write_rows(tmp_path / "a.csv", ("text", "label"), rows))
    assert 2 in data.train.targets["label"]
    assert 2 not in data.validation.targets["label"]
    assert "No validation example has the label 'c'." in data.notes


def test_pairs_with_few_second_texts_are_split_by_the_first(tmp_path):
    rows = [
        (f"text {i // 2}", ("price", "taste")[i % 2], "ab"[i // 2 % 2])
        for i in range(80)
    ]
    path = write_rows(tmp_path / "a.csv", ("text", "aspect", "label"), rows)
    data = load(path, text_column=["text", "aspect"])
    assert not set(data.train.fields["text"]) & set(data.validation.fields["text"])
    assert any("second texts recur" in note for note in data.notes)


def test_texts_of_the_training_table_elsewhere_are_said(tables):
    rows = [("1", "A  GOOD film", "good"), ("2", "new", "bad")]
    train = write_rows(
        tables / "t.csv", ("key", "review", "stars"), [*rows, ("3", "Fine", "good")] * 2
    )
    rows[0] = ("1", "a good film", "good")
    test = write_rows(tables / "u.csv", ("id", "review", "stars"), [rows[0]])
    data = load(train, validation=str(tables / "more.csv"), test=test)
    assert any(
        f"{test}: 1 of 1 rows have a text of the training" in n for n in data.notes
    )


# Mistakes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        (
            "train",
            [("1", "a\nb", "good"), ("2", "c", " ")],
            r"train.csv:4: .*'stars' is e",
        ),
        (
            "more",
            [("1", "a", "fine")],
            r"more.csv:2: .*no label 'fine' .*'bad', 'good'",
        ),
        (
            "test",
            [("1", "a", "Good")],
            r"test.csv:2: .*no label 'Good' .*'bad', 'good'",
        ),
        (
            "train",
            [("1", "a", "good")] * 9,
            "train.csv, column 'stars': every row has t",
        ),
        (
            "train",
            [(1, f"a {i}", f"w{i}") for i in range(30)],
            "30 different words in 30",
        ),
        (
            "train",
            [(i, f"a {i}", ("good", "bad", "NaN")[i % 3]) for i in range(9)],
            r"train.csv:4: the label in column 'stars' is 'NaN'. Expected a fin",
        ),
        (
            "train",
            [(i, f"a {i}", i / 4 if i != 5 else "-inf") for i in range(30)],
            r"train.csv:7: the label in column 'stars' is '-inf'. Expected a fin",
        ),
        ("train", [(1, "a", "x"), (2, "b", "y")], None),
    ],
)
def test_labels_that_are_wrong_name_file_and_line(tables, name, rows, message):
    write_rows(tables / f"{name}.csv", ("id", "review", "stars"), rows)
    files = {"validation": str(tables / "more.csv"), "test": str(tables / "test.csv")}
    if message is None:  # too few to split
        files = {}
        message = "2 rows are too few to hold 0.1 of them out.*--validation FILE"
    with pytest.raises(ValueError, match=message):
        load(tables / "train.csv", **files)


def test_an_infinity_among_words_is_a_class(tmp_path):
    rows = [(f"a {i}", ("inf", "fin")[i % 2]) for i in range(40)]
    data = load(write_rows(tmp_path / "a.csv", ("text", "label"), rows))
    assert data.task.label_names == ("fin", "inf")


@pytest.mark.parametrize("name", ["train", "more", "test"])
def test_an_id_that_stands_twice_is_told(tables, name):
    rows = [(4, "a fine film", "good"), (5, "a bore", "bad"), (4, "fun", "good")]
    write_rows(tables / f"{name}.csv", ("id", "review", "stars"), rows)
    message = f"{name}.csv:4: the id '4' stands twice, first at .*{name}.csv:2. Give "
    files = {"validation": str(tables / "more.csv"), "test": str(tables / "test.csv")}
    with pytest.raises(ValueError, match=f"{message}.*the column 'id' another name"):
        load(tables / "train.csv", **files)


def test_an_id_that_is_text_or_label_may_stand_twice(tmp_path):
    rows = [(f"a {i}", "ab"[i % 2]) for i in range(40)]
    path = write_rows(tmp_path / "a.csv", ("text", "id"), rows)
    assert load(path, label_column="id").task.label_names == ("a", "b")


def test_numbers_that_are_wrong_name_file_and_line(tables):
    header = ("id", "review", "stars")
    write_rows(tables / "train.csv", header, [(i, f"a {i}", i / 4) for i in range(30)])
    write_rows(tables / "more.csv", header, [(1, "a", "3,5")])
    options = {"validation": str(tables / "more.csv")}
    with pytest.raises(
        ValueError, match="more.csv:2: '3,5' in column 'stars' is not a"
    ):
        load(tables / "train.csv", **options)
    write_rows(tables / "more.csv", header, [(1, "a", 2.5), (2, "b", 2.5)])
    with pytest.raises(
        ValueError, match="more.csv, .* all 2 labels .* are 2.5. Expect"
    ):
        load(tables / "train.csv", **options)
    with pytest.raises(
        ValueError, match="`class_weights` are for a classifier, and th"
    ):
        load(tables / "train.csv", class_weights="balanced")


def test_columns_of_the_other_tables_are_checked(tables):
    write_rows(tables / "more.csv", ("text", "stars"), [("a", "good")])
    with pytest.raises(
        ValueError, match="more.csv has no column 'review'. Its columns"
    ):
        load(tables / "train.csv", validation=str(tables / "more.csv"))
    write_rows(tables / "more.csv", ("review",), [("a",)])
    with pytest.raises(ValueError, match="more.csv has no column 'stars'"):
        load(tables / "train.csv", validation=str(tables / "more.csv"))
    write_rows(tables / "test.csv", ("review", "score"), [("a", 1)])
    with pytest.raises(ValueError, match="test.csv has a column 'score', which predic"):
        load(tables / "train.csv", test=str(tables / "test.csv"))


def test_files_are_looked_at_before_any_work(tables, monkeypatch, capsys):
    monkeypatch.chdir(tables)
    for argv, message in (
        (("--train", "none.csv"), "There is no file none.csv"),
        (("--train", "train.csv", "--test", "none.csv"), "There is no file none.csv"),
        (("--train", "table"), "the ending of a table says what it is"),
        (("--train", "."), "train='.', a folder. Name a file in it; the folder of a"),
        (("--train", "train.csv", "--label-column", "stras"), "has no column 'stras'"),
    ):
        assert main(["finetune", *argv, *FLAGS]) == 2
        out, err = capsys.readouterr()
        assert message in err and len(err.splitlines()) == 2
        assert "Learning" not in out
        assert not pathlib.Path("runs").exists()


def test_predictions_keep_every_character_of_the_table(tmp_path):
    texts = ["a\rb", "c\n d", 'q"x', "x,y", "\u2028", " NA "]
    path = write_rows(tmp_path / "a.csv", ("text", "n"), [(t, "01") for t in texts])
    logits = np.zeros((len(texts), 2), np.float32)
    ids = [f"q{row}" for row in range(len(texts))]
    out = tmp_path / "out.csv"
    write_predictions(out, read_table(path), ids, logits, ("no", "yes"))
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == texts
    assert [row["id"] for row in rows] == ids
    assert {(row["n"], row["prediction"], row["score"]) for row in rows} == {
        ("01", "no", "0.5")
    }
