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

import dataclasses
from collections import Counter

from keras_recbert.data.python_docs_split import (
    VALIDATION_SHARE,
    balance,
    deduplicate,
    final_stop,
    shuffle,
    side_of,
    text_key,
)
from keras_recbert.data.python_sources import (
    MAX_BYTES,
    check_search_paths,
    find_packages,
    manual_documents,
    manual_topics,
    no_garbage_collection,
    package_limit,
    read_package,
)

LABEL_NAMES = ("class", "function", "manual", "module")

_MAX_CORPUS = 60_000
_MIN_TEXTS = {"train": 100, "validation": 20}


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
        validation: `DocsSplit`. From packages and manual topics that `train` lacks.
        label_names: tuple of str.
        corpus: list of str. Prose paragraphs of the training side, for learning a
            vocabulary.
        held_out: dict with "packages" and "topics", each a sorted list of str.
        counts: dict of str to int. What was read, dropped (and why) and kept.
        unreadable: dict, file to reason, of the files that could not be parsed.
    """

    train: DocsSplit
    validation: DocsSplit
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
        max_examples: int. Most texts in `train` and `validation` together.
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
    least = sum(_MIN_TEXTS.values()) * len(LABEL_NAMES)
    if max_examples < least:
        raise ValueError(
            f"`max_examples` must be at least {least}. Received: {max_examples}."
        )
    topics = manual_topics()
    paths = check_search_paths(search_paths)
    packages = find_packages(paths)
    counts = Counter()
    unreadable = {}
    found = {"train": [], "validation": []}
    corpus = []
    held_out = {"packages": [], "topics": []}

    def add(side, name, kind, documents):
        if side == "validation" and any(text for _, text, _ in documents):
            held_out[kind].append(name)
        for label, text, paragraphs in documents:
            if text:
                found[side].append((text, label))
            if side == "train":
                corpus.extend(paragraphs)

    limit = package_limit(packages, MAX_BYTES)
    with no_garbage_collection():
        for done, (name, files) in enumerate(sorted(packages.items()), start=1):
            documents = read_package(files, limit, seed, counts, unreadable)
            add(side_of(seed, "package", name), name, "packages", documents)
            if progress is not None:
                progress(done, len(packages), name)
    for name, text in sorted(topics.items()):
        add(
            side_of(seed, "topic", name), name, "topics", manual_documents(text, counts)
        )

    try:
        splits = _make_splits(deduplicate(found, counts), max_examples, seed, counts)
    except ValueError as error:
        raise ValueError(
            f"{error} (`max_examples` is {max_examples}). Read: "
            f"{counts['files_read']} source files of {len(packages)} packages "
            f"under {[str(path) for path in paths]} and {len(topics)} topics "
            f"of the reference manual; {len(unreadable)} files could not be "
            "parsed. A Python without sources or docstrings is not enough; "
            "install a full one, or give directories with documented Python "
            "sources as `search_paths`, or try another `seed` or a larger "
            "`max_examples`."
        ) from None
    validation_keys = {text_key(text) for text in splits["validation"].texts}
    corpus = {text_key(text): text for text in corpus}
    corpus = [text for key, text in corpus.items() if key not in validation_keys]
    return PythonDocs(
        train=splits["train"],
        validation=splits["validation"],
        label_names=LABEL_NAMES,
        corpus=shuffle(corpus, seed)[:_MAX_CORPUS],
        held_out=held_out,
        counts=dict(counts),
        unreadable=unreadable,
    )


def _make_splits(texts, max_examples, seed, counts):
    """As many texts of each class, in both splits.

    Args:
        texts: dict of "train" and "validation" to lists of text and label.
        max_examples, seed: as for `load_python_docs`.
        counts: dict, which gets the texts of each class.

    Returns:
        dict of split to `DocsSplit`.

    Raises:
        ValueError: if a class has too few.
    """
    # Here, so that importing this module costs nothing.
    import numpy as np

    shares = {"train": 1 - VALIDATION_SHARE, "validation": VALIDATION_SHARE}
    splits = {}
    for side, share in shares.items():
        chosen = balance(texts[side], int(max_examples * share), seed)
        for label in LABEL_NAMES:
            number = sum(kind == label for _, kind in chosen)
            counts[f"{side}_{label}"] = number
            if number < _MIN_TEXTS[side]:
                raise ValueError(
                    f"Too few texts for the class `{label}` in `{side}`: at least "
                    f"{_MIN_TEXTS[side]} are needed, {number} were found"
                )
        splits[side] = DocsSplit(
            [final_stop(text) for text, _ in chosen],
            np.array([LABEL_NAMES.index(label) for _, label in chosen], np.int32),
        )
    return splits
