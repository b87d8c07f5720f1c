"""Python sources and the reference manual on this machine, read as documents.

A document is `(label, text or None, paragraphs)`: what is documented, the sentence that
says so, and the prose around it.
"""

import ast
import contextlib
import gc
import inspect
import os
import re
import sys
import sysconfig
import warnings
from pathlib import Path

from keras_recbert.data.prose import SENTENCE_END, paragraphs_of, sentence_of
from keras_recbert.data.python_docs_split import stable_hash

# What is parsed in about 20 seconds on one core. Every package gets the same share of
# it, and what small ones leave goes to the others: no giant package dominates.
MAX_BYTES = 90_000_000
# Larger files are generated code more often than not.
_MAX_BYTES_PER_FILE = 300_000

# Tests document little, and vendored copies would put one package on both sides.
# This package is left out so that the task does not change with it.
_SKIPPED_DIRECTORIES = frozenset(
    [
        "__pycache__",
        "_distutils",
        "_vendor",
        "_vendored",
        "externals",
        "idle_test",
        "keras_recbert",
        "pydoc_data",
        "test",
        "tests",
        "third_party",
        "vendor",
        "vendored",
    ]
)
_TEST_FILE = re.compile(r"(test_.*|.*_tests?|conftest)\.py")
_PROPERTY = frozenset(
    ["property", "cached_property", "setter", "getter", "deleter", "classproperty"]
)


def manual_topics():
    """Topics of the reference manual, a dict of name to text."""
    try:
        from pydoc_data.topics import topics
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "This Python has no `pydoc_data`, the text of the reference manual, "
            f"which the default corpus needs. Looked for by: {sys.executable}. "
            "Install the full standard library (Debian and Ubuntu: `apt install "
            "libpython3-stdlib`) or use a Python from python.org, conda or uv.",
            name=error.name,
        ) from error
    return topics


def check_search_paths(search_paths):
    """Paths of the folders to read; by default those of this Python."""
    if search_paths is None:
        names = ("stdlib", "platstdlib", "purelib", "platlib")
        search_paths = [sysconfig.get_path(name) for name in names]
        # Packages of `pip install --user` and of Debian are elsewhere.
        search_paths += [
            path
            for path in sys.path
            if os.path.basename(path) in ("site-packages", "dist-packages")
        ]
        search_paths = [path for path in search_paths if os.path.isdir(path)]
    paths = list(dict.fromkeys(Path(path).resolve() for path in search_paths))
    for path in paths:
        if not path.is_dir():
            raise ValueError(
                "`search_paths` must be directories that hold Python packages. "
                f"Received: {path}, which is not a directory."
            )
    return paths


def find_packages(paths):
    """Maps top-level names to `[(path relative to the search path, file)]`."""
    packages = {}
    for root in paths:
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if _is_package_name(name)]
            for name in files:
                if not name.endswith(".py") or _TEST_FILE.fullmatch(name):
                    continue
                file = Path(folder, name)
                if not file.is_file():  # a folder or a link to nowhere
                    continue
                relative = file.relative_to(root)
                # `_pytest` and `pytest` are one package.
                top = relative.parts[0].removesuffix(".py").strip("_")
                packages.setdefault(top, []).append((relative.as_posix(), file))
    return packages


def package_limit(packages, budget):
    """Returns the most bytes a package may use so that all together use `budget`."""
    sizes = sorted(
        sum(file.stat().st_size for _, file in files) for files in packages.values()
    )
    for i, size in enumerate(sizes):
        share = budget / (len(sizes) - i)
        if size > share:
            return share
        budget -= size
    return sizes[-1] if sizes else 0


def _is_package_name(name):
    # Not those with a dot or a hyphen: site-packages, x.dist-info.
    return name.isidentifier() and name not in _SKIPPED_DIRECTORIES


@contextlib.contextmanager
def no_garbage_collection():
    """No looking for cycles inside the `with`."""
    # Trees are many small objects without cycles: looking for cycles in them takes a
    # quarter of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_package(files, limit, seed, counts, unreadable):
    """Returns `[(label, text or None, paragraphs)]` of one package."""
    documents = []
    size = 0
    for _, file in sorted(files, key=lambda item: stable_hash(seed, item[0])):
        file_size = file.stat().st_size
        if file_size > _MAX_BYTES_PER_FILE:
            counts["files_too_large"] += 1
            continue
        if size + file_size > limit:
            counts["files_over_package_limit"] += 1
            continue
        try:
            source = file.read_bytes()
            if b'"""' not in source and b"'''" not in source:
                counts["files_without_docstring"] += 1
                continue
            size += file_size
            with warnings.catch_warnings():
                # Invalid escapes in other people's strings are not our business.
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
        # ast.parse: ValueError for NUL bytes, MemoryError for too deep nesting.
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            unreadable[str(file)] = f"{type(error).__name__}: {error}"
            counts["files_unreadable"] += 1
            continue
        counts["files_read"] += 1
        name = file.parent.name if file.name == "__init__.py" else file.stem
        for label, own_name, docstring in _docstrings(tree, name):
            paragraphs = paragraphs_of(inspect.cleandoc(docstring))
            text = _summary(paragraphs, own_name, counts)
            documents.append((label, text, paragraphs))
    return documents


def _docstrings(node, name):
    """Yields `(label, name, docstring)` of a module, its classes and functions."""
    if isinstance(node, ast.Module):
        label = "module"
    elif isinstance(node, ast.ClassDef):
        label = "class"
    else:
        label = "function"
    docstring = ast.get_docstring(node, clean=False)
    if docstring and not (label == "function" and _is_property(node)):
        yield label, name, docstring
    if label == "function":
        return
    for child in node.body:
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _docstrings(child, child.name)


def _is_property(function):
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call):
            decorator = decorator.func
        if isinstance(decorator, ast.Attribute):
            name = decorator.attr
        else:
            name = getattr(decorator, "id", "")
        if name in _PROPERTY or name.endswith("_property"):
            return True
    return False


def _summary(paragraphs, own_name, counts):
    if not paragraphs:
        counts["dropped_no_prose"] += 1
        return None
    text = sentence_of(SENTENCE_END.split(paragraphs[0])[0])
    if not text:
        counts["dropped_length_or_form"] += 1
        return None
    own_name = own_name.strip("_")
    words = {word.strip("_") for word in re.findall(r"\w+", text)}
    if own_name in words and re.search(r"_|\d|[a-z][A-Z]|[A-Z]{2}", own_name):
        counts["dropped_own_name"] += 1
        return None
    return text


def manual_documents(topic, counts):
    """Returns `[("manual", text or None, paragraphs)]` of one topic."""
    documents = []
    for block in re.split(r"\n\s*\n", topic):
        # Here lists hold whole sentences.
        block = re.sub(r"^(\* |\d+\. )", "", inspect.cleandoc(block))
        paragraphs = paragraphs_of(inspect.cleandoc(block))
        for paragraph in paragraphs:
            for sentence in SENTENCE_END.split(paragraph):
                text = sentence_of(sentence)
                if text and text[0].isupper():
                    documents.append(("manual", text, []))
                else:
                    counts["dropped_length_or_form"] += 1
        documents.append(("manual", None, paragraphs))
    return documents
