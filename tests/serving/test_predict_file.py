import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import tracemalloc

import pytest

from keras_recbert.serving import predict_file as module
from keras_recbert.serving.predict_file import predict_file

AWKWARD = '\ufeffid,text\r\n01,"a ""fine"" film,\nin two lines"\r\n2,\r\n3,"a\rb"\r\n'


class Lengths:
    """A predictor that calls texts long or short; no TensorFlow."""

    def __init__(
        self,
        num_texts=1,
        is_regressor=False,
        stop_after=None,
        seconds=0.0,
        num_threads=1,
        heads=(),
    ):
        self.fields = ("text", "text_pair")[:num_texts]
        self.list_fields = ()
        self.heads = heads
        self.num_threads = num_threads
        self.is_regressor = is_regressor
        self.stop_after = stop_after
        self.seconds = seconds
        self.batches = []

    def __call__(self, columns):
        assert len(columns) == len(self.fields)
        if len(self.batches) == self.stop_after:
            raise KeyboardInterrupt
        self.batches.append(columns)
        time.sleep(self.seconds)
        lengths = [sum(map(len, example)) for example in zip(*columns, strict=True)]
        # As of a real model, the last digits depend on the whole batch.
        noise = sum(lengths) % 97 / 1e5
        return [
            (
                None if self.is_regressor else "long" if length > 9 else "short",
                0.5 + length % 31 / 64 + noise,
            )
            for length in lengths
        ]


@pytest.fixture
def predict(tmp_path, monkeypatch):
    """Calls `predict_file` in a folder with a model; paths are names in it."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("model").mkdir()
    pathlib.Path("model/saved_model.pb").write_text("a model")

    def run(data, name="in.csv", output="out.csv", predictor=None, **options):
        if data is not None:
            pathlib.Path(name).write_bytes(
                data.encode("utf-8") if isinstance(data, str) else data
            )
        predictor = predictor or Lengths()
        return predict_file("model", lambda: predictor, name, output, **options)

    return run


def read_csv(path, **options):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file, **options))


def left():
    """Names of the files of this folder, but for the model's."""
    return sorted(set(os.listdir()) - {"model"})


def many_rows(number=700):
    lines = (f'{i},"{"word " * (i * i % 23)}\n{i}"' for i in range(number))
    return "\n".join(["id,text", *lines]) + "\n"


def test_each_row_comes_out_with_its_answer(predict, capsys):
    assert predict(AWKWARD) == 3
    assert pathlib.Path("out.csv").read_bytes().endswith(b"\n")
    # 27, 0 and 3 characters, so 1/2 + 27/64, 1/2, and 1/2 + 3/64, each with 30e-5.
    assert read_csv("out.csv") == [
        ["id", "text", "prediction", "score"],
        ["01", 'a "fine" film,\nin two lines', "long", "0.922175"],
        ["2", "", "short", "0.5003"],
        ["3", "a\rb", "short", "0.547175"],
    ]
    out, err = capsys.readouterr()
    assert out == ""
    first, last = err.splitlines()  # no bar, as this is no terminal
    assert first == "Predicting in.csv: 3 rows, texts in text."
    assert last.startswith("Wrote out.csv: 3 rows; 0 s, ")


def test_calls_at_a_time_write_the_bytes_of_one_after_the_other(predict):
    alone, several = Lengths(), Lengths(seconds=0.001, num_threads=3)
    predict(many_rows(), predictor=alone)
    before = pathlib.Path("out.csv").read_bytes()
    predict(many_rows(), predictor=several, overwrite=True)
    assert pathlib.Path("out.csv").read_bytes() == before
    assert sorted(several.batches) == sorted(alone.batches)


