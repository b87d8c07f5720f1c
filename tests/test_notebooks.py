"""The notebooks run from top to bottom, and are kept with what they gave."""

import json
import pathlib
import re

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    sizes = [cell for cell in notebook.cells if "max_examples=12_000" in cell.source]
    assert len(sizes) == 1
    for cell in sizes:  # every cell runs, on a part of the text
        cell.source = cell.source.replace("max_examples=12_000", "max_examples=2_000")
    (training,) = [cell for cell in notebook.cells if "epochs = 3" in cell.source]
    training.source = training.source.replace("epochs = 3", "epochs = 1")
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, resources=resources).execute()
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    printed = "".join(output.get("text", "") for output in last.outputs)
    assert printed.count("%  ") == 3, printed


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
    for output in outputs:
        output.get("data", {}).pop("image/png", None)
    found = re.search(
        r"/(?:home|root|tmp|usr|opt|work|Users)/[^\s\"]*", json.dumps(outputs)
    )
    assert not found, found[0]
