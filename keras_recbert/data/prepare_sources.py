"""Which files a corpus is made of, and how the work on them is divided."""

import glob
import os

from keras_recbert.data.documents import DocumentError, Source, is_splittable

FORMATS = {
    "text": (".txt",),
    "jsonl": (".jsonl", ".ndjson"),
    "squad": (".json",),
    "wikitext": (".tokens",),
}
_COMPRESSED = (".gz", ".bz2")
# Of a range that one worker reads; small enough to keep all busy, large enough that
# the parts of shards are no crumbs. What is written does not depend on it.
BYTES_PER_ITEM = 16 << 20
EXAMPLES_PER_ITEM = 10_000


def find_sources(inputs, format, reading):
    """Finds what to read.

    Args:
        inputs: list of str or paths: files, folders (all files below them, without
            hidden ones), patterns, or `tfds:` and a name. The order does not matter,
            and a file that is named twice is read once.
        format: str or None. Format of all files; None goes by their endings.
        reading: `Reading`.

    Returns:
        list of `Source`, sorted by path.

    Raises:
        FileNotFoundError: where an input names nothing.
        ValueError: for a format that is not known, or cannot be told.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(
            f"`format` must be one of {', '.join(FORMATS)}. Received: {format!r}."
        )
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    inputs = [os.fspath(path) for path in inputs]
    if not inputs:
        raise ValueError(
            "`inputs` must name a file, a folder or a pattern. It is empty."
        )
    found = set()
    for path in inputs:
        found.update([path] if path.startswith("tfds:") else _files(path))
    sources = []
    for number, path in enumerate(sorted(found)):
        if path.startswith("tfds:"):
            from keras_recbert.data.documents_tfds import load_builder

            splits = load_builder(path, reading).info.splits
            size = splits[reading.split].num_examples
            sources.append(Source(number, path, "tfds", size))
        else:
            size = os.path.getsize(path)
            sources.append(Source(number, path, format or _format(path), size))
    return sources


def _files(path):
    if os.path.isdir(path):
        files = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if not name.startswith(".") and "/." not in folder.removeprefix(path)
        ]
        empty = f"No files in the folder {path}."
    elif os.path.isfile(path):
        files = [path]
    else:
        files = [
            file for file in glob.glob(path, recursive=True) if os.path.isfile(file)
        ]
        empty = f"No file, folder or pattern {path!r} names anything to read."
    if not files:
        raise FileNotFoundError(empty)
    return [os.path.abspath(file) for file in files]


def _format(path):
    name = path
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    for format, endings in FORMATS.items():
        if name.endswith(endings):
            return format
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    raise ValueError(
        f"The ending of {path} names no format. Known: {known}, each also with "
        f"{' or '.join(_COMPRESSED)}. Pass --format {'|'.join(FORMATS)}, or a pattern "
        "that leaves the file out."
    )


def divide(sources, reading):
    """Divides the work.

    Args:
        sources: list of `Source`.
        reading: `Reading`.

    Returns:
        list of items; an item is a list of `(source, start, end)`. In the order of
        items the documents of the corpus come sorted by source and position.
    """
    items, item, room = [], [], 1.0
    for source in sources:
        whole = BYTES_PER_ITEM if source.format != "tfds" else EXAMPLES_PER_ITEM
        if not is_splittable(source, reading):
            ranges = [(0, max(source.size, 1))]
        else:
            starts = range(0, max(source.size, 1), whole)
            ranges = [(start, start + whole) for start in starts]
        for start, end in ranges:
            item.append((source, start, end))
            room -= min(end, source.size) / whole - start / whole
            if room <= 0:
                items.append(item)
                item, room = [], 1.0
    if item:
        items.append(item)
    return items


def check_sources(sources):
    """Raises `DocumentError` for a file that cannot be opened."""
    for source in sources:
        if source.format == "tfds":
            continue
        try:
            with open(source.path, "rb"):
                pass
        except OSError as error:
            raise DocumentError(f"{source.path}: {error.strerror}.") from None
