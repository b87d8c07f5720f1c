"""Runs on texts that are longer than a row."""

import csv
import json
import types

import numpy as np
import pytest
from own_tables import config, write_rows
from toy_texts import DISLIKED, FILLERS, LIKED, VOCABULARY

from keras_recbert.cli import main
from keras_recbert.data.task_spec import get_task
from keras_recbert.tasks.text_batches import bucketed_batches
from keras_recbert.text.window_preprocessor import WindowPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer
from keras_recbert.train.fine_tuning import fine_tune
from keras_recbert.train.run_model import build_model


def rows(number, seed=0):
    """Texts of 16 to 35 words whose only clue is the last one, and labels."""
    rng = np.random.default_rng(seed)
    texts = [
        [*rng.choice(FILLERS, 15 + index % 20), (DISLIKED, LIKED)[index % 2][index % 3]]
        for index in range(number)
    ]
    return [
        (" ".join(words), ("bad", "good")[index % 2])
        for index, words in enumerate(texts)
    ]


@pytest.mark.slow
def test_the_command(tmp_path):
    train = write_rows(tmp_path / "train.csv", ("text", "label"), rows(40))
    test = write_rows(tmp_path / "test.csv", ("text", "label"), rows(9, seed=1))
    run = tmp_path / "run"
    line = f"finetune --train {train} --test {test} --output-dir {run} --no-export"
    line += " --model bert_tiny --long-texts windows --window-pooling max --epochs 1"
    line += " --vocabulary-size 60 --max-sequence-length 12 --batch-size 8"
    line += " --overrides num_layers 1 hidden_dim 16 num_heads 2 stride 6"
    assert main(line.split()) == 0
    results = json.loads((run / "results.json").read_text())
    assert 0 <= results["scores"]["test_accuracy"] <= 1
    counts = results["train_examples"], results["validation_examples"]["validation"]
    assert sum(counts) == 40  # texts, not windows
    with (run / "predictions.csv").open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [row["text"] for row in written] == [text for text, _ in rows(9, seed=1)]
    output = tmp_path / "answers.csv"
    ask = ["--input", test, "--output", str(output), "--text-column", "text"]
    assert main(["predict", str(run / "preset"), *ask]) == 0
    with output.open(encoding="utf-8") as file:
        answers = list(csv.DictReader(file))
    for answer, row in zip(answers, written, strict=True):
        assert answer["prediction"] == row["prediction"]
        assert float(answer["score"]) == pytest.approx(float(row["score"]), abs=1e-5)


def test_windows_of_a_task_need_no_truncation():
    """BoolQ truncates passages; in windows they are read to the end."""
    assert "truncation" in get_task("boolq").packer_arguments
    options = {"train": None, "task": "boolq", "long_texts": "windows"}
    precision = types.SimpleNamespace(policy="float32")
    model = build_model(config(**options), get_task("boolq"), VOCABULARY, precision)
    assert type(model.preprocessor) is WindowPreprocessor


def test_memory_is_that_of_the_windows():
    packer = WindowPreprocessor(
        WordPieceTokenizer(VOCABULARY), max_sequence_length=12, stride=10
    )
    texts = ["a " * 10, "a " * 11, "a " * 50]  # 1, 2 and 5 windows
    batches = bucketed_batches(packer, texts, ([0, 1, 0],), 2)
    assert batches.rows_per_example == pytest.approx(8 / 3)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"long_texts": "window"}, "`long_texts` must be truncate or windows"),
        (
            {"long_texts": "windows", "window_pooling": "sum"},
            "`window_pooling` must be mean or max",
        ),
        ({"window_pooling": "max"}, r"Add long_texts: windows \(--long-texts windows"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        config(train="a.csv", **options)


def test_a_task_without_texts_is_refused_before_it_is_read(tmp_path):
    run = config(
        task="squad1",
        data_dir=str(tmp_path),
        long_texts="windows",
        output_dir=str(tmp_path / "run"),
    )
    with pytest.raises(ValueError, match="whose preprocessor is a QuestionPrep"):
        fine_tune(run)
    assert not (tmp_path / "run").exists()
