"""The default corpus: labels by syntax, a fair split, honest counts."""

import gc
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from toy_packages import OPENINGS, marker_of, write_tree

from keras_recbert.data import python_docs_split, python_sources
from keras_recbert.data.python_docs import LABEL_NAMES, load_python_docs


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def docs(tree):
    return load_python_docs(seed=0, search_paths=[tree])


def _read(tmp_path, source, name="module.py"):
    """Returns `[(label, text)]` of one source file and what was counted."""
    file = tmp_path / name
    file.write_bytes(source if isinstance(source, bytes) else source.encode())
    counts, unreadable = Counter(), {}
    documents = python_sources.read_package(
        [(name, file)], 10**9, 0, counts, unreadable
    )
    return [(label, text) for label, text, _ in documents if text], counts, unreadable


def test_labels_come_from_the_syntax_tree(docs):
    checked = Counter()
    for split in (docs.train, docs.validation):
        assert split.labels.dtype == np.int32
        assert len(split.texts) == len(split.labels)
        for text, label in zip(split.texts, split.labels, strict=True):
            for kind, opening in OPENINGS.items():
                if text.startswith(opening):
                    assert LABEL_NAMES[label] == kind
                    checked[kind] += 1
            if "marker" not in text:
                assert LABEL_NAMES[label] == "manual"
    assert min(checked.values()) > 100 and len(checked) == 3


def test_packages_are_held_out_whole(docs):
    held_out = set(docs.held_out["packages"])
    assert 0 < len(held_out) < 50
    markers = {marker_of(number): f"package{number}" for number in range(50)}

    def packages(texts):
        found = re.findall(r"marker[a-z]{2}", " ".join(texts))
        return {markers[marker] for marker in found}

    assert packages(docs.validation.texts) == held_out
    assert packages(docs.train.texts) == set(markers.values()) - held_out
    assert packages(docs.corpus) == set(markers.values()) - held_out


def test_manual_topics_are_held_out_whole(docs):
    from pydoc_data.topics import topics

    sides = {}
    for name in topics:
        sides.setdefault(name in docs.held_out["topics"], []).append(name)
    assert len(sides[True]) == len(docs.held_out["topics"]) > 3
    train_side = set()
    for name in sides[False]:
        for _, text, _ in python_sources.manual_documents(topics[name], Counter()):
            train_side.add(python_docs_split.text_key(text or ""))
    manual = LABEL_NAMES.index("manual")
    for text, label in zip(docs.validation.texts, docs.validation.labels, strict=True):
        assert label != manual or python_docs_split.text_key(text) not in train_side


def test_no_class_is_more_than_half_of_a_split(docs):
    for split in (docs.train, docs.validation):
        sizes = np.bincount(split.labels, minlength=len(LABEL_NAMES))
        assert sizes.max() <= len(split.labels) / 2
        assert sizes.min() > 0


def test_the_result_depends_on_the_seed_alone(tree, docs):
    again = load_python_docs(seed=0, search_paths=[tree])
    assert again.train.texts == docs.train.texts
    assert again.validation.texts == docs.validation.texts
    np.testing.assert_array_equal(again.train.labels, docs.train.labels)
    assert again.corpus == docs.corpus and again.counts == docs.counts
    other = load_python_docs(seed=2, search_paths=[tree])
    assert other.held_out != docs.held_out


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(tree, is_enabled):
    def progress(*_):
        assert not gc.isenabled()

    (gc.enable if is_enabled else gc.disable)()
    try:
        load_python_docs(search_paths=[tree], progress=progress)
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()


def test_max_examples_is_obeyed(tree):
    docs = load_python_docs(seed=0, max_examples=1400, search_paths=[tree])
    assert len(docs.train.texts) == 1120 and len(docs.validation.texts) == 280


def test_progress_sees_every_package(tree):
    calls = []
    load_python_docs(search_paths=[tree], progress=lambda *call: calls.append(call))
    assert [call[0] for call in calls] == list(range(1, 51))
    assert {call[1] for call in calls} == {50}
    assert sorted(call[2] for call in calls) == sorted(
        f"package{number}" for number in range(50)
    )


