"""Files for the leaderboards of GLUE and SuperGLUE, byte for byte."""

import numpy as np
import pytest

from keras_recbert.data import get_task, list_tasks

IDS = ("0", "1", "7")
TSV = "index\tprediction\n0\t{}\n1\t{}\n7\t{}\n"
JSON = (
    '{{"idx": 0, "label": {}}}\n{{"idx": 1, "label": {}}}\n{{"idx": 7, "label": {}}}\n'
)
NAMES = ('"entailment"', '"contradiction"', '"neutral"')
# Task: predictions of the examples above; names of the files, and what they hold. The
# names, files and labels are those of the organizers' toolkit, jiant.
FILES = {
    "cola": ((0, 1, 1), {"test": "CoLA.tsv"}, TSV.format(0, 1, 1)),
    "sst2": ((0, 1, 1), {"test": "SST-2.tsv"}, TSV.format(0, 1, 1)),
    "mrpc": ((1, 0, 1), {"test": "MRPC.tsv"}, TSV.format(1, 0, 1)),
    "qqp": ((1, 0, 0), {"test": "QQP.tsv"}, TSV.format(1, 0, 0)),
    "stsb": (
        np.array([-0.25, 5.0004, 3.14159], np.float32),
        {"test": "STS-B.tsv"},
        TSV.format("0.000", "5.000", "3.142"),
    ),
    "mnli": (
        (2, 0, 1),
        {
            "test_matched": "MNLI-m.tsv",
            "test_mismatched": "MNLI-mm.tsv",
            "test_diagnostic": "AX.tsv",
        },
        TSV.format("contradiction", "entailment", "neutral"),
    ),
    "qnli": (
        (0, 1, 0),
        {"test": "QNLI.tsv"},
        TSV.format("entailment", "not_entailment", "entailment"),
    ),
    "rte": (
        (0, 1, 0),
        {"test": "RTE.tsv"},
        TSV.format("entailment", "not_entailment", "entailment"),
    ),
    "wnli": ((0, 1, 0), {"test": "WNLI.tsv"}, TSV.format(0, 1, 0)),
    "boolq": (
        (0, 1, 1),
        {"test": "BoolQ.jsonl"},
        JSON.format('"false"', '"true"', '"true"'),
    ),
    "cb": ((0, 1, 2), {"test": "CB.jsonl"}, JSON.format(*NAMES)),
    "copa": ((1, 0, 1), {"test": "COPA.jsonl"}, JSON.format(1, 0, 1)),
    "wsc": (
        (1, 0, 0),
        {"test": "WSC.jsonl"},
        JSON.format('"True"', '"False"', '"False"'),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_holds_what_the_leaderboard_takes(name, tmp_path):
    predictions, files, expected = FILES[name]
    submission = get_task(name).submission
    assert submission.files == files
    submission.write(tmp_path / "file", IDS, np.asarray(predictions))
    assert (tmp_path / "file").read_bytes() == expected.encode()
    with pytest.raises(ValueError, match="zip"):
        submission.write(tmp_path / "other", IDS[:2], np.asarray(predictions))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_answers_of_multirc_stand_with_their_questions(tmp_path):
    submission = get_task("multirc").submission
    assert submission.files == {"test": "MultiRC.jsonl"}
    ids = ("0-0-0", "0-0-1", "0-1-2", "10-7-30")
    submission.write(tmp_path / "file", ids, np.array([1, 0, 0, 1]))
    assert (tmp_path / "file").read_text() == (
        '{"idx": 0, "passage": {"questions": ['
        '{"idx": 0, "answers": [{"idx": 0, "label": 1}, {"idx": 1, "label": 0}]}, '
        '{"idx": 1, "answers": [{"idx": 2, "label": 0}]}]}}\n'
        '{"idx": 10, "passage": {"questions": ['
        '{"idx": 7, "answers": [{"idx": 30, "label": 1}]}]}}\n'
    )


def test_every_task_of_a_leaderboard_is_here():
    submitted = {name for name in list_tasks() if get_task(name).submission}
    assert submitted == {*FILES, "multirc"}
    names = [
        file for name in submitted for file in get_task(name).submission.files.values()
    ]
    assert len(set(names)) == len(names)
