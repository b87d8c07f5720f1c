import bz2
import gzip
import json
import os
import random
import re
import sys

import pytest
from prepared_corpora import VOCABULARY

from keras_recbert.data import prepare_sources
from keras_recbert.data.documents import (
    Document,
    DocumentError,
    Reading,
    Source,
    read_documents,
)
from keras_recbert.data.prepare_sources import divide, find_sources
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


def read(path, format="text", start=0, end=sys.maxsize, **reading):
    source = Source(0, os.fspath(path), format, path.stat().st_size)
    return list(read_documents(source, Reading(**reading), start, end))


def test_blank_lines_part_documents_and_every_byte_may_be_there(write):
    path = write(
        "a.txt", b"\r\n\n one \r\ntwo\xff\n \t\n\xe2\x80\xa8three\x00\n\n\nfour"
    )
    assert read(path) == [
        Document(3, [" one \r", "two\ufffd"], 1),
        Document(18, ["\u2028three\x00"]),
        Document(30, ["four"]),
    ]
    assert read(write("empty.txt", "")) == read(write("blank.txt", " \n\n")) == []


def test_ranges_of_a_file_give_each_document_once(write):
    rng = random.Random(0)
    lines = [rng.choice(["", "", " ", "a", "bb é", "c" * 9]) for _ in range(60)]
    path = write("a.txt", "\n".join(lines))
    jsonl = write("a.jsonl", "".join(f'{{"text": "{line}"}}\n' for line in lines))
    for file, format in ((path, "text"), (jsonl, "jsonl")):
        whole = read(file, format)
        size = file.stat().st_size
        for step in (1, 2, 3, 7, 31, size):
            parts = [
                read(file, format, start, start + step)
                for start in range(0, size, step)
            ]
            assert sum(parts, []) == whole


def test_a_file_as_one_document_has_its_lines_joined(write):
    path = write("book.txt", "Title\n\nIt was\r\n  late. He\n\n\nThe\xa0end\n".encode())
    whole = ["Title", "It was late. He", "The\xa0end"]
    assert read(path, documents="files") == [Document(0, whole)]
    lines = ["Title", "It was", "late. He", "The\xa0end"]
    assert read(path, documents="files", join_lines=False) == [Document(0, lines)]
    assert read(write("e.txt", ""), documents="files") == [Document(0, [])]


def test_json_lines(write):
    content = '\ufeff{"text": "One\\n\\nTwo \\ud800", "id": 1}\n\n{"text": ""}\r\n'
    documents = read(write("a.jsonl", content), "jsonl")
    assert [d.paragraphs for d in documents] == [["One", "Two \ud800"], []]
    bad = read(write("b.jsonl", b'{"title": "x", "text": "a\xff"}'), "jsonl")
    assert bad == [Document(0, ["a\ufffd"], 1)]
    assert read(write("b.jsonl", '{"body": "x"}'), "jsonl", text_field="body")


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"text": "cut o', "line 3: not JSON (Unterminated string starting at). Ev"),
        ("plain", "line 3: not JSON (Expecting value). Ev"),
        ('{"title": "x", "id": 3}', "'text'. The line holds: title, id"),
        ('{"text": null}', "line 3: no text in the field 'text'"),
        ("[1]", "'text'. The line holds: no object"),
        ("[" * 100_000, "line 3: not JSON"),
    ],
)
def test_a_bad_line_of_json_names_file_and_line(write, line, message):
    path = write("a.jsonl", '{"text": "good"}\n\n' + line)
    with pytest.raises(DocumentError, match=re.escape(message)) as error:
        read(path, "jsonl", start=5)
    assert str(error.value).startswith(f"{path}, line 3: ")


def test_squad_gives_each_paragraph_of_an_article_once(write):
    contexts = ["First.\nMore.", "Second.", "First.\nMore."]
    article = {
        "title": "T",
        "paragraphs": [{"context": c, "qas": []} for c in contexts],
    }
    content = json.dumps({"data": [article, {"paragraphs": []}]})
    path = write("train.json.gz", gzip.compress(content.encode()))
    articles = [Document(0, ["First.", "More.", "Second."]), Document(1, [])]
    assert read(path, "squad") == articles


