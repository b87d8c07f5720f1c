"""Rows a second of `recbert predict` on many files, over a plain loop: Apache Beam.

The loop and one process have one core, two processes have two. Round by round, and
medians; `pytest -m benchmark tests/benchmark/test_beam_speed.py -s` prints them.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import time

import pytest
from foreign_berts import minilm_folder

import keras_recbert

ROUNDS = 2
NUM_FILES, ROWS = 8, 3000  # enough that starting counts for little
BATCH_SIZE = 64
LOOP = """
import json, pathlib, sys
import tensorflow as tf
from keras_recbert.serving.savedmodel import read_savedmodel

model, batch_size = read_savedmodel(sys.argv[1]), int(sys.argv[2])
with open("loop.jsonl", "w") as output:
    for path in sorted(pathlib.Path().glob("rows-*.jsonl")):
        lines = path.read_text().splitlines()
        for start in range(0, len(lines), batch_size):
            rows = [json.loads(line) for line in lines[start : start + batch_size]]
            answer = model(text=tf.constant([row["text"] for row in rows]))
            labels, scores = answer["label"].numpy(), answer["scores"].numpy()
            for row, label, score in zip(rows, labels, scores):
                row |= {"prediction": label.decode(), "score": float(score.max())}
                output.write(json.dumps(row) + "\\n")
"""


def seconds_of(command, cores):
    start = time.perf_counter()
    subprocess.run(
        command, check=True, preexec_fn=lambda: os.sched_setaffinity(0, cores)
    )
    return time.perf_counter() - start


@pytest.mark.benchmark
def test_beam_beside_a_loop(data_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (data_dir / "glue/SST-2/train.tsv").open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        for number in range(NUM_FILES):
            texts = [next(rows)["sentence"] for _ in range(ROWS)]
            lines = (json.dumps({"text": text}) + "\n" for text in texts)
            (tmp_path / f"rows-{number}.jsonl").write_text("".join(lines), "utf-8")
    model = keras_recbert.build(
        "bert_minilm",
        task="classifier",
        weights=str(minilm_folder()),
        label_names=["bad", "good"],
    )
    model.export_savedmodel("model")
    (tmp_path / "loop.py").write_text(LOOP)
    predict = [sys.executable, "-m", "keras_recbert.cli", "predict", "model"]
    predict += ["--input", "rows-*.jsonl", "--output", "scores/rows.jsonl"]
    predict += ["--batch-size", str(BATCH_SIZE), "--overwrite"]
    first, *others = sorted(os.sched_getaffinity(0))
    systems = {
        "loop": ([sys.executable, "loop.py", "model", str(BATCH_SIZE)], {first}),
        "1 process": ([*predict, "--num-workers", "1"], {first}),
        "2 processes": ([*predict, "--num-workers", "2"], {first, *others[:1]}),
    }
    seconds = {name: [] for name in systems}
    for _ in range(ROUNDS):
        for name, (command, cores) in systems.items():
            seconds[name].append(seconds_of(command, cores))
    written = sum(
        len(path.read_text().splitlines())
        for path in tmp_path.glob("scores/*.jsonl")
        if "rejected" not in path.name
    )
    assert written == NUM_FILES * ROWS
    for name, own in seconds.items():
        over = [one / two for one, two in zip(seconds["loop"], own, strict=True)]
        rate = NUM_FILES * ROWS / statistics.median(own)
        print(
            f"{name}: {rate:.0f} rows a second with the start, "
            f"{statistics.median(over):.2f} times the loop "
            f"({min(over):.2f}-{max(over):.2f})"
        )
