"""The text that is on every machine with Python, as a labelled task.

`recbert quickstart` needs English prose and labels without a download. Both are
here: the docstrings of the standard library and of the installed packages, and
the reference manual that `help()` prints (`pydoc_data.topics`).

The task: given one sentence, say what it documents.

- `class`, `function`, `module`: the first sentence of a docstring. The label is
  the kind of syntax tree node that carries the docstring; functions and methods
  are one class. Properties are left out: they are functions by syntax and
  attributes by meaning.
- `manual`: a sentence of the reference manual.

What makes it fair:

- Whole top-level packages (`argparse`, `keras`) and whole manual topics are held
  out, so no name, author or habit of a package is on both sides.
- No text is there twice, compared without case, digits, punctuation and spaces. A
  text found with two labels is dropped, and so is a held-out text of six words and
  more that differs from a training text in one word.
- A text that spells the name of what it documents (`MyClass`, `my_function`) is
  dropped, because the spelling of a name gives its kind away. Names of other
  things stay, and "Class that ..." or "Return the ..." is language and stays.
- Markup, quotation marks, code and doctests go. Manual sentences end in a full
  stop and many docstrings do not, so every text loses its last one and every
  second text, by a hash, gets it back: it tells nothing, and both forms are known.
- The largest class of a split (`function`: there are about three times as many) is
  cut to the size of all others together: always guessing it is right half of the
  time.

The result depends on the Python and the packages of the machine, so scores of two
machines are not comparable. On one machine it depends on `seed` alone.
"""

import ast
import contextlib
import dataclasses
import gc
import hashlib
import inspect
import os
import re
import sys
import sysconfig
import warnings
from collections import Counter
from pathlib import Path

from keras_recbert.data.prose import SENTENCE_END, paragraphs_of, sentence_of

LABEL_NAMES = ("class", "function", "manual", "module")

# Held out: this share of the packages and of the manual topics.
_DEV_SHARE = 0.2
# Differing in one word is a near-duplicate only when there are this many words:
# "Return the first item" and "Return the last item" are two texts.
_MIN_WORDS_NEAR = 6
# What is parsed in about 20 seconds on one core. Every package gets the same share of
# it, and what small ones leave goes to the others: no giant package dominates.
_MAX_BYTES = 90_000_000
# Larger files are generated code more often than not.
_MAX_BYTES_PER_FILE = 300_000
_MAX_CORPUS = 60_000
_MIN_TEXTS = {"train": 100, "dev": 20}

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


@dataclasses.dataclass(frozen=True)
class DocsSplit:
    """Texts and their labels.

    Attributes:
        texts: list of str, one sentence each.
        labels: int32 array, `(len(texts),)`; indices of `PythonDocs.label_names`.
    """

    texts: list
    labels: object


@dataclasses.dataclass(frozen=True)
class PythonDocs:
    """What `load_python_docs` returns.

    Attributes:
        train: `DocsSplit`.
        dev: `DocsSplit`. From packages and manual topics that `train` lacks.
        label_names: tuple of str.
        corpus: list of str. Prose paragraphs of the training side, for learning a
            vocabulary.
        held_out: dict with "packages" and "topics", each a sorted list of str.
        counts: dict of str to int. What was read, dropped (and why) and kept.
        unreadable: dict, file to reason, of the files that could not be parsed.
    """

    train: DocsSplit
    dev: DocsSplit
    label_names: tuple
    corpus: list
    held_out: dict
    counts: dict
    unreadable: dict


