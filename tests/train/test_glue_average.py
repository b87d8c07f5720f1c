"""The GLUE score: which run counts, what a task counts, and the averages."""

import json
import re

import pytest

from keras_recbert.cli import main
from keras_recbert.data import get_task
from keras_recbert.train.glue_average import (
    TASKS,
    WITHOUT_WNLI,
    bert_average,
    best_runs,
    glue_score,
    make_glue_table,
    read_runs,
    task_score,
)

# Table 1 of Devlin et al. 2018: MNLI-m, MNLI-mm, QQP, QNLI, SST-2, CoLA, STS-B, MRPC,
# RTE, and their average.
TABLE_1 = {
    "BiLSTM+ELMo+Attn": ("76.4 76.1 64.8 79.9 90.4 36.0 73.3 84.9 56.8", 71.0),
    "OpenAI GPT": ("82.1 81.4 70.3 88.1 91.3 45.4 80.0 82.3 56.0", 75.2),
    "BERT base": ("84.6 83.4 71.2 90.1 93.5 52.1 85.8 88.9 66.4", 79.6),
    "BERT large": ("86.7 85.9 72.1 91.1 94.9 60.5 86.5 89.3 70.1", 81.9),
}
COLUMNS = ("mnli", "mnli", "qqp", "qnli", "sst2", "cola", "stsb", "mrpc", "rte")


def run(task, seed=0, rate=5e-5, model="bert_tiny", notes=(), **scores):
    return {
        "task": task,
        "task_version": get_task(task).version,
        "model": model,
        "learning_rate": rate,
        "scores": {f"validation_{name}": value for name, value in scores.items()},
        "notes": list(notes),
        "config": {"seed": seed, "limit": None},
    }


ALL = [
    run("cola", matthews=0.3, loss=1.0),
    run("sst2", accuracy=0.9),
    run("mrpc", accuracy=0.7, f1=0.8),
    run("stsb", pearson=0.84, spearman=0.8),
    run("qqp", accuracy=0.9, f1=0.86),
    run("mnli", matched_accuracy=0.8, mismatched_accuracy=0.7),
    run("qnli", accuracy=0.85),
    run("rte", accuracy=0.6),
    run("wnli", accuracy=0.4),
]


@pytest.mark.parametrize("system", TABLE_1)
def test_the_average_of_table_1(system):
    scores, average = TABLE_1[system]
    best = {}
    for task, score in zip(COLUMNS, map(float, scores.split()), strict=True):
        spec = get_task(task)
        splits = spec.validation_splits
        one = best.setdefault(task, run(task))
        split = splits[len(one["scores"])]
        one["scores"][f"{split}_{spec.main_metric}"] = score / 100
    assert round(100 * bert_average(best), 1) == average


def test_two_metrics_and_two_parts_count_by_their_mean():
    best = {one["task"]: one for one in ALL}
    counted = {task: task_score(one) for task, one in best.items()}
    assert counted == pytest.approx(
        {
            **{"cola": 0.3, "sst2": 0.9, "mrpc": 0.75, "stsb": 0.82, "qqp": 0.88},
            **{"mnli": 0.75, "qnli": 0.85, "rte": 0.6, "wnli": 0.4},
        }
    )
    assert glue_score(best) == pytest.approx(6.25 / 9)
    assert glue_score(best, WITHOUT_WNLI) == pytest.approx(5.85 / 8)
    main = (0.3, 0.9, 0.8, 0.8, 0.86, 0.8, 0.7, 0.85, 0.6)
    assert bert_average(best) == pytest.approx(sum(main) / 9)


@pytest.mark.parametrize("missing", TASKS)
def test_no_average_of_fewer_tasks(missing):
    best = {one["task"]: one for one in ALL if one["task"] != missing}
    assert glue_score(best) is None
    is_wnli = missing == "wnli"
    assert (glue_score(best, WITHOUT_WNLI) is None) != is_wnli
    assert (bert_average(best) is None) != is_wnli


def test_one_part_of_mnli_is_no_table_1():
    best = {one["task"]: one for one in ALL}
    best["mnli"] = run("mnli", matched_accuracy=0.8)
    assert bert_average(best) is None
    assert task_score(best["mnli"]) == 0.8


def test_the_best_on_validation_counts_by_its_main_metric():
    runs = [
        run("mrpc", 0, 5e-5, f1=0.80, accuracy=0.79),
        run("mrpc", 1, 3e-5, f1=0.85, accuracy=0.70),
        run("mrpc", 2, 2e-5, f1=0.85, accuracy=0.75),
        run("rte", 4, accuracy=0.5),
    ]
    best = best_runs(runs)
    assert best == {"mrpc": runs[1], "rte": runs[3]}


