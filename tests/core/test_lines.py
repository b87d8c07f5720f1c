"""Lines are read with bounded memory, whatever a file holds."""

import io
import random
import resource
import subprocess
import sys

import pytest

from keras_recbert.core.lines import decode_line, read_lines
from keras_recbert.data.documents import Reading, Source, read_documents
from keras_recbert.data.tsv import TsvReader
from keras_recbert.text.vocabulary import learn_vocabulary_from_files

MEGABYTES = 200
# Of memory: TensorFlow takes about 500 by itself, and a whole line took up to 18,000.
MOST_MEGABYTES = 1500


def lines_of(content, max_line_bytes):
    return list(read_lines(io.BytesIO(content), max_line_bytes))


def test_short_lines_are_those_of_the_file():
    draw = random.Random(0)
    for _ in range(100):
        content = bytes(draw.choices(b"ab\r\n\x0b\xff", k=draw.randrange(60)))
        expected = content.splitlines(keepends=True) if b"\r" not in content else None
        found = lines_of(content, 60)
        assert b"".join(line for line, _ in found) == content
        assert all(size == len(line) for line, size in found)
        if expected is not None and b"\x0b" not in content:
            assert [line for line, _ in found] == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"abc\nd", [(b"abc\n", 4), (b"d", 1)]),  # as long as the bound
        (b"abcd\nd", [(b"abc", 5), (b"d", 1)]),
        (b"abcd", [(b"abc", 4)]),
        (b"\n\n", [(b"\n", 1), (b"\n", 1)]),
        ("aé\n".encode(), [("aé\n".encode(), 4)]),
        ("abé\n".encode(), [(b"ab", 5)]),  # not half a letter
        ("a\U0001f600\n".encode(), [(b"a", 6)]),
        (b"", []),
    ],
)
def test_long_lines_are_cut_at_a_character(content, expected):
    assert lines_of(content, 3) == expected


def test_a_long_line_is_never_held_whole():
    class File(io.BytesIO):
        def readline(self, size=-1):
            assert 0 < size <= 1 << 20
            return super().readline(size)

    content = b"x" * (5 << 20) + b"\nend"
    assert list(read_lines(File(content), 10)) == [
        (b"x" * 10, (5 << 20) + 1),
        (b"end", 3),
    ]


def test_what_is_not_utf8_is_named_with_line_and_place():
    assert decode_line(b"\xef\xbb\xbfa\r\n", "x", 1) == "a"
    assert decode_line(b"\xef\xbb\xbfa", "x", 2) == "\ufeffa"
    with pytest.raises(
        ValueError, match=r"x:7: not valid UTF-8 \(byte 0xe9 at position 3.*iconv"
    ):
        decode_line(b"caf\xe9\n", "x", 7)


# Who reads lines -----------------------------------------------------------------


def documents_of(tmp_path, content, format="text", **reading):
    path = tmp_path / "it"
    path.write_bytes(content)
    source = Source(0, str(path), format, len(content))
    return list(read_documents(source, Reading(max_line_bytes=10, **reading)))


def test_documents_keep_the_beginning_of_long_lines(tmp_path):
    content = b"short\n" + b"long " * 9 + b"\nlast\n\nother"
    whole, other = documents_of(tmp_path, content)
    assert whole.paragraphs == ["short", "long long ", "last"]
    assert (whole.long_lines, other.long_lines) == (1, 0)
    assert other.position == content.index(b"other")
    (one,) = documents_of(tmp_path, content, documents="files", join_lines=False)
    assert one.paragraphs == ["short", "long long", "last", "other"]
    assert one.long_lines == 1
    (article,) = documents_of(tmp_path, b" = A =\n" + content, format="wikitext")
    assert article.paragraphs == ["A", "short", "long long", "last", "other"]
    assert article.long_lines == 1


def test_ranges_meet_where_a_long_line_is(tmp_path):
    content = b"a\n\n" + b"long " * 9 + b"\nb\n\nc\n" + b"x" * 40 + b"\n\nd"
    path = tmp_path / "it"
    path.write_bytes(content)
    source = Source(0, str(path), "text", len(content))
    reading = Reading(max_line_bytes=10)
    whole = list(read_documents(source, reading))
    assert [document.long_lines for document in whole] == [0, 1, 1, 0]
    for border in range(1, len(content)):
        ranges = ((0, border), (border, len(content)))
        parts = [list(read_documents(source, reading, *ends)) for ends in ranges]
        assert parts[0] + parts[1] == whole, border


def test_long_lines_of_json_are_left_out_and_counted(tmp_path):
    content = b'{"t":"a"}\n{"t":"a long one"}\n{"t":"b"}\n'
    found = documents_of(tmp_path, content, format="jsonl", text_field="t")
    assert [document.paragraphs for document in found] == [["a"], [], ["b"]]
    assert [document.long_lines for document in found] == [0, 1, 0]


