import csv
import os
import pathlib
import re
import signal

import pytest
from processes import finish, start, wait_for
from toy_texts import review_pairs, reviews, tiny_model

import keras_recbert
from keras_recbert.cli import main

TEXTS, _ = reviews(40)
TEXTS[3:5] = ["", 'a "fine",\nfilm']


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a classifier in three forms, a regressor, and an encoder."""
    folder = tmp_path_factory.mktemp("models")
    model = tiny_model(label_names=["bad", "good"])
    model.save(folder / "one.keras")
    model.save_preset(folder / "one_preset")
    model.export_savedmodel(folder / "one_savedmodel")
    model.encoder.save_preset(folder / "encoder")
    regressor = tiny_model("swish_tiny", task="regressor")
    regressor.export_savedmodel(folder / "two", fields=("text", "text_pair"))
    return folder


@pytest.fixture
def recbert(tmp_path, monkeypatch, capsys):
    """Runs `recbert predict` in a folder with a table; returns status and errors."""
    monkeypatch.chdir(tmp_path)
    first, second, _ = review_pairs(40)
    columns = [range(40), TEXTS, first, second]
    rows = [("id", "text", "first", "second"), *zip(*columns, strict=True)]
    with open("in.csv", "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)

    def run(*argv):
        status = main(["predict", *map(str, argv)])
        captured = capsys.readouterr()
        assert captured.out == ""
        return status, captured.err

    return run


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("name", ["one_savedmodel", "one.keras", "one_preset"])
def test_a_file_gets_the_answers_of_the_model(recbert, models, name):
    argv = (models / name, "--input", "in.csv", "--output", "out.csv")
    status, err = recbert(*argv, "--batch-size", 16)
    assert status == 0
    first, last = err.splitlines()
    assert first == "Predicting in.csv: 40 rows, texts in text."
    assert last.startswith("Wrote out.csv: 40 rows; ")

    header, *rows = read_csv("out.csv")
    assert header == ["id", "text", "first", "second", "prediction", "score"]
    assert [row[:4] for row in rows] == read_csv("in.csv")[1:]
    model = keras_recbert.load(models / "one.keras")
    answers = model.answer(model.predict(TEXTS, verbose=0))
    scores = answers["scores"].numpy()
    assert [row[4] for row in rows] == [
        ["bad", "good"][index] for index in scores.argmax(axis=1)
    ]
    found = [float(row[5]) for row in rows]
    assert found == pytest.approx(scores.max(axis=1).tolist(), abs=2e-6)
    assert len(set(found)) > 20  # the texts are told apart

    status, err = recbert(*argv, "--batch-size", 16)
    assert status == 2
    assert "out.csv exists already. Choose another file, or pass overwrite=True" in err


def test_pairs_of_a_regressor(recbert, models):
    columns = ("--text-column", "first", "second")
    paths = ("--input", "in.csv", "--output", "out.jsonl")
    status, err = recbert(models / "two", *paths, *columns)
    assert (status, err.splitlines()[0][-26:]) == (0, "texts in first and second.")
    lines = pathlib.Path("out.jsonl").read_text().splitlines()
    assert len(lines) == 40
    assert '"id": "0", "text": ' in lines[0]
    status, err = recbert(models / "one.keras", *paths, *columns, "--overwrite")
    assert status == 2
    assert "takes 1 text(s) an example, and the texts are in 2 column(s): first" in err
    assert pathlib.Path("out.jsonl").read_text().splitlines() == lines


FILE = ("--input", "in.csv", "--output", "out.csv")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("none", *FILE), "There is no model at none. Expected a SavedModel, such as"),
        (("@/encoder", *FILE), "encoder holds an encoder without a head for a task"),
        (("@/two", *FILE), "takes 2 text(s) an example, and the texts are in 1 column"),
        (("@/one.keras", "a text", *FILE), "Give texts, or a file (--input FILE), not"),
        (("@/one.keras", "--pairs", *FILE), "Pairs in a file are two columns: --text-"),
        (("@/one.keras", *FILE[:2]), "--input and --output. Add --output FILE."),
        (("@/one.keras", *FILE[2:]), "--input and --output. Add --input FILE."),
        (("@/one.keras", "--text-column", "text"), "Add --input FILE."),
        (
            ("@/one.keras", *FILE, "--text-column", "txt"),
            "There is no column 'txt': in",
        ),
        (("@/one.keras", *FILE[:3], "out.parquet"), "predictions are written as .csv"),
        (("@/one.keras", *FILE[:3], ""), "`output` is empty. Expected a path"),
        (("@/one.keras", *FILE[:3], "no/out.csv"), "there is no folder no"),
    ],
)
def test_what_is_wrong_is_one_line(recbert, models, argv, message):
    status, err = recbert(*(word.replace("@", str(models)) for word in argv))
    assert status == 2
    line, hint = err.splitlines()
    assert message in line
    assert os.listdir() == ["in.csv"]


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    """A folder with presets of choices, of a tagger, and of two heads."""
    folder = tmp_path_factory.mktemp("presets")
    tiny_model(task="multiple_choice").save_preset(folder / "choices")
    tagger = tiny_model(task="token_classifier", label_names=["O", "B-person"])
    tagger.save_preset(folder / "tagger")
    heads = {"tone": "classifier", "tone_b": "regressor"}
    tiny_model(task=heads).save_preset(folder / "two_heads")
    return folder


def test_texts_are_answered_by_presets(presets, capsys):
    assert main(["predict", str(presets / "two_heads"), "a film"]) == 0
    out = capsys.readouterr().out
    assert re.fullmatch(r"tone: .* %, tone_b: -?\d\.\d{3}  a film\n", out)
    assert main(["predict", str(presets / "choices"), "a film", "good"]) == 2
    line, _ = capsys.readouterr().err.splitlines()
    told = "Each example needs at least two choices, none of them empty."
    assert line == f"recbert: error: {told}"


def test_words_of_a_file_are_tagged_on_request_only(recbert, presets):
    pathlib.Path("in.jsonl").write_text('{"words": ["a", "b c"]}\n{"words": []}\n')
    argv = (presets / "tagger", "--input", "in.jsonl", "--output", "out.csv")
    status, err = recbert(*argv)
    assert (status, "in.jsonl:1: 'words' must hold a text" in err) == (2, True)
    assert recbert(*argv, "--head", "words")[0] == 0
    tags = [row[1].split() for row in read_csv("out.csv")[1:]]
    assert [len(row) for row in tags] == [2, 0]


@pytest.mark.slow  # three processes that load TensorFlow
def test_a_killed_command_resumes_to_the_same_bytes(models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open(tmp_path / "in.txt", "w") as file:
        file.writelines(f"{text}\n" for text in reviews(40_000)[0])

    def predict(output):
        argv = ("predict", models / "one_savedmodel", "--input", "in.txt", "--output")
        return start(*argv, output)

    process = predict("out.csv")
    state = tmp_path / ".out.csv.progress.json"
    wait_for(
        process, lambda: state.exists() and '"num_rows": 0' not in state.read_text()
    )
    process.send_signal(signal.SIGKILL)
    finish(process, -signal.SIGKILL)
    assert not (tmp_path / "out.csv").exists()
    assert ", resuming at row " in finish(predict("out.csv"))
    finish(predict("whole.csv"))
    whole = (tmp_path / "whole.csv").read_bytes()
    assert (tmp_path / "out.csv").read_bytes() == whole
    assert whole.count(b"\n") == 40_001
