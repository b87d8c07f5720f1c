"""The systems of `recbert benchmark serving`, and how each is started."""

import dataclasses
import pathlib
import sys

from keras_recbert.benchmark.worker_process import WORKERS

MAX_WAITING = 1024  # texts, of both servers
OURS, PEER = "recbert", "torch"
# What a row is called: the server, and the model called directly.
NAMES = {
    OURS: ("recbert serve", "SavedModel"),
    PEER: ("FastAPI, torch", "Hugging Face tokenizer, torch"),
}
DIRECT_WORKERS = {
    (OURS, "float32"): "labels_worker.py",
    (OURS, "bfloat16"): "labels_worker.py",
    (PEER, "float32"): "torch_classifier_worker.py",
    (PEER, "bfloat16"): "torch_bfloat16_worker.py",
}


@dataclasses.dataclass(eq=False)
class System:
    """A classifier in one precision, of this zoo or on torch, and what was measured.

    Attributes:
        kind: str. `OURS` or `PEER`.
        precision: str. Of its weights.
        folder: path. The SavedModel, or the folder of Hugging Face.
        python: str. Interpreter that it runs in.
        error: str. Why it was not measured, or an empty string.
        turns: list of `load.Turn`, of each round.
        together: list of float. Seconds of a request of several texts by one client
            over HTTP, of each round.
        direct: dict of the size of a batch to the seconds of a call without HTTP, of
            each round.
        versions: dict of distribution to version, and of `python`.
    """

    kind: str
    precision: str
    folder: pathlib.Path
    python: str = sys.executable
    error: str = ""
    turns: list = dataclasses.field(default_factory=list)
    together: list = dataclasses.field(default_factory=list)
    direct: dict = dataclasses.field(default_factory=dict)
    versions: dict = dataclasses.field(default_factory=dict)

    @property
    def server_name(self):
        return f"{NAMES[self.kind][0]}, {self.precision}"

    @property
    def direct_name(self):
        return f"{NAMES[self.kind][1]}, {self.precision}"

    @property
    def form(self):
        """What `export_worker` writes for it."""
        return self.precision if self.kind == OURS else "huggingface"

    @property
    def direct_worker(self):
        return DIRECT_WORKERS[self.kind, self.precision]

    @property
    def path(self):
        """Where the server is asked."""
        if self.kind == OURS:
            return f"/v1/models/{self.folder.name}:predict"
        return "/predict"

    def command(self, config):
        """The words that start its server, for a `ServingBenchmarkConfig`."""
        batching = [
            *("--max-batch-size", str(config.max_batch_size)),
            *("--batch-timeout-ms", str(config.batch_timeout_ms)),
            *("--num-batch-threads", str(config.num_batch_threads)),
            *("--max-waiting", str(MAX_WAITING)),
        ]
        if self.kind == OURS:
            words = ["-m", "keras_recbert.cli", "serve", str(self.folder), "--port=0"]
        else:
            script = str(WORKERS / "torch_server.py")
            words = [script, str(self.folder), "--precision", self.precision]
        return [self.python, *words, *batching]


def list_systems(precisions, folder):
    """Both servers in each precision, ours first.

    Args:
        precisions: list of str.
        folder: path. Where the folders of the models come.

    Returns:
        List of `System`.
    """
    return [
        System(
            kind,
            precision,
            # The name of the folder of a SavedModel is that of the model.
            folder / (f"model_{precision}" if kind == OURS else "huggingface"),
        )
        for kind in (OURS, PEER)
        for precision in precisions
    ]
