"""The documentation is made without a warning, and its examples run."""

import csv
import doctest
import importlib
import pathlib
import re

import keras
import numpy as np
import pytest
from docs_pages import PAGES, ROOT
from toy_texts import VOCABULARY, reviews

import keras_recbert

# Modules whose docstrings have examples; those of runs, one after the other.
QUICK = [
    "keras_recbert.builder.model",
    "keras_recbert.data.augmentation",
    "keras_recbert.layers.scalar_mix",
    "keras_recbert.layers.swish_rnn",
]
RUNS = ["keras_recbert.train.finetune"]


def examples(name):
    """The docstrings of a module that have examples, in their order."""
    module = importlib.import_module(name)
    names = {"keras_recbert": keras_recbert, "keras": keras, "np": np}
    found = doctest.DocTestFinder().find(
        module, module.__name__, globs={**vars(module), **names}
    )
    found = [test for test in found if test.examples]
    assert found
    return sorted(found, key=lambda test: test.lineno)


@pytest.mark.parametrize("name", QUICK)
def test_examples_of_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    for test in examples(name):
        report = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=report.append)
        assert not runner.failures, "".join(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_examples_of_runs_run(name, tmp_path, data_dir, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(data_dir / "nltk_data"))
    monkeypatch.chdir(tmp_path)
    texts, labels = reviews(24)
    with open("reviews.csv", "w", newline="", encoding="utf-8") as file:
        rows = zip(texts, ["15"[label] for label in labels], strict=True)
        csv.writer(file).writerows([("review", "stars"), *rows])
    pathlib.Path("more.txt").write_text("\n".join(texts[:4]))
    for test in examples(name):  # which print how far they are
        source = "".join(example.source for example in test.examples)
        exec(compile(source, test.name, "exec"), test.globs)


def test_all_examples_are_known():
    paths = (ROOT / "keras_recbert").rglob("*.py")
    found = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in paths
        if re.search(r"^\s*>>> ", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert sorted(found) == sorted(QUICK + RUNS)


def test_files_that_stand_for_the_papers_are_there():
    names = re.findall(r"`([\w/]+(?:/|\.)[\w/.]+)`", PAGES["papers.md"])
    assert len(names) > 60
    for name in names:
        assert (ROOT / "keras_recbert" / name).exists() or (ROOT / name).exists(), name


@pytest.mark.slow
def test_sphinx_has_nothing_to_say(tmp_path):
    from sphinx.cmd.build import main

    assert main(["-q", "-W", "--keep-going", str(ROOT / "docs"), str(tmp_path)]) == 0
    api = (tmp_path / "api.html").read_text("utf-8")
    for name in ("build", "layers.SwishRNN", "heads.Head", "text.WordPieceTokenizer"):
        assert f'id="keras_recbert.{name}"' in api
    pages = [path.read_text("utf-8") for path in tmp_path.glob("*.html")]
    assert len(pages) >= len(PAGES) - 2
    loaded = re.findall(r'<(?:script|link)[^>]+(?:src|href)="([^"]+)"', "".join(pages))
    assert loaded
    assert [url for url in loaded if "//" in url] == []  # without a network, too
