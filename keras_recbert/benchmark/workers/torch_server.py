"""A text classifier on torch behind FastAPI: what `recbert serve` is compared with.

Requests share a call of the model, of which some run at a time, as they do in `recbert
serve`: up to so many texts, and the first of a call waits so long for others. Knows
nothing of this package.
"""

import argparse
import asyncio
import collections
import concurrent.futures
import contextlib
import pathlib
import socket

import fastapi
import pydantic
import uvicorn
from torch_text_model import open_text_model


class Question(pydantic.BaseModel):
    instances: list[str]


class Prediction(pydantic.BaseModel):
    label: str
    scores: list[float]
    label_names: list[str]


class Answer(pydantic.BaseModel):
    predictions: list[Prediction]


class Batches:
    """Joins the texts of requests that arrive together.

    Args:
        answer: function of a list of texts to a list of rows.
        max_batch_size: int. Texts of a call.
        wait: float. Seconds that the first request of a call waits for others.
        max_waiting: int. Texts that may wait.
        num_threads: int. Calls at a time.
    """

    def __init__(self, answer, max_batch_size, wait, max_waiting, num_threads):
        self.waiting = 0
        self._answer = answer
        self._max_batch_size = max_batch_size
        self._wait = wait
        self._max_waiting = max_waiting
        self._requests = collections.deque()
        self._arrived = asyncio.Event()
        self._free = asyncio.Semaphore(num_threads)
        self._threads = concurrent.futures.ThreadPoolExecutor(num_threads, "model")

    async def ask(self, texts):
        """The rows of a request; HTTP errors if it has too many texts, or all do."""
        if not 0 < len(texts) <= self._max_batch_size:
            raise fastapi.HTTPException(413, f"{len(texts)} texts in a request.")
        if self.waiting + len(texts) > self._max_waiting:
            raise fastapi.HTTPException(429, f"{self.waiting} texts wait.")
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._requests.append((texts, loop.time(), future))
        self.waiting += len(texts)
        self._arrived.set()
        return await future

    async def run(self):
        """Answers until it is cancelled."""
        async with asyncio.TaskGroup() as calls:
            while True:
                await self._free.acquire()
                while not self._requests:
                    await self._next()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(self._requests[0][1] + self._wait):
                        while self.waiting < self._max_batch_size:
                            await self._next()
                call = calls.create_task(self._call(self._take()))
                call.add_done_callback(lambda _: self._free.release())

    async def _call(self, batch):
        loop = asyncio.get_running_loop()
        texts = [text for own, _, _ in batch for text in own]
        try:
            rows = await loop.run_in_executor(self._threads, self._answer, texts)
        except Exception as error:
            for _, _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        rows = iter(rows)
        for own, _, future in batch:
            part = [next(rows) for _ in own]
            if not future.done():  # the client may be gone
                future.set_result(part)

    async def _next(self):
        self._arrived.clear()
        await self._arrived.wait()

    def _take(self):
        batch, size = [], 0
        while (
            self._requests and size + len(self._requests[0][0]) <= self._max_batch_size
        ):
            batch.append(self._requests.popleft())
            size += len(batch[-1][0])
        self.waiting -= size
        return batch


def make_app(*batching):
    """The application: `POST /predict` with `{"instances": ["a text"]}`.

    Args:
        *batching: as for `Batches`.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app):
        app.state.batches = Batches(*batching)
        task = asyncio.create_task(app.state.batches.run())
        yield
        task.cancel()

    app = fastapi.FastAPI(lifespan=lifespan)

    @app.post("/predict")
    async def predict(question: Question) -> Answer:
        rows = await app.state.batches.ask(question.instances)
        return Answer.model_construct(predictions=rows)

    return app


def open_answer(folder, precision):
    """A function of texts to rows, after its first call, which takes longest."""
    import torch

    logits_of, names, _ = open_text_model(folder, precision)

    def answer(texts):
        scores = torch.softmax(logits_of(texts), dim=-1).tolist()
        return [
            Prediction.model_construct(
                label=names[max(range(len(row)), key=row.__getitem__)],
                scores=row,
                label_names=names,
            )
            for row in scores
        ]

    answer(["a"])
    return answer


class Server(uvicorn.Server):
    """uvicorn, which says its address once it listens."""

    async def startup(self, sockets=None):
        await super().startup(sockets)
        port = sockets[0].getsockname()[1]
        print(f"Serving a classifier at http://127.0.0.1:{port}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), required=True)
    parser.add_argument("--max-batch-size", type=int, required=True)
    parser.add_argument("--batch-timeout-ms", type=float, required=True)
    parser.add_argument("--num-batch-threads", type=int, required=True)
    parser.add_argument("--max-waiting", type=int, required=True)
    options = parser.parse_args()
    app = make_app(
        open_answer(options.folder, options.precision),
        options.max_batch_size,
        options.batch_timeout_ms / 1000,
        options.max_waiting,
        options.num_batch_threads,
    )
    # With the protocol named, asyncio sends at once (TCP_NODELAY).
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(("127.0.0.1", 0))
    # The options of `recbert serve`; the loop and the parser of HTTP, too, are those
    # that uvicorn finds: uvloop and httptools where they are installed.
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
    )
    Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main()
