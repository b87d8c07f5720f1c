"""BLiMP's archive: pairs stay on one side, what is broken is told with its place."""

import io
import json
import tarfile

import pytest

from keras_recbert.data.blimp import read_blimp

PAIR = {"UID": "agreement", "sentence_good": "it is .", "sentence_bad": "it are ."}


def write(tmp_path, *rows, name="blimp/data/agreement.jsonl"):
    lines = [
        row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows
    ]
    path = tmp_path / "blimp.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for own, content in ((name, b"\n".join(lines)), ("blimp/README.md", b"{")):
            member = tarfile.TarInfo(own)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_a_tenth_of_the_pairs_is_held_out_whole(tmp_path):
    rows = [{**PAIR, "pairID": str(number)} for number in range(30)]
    path = write(tmp_path, *rows)
    train, validation = (read_blimp(path, split) for split in ("train", "validation"))
    assert len(train) == 54
    assert validation.ids == [
        f"agreement-{pair}-{kind}" for pair in (9, 19, 29) for kind in ("bad", "good")
    ]
    assert validation.targets["label"] == [0, 1] * 3
    assert validation.fields["text"] == ["it are .", "it is ."] * 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{**PAIR, "pairID": 3}],
            r"agreement.jsonl:1: expected a string under 'pairID'",
        ),
        ([b"{"], r"blimp.tar.gz, blimp/data/agreement.jsonl:1: not valid JSON"),
        ([b'{"UID": "\xff"}'], r"agreement.jsonl:1: not valid UTF-8"),
        ([{**PAIR, "pairID": "1", "sentence_bad": " "}], "'sentence_bad' is empty"),
        ([{"UID": "a", "pairID": "1"}], "there is no 'sentence_bad'"),
        ([{**PAIR, "pairID": "1"}] * 2, "'agreement-1-bad' stands twice"),
        ([{**PAIR, "pairID": "9"}], "has no pair of the train split"),
        ([], "has no pair of the train split"),
    ],
)
def test_broken_archives_are_told(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        read_blimp(write(tmp_path, *rows), "train")


def test_what_is_no_archive_is_told(tmp_path):
    path = tmp_path / "blimp.tar.gz"
    path.write_text("no archive")
    with pytest.raises(ValueError, match=r"no tar archive.*tar czf blimp\.tar\.gz"):
        read_blimp(path, "train")