def test_long_rows_are_left_out_with_a_note(tmp_path):
    path = tmp_path / "it.tsv"
    path.write_text("text\tlabel\nfine\t1\n" + "x" * 99 + "\t1\nbad\t0\n\n")
    reader = TsvReader({"text": "text"}, "label", max_line_bytes=20)
    examples = reader(path)
    assert examples.fields == {"text": ["fine", "bad"]}
    assert examples.ids == ["1", "3"]
    assert examples.notes == (
        f"{path}: left out 1 rows of more than 20 bytes (the first at line 3)",
    )
    with pytest.raises(ValueError, match=":1: the first line has more than 5 bytes"):
        TsvReader({"text": "text"}, max_line_bytes=5)(path)
    path.write_text("text\tlabel\n" + "x" * 99 + "\t1\n")
    with pytest.raises(ValueError, match="no usable row.*1 for their length"):
        reader(path)


def test_a_vocabulary_is_learned_from_the_beginning_of_long_lines(tmp_path):
    path = tmp_path / "it.txt"
    path.write_text("wind mill\n" * 9 + "wind " + "never " * 99)
    notes = []
    options = {"max_line_bytes": 10, "report": notes.append}
    vocabulary = learn_vocabulary_from_files(path, 60, **options)
    assert "wind" in vocabulary and "never" not in vocabulary
    assert notes == [
        f"Read 10 bytes each of 1 longer lines (the first is {path}:10). "
        "`max_line_bytes` (--max-line-bytes) reads more."
    ]
    learn_vocabulary_from_files(path, 60, report=notes.append)
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "der schöne Tag\n".encode("latin-1"),
            r"byte 0xf6 at position 7.*iconv -f LATIN1",
        ),
        (b"a tag\n\x89PNG\r\n\x1a\n", r":2: not valid UTF-8 \(byte 0x89 at position 0"),
        (b"a\nb\0\n", ":2: NUL at position 1 of the line, so this is a binary file"),
        ("a tag\n".encode("utf-16"), "not valid UTF-8"),
        ("a tag\n".encode("utf-16-le"), ":1: NUL at position 1.* iconv -f UTF-16"),
    ],
    ids=["Latin-1", "a picture", "NUL", "UTF-16", "UTF-16 without mark"],
)
def test_no_vocabulary_is_learned_from_what_is_not_utf8(tmp_path, content, message):
    path = tmp_path / "it"
    path.write_bytes(b"some words of text\n" * 3 + content)
    message = message.replace(":2:", ":5:").replace(":1:", ":4:")
    with pytest.raises(ValueError, match=message) as error:
        learn_vocabulary_from_files([path], 60)
    assert str(path) in str(error.value)


@pytest.mark.slow
def test_one_line_of_200_megabytes_takes_little_memory(tmp_path, capsys):
    pytest.importorskip("apache_beam")
    unit = b"the wind mills turned, the windmills turned again. "
    text, table = tmp_path / "it.txt", tmp_path / "it.tsv"
    for path, first, last in (
        (text, b"the wind.\n", b"\nthe mill."),
        (table, b"sentence\tlabel\nthe wind\t1\n", b"\t1\nthe mill\t0\n"),
    ):
        with open(path, "wb") as file:
            file.write(first)
            for _ in range(MEGABYTES):
                file.write(unit * ((1 << 20) // len(unit)))
            file.write(last)
    main = "from keras_recbert.cli import main; main({}); print('done')"
    scripts = {
        "vocabulary": main.format(
            ["vocabulary", str(text), "--size", "80", "--output", f"{tmp_path}/v.txt"]
        ),
        "prepare": main.format(
            ["prepare", str(text), "--output-dir", f"{tmp_path}/corpus"]
            + ["--vocabulary", f"{tmp_path}/v.txt", "--num-shards", "2"]
        ),
        "TSV": (
            "from keras_recbert.data.tsv import TsvReader\n"
            f"print(TsvReader({{'text': 0}}, 1)({str(table)!r}).notes)"
        ),
    }
    try:
        for name, script in scripts.items():
            # Not `ru_maxrss`, which begins with what this process holds.
            report = "; from keras_recbert.benchmark.workers.worker_protocol import"
            report += " memory_bytes; print(memory_bytes('VmHWM'))"
            result = subprocess.run(
                [sys.executable, "-c", script + report],
                capture_output=True,
                text=True,
                preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_AS, (12 << 30, 12 << 30)
                ),
            )
            assert result.returncode == 0, result.stderr[-2000:]
            *said, peak = result.stdout.splitlines()
            megabytes = int(peak) / 2**20
            with capsys.disabled():
                print(f"\n{name}: {megabytes:.0f} MB; {' '.join(said)[-300:]}")
            assert megabytes < MOST_MEGABYTES, name
            assert "long" in " ".join(said) or "rows of more than" in " ".join(said)
    finally:
        text.unlink()
        table.unlink()
