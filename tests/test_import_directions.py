"""Imports inside the package go one way: what is lower never imports higher."""

import ast
import graphlib
import pathlib

import pytest

import keras_recbert

PACKAGE = pathlib.Path(keras_recbert.__file__).parent
MODELS = {"ops", "layers", "models"}

# Who may import whom. A part that is missing here fails the test below.
ARROWS = {
    "core": set(),
    # Loads no TensorFlow.
    "hub": {"core"},
    "keras_backend": set(),
    "ops": set(),
    "text": {"core", "keras_backend"},
    "metrics": {"core"},
    "losses": {"keras_backend"},
    "layers": {"core", "keras_backend", "ops"},
    "blocks": {"core", "layers"},
    # The registry loads no TensorFlow.
    "models": {"blocks", "core", "layers", "ops"},
    "objectives": {"core"},
    "config": {"core", "objectives"},
    "data": {"config", "core", "metrics", "objectives", "text"},
    "heads": {"core", "layers", "metrics", "models"},
    "tasks": {
        "blocks",
        "core",
        "heads",
        "keras_backend",
        "objectives",
        "text",
        *MODELS,
    },
    # What is read and written of a model, above the models.
    "convert": {
        "blocks",
        "core",
        "hub",
        "registration",
        "tasks",
        "text",
        *MODELS,
    },
    # Loads no TensorFlow: a preset is files to it.
    "publish": {"convert", "core", "data", "hub", "models"},
    "serving": {"data", "core", "keras_backend", "text", *MODELS},
    # Models are files to it.
    "server": {"config", "core", "serving"},
    "builder": {
        "blocks",
        "convert",
        "core",
        "keras_backend",
        "objectives",
        "tasks",
        "text",
        *MODELS,
    },
    "registration": set(),
    "__init__": {"builder", "models", "registration"},
    # `profile` names precisions as `finetune` does; workers serve what they time.
    "benchmark": {
        "__init__",
        "blocks",
        "builder",
        "convert",
        "core",
        "data",
        "hub",
        "serving",
        "tasks",
        "train",
        *MODELS,
    },
    # The quick start trains, exports, and asks what it exported.
    "train": {
        "__init__",
        "builder",
        "config",
        "convert",
        "core",
        "data",
        "heads",
        "keras_backend",
        "losses",
        "metrics",
        "objectives",
        "serving",
        "tasks",
        "text",
        *MODELS,
    },
}
# Methods of a model that save it, and the one of an encoder that reads texts, call what
# is above: these import inside the method.
SAVING = {
    "models/recbert_encoder.py": {"convert"},
    "models/encoder.py": {"convert", "serving", "tasks"},
    "tasks/text_model.py": {"convert", "serving"},
}
SAVING_METHODS = (
    "save_preset",
    "save_huggingface",
    "export",
    "export_savedmodel",
    "encode",
)
ANYTHING = {"cli", "__main__"}


def part_of(path):
    """`layers` for `layers/swish_rnn.py`, `builder` for `builder.py`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path):
    """Parts of the package that a file imports, anywhere in it."""
    return parts_in(ast.parse(path.read_text(encoding="utf-8")), path)


def parts_in(tree, path):
    """Parts of the package that are imported in a piece of a file.

    `from keras_recbert import x` counts as the part `x`, if that is one, and as the
    whole package otherwise.
    """
    parts = set()
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: import by full name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            top, *rest = name.split(".")
            if top == PACKAGE.name:
                known = rest and (rest[0] in ARROWS or rest[0] in ANYTHING)
                parts.add(rest[0] if known else "__init__")
    return parts


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize(
    "path", FILES, ids=[str(p.relative_to(PACKAGE)) for p in FILES]
)
def test_file_imports_nothing_above_it(path):
    part = part_of(path)
    if part in ANYTHING:
        return
    assert part in ARROWS, f"say in ARROWS what {part!r} may import"
    lazy = SAVING.get(path.relative_to(PACKAGE).as_posix(), set())
    wrong = imported_parts(path) - ARROWS[part] - {part} - lazy
    assert not wrong, f"{part!r} may not import {sorted(wrong)}"


@pytest.mark.parametrize("file", SAVING)
def test_a_model_imports_what_saves_it_where_it_is_saved(file):
    path = PACKAGE / file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    saving = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in SAVING_METHODS
    ]
    assert set.union(*(parts_in(node, path) for node in saving)) == SAVING[file]
    for node in saving:
        node.body = []
    assert not parts_in(tree, path) & SAVING[file]


def test_arrows_never_turn_back():
    order = graphlib.TopologicalSorter(ARROWS).static_order()  # raises on a cycle
    assert set(ARROWS) <= set(order)


def test_the_check_sees_every_form_of_import(tmp_path):
    file = tmp_path / "some.py"
    file.write_text(
        "import keras\n"
        "import keras_recbert.data.glue\n"
        "from keras_recbert import train\n"
        "def later():\n"
        "    from keras_recbert.tasks.text_model import TextModel\n"
    )
    assert imported_parts(file) == {"data", "train", "tasks"}
    file.write_text("from keras_recbert import build\n")
    assert imported_parts(file) == {"__init__"}
    file.write_text("from ..train import fit\n")
    with pytest.raises(AssertionError, match="some.py:1: import by full name"):
        imported_parts(file)
