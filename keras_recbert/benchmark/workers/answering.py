"""Texts in, labels out: what the workers of `recbert benchmark frontier` share.

Standard library only: this file runs in environments that hold nothing of ours.
"""

import functools
import json
import pathlib

from worker_protocol import serve


def serve_answers(load, open_system, fit=None):
    """Answers the parent until it closes the pipe.

    Args:
        load: as for `worker_protocol.serve`.
        open_system: function of a folder that returns a function from a list of texts
            to a list of labels, str, and the number of parameters.
        fit: optional function of texts, their labels, and the job, which writes the
            system into the folder of the job.

    A job is `{"kind": "fit", "folder": ..., "train": ...}`, where `train` is a JSON
    file of texts and labels; or `{"kind": "answer", "folder": ..., "texts": [...],
    "batch_size": ...}`, a step of which answers all texts. With `"ask"`, a JSON file of
    texts, their labels are written into the file `"answers"`, too.
    """
    serve(load, preparing(open_system, fit))


def preparing(open_system, fit=None):
    """The function from a job to a step that `serve` needs, see `serve_answers`."""
    opened = functools.cache(open_system)  # once for all sizes of a batch

    def prepare(job):
        folder = pathlib.Path(job["folder"])
        if job["kind"] == "fit":
            train = json.loads(pathlib.Path(job["train"]).read_text("utf-8"))
            folder.mkdir()
            fit(train["texts"], train["labels"], job)
            return (lambda: None), {}
        answer, parameters = opened(folder)
        texts, size = job["texts"], job["batch_size"]
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        if "ask" in job:
            asked = json.loads(pathlib.Path(job["ask"]).read_text("utf-8"))
            labels = []
            for start in range(0, len(asked), size):
                labels.extend(answer(asked[start : start + size]))
            pathlib.Path(job["answers"]).write_text(json.dumps(labels), "utf-8")
        step = functools.partial(_answer_all, answer, batches)
        return step, {"parameters": parameters, "items": len(texts)}

    return prepare


def _answer_all(answer, batches):
    return [answer(batch) for batch in batches]
