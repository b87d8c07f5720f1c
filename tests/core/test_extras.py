"""Hints name extras that exist, and come before work."""

import ast
import pathlib
import re
import sys

import pytest

import keras_recbert
from keras_recbert.core.extras import check_installed

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = pathlib.Path(keras_recbert.__file__).parent


def extras():
    """What `setup.py` declares: dict of extra to the distributions it names."""
    tree = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    names, declared = {}, None
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            names[node.targets[0].id] = node.value
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "extras_require":
            declared = node.value

    def distributions(value):
        if isinstance(value, ast.Name):
            value = names[value.id]
        for item in value.elts:
            if isinstance(item, ast.Starred):
                yield from distributions(item.value)
            else:
                yield re.match(r"[\w-]+", item.value)[0].lower()

    return {
        key.value: set(distributions(value))
        for key, value in zip(declared.keys, declared.values, strict=True)
    }


def calls():
    """Extra and modules of every call of `check_installed` in the package."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", None)
            if name == "check_installed":
                constants = [a.value for a in node.args[1:] if hasattr(a, "value")]
                yield path.name, constants[0], [c for c in constants[1:] if c]


def test_an_extra_installs_what_its_hint_promises(monkeypatch):
    found = extras()
    checked = 0
    for file, extra, modules in calls():
        assert extra in found, file
        for module in modules:
            if not isinstance(module, str):
                continue
            monkeypatch.setitem(sys.modules, module, None)
            with pytest.raises(ImportError) as caught:
                check_installed("It", extra, module)
            needed = re.match(r"It needs ([\w-]+): pip install -e", str(caught.value))
            assert needed[1].lower() in found[extra], file
            assert f'".[{extra}]"' in str(caught.value)
            checked += 1
    assert checked >= 8


def test_what_is_installed_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "nupunkt", raising=False)
    check_installed("It", "prepare", "nupunkt")
    assert "nupunkt" not in sys.modules


def test_no_hint_installs_from_an_index_that_does_not_have_the_package():
    for path in PACKAGE.rglob("*.py"):
        assert 'pip install "keras_recbert' not in path.read_text(encoding="utf-8"), (
            path
        )