@pytest.mark.parametrize(
    "content, message",
    [
        ('{"text": "a"}\n{"text": "b"}', "is not SQuAD's JSON: Extra data.*jsonl"),
        ('{"text": "a"}', r"has not SQuAD's layout at data: KeyError\('data'\)"),
        ('{"data": [{"paragraphs": [{}]}]}', r"layout at data\[0\].paragraphs: KeyErr"),
        ("[]", "layout at data: TypeError"),
    ],
)
def test_json_that_is_no_squad(write, content, message):
    with pytest.raises(DocumentError, match=message):
        read(write("a.json", content), "squad")


def test_wikitext_becomes_text_again(write):
    content = (
        " \n = Du Fu = \n \n Born in 7 @,@ 12 ; a <unk> @-@ class <unk> . \n"
        " \n = = Early years = = \n \n It grew by 1 @.@ 5 . \n = 5 k = \n"
        " \n = <unk> = \n \n x = 5 = y \n"
    )
    first, second = read(write("a.tokens", content), "wikitext")
    unknown = "x" * 101
    assert first.paragraphs == [
        "Du Fu",
        f"Born in 7,12 ; a {unknown}-class {unknown} .",
        "Early years",
        "It grew by 1.5 .",
        "= 5 k =",
    ]
    assert second.paragraphs == [unknown, "x = 5 = y"]
    ids = WordPieceTokenizer([*VOCABULARY, "class"])(f"a {unknown}-class {unknown} .")
    assert ids.numpy()[0].tolist() == [13, 1, 15, 16, 1, 12]


@pytest.mark.parametrize("ending", [".gz", ".bz2"])
def test_compressed_files(write, ending):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}[ending]
    content = b"one\n\n" * 1000 + os.urandom(5000)
    path = write(f"a.txt{ending}", pack(content))
    assert read(path)[:2] == [Document(0, ["one"]), Document(5, ["one"])]
    for data in (pack(content)[:-2000], b"not compressed"):
        path = write(f"b.txt{ending}", data)
        with pytest.raises(DocumentError, match=f"{path} is damaged: "):
            read(path)


def test_sources_are_sorted_and_known_by_their_endings(write, tmp_path):
    names = ["b.txt", "a/x.jsonl.gz", "a/y.json", "c.tokens", "d.txt.bz2"]
    paths = [write(f"in/{name}", "x") for name in names]
    write("in/.hidden.txt", "x")
    write("in/.git/config", "x")
    found = find_sources([tmp_path / "in"], None, Reading())
    formats = ["jsonl", "squad", "text", "wikitext", "text"]
    assert [source.format for source in found] == formats
    assert [source.number for source in found] == [0, 1, 2, 3, 4]
    several = [*reversed(paths), os.path.relpath(paths[0]), f"{tmp_path}/in/**/*.txt"]
    assert find_sources(several, None, Reading()) == found
    (one,) = find_sources(paths[0], "wikitext", Reading())
    assert one.format == "wikitext"


def test_inputs_that_cannot_be_read_are_named(write, tmp_path):
    path = write("in/AA/wiki_00", "{}")
    with pytest.raises(
        ValueError, match=f"The ending of {path} names no format.*--for"
    ):
        find_sources(tmp_path / "in", None, Reading())
    assert find_sources(tmp_path / "in", "jsonl", Reading())[0].format == "jsonl"
    with pytest.raises(ValueError, match="one of text, jsonl, squad, wikitext. Receiv"):
        find_sources(path, "xml", Reading())
    with pytest.raises(FileNotFoundError, match=r"'.*/no/\*.txt' names anything"):
        find_sources(f"{tmp_path}/no/*.txt", None, Reading())
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="No files in the folder .*empty"):
        find_sources(tmp_path / "empty", None, Reading())
    with pytest.raises(ValueError, match="must name a file, a folder or a pattern"):
        find_sources([], None, Reading())


def test_work_is_divided_without_gaps(monkeypatch):
    monkeypatch.setattr(prepare_sources, "BYTES_PER_ITEM", 100)
    sources = [
        Source(0, "a.txt", "text", 250),
        Source(1, "b.txt.gz", "text", 250),
        *(Source(number, f"{number}.json", "squad", 30) for number in range(2, 9)),
        Source(9, "z.txt", "text", 0),
    ]
    items = divide(sources, Reading())
    ranges = [(s.number, start, end) for item in items for s, start, end in item]
    assert ranges[:4] == [(0, 0, 100), (0, 100, 200), (0, 200, 300), (1, 0, 250)]
    assert [number for number, *_ in ranges[4:]] == [*range(2, 9), 9]
    assert [len(item) for item in items] == [1, 1, 2, 4, 4]
    assert len(divide(sources[:1], Reading(documents="files"))) == 1
