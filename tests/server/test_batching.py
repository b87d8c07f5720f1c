"""Requests share calls, and each gets its own rows."""

import asyncio
import contextlib
import threading
import time

import numpy as np
import pytest

from keras_recbert.server.batching import Batcher, QueueFull


class Doubling:
    """A signature that doubles numbers, keeps its calls, and refuses 13."""

    def __init__(self, joins=True):
        self.joins = joins
        self.calls = []
        self.threads = set()
        self.free = threading.Event()
        self.free.set()

    def __call__(self, columns):
        self.free.wait(10)
        self.threads.add(threading.get_ident())
        self.calls.append(columns["x"].shape)
        if 13 in columns["x"]:
            raise ArithmeticError("13 is refused")
        return {"twice": 2 * columns["x"], "row": columns["x"].sum(axis=-1)}


@contextlib.asynccontextmanager
async def batcher(max_batch_size=8, wait=0.05, max_waiting=100, num_threads=1):
    calls = []
    made = Batcher(
        max_batch_size,
        wait,
        max_waiting,
        num_threads,
        lambda *call: calls.append(call),
    )
    made.calls = calls
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        made.close()


def rows(*values, width=1):
    return {"x": np.repeat(np.array(values)[:, None], width, axis=1)}


def ask(made, signature, *values, width=1):
    columns = rows(*values, width=width)
    return made.ask("toy", signature, columns, len(values))


def check(answer, *values):
    np.testing.assert_array_equal(answer["twice"][:, 0], np.multiply(values, 2))
    assert len(answer["row"]) == len(values)


def test_requests_that_arrive_together_share_a_call_and_get_their_own_rows():
    async def main():
        signature = Doubling()
        async with batcher() as made:
            parts = [(1, 2), (3,), (4, 5, 6), (7, 8), (9, 10)]
            answers = await asyncio.gather(*(ask(made, signature, *p) for p in parts))
            for part, answer in zip(parts, answers, strict=True):
                check(answer, *part)
            assert signature.calls == [(8, 1), (2, 1)]
            assert made.calls == [("toy", 8), ("toy", 2)]
            assert len(signature.threads - {threading.get_ident()}) == 1
            assert made.waiting == 0

    asyncio.run(main())


def test_what_cannot_share_a_call_has_its_own():
    async def main():
        async with batcher(wait=0.02) as made:
            joins, alone = Doubling(), Doubling(joins=False)
            await asyncio.gather(
                ask(made, joins, 1),
                ask(made, joins, 2, width=3),
                ask(made, joins, 3),
                *(ask(made, alone, value) for value in (4, 5)),
            )
            assert joins.calls == [(2, 1), (1, 3)]
            assert alone.calls == [(1, 1), (1, 1)]
            await ask(made, alone, *range(20, 40))
            assert alone.calls[2:] == [(20, 1)]

    asyncio.run(main())


def test_a_large_request_is_asked_in_pieces():
    async def main():
        signature = Doubling()
        async with batcher() as made:
            values = range(20, 41)
            check(await ask(made, signature, *values), *values)
            assert signature.calls == [(8, 1), (8, 1), (5, 1)]

    asyncio.run(main())


def test_a_full_call_waits_for_nobody_and_one_alone_not_long():
    async def main():
        async with batcher(wait=5.0) as made:
            begin = time.monotonic()
            await ask(made, Doubling(), *range(8))
            assert time.monotonic() - begin < 2
        async with batcher(wait=0.05) as made:
            begin = time.monotonic()
            await ask(made, Doubling(), 1)
            assert 0.04 < time.monotonic() - begin < 2

    asyncio.run(main())


def test_a_request_that_fails_harms_no_neighbour():
    async def main():
        signature = Doubling()
        async with batcher() as made:
            parts = [(1,), (2, 13), (3,), (4, 5)]
            answers = await asyncio.gather(
                *(ask(made, signature, *part) for part in parts), return_exceptions=True
            )
            assert isinstance(answers.pop(1), ArithmeticError)
            parts.pop(1)
            for part, answer in zip(parts, answers, strict=True):
                check(answer, *part)

    asyncio.run(main())


def test_too_many_waiting_are_refused_and_late_ones_leave_the_queue():
    async def main():
        signature = Doubling()
        signature.free.clear()
        async with batcher(wait=0, max_waiting=10) as made:
            first = asyncio.create_task(ask(made, signature, 1))
            while made.waiting or not made.calls:
                await asyncio.sleep(0.001)
            late = asyncio.create_task(ask(made, signature, *range(6)))
            await asyncio.sleep(0)
            with pytest.raises(QueueFull):
                await ask(made, signature, *range(5))
            fits = asyncio.create_task(ask(made, signature, 2, 3, 4, 5))
            await asyncio.sleep(0)
            assert made.waiting == 10
            late.cancel()
            await asyncio.sleep(0.01)
            assert made.waiting == 4
            signature.free.set()
            check(await first, 1)
            check(await fits, 2, 3, 4, 5)
            assert signature.calls == [(1, 1), (4, 1)]

    asyncio.run(main())


def test_as_many_calls_run_at_a_time_as_there_are_threads():
    async def main():
        signature = Doubling()
        signature.free.clear()
        async with batcher(max_batch_size=2, wait=0, num_threads=3) as made:
            parts = [(n, n + 1) for n in range(20, 30, 2)]
            asked = [asyncio.create_task(ask(made, signature, *p)) for p in parts]
            while len(made.calls) < 3:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert made.calls == [("toy", 2)] * 3
            assert made.waiting == 4
            signature.free.set()
            for part, answer in zip(parts, await asyncio.gather(*asked), strict=True):
                check(answer, *part)
            assert len(signature.threads) > 1
            assert len(made.calls) == 5

    asyncio.run(main())
