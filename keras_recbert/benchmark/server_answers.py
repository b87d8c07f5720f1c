"""What two servers answer to the same texts, and whether it is the same."""

import concurrent.futures
import contextlib
import http.client
import json
import urllib.parse

import numpy as np

from keras_recbert.benchmark.load import body_of
from keras_recbert.benchmark.worker_process import WorkerError

# The most that scores may differ. Labels are equal in float32; in bfloat16, whose
# rounding is of that size, texts between two classes may get either.
TOLERANCES = {"float32": 1e-3, "bfloat16": 5e-2}
TIMEOUT = 60.0  # seconds of a request


def ask_all(label, url, texts, clients):
    """Asks a server for texts, each a request, by several clients at the same time.

    Args:
        label: str. What messages call the server.
        url: str.
        texts: list of str.
        clients: int.

    Returns:
        List of dict, a row a text.

    Raises:
        WorkerError: if a request is not answered by status 200.
    """
    parts = urllib.parse.urlsplit(url)

    def ask(part):
        rows = []
        connection = http.client.HTTPConnection(
            parts.hostname, parts.port, timeout=TIMEOUT
        )
        with contextlib.closing(connection):
            for text in part:
                headers = {"Content-Type": "application/json"}
                connection.request("POST", parts.path, body_of([text]), headers)
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200:
                    raise WorkerError(
                        f"The server of {label} answers {answer.status} to {text!r}: "
                        f"{body[:500].decode('utf-8', 'replace')}"
                    )
                rows += json.loads(body)["predictions"]
        return rows

    found = [None] * len(texts)
    try:
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            parts_of = [texts[begin::clients] for begin in range(clients)]
            for begin, rows in enumerate(pool.map(ask, parts_of)):
                found[begin::clients] = rows
    except (OSError, http.client.HTTPException) as error:
        raise WorkerError(f"The server of {label} does not answer: {error!r}") from None
    return found


def check_agreement(texts, precision, ours, theirs):
    """Compares the rows of two servers, of this zoo and of a peer.

    Args:
        texts: list of str.
        precision: str, of `TOLERANCES`.
        ours, theirs: tuple of the name of a server and its list of rows.

    Returns:
        dict: `precision`, `texts`, `largest_difference` of scores, and
        `labels_that_differ`.

    Raises:
        RuntimeError: if they differ by more than they may; quotes the first text.
    """
    (name, rows), (other_name, other_rows) = ours, theirs
    tolerance, differing, largest = TOLERANCES[precision], 0, 0.0
    for text, row, other in zip(texts, rows, other_rows, strict=True):
        gap = float(np.abs(np.subtract(row["scores"], other["scores"])).max())
        same = row["label"] == other["label"]
        if gap > tolerance or (precision == "float32" and not same):
            raise RuntimeError(
                f"Two servers of one model answer differently, so their speed says "
                f"nothing. {name}: {row['label']}, scores {row['scores']}. "
                f"{other_name}: {other['label']}, scores {other['scores']}. Text: "
                f"{text[:200]!r}. Scores may differ by {tolerance:g}."
            )
        differing += not same
        largest = max(largest, gap)
    return {
        "precision": precision,
        "texts": len(texts),
        "largest_difference": largest,
        "labels_that_differ": differing,
    }