def test_a_terminal_gets_a_progress_bar(predict, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    predict(many_rows(), predictor=Lengths(seconds=0.005))
    shown = sys.stderr.getvalue()
    assert "Checking in.csv: " in shown
    assert re.search(r"%\|.*\d/700 \[.*rows/s\]", shown)


def test_json_lines_keep_their_values(predict):
    rows = [{"text": "\ud83d ä", "n": 1}, {"n": None, "text": "", "more": [1.5]}]
    lines = "\n".join(map(json.dumps, rows))
    assert predict(lines, "in.jsonl", "out.jsonl") == 2
    written = pathlib.Path("out.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in written]
    assert [list(row)[-2:] for row in found] == [["prediction", "score"]] * 2
    assert [list(row)[:-2] for row in found] == [list(row) for row in rows]
    assert found == [
        {**rows[0], "prediction": "short", "score": 0.546905},
        {**rows[1], "prediction": "short", "score": 0.50003},
    ]
    # In a table, a column that some rows have is there for all.
    predict(None, "in.jsonl", "out.csv")
    header, first, second = read_csv("out.csv")
    assert header == ["text", "n", "more", "prediction", "score"]
    assert first[:3] == ["\\ud83d ä", "1", ""]
    assert second[:3] == ["", "", "[1.5]"]


def test_plain_text_and_tsv(predict):
    predict('a "text"\n\nwith\ta tab\n', "in.txt", "out.tsv")
    assert [row[0] for row in read_csv("out.tsv", delimiter="\t")] == [
        *("text", 'a "text"', "", "with\ta tab")
    ]


def test_pairs_of_a_regressor(predict):
    predictor = Lengths(num_texts=2, is_regressor=True)
    data = "b,a,label\nfirst,1,x\nsecond,22,y\n"
    predict(data, predictor=predictor, text_columns=["a", "b"])
    assert predictor.batches == [[["1", "22"], ["first", "second"]]]
    rows = read_csv("out.csv")
    assert rows[1] == ["first", "1", "x", "0.59389", "0.59389"]


def test_rows_are_in_order_though_short_texts_are_answered_together(predict):
    predictor = Lengths()
    predict(many_rows(), predictor=predictor, batch_size=16)
    assert [row[0] for row in read_csv("out.csv")[1:]] == [*map(str, range(700))]
    assert max(len(texts) for (texts,) in predictor.batches) == 16
    widths = [
        max(map(len, texts)) - min(map(len, texts)) for (texts,) in predictor.batches
    ]
    assert max(widths) < 20 < max(len(texts[-1]) for (texts,) in predictor.batches)


@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.jsonl"])
@pytest.mark.parametrize("stop_after", [0, 1, 9, 29])
def test_a_stopped_call_resumes_to_the_same_bytes(
    predict, monkeypatch, capsys, output, stop_after
):
    monkeypatch.setattr(module, "CHUNK_ROWS", 64)
    predict(many_rows(), output="whole" + output, batch_size=24)
    stopped = Lengths(stop_after=stop_after)
    with pytest.raises(KeyboardInterrupt):
        predict(None, output=output, predictor=stopped, batch_size=24)
    assert not os.path.exists(output)
    done = 64 * (stop_after // 3)
    partial = [f".{output}.partial", f".{output}.progress.json"] if done else []
    assert left() == sorted(["in.csv", "whole" + output, *partial])
    capsys.readouterr()

    resumed = Lengths()
    assert predict(None, output=output, predictor=resumed, batch_size=24) == 700
    assert sum(len(texts) for (texts,) in resumed.batches) == 700 - done
    whole = pathlib.Path("whole" + output).read_bytes()
    assert pathlib.Path(output).read_bytes() == whole
    assert left() == sorted(["in.csv", output, "whole" + output])
    if done:
        err = capsys.readouterr().err
        assert f"texts in text, resuming at row {done + 1}." in err


KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from test_predict_file import Lengths, module
module.CHUNK_ROWS = 64
module.predict_file(
    "model", lambda: Lengths(seconds=0.005), "in.csv", "out.csv", batch_size=16
)
assert not {"tensorflow", "keras", "pandas", "pyarrow"} & set(sys.modules)
"""


def test_a_killed_process_resumes_to_the_same_bytes(predict, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ROWS", 64)
    predict(many_rows(3000), output="whole.csv", batch_size=16)
    argv = [sys.executable, "-c", KILLED, str(pathlib.Path(__file__).parent)]
    state, kills = pathlib.Path(".out.csv.progress.json"), 0
    while not os.path.exists("out.csv"):
        before = state.read_bytes() if state.exists() else b""
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and kills < 3:
            if state.exists() and state.read_bytes() not in (b"", before):
                time.sleep(0.013)  # somewhere in a chunk
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.002)
        _, err = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), err
    assert kills == 3
    assert "resuming at row " in err
    assert (
        pathlib.Path("out.csv").read_bytes() == pathlib.Path("whole.csv").read_bytes()
    )
    assert left() == ["in.csv", "out.csv", "whole.csv"]


@pytest.mark.parametrize(
    ("change", "what"),
    [("input", "input"), ("model", "model"), ("batch_size", "batch size")],
)
def test_what_was_begun_otherwise_is_not_resumed(predict, monkeypatch, change, what):
    monkeypatch.setattr(module, "CHUNK_ROWS", 64)
    with pytest.raises(KeyboardInterrupt):
        predict(many_rows(), predictor=Lengths(stop_after=9))
    options = {"batch_size": 8} if change == "batch_size" else {}
    if change == "input":
        pathlib.Path("in.csv").write_text(many_rows(90))
    if change == "model":
        pathlib.Path("model/variables").write_text("trained longer")
    before = left()
    message = f"out.csv was begun, 256 rows of it, from another {what}.*--overwrite"
    with pytest.raises(ValueError, match=message):
        predict(None, **options)
    assert left() == before
    predictor = Lengths()
    num_rows = predict(None, predictor=predictor, overwrite=True, **options)
    assert sum(len(texts) for (texts,) in predictor.batches) == num_rows
    assert left() == ["in.csv", "out.csv"]
    assert len(read_csv("out.csv")) == num_rows + 1


def test_an_output_that_is_there_is_replaced_on_request_only(predict):
    pathlib.Path("out.csv").write_text("mine")
    with pytest.raises(FileExistsError, match="out.csv exists already.*--overwrite"):
        predict(AWKWARD)
    assert pathlib.Path("out.csv").read_text() == "mine"
    predict(None, overwrite=True)
    assert len(read_csv("out.csv")) == 4


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("review,id\na,1\n", {}, "in.csv has the columns 'review', 'id'. Name"),
        ("a,b\n1,2\n", {"text_columns": ["c"]}, "There is no column 'c': in.csv has"),
        (
            "text\na\n",
            {"output": "out.parquet"},
            "out.parquet: predictions are written",
        ),
        ("text\na\n", {"output": "in.csv"}, "in.csv exists already"),
        ("text\na\n", {"output": "in.csv", "overwrite": True}, "is input and output"),
        ("text\na\n", {"output": "no/out.csv"}, "there is no folder no"),
        (
            "text\na\n",
            {"batch_size": 0},
            "`batch_size` must be a whole number",
        ),
        ("text,score\na,1\n", {}, "in.csv has a column 'score' already"),
        ("text,a\n" + "a,b\n" * 3000 + "a\n", {}, "in.csv:3002: expected 2 fields"),
        (
            "text\na\n",
            {"predictor": Lengths(2)},
            "at model takes 2 text.*: text. Name 2",
        ),
        (
            "text\na\n",
            {"predictor": Lengths(heads=("tone", "stars"))},
            "A file needs one head.* model has several: --head tone or stars",
        ),
        (
            '{"text": "a"}\n{"text": null}\n',
            {"name": "in.jsonl"},
            "in.jsonl:2: there is no text in 'text': it is null. Write",
        ),
        (
            '{"text": "a"}\n{"text": ["b", "c"]}\n',
            {"name": "in.jsonl"},
            r"in.jsonl:2: 'text' must hold a text. Received: \['b', 'c'\] of type list",
        ),
        (
            '{"text": "a"}\n{"txt": "b"}\n',
            {"name": "in.jsonl"},
            "in.jsonl:2: there is no 'text', which holds the text. Found 'txt'",
        ),
        (
            '{"text": "a"}\n{"text": "b", "score": 1}\n',
            {"name": "in.jsonl"},
            "in.jsonl:2 has a column 'score' already",
        ),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_written(
    predict, capsys, data, options, message
):
    with pytest.raises((ValueError, OSError), match=message):
        predict(data, **options)
    assert left() == [options.get("name", "in.csv")]
    assert capsys.readouterr() == ("", "")


def test_a_model_that_is_not_there_is_told_before_the_rows_are_read(predict):
    pathlib.Path("model/saved_model.pb").unlink()
    with pytest.raises(
        FileNotFoundError, match="There is no model at model. Expected a"
    ):
        predict(AWKWARD)


def test_a_model_that_diverged_is_told(predict):
    class Diverged(Lengths):
        def __call__(self, columns):
            return [("long", float("nan"))] * len(columns[0])

    with pytest.raises(
        ValueError, match="answers nan to 'a'. Did its training diverge"
    ):
        predict("text\na\n", predictor=Diverged())
    assert left() == ["in.csv"]


def test_no_rows_give_a_header(predict):
    assert predict("text\n") == 0
    assert read_csv("out.csv") == [["text", "prediction", "score"]]


def test_rows_that_come_while_it_runs_are_left_out(predict):
    class Appending(Lengths):
        def __call__(self, columns):
            with open("in.csv", "a") as file:
                file.write("one more\n")
            return super().__call__(columns)

    assert predict("text\na\n", predictor=Appending()) == 1
    assert len(read_csv("out.csv")) == 2


def test_an_input_that_is_cut_while_it_is_read_is_told(predict, monkeypatch):
    class Cutting(Lengths):
        def __call__(self, columns):
            pathlib.Path("in.csv").write_text("text\na\n")
            return super().__call__(columns)

    monkeypatch.setattr(module, "CHUNK_ROWS", 1)
    rows = "".join(f"{'long ' * 3000}{i}\n" for i in range(9))  # more than a buffer
    with pytest.raises(ValueError, match="was cut while it was read: 9 rows became"):
        predict("text\n" + rows, predictor=Cutting())


def test_memory_does_not_grow_with_the_file(predict):
    peaks = []
    for number in (3_000, 30_000):
        with open("in.csv", "w") as file:
            file.write("text\n")
            file.writelines(f"{'word ' * 20}{i}\n" for i in range(number))
        predictor = Lengths()
        predictor.batches = type("Forgetful", (list,), {"append": lambda *_: None})()
        tracemalloc.start()
        predict(None, predictor=predictor, overwrite=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert os.path.getsize("in.csv") > 3e6
    assert peaks[1] < 1.1 * peaks[0] < 3e6, peaks
