"""The notebooks run from top to bottom, and are kept with what they gave."""

import json
import pathlib
import re

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
# What makes each small; every cell still runs.
SMALL = {
    "tour": {"max_examples=12_000": "max_examples=2_000", "epochs = 3": "epochs = 1"},
    "fine_tune_your_file": {"epochs=4": "epochs=1, limit=100"},
    "pretrain_and_compare": {
        "steps=160": "steps=4",
        "checkpoint_every=40": "checkpoint_every=2",
        "range(40, 161, 40)": "range(2, 5, 2)",
        "docs.corpus[::20]": "docs.corpus[:20]",
        "set(docs.corpus)": "set(docs.corpus[:400])",
    },
    "distil_and_deploy": {
        "epochs=4": "epochs=1",
        "docs.corpus[:1500]": "docs.corpus[:50]",
        '"overwrite": True': '"overwrite": True, "limit": 100',
        "learning_rate=1e-3": "learning_rate=1e-3, epochs=1",
    },
    "inside_a_checkpoint": {
        "label in sentences:": "label in sentences[::7]:",
        "vocabulary_size=4000": "vocabulary_size=4000, epochs=1",
        '"epochs": 10': '"epochs": 1',
    },
}
# Tracing takes longer than a few steps, as the fixture `eager_steps` has it.
EAGER = """
import keras
keras.Model.run_eagerly = property(lambda model: True, lambda model, value: None)
"""
# What is printed at the end.
LAST = {
    "tour": r"( *\w+ +[\d.]+ %  .+\n){3}",
    "fine_tune_your_file": r"((majority|bag of words|swish_tiny) +[\d.]+%\n){3}",
    "pretrain_and_compare": r"( *\w+_tiny  perplexity +\d+ +\d+ ms a step\n){2}",
    "distil_and_deploy": r"(\w+ .* texts/s\n){2}They agree on [\d.]+% of .*\n",
    "inside_a_checkpoint": r"( *\w+  +[\d.]+% in layer \d, random +[\d.]+% .*\n){3}",
}
TRACES = re.compile(r"/(?:home|root|tmp|usr|opt|work|Users)/[^\s\"]*")


def test_each_notebook_is_made_small_and_run():
    assert {path.stem for path in NOTEBOOKS} == SMALL.keys() == LAST.keys()
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        source = "".join("".join(cell["source"]) for cell in cells)
        for found in SMALL[path.stem]:
            assert source.count(found) == 1, (path.stem, found)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")  # as the notebooks set it
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in cells:
        for found, smaller in SMALL[path.stem].items():
            cell.source = cell.source.replace(found, smaller)
    if path.stem != "tour":
        cells[0].source += EAGER
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, resources=resources).execute()
    outputs = [output for cell in cells for output in cell.outputs]
    told = [output.text for output in outputs if output.get("name") == "stderr"]
    assert "warning" not in "".join(told).lower(), told
    printed = "".join(output.get("text", "") for output in cells[-1].outputs)
    assert re.fullmatch(LAST[path.stem], printed), printed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_and_pictures_are_kept_without_traces_of_a_machine(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(output["output_type"] == "error" for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)
    printed = "".join("".join(one["text"]) for one in code[-1]["outputs"])
    assert re.fullmatch(LAST[path.stem], printed), printed
    for output in outputs:
        output.get("data", {}).pop("image/png", None)
    found = TRACES.search(json.dumps(outputs))
    assert not found, found[0]
    assert not any("execution" in cell["metadata"] for cell in cells)  # its times
