"""Options of `recbert benchmark serving`, as data. Imports no TensorFlow."""

import dataclasses
import math
from typing import Annotated

from tyro.conf import Positional, arg

from keras_recbert.config.commands import CommandConfig
from keras_recbert.core.checks import check_integer
from keras_recbert.core.machine import num_cores

PRECISIONS = ("float32", "bfloat16")


@dataclasses.dataclass
class ServingBenchmarkConfig(CommandConfig):
    """A classifier that is served over HTTP, what it is asked, and how much.

    Args:
        model: Output folder of `recbert finetune` or `distill`, a preset or a
            model.keras, of a classifier of one text. A BERT is served by torch, too.
        texts: A file of what is asked: .txt with a text a line, .csv, .tsv, .jsonl or
            .parquet.
        text_column: Column of the texts; by default the only one, or one with a usual
            name, such as text or sentence.
        precision: Some of float32 and bfloat16: that of the weights, of both servers.
        clients: Connections that ask at the same time, one text a request.
        seconds: Length of a turn of each server.
        rounds: Turns of each.
        max_batch_size: Texts of a call of the model, of both servers.
        batch_timeout_ms: Milliseconds that a text waits for others to share its call.
        num_batch_threads: Calls that run at a time, of both servers, each on a share
            of the cores; by default one a core.
        num_texts: Texts of the file that are asked, from all over it.
        soak_minutes: How long the server of this zoo gets 0.8 times the requests a
            second that it answered, as random arrivals; its memory is noted meanwhile.
        output_dir: Folder for serving.json, serving.md and serving.png, which are
            replaced.
        install_peers: Install FastAPI and torch, where they are nowhere, in an
            environment of their own in the output folder.
        torch_python: Interpreter that has fastapi, uvicorn, torch and transformers.
        timeout: Seconds a process may take to load a model, or for one round.
    """

    model: Annotated[Positional[str], arg(metavar="MODEL")]
    texts: str
    text_column: str | None = None
    precision: list[str] = dataclasses.field(default_factory=lambda: list(PRECISIONS))
    clients: int = 32
    seconds: float = 10.0
    rounds: int = 5
    max_batch_size: int = 64
    batch_timeout_ms: float = 2.0
    num_batch_threads: int = dataclasses.field(default_factory=num_cores)
    num_texts: int = 1000
    soak_minutes: float = 0.0
    output_dir: str = "runs/benchmark-serving"
    install_peers: bool = False
    torch_python: str | None = None
    timeout: float = 900.0

    def __post_init__(self):
        super().__post_init__()
        # As many may wait in a server.
        check_integer(most=1024, clients=self.clients)
        sizes = ("rounds", "max_batch_size", "num_batch_threads", "num_texts")
        check_integer(**{name: getattr(self, name) for name in sizes})
        for name in ("seconds", "timeout"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(
                    f"`{name}` must be a number above 0. Received: {name}={value}."
                )
        for name, most in (("soak_minutes", math.inf), ("batch_timeout_ms", 10_001)):
            value = getattr(self, name)
            if not 0 <= value < most:
                raise ValueError(
                    f"`{name}` must be a number of at least 0"
                    + (" and at most 10000" if most < math.inf else "")
                    + f". Received: {name}={value}."
                )
        if not self.precision:
            raise ValueError(
                f"`precision` is empty. Expected some of {', '.join(PRECISIONS)}."
            )
        for name in self.precision:
            if name not in PRECISIONS or self.precision.count(name) > 1:
                raise ValueError(
                    f"`precision` must be some of {', '.join(PRECISIONS)}, each once. "
                    f"Received: {' '.join(self.precision)}."
                )