def test_duplicates_go_and_two_labels_go():
    counts = Counter()
    result = python_docs_split.deduplicate(
        {
            "train": [
                ("Return the size of a file", "function"),
                ("return the  size of a FILE 2", "function"),
                ("Helpers for reading old archives", "module"),
                ("Opens a door in the old house", "function"),
            ],
            "validation": [
                ("Return the size, of a file", "function"),
                ("Helpers for reading old archives", "class"),
                ("Opens a door in the new house", "function"),
                ("Opens a door in the house", "function"),
                ("Opens two doors in a new house", "function"),
            ],
        },
        counts,
    )
    assert [text for text, _ in result["train"]] == [
        "Return the size of a file",
        "Opens a door in the old house",
    ]
    assert [text for text, _ in result["validation"]] == [
        "Opens two doors in a new house"
    ]
    assert counts["dropped_duplicate"] == 2
    assert counts["dropped_two_labels"] == 2
    assert counts["dropped_near_duplicate"] == 2


def test_methods_are_functions_and_properties_are_left_out(tmp_path):
    source = '''"""Small things for the test."""
class A:
    """One of the small things."""
    async def a(self):
        """Wait until the thing is ready."""
        def inner():
            """Never seen from the outside."""
    @property
    def b(self):
        """The size of this thing."""
    @b.setter
    def b(self, value):
        """Set the size of this thing."""
    class B:
        """A thing inside a thing."""
'''
    assert _read(tmp_path, source)[0] == [
        ("module", "Small things for the test"),
        ("class", "One of the small things"),
        ("function", "Wait until the thing is ready"),
        ("class", "A thing inside a thing"),
    ]


def test_a_text_that_spells_the_own_name_is_dropped(tmp_path):
    source = '''
class FileReader:
    """FileReader objects read a file."""
class Reader:
    """Reader of all the files."""
def read_all():
    """Call read_all to read every file."""
'''
    texts, counts, _ = _read(tmp_path, source)
    assert texts == [("class", "Reader of all the files")]
    assert counts["dropped_own_name"] == 2


@pytest.mark.parametrize(
    "docstring, text",
    [
        ("Return the file size. Then close.", "Return the file size"),
        (
            "Return `x` or :func:`~os.path.join` of it.",
            "Return x or os.path.join of it",
        ),
        ("Read a *big* file, e.g. A or ``B``.", "Read a big file, e.g. A or B"),
        ("Title\n=====\n\nWords after the title line.", "Words after the title line"),
        ("Double all non-\nzero numbers.", "Double all non-zero numbers"),
        ("f(x) -> y\n\nDouble the given number.", "Double the given number"),
        ("Double the given number.\n\n>>> f(2)\n4\n", "Double the given number"),
        ("Double the given number.\n    ", "Double the given number"),
        ("See [the guide](https://a.b/c) for help.", "See the guide for help"),
        (":param x: the number to be doubled", None),
        ("Too short.", None),
        ("Copyright 2020 by the people of the test.", None),
        ("x = f(a) + g(b) * h(c) / k[d]", None),
        ("Возвращает размер файла на диске.", None),
        ("word " * 41, None),
    ],
)
def test_summary_is_one_plain_sentence(tmp_path, docstring, text):
    texts, counts, _ = _read(tmp_path, f'def f():\n    """{docstring}"""\n')
    assert texts == ([("function", text)] if text else [])
    dropped = sum(n for name, n in counts.items() if name.startswith("dropped"))
    assert dropped == (0 if text else 1)


@pytest.mark.parametrize(
    "source, reason",
    [
        (b'"""A file with an error."""\ndef (:\n', "SyntaxError: invalid syntax"),
        (b'# coding: ascii\n"""A caf\xc3\xa9 in the wrong code."""', "SyntaxError: "),
        (b'# coding: nonsense\n"""A file in no code."""', "SyntaxError: "),
        (b'"""A file with a NUL."""\x00', "source code.* null bytes"),
    ],
)
def test_unreadable_files_are_reported_with_their_reason(tmp_path, source, reason):
    texts, counts, unreadable = _read(tmp_path, source)
    assert texts == []
    assert counts["files_unreadable"] == 1 and counts["files_read"] == 0
    assert re.search(reason, unreadable[str(tmp_path / "module.py")])


def test_one_unreadable_file_does_not_stop_the_rest(tmp_path, docs):
    tree = write_tree(tmp_path / "tree")
    (tree / "broken.py").write_text('"""Broken is this file."""\nx = (\n')
    again = load_python_docs(seed=0, search_paths=[tree])
    assert again.train.texts == docs.train.texts
    assert again.counts["files_unreadable"] == 1
    assert list(again.unreadable) == [str(tree / "broken.py")]


