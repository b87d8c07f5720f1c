"""Requests that arrive together, answered by one call of a signature."""

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses

import numpy as np


class QueueFull(Exception):
    """Raised for a request that would have more texts wait than may."""


@dataclasses.dataclass(eq=False)
class Job:
    """Rows of one request that are asked in one call.

    Args:
        key: what jobs of a call have in common.
        model: str. Name of the model.
        signature: `Signature`.
        columns: dict of arrays, a row an example.
        rows: int.
        arrived: float, seconds of the event loop.
        answer: future of a dict of arrays.
    """

    key: object
    model: str
    signature: object
    columns: dict
    rows: int
    arrived: float
    answer: asyncio.Future


class Batcher:
    """Joins what waits, first come first served, and asks for it in a few threads.

    All of its state belongs to the event loop; the threads see arrays alone.

    Args:
        max_batch_size: int. Texts of a call. A request of more is asked in pieces,
            where its signature joins.
        wait: float. Seconds that the first of a call waits for others.
        max_waiting: int. Texts of all models that may wait.
        num_threads: int. Calls that run at a time.
        on_call: function of the name of a model and the number of texts of a call.
    """

    def __init__(self, max_batch_size, wait, max_waiting, num_threads, on_call):
        self.waiting = 0
        self._max_batch_size = max_batch_size
        self._wait = wait
        self._max_waiting = max_waiting
        self._on_call = on_call
        self._jobs = collections.deque()
        self._changed = asyncio.Event()
        self._free = asyncio.Semaphore(num_threads)
        self._threads = concurrent.futures.ThreadPoolExecutor(num_threads, "model")

    async def ask(self, model, signature, columns, rows):
        """Answers a request.

        Args:
            model: str. Name of the model, for `on_call`.
            signature: `Signature`.
            columns: dict of arrays.
            rows: int. Examples in them.

        Returns:
            dict of arrays.

        Raises:
            QueueFull: if too many texts wait; nothing was asked.
            tf.errors.OpError: of the signature, for these rows.
        """
        if self.waiting + rows > self._max_waiting:
            raise QueueFull
        jobs = [
            self._job(model, signature, *piece)
            for piece in self._pieces(signature, columns, rows)
        ]
        self._jobs.extend(jobs)
        self.waiting += rows
        self._changed.set()
        try:
            answers = await asyncio.gather(*(job.answer for job in jobs))
        finally:
            for job in jobs:  # of a request that failed, or ran out of time
                job.answer.cancel()
                if job in self._jobs:
                    self._remove(job)
        if len(answers) == 1:
            return answers[0]
        return {
            name: np.concatenate([one[name] for one in answers]) for name in answers[0]
        }

    def _pieces(self, signature, columns, rows):
        if not signature.joins or rows <= self._max_batch_size:
            yield columns, rows
            return
        for begin in range(0, rows, self._max_batch_size):
            end = min(begin + self._max_batch_size, rows)
            yield {name: x[begin:end] for name, x in columns.items()}, end - begin

    def _job(self, model, signature, columns, rows):
        widths = tuple((name, x.shape[1:]) for name, x in sorted(columns.items()))
        key = (signature, widths) if signature.joins else object()
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        return Job(key, model, signature, columns, rows, loop.time(), future)

    def _remove(self, job):
        self._jobs.remove(job)
        self.waiting -= job.rows

    async def run(self):
        """Answers jobs until it is cancelled."""
        async with asyncio.TaskGroup() as calls:
            while True:
                # What waits for a thread is joined by what comes meanwhile.
                await self._free.acquire()
                call = calls.create_task(self._answer(await self._next()))
                call.add_done_callback(lambda _: self._free.release())

    async def _next(self):
        """Takes the jobs of the next call, once there are any."""
        while True:
            while not self._jobs:
                self._changed.clear()
                await self._changed.wait()
            await self._fill(self._jobs[0])
            if batch := self._take():
                self._on_call(batch[0].model, sum(job.rows for job in batch))
                return batch

    def close(self):
        """Waits for the calls that run."""
        self._threads.shutdown(wait=True)

    async def _fill(self, first):
        """Returns when a call is full, or the first of it has waited."""
        if not first.signature.joins:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(first.arrived + self._wait):
                while self._rows_like(first) < self._max_batch_size:
                    self._changed.clear()
                    await self._changed.wait()

    def _rows_like(self, first):
        return sum(job.rows for job in self._jobs if job.key == first.key)

    def _take(self):
        """The first job, and those like it that fit into its call, in their order."""
        batch, rows = [], 0
        for job in list(self._jobs):
            if batch and job.key != batch[0].key:
                continue
            if batch and rows + job.rows > self._max_batch_size:
                break
            batch.append(job)
            rows += job.rows
        for job in batch:
            self._remove(job)
        return batch

    async def _answer(self, batch):
        """Answers jobs by one call; where it fails, by halves.

        So a request that a signature refuses costs those beside it time alone.
        """
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(self._threads, _call, batch)
        except Exception as error:
            if len(batch) == 1:
                if not batch[0].answer.done():
                    batch[0].answer.set_exception(error)
                return
            half = len(batch) // 2
            await self._answer(batch[:half])
            await self._answer(batch[half:])
            return
        for job, answer in zip(batch, answers, strict=True):
            if not job.answer.done():
                job.answer.set_result(answer)


def _call(batch):
    """Asks a signature for all rows of a batch; a dict of arrays for each job."""
    signature = batch[0].signature
    if len(batch) == 1:
        return [signature(batch[0].columns)]
    columns = {
        name: np.concatenate([job.columns[name] for job in batch])
        for name in batch[0].columns
    }
    outputs = signature(columns)
    ends = np.cumsum([job.rows for job in batch])
    for name, values in outputs.items():
        if len(values) != ends[-1]:
            raise RuntimeError(
                f"The output {name!r} has {len(values)} rows for {ends[-1]} examples."
            )
    return [
        {name: values[end - job.rows : end] for name, values in outputs.items()}
        for job, end in zip(batch, ends, strict=True)
    ]
