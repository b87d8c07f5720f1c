"""What `recbert prepare` says while it works."""

import contextlib
import logging
import sys
import threading
import time

from keras_recbert.core.json_files import read_json


@contextlib.contextmanager
def watch(folder, num_items, stream=None):
    """Shows on a terminal how far the workers are; elsewhere nothing.

    Args:
        folder: `pathlib.Path`, in which workers keep a file with their counts.
        num_items: int. Items of work.
        stream: file to write to; standard error by default.
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield
        return
    finished = threading.Event()
    thread = threading.Thread(
        target=_show, args=(folder, num_items, stream, finished), daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
        print("\r\033[K", end="", file=stream, flush=True)


@contextlib.contextmanager
def quiet():
    """Keeps Beam's logs back: what goes wrong is raised as well."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def _show(folder, num_items, stream, finished):
    start = time.monotonic()
    while not finished.wait(0.5):
        counts = [read_json(path) for path in folder.glob("progress-*.json")]
        tokens = sum(count["tokens"] for count in counts)
        line = (
            f"{sum(count['documents'] for count in counts):,} documents, "
            f"{tokens:,} word pieces, {tokens / (time.monotonic() - start):,.0f} a "
            f"second, {len(counts)} of {num_items} parts begun"
        )
        print(f"\r\033[K{line}", end="", file=stream, flush=True)