def test_tests_vendored_copies_and_dead_links_are_not_read(tmp_path):
    for name in (
        "a/b.py",
        "_a/c.py",
        "a/tests/d.py",
        "a/_vendor/e.py",
        "a/test_f.py",
        "a/g_test.py",
        "a/h-i/j.py",
        "k.py",
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (tmp_path / "dead.py").symlink_to(tmp_path / "nowhere.py")
    packages = python_sources.find_packages([tmp_path])
    found = {name: sorted(path for path, _ in packages[name]) for name in packages}
    assert found == {"a": ["_a/c.py", "a/b.py"], "k": ["k.py"]}


def test_small_packages_leave_their_share_to_large_ones(tmp_path):
    packages = {}
    for name, size in (("a", 10), ("b", 500), ("c", 500)):
        (tmp_path / name).write_text("#" * size)
        packages[name] = [(name, tmp_path / name)]
    assert python_sources.package_limit(packages, 210) == 100
    assert python_sources.package_limit(packages, 2000) == 500
    assert python_sources.package_limit({}, 2000) == 0


def test_the_final_stop_tells_nothing():
    texts = [f"The number {number} of the test" for number in range(1000)]
    stops = sum(python_docs_split.final_stop(text).endswith(".") for text in texts)
    assert 430 < stops < 570


def test_too_few_texts_say_what_was_found(tmp_path):
    (tmp_path / "one.py").write_text('"""Only one text is here."""\n')
    with pytest.raises(
        ValueError,
        match=r"Too few texts for the class `class` in `train`: at least 100 are "
        r"needed, 0 were found \(`max_examples` is 30000\)\. Read: 1 source files of "
        r"1 packages under .* and \d+ "
        r"topics of the reference manual; 0 files could not be parsed",
    ):
        load_python_docs(search_paths=[tmp_path])


def test_an_empty_directory_is_too_few(tmp_path):
    with pytest.raises(ValueError, match="Read: 0 source files of 0 packages under"):
        load_python_docs(search_paths=[tmp_path])


def test_a_search_path_must_be_a_directory(tmp_path):
    with pytest.raises(ValueError, match="`search_paths` must be directories .*nope"):
        load_python_docs(search_paths=[tmp_path / "nope"])


def test_max_examples_must_be_enough(tmp_path):
    with pytest.raises(ValueError, match="`max_examples` must be at least 480.*: 10"):
        load_python_docs(max_examples=10, search_paths=[tmp_path])


def test_a_python_without_the_manual_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(ModuleNotFoundError, match="apt install libpython3-stdlib"):
        load_python_docs(search_paths=[tmp_path])


def test_import_loads_no_tensorflow():
    script = (
        "import sys, keras_recbert.data.python_docs; "
        "assert not {'tensorflow', 'keras'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.slow
def test_this_machine_gives_a_fair_task():
    docs = load_python_docs(seed=0)
    assert len(docs.train.texts) >= 5000 and len(docs.validation.texts) >= 500
    assert len(docs.corpus) >= 10_000
    for split in (docs.train, docs.validation):
        assert max(np.bincount(split.labels)) / len(split.labels) < 0.6
        assert len(set(split.labels.tolist())) == len(LABEL_NAMES)
    keys = [
        python_docs_split.text_key(text)
        for text in docs.train.texts + docs.validation.texts
    ]
    assert len(set(keys)) == len(keys)
    near = {key for text in docs.train.texts for key in _near(text)}
    assert not any(near & set(_near(text)) for text in docs.validation.texts)

    # The texts of held-out packages, read again, are not in the training side.
    held_out = set(docs.held_out["packages"])
    packages = python_sources.find_packages(python_sources.check_search_paths(None))
    assert held_out < set(packages)
    train = set(docs.train.texts)
    for name in sorted(held_out)[:10]:
        documents = python_sources.read_package(packages[name], 10**7, 0, Counter(), {})
        kept_as_train = {text for _, text, _ in documents} & train
        # What is there is a text that a training package has as well.
        assert len(kept_as_train) <= 0.05 * len(documents) + 5
    assert all(Path(file).is_absolute() for file in docs.unreadable)


def _near(text):
    return list(python_docs_split.near_keys(python_docs_split.text_key(text)))
