"""The notebooks run from top to bottom."""

import pathlib

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, resources=resources).execute()
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    printed = "".join(output.get("text", "") for output in last.outputs)
    assert printed.count("%  ") == 3, printed
