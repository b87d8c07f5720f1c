"""Runs on SuperGLUE: questions stay whole, and MultiRC is scored by question."""

import json
import pathlib

import numpy as np
import pytest
from own_tables import config
from toy_texts import VOCABULARY

from keras_recbert.data import get_task
from keras_recbert.data.superglue import question_ids
from keras_recbert.data.task_files import read_split
from keras_recbert.metrics.multirc import f1_over_answers, question_exact_match
from keras_recbert.train.fine_tuning import fine_tune, load_run_data
from keras_recbert.train.run_model import build_model

SAMPLES = pathlib.Path(__file__).parents[1] / "data" / "samples"


@pytest.fixture(scope="module")
def multirc(tmp_path_factory):
    """A finished run on the sample: its folder, model and results."""
    folder = tmp_path_factory.mktemp("multirc")
    (folder / "pieces.txt").write_text("\n".join(VOCABULARY))
    options = config(
        task="multirc",
        data_dir=str(SAMPLES / "multirc"),
        vocabulary=str(folder / "pieces.txt"),
        output_dir=str(folder / "run"),
        epochs=1,
        submission=True,
    )
    return folder / "run", *fine_tune(options)


def test_multirc_is_scored_by_answers_and_by_questions(multirc):
    _, model, results = multirc
    examples = read_split("multirc", SAMPLES / "multirc", "validation")
    logits = model.predict(tuple(examples.fields.values()), verbose=0)
    labels, predictions = examples.targets["label"], logits.argmax(1)
    scores = results["scores"]
    assert list(scores) == [
        f"validation_{name}" for name in ("loss", "f1a", "exact_match", "accuracy")
    ]
    assert scores["validation_f1a"] == f1_over_answers(labels, predictions)
    assert scores["validation_exact_match"] == question_exact_match(
        question_ids(examples.ids), labels, predictions
    )
    assert scores["validation_accuracy"] == np.mean(labels == predictions)


def test_the_run_writes_what_the_leaderboard_takes(multirc):
    folder, model, _ = multirc
    examples = read_split("multirc", SAMPLES / "multirc", "test")
    logits = model.predict(tuple(examples.fields.values()), verbose=0)
    dull, good, film = logits.argmax(1).tolist()
    written = (folder / "MultiRC.jsonl").read_bytes().decode()
    assert written == (
        '{"idx": 2, "passage": {"questions": ['
        f'{{"idx": 5, "answers": [{{"idx": 11, "label": {dull}}}, '
        f'{{"idx": 12, "label": {good}}}]}}, '
        f'{{"idx": 6, "answers": [{{"idx": 13, "label": {film}}}]}}]}}}}\n'
    )


@pytest.mark.parametrize("task", ["boolq", "multirc"])
def test_a_long_passage_leaves_the_question_whole(task, multirc):
    run = config(task=task, max_sequence_length=12)
    precision = type("Precision", (), {"policy": "float32"})
    model = build_model(run, get_task(task), VOCABULARY, precision)
    packer = model.preprocessor
    question = "was the film good"
    rows = packer(([question, question], ["actors " * 50, "actors"]))
    ids = packer.tokenizer([question])[0].numpy().tolist()
    cls, sep = packer.tokenizer.cls_id, packer.tokenizer.sep_id
    for row in rows["token_ids"].numpy().tolist():
        assert row[: len(ids) + 2] == [cls, *ids, sep]
    assert rows["padding_mask"].numpy().sum(axis=1).tolist() == [12, len(ids) + 4]
    # A question that fills the row is still read, as far as there is room.
    rows = packer((["film " * 50], ["actors"]))
    assert rows["token_ids"].shape == (1, 12)


def test_a_run_may_truncate_otherwise(multirc):
    folder, model, _ = multirc
    assert model.preprocessor.truncation == "waterfall"
    run = config(task="boolq", overrides={"truncation": "only_first", "num_layers": 1})
    precision = type("Precision", (), {"policy": "float32"})
    other = build_model(run, get_task("boolq"), VOCABULARY, precision)
    assert other.preprocessor.truncation == "only_first"
    preset = json.loads((folder / "preset" / "config.json").read_text())
    assert "waterfall" in json.dumps(preset)


def test_the_one_labelled_file_is_split_in_two(tmp_path):
    """`recbert finetune --task boolq --data-dir DIR --validation-fraction 0.5`."""
    rows = [
        {"question": f"is it {n}", "passage": f"No {n // 2}.", "idx": n, "label": True}
        for n in range(40)
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "val.jsonl").write_text(lines)
    options = {"task": "boolq", "data_dir": str(tmp_path), "validation_fraction": 0.5}
    halves = load_run_data(config(**options))
    whole = load_run_data(config(**options, split_seed=0, tuning_fraction=0.2))
    (held_out,) = halves.validation.values()
    passages = [set(half.fields["passage"]) for half in (halves.train, held_out)]
    assert len(halves.train) == len(held_out) == 20
    assert len(set.union(*passages)) == 20 and not set.intersection(*passages)
    # What options are chosen by is of the first half.
    (tuned_on,) = whole.validation.values()
    assert (len(whole.train), len(tuned_on)) == (16, 4)
    together = set(whole.train.fields["question"] + tuned_on.fields["question"])
    assert together == set(halves.train.fields["question"])