def load_python_docs(seed=0, max_examples=30_000, search_paths=None, progress=None):
    """Reads docstrings and the reference manual into a four-class task.

    Source files are parsed, never imported.

    Args:
        seed: int. Chooses the held-out packages and topics, the files of packages
            too large to be read whole, and the order of the texts.
        max_examples: int. Most texts in `train` and `dev` together.
        search_paths: list of directories that hold top-level modules and packages.
            Default: the standard library and the `site-packages` of this Python.
        progress: callable `(done, total, package_name)`, called for every package.

    Returns:
        `PythonDocs`.

    Raises:
        ValueError: if `max_examples` is too small, a search path is no directory,
            or too few texts are found.
        ModuleNotFoundError: if this Python comes without `pydoc_data`.
    """
    # Here, so that importing this module costs nothing.
    import numpy as np

    least = sum(_MIN_TEXTS.values()) * len(LABEL_NAMES)
    if max_examples < least:
        raise ValueError(
            f"`max_examples` must be at least {least}. Received: {max_examples}."
        )
    topics = _manual_topics()
    paths = _search_paths(search_paths)
    packages = _packages(paths)
    counts = Counter()
    unreadable = {}
    found = {"train": [], "dev": []}
    corpus = []
    held_out = {"packages": [], "topics": []}

    def add(side, name, kind, documents):
        if side == "dev" and any(text for _, text, _ in documents):
            held_out[kind].append(name)
        for label, text, paragraphs in documents:
            if text:
                found[side].append((text, label))
            if side == "train":
                corpus.extend(paragraphs)

    limit = _package_limit(packages, _MAX_BYTES)
    with _no_garbage_collection():
        for done, (name, files) in enumerate(sorted(packages.items()), start=1):
            documents = _read_package(files, limit, seed, counts, unreadable)
            add(_side(seed, "package", name), name, "packages", documents)
            if progress is not None:
                progress(done, len(packages), name)
    for name, text in sorted(topics.items()):
        add(_side(seed, "topic", name), name, "topics", _manual_documents(text, counts))

    texts = _deduplicate(found, counts)
    splits = {}
    for side, share in (("train", 1 - _DEV_SHARE), ("dev", _DEV_SHARE)):
        chosen = _balance(texts[side], int(max_examples * share), seed)
        for label in LABEL_NAMES:
            number = sum(kind == label for _, kind in chosen)
            counts[f"{side}_{label}"] = number
            if number < _MIN_TEXTS[side]:
                raise ValueError(
                    f"Too few texts for the class `{label}` in `{side}`: at least "
                    f"{_MIN_TEXTS[side]} are needed, {number} were found "
                    f"(`max_examples` is {max_examples}). Read: "
                    f"{counts['files_read']} source files of {len(packages)} packages "
                    f"under {[str(path) for path in paths]} and {len(topics)} topics "
                    f"of the reference manual; {len(unreadable)} files could not be "
                    "parsed. A Python without sources or docstrings is not enough; "
                    "install a full one, or give directories with documented Python "
                    "sources as `search_paths`, or try another `seed` or a larger "
                    "`max_examples`."
                )
        splits[side] = DocsSplit(
            [_final_stop(text) for text, _ in chosen],
            np.array([LABEL_NAMES.index(label) for _, label in chosen], np.int32),
        )
    dev_keys = {_key(text) for text in splits["dev"].texts}
    corpus = {_key(text): text for text in corpus}
    corpus = [text for key, text in corpus.items() if key not in dev_keys]
    return PythonDocs(
        train=splits["train"],
        dev=splits["dev"],
        label_names=LABEL_NAMES,
        corpus=_shuffle(corpus, seed)[:_MAX_CORPUS],
        held_out=held_out,
        counts=dict(counts),
        unreadable=unreadable,
    )


# Where the text is.


def _manual_topics():
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


def _search_paths(search_paths):
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


def _packages(paths):
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


def _package_limit(packages, budget):
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
def _no_garbage_collection():
    # Trees are many small objects without cycles: looking for cycles in them takes a
    # quarter of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# From source and manual to sentences.


def _read_package(files, limit, seed, counts, unreadable):
    """Returns `[(label, text or None, paragraphs)]` of one package."""
    documents = []
    size = 0
    for _, file in sorted(files, key=lambda item: _hash(seed, item[0])):
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


def _manual_documents(topic, counts):
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


# From sentences to a split.


def _hash(seed, *parts):
    # Not hash(): that one differs from process to process.
    value = "\0".join([str(seed), *parts])
    return hashlib.blake2b(value.encode(errors="replace"), digest_size=8).digest()


def _fraction(seed, *parts):
    return int.from_bytes(_hash(seed, *parts), "big") / 2**64


def _side(seed, kind, name):
    return "dev" if _fraction(seed, kind, name) < _DEV_SHARE else "train"


def _key(text):
    """The text as duplicates are compared: letters of the ASCII alphabet only."""
    return " ".join(re.findall(r"[a-z]+", text.lower()))


def _near_keys(key):
    """Yields keys that two texts share when one word differs, is extra or moved."""
    words = key.split()
    yield key
    if len(words) >= _MIN_WORDS_NEAR:
        for i in range(len(words)):
            yield " ".join([*words[:i], *words[i + 1 :]])


def _deduplicate(found, counts):
    labels = {}
    for documents in found.values():
        for text, label in documents:
            labels.setdefault(_key(text), set()).add(label)
    seen = set()
    near_train = set()
    result = {"train": [], "dev": []}
    for side in ("train", "dev"):  # so that a shared text stays in training
        for text, label in found[side]:
            key = _key(text)
            if len(labels[key]) > 1:
                counts["dropped_two_labels"] += 1
            elif key in seen:
                counts["dropped_duplicate"] += 1
            elif side == "dev" and not near_train.isdisjoint(_near_keys(key)):
                counts["dropped_near_duplicate"] += 1
            else:
                seen.add(key)
                result[side].append((text, label))
                counts[f"found_{label}"] += 1
                if side == "train":
                    near_train.update(_near_keys(key))
    return result


def _shuffle(texts, seed):
    return sorted(texts, key=lambda text: _hash(seed, "order", text))


def _balance(documents, limit, seed):
    """Cuts the largest class to the size of the others together, then to `limit`."""
    documents = sorted(documents, key=lambda item: _hash(seed, "order", item[0]))
    sizes = Counter(label for _, label in documents)
    if not sizes:
        return []
    largest, size = sizes.most_common(1)[0]
    most = {largest: min(size, sizes.total() - size)}
    kept = Counter()
    result = []
    for text, label in documents:
        if kept[label] < most.get(label, size):
            kept[label] += 1
            result.append((text, label))
    # A hash order over everything, so a prefix is a fair sample of it.
    return sorted(result, key=lambda item: _hash(seed, "sample", item[0]))[:limit]


def _final_stop(text):
    return f"{text}." if _fraction(0, "final stop", text) < 0.5 else text