def test_the_tables():
    runs = [
        *ALL,
        run("rte", 3, 2e-5, accuracy=0.64),
        run("qnli", model="swish_tiny", notes=["it is not comparable"], accuracy=0.5),
    ]
    table = make_glue_table(runs)
    header, _, bert, swish, _, note, _, *others = table.splitlines()
    assert header == (
        "| encoder | CoLA | SST-2 | MRPC | STS-B | QQP | MNLI | QNLI | RTE | WNLI "
        "| GLUE | without WNLI | as in BERT's table 1 |"
    )
    assert bert == (
        "| `bert_tiny` | 30.0 | 90.0 | 80.0/70.0 | 80.0/84.0 | 86.0/90.0 | 80.0/70.0 "
        "| 85.0 | 64.0 | 40.0 | 69.9 | 73.6 | 73.9 |"
    )
    assert swish == (
        "| `swish_tiny` | – | – | – | – | – | – | 50.0* | – | – | – | – | – |"
    )
    assert note.startswith("* Not comparable with published scores")
    assert "| `bert_tiny` | RTE | 2 | 2e-05 | 3 | 62.0 (60.0–64.0) |" in others
    assert "| `swish_tiny` | QNLI | 1 | 5e-05 | 0 | 50.0 |" in others
    assert "*" not in make_glue_table(ALL)


def test_sizes_of_an_encoder_are_rows_of_their_own():
    def sized(one, **overrides):
        return {**one, "config": {**one["config"], "overrides": overrides}}

    heads = {"relu_units": 8, "combine": "sum"}
    runs = [
        sized(ALL[0], num_layers=1, hidden_dim=64, **heads),
        sized(ALL[1], hidden_dim=64, num_layers=1),
        sized(ALL[2], num_layers=2),
        sized(ALL[6], **heads),
        ALL[7],
    ]
    rows = make_glue_table(runs).partition("\n\n")[0].splitlines()[2:]
    assert [row.partition(" | –")[0] for row in rows] == [
        "| `bert_tiny` (hidden_dim 64, num_layers 1) | 30.0 | 90.0",
        "| `bert_tiny` (num_layers 2)",
        "| `bert_tiny`",
    ]
    assert "| 85.0 | 60.0 |" in rows[2]
    weights = sized(ALL[0], num_layers=1)
    weights["config"]["weights"] = "W"
    assert "| `bert_tiny` from W (num_layers 1) | CoLA |" in make_glue_table([weights])


def test_runs_of_a_folder(tmp_path, capsys):
    for index, one in enumerate(ALL):
        folder = tmp_path / "runs" / f"{index}"
        folder.mkdir(parents=True)
        (folder / "results.json").write_text(json.dumps(one))
    tuned = {**ALL[0], "config": {"seed": 0, "validation_fraction": 0.1}}
    for name, other in (("boolq", {"task": "boolq"}), ("tuned", tuned)):
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "results.json").write_text(json.dumps(other))
    assert read_runs([tmp_path / "runs"]) == ALL
    listed = tmp_path / "table"
    listed.mkdir()
    (listed / "results.json").write_text(json.dumps(ALL[:3]))
    (listed / "rte").mkdir()
    (listed / "rte" / "results.json").write_text(json.dumps(ALL[0]))
    assert read_runs([listed, tmp_path / "runs" / "4" / "results.json"]) == [
        *ALL[:3],
        ALL[4],
    ]
    written = tmp_path / "glue.md"
    assert main(["glue", str(tmp_path / "runs"), "--output", str(written)]) == 0
    assert capsys.readouterr().out == written.read_text() == make_glue_table(ALL)


def test_what_is_no_run_of_glue_is_refused(tmp_path, capsys):
    def refused(*argv):
        assert main(["glue", *map(str, argv)]) == 2
        return capsys.readouterr().err

    assert f"There is no file or folder {tmp_path}/none" in refused(tmp_path / "none")
    assert "No finished run on a task of GLUE in" in refused(tmp_path)
    path = tmp_path / "results.json"
    path.write_text('[{"task": "co')
    assert re.search(rf"{path} is damaged: .*Remove it", refused(path))
    recipe = tmp_path / "sst.yaml"
    recipe.write_text("task: sst2\n")
    told = refused(recipe)
    assert f"{recipe} is no results file: " in told and "Remove" not in told
    path.write_text(json.dumps({**ALL[0], "task_version": 9}))
    assert "the run is of version 9 of cola, and this is version 1" in refused(path)
    path.write_text(json.dumps(ALL))
    assert "is a folder. Choose the path of a file" in refused(
        path, "--output", tmp_path
    )
