"""Asks a server over HTTP and notes how long its answers take.

A job, JSON in a line, comes on stdin:

    {"url": "http://127.0.0.1:8501/v1/models/m:predict", "bodies": ["{...}", ...],
     "clients": 32, "seconds": 10}

Clients have a connection each, and ask again once they are answered (a closed loop),
for so many seconds, or until they asked `requests`. With `rate` in place of `clients`
requests start at random times, so many a second on average, however long answers take
(an open loop, arrivals of a Poisson process); a time counts from when its request was
due. A connection that idled for `idle` seconds, 60 by default, is used no more. After
every `window` seconds, and at the end, a line of JSON goes to stdout: the seconds of
the answers of status 200 in the order in which they came, the reasons of the others,
and processor time. Standard library only.
"""

import asyncio
import collections
import itertools
import json
import random
import sys
import time
import urllib.parse

TIMEOUT = 60.0  # seconds until a request counts as failed
PAUSE = 0.05  # seconds, of a client whose request failed
MAX_CONNECTIONS = 512  # of an open loop
IDLE = 60.0  # seconds after which a connection is used no more, as load balancers do


class Connection(asyncio.Protocol):
    """A connection that is kept alive, with one request under way."""

    def __init__(self):
        self.is_open = False
        self._data = bytearray()
        self._end = None  # of an answer whose head is there
        self._status = None
        self._answer = None

    def connection_made(self, transport):
        self._transport = transport
        self.is_open = True

    def connection_lost(self, error):
        self.is_open = False
        self._fail(error or ConnectionResetError("the server closed the connection"))

    def data_received(self, data):
        self._data += data
        if self._end is None:
            head = self._data.find(b"\r\n\r\n")
            if head < 0:
                return
            try:
                self._status, length = read_head(bytes(self._data[:head]))
            except ValueError as error:
                self._fail(error)
                self.close()
                return
            self._end = head + 4 + length
        if len(self._data) >= self._end and not self._answer.done():
            self._data.clear()
            self._end = None
            self._answer.set_result(self._status)

    def ask(self, request):
        """A future of the status of the answer."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def close(self):
        self.is_open = False
        self._transport.abort()

    def _fail(self, error):
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


def read_head(head):
    """Status and length of the body that the head of an answer tells."""
    line, *fields = head.split(b"\r\n")
    for field in fields:
        name, _, value = field.partition(b":")
        if name.lower() == b"content-length":
            return int(line.split()[1]), int(value)
    raise ValueError("an answer without Content-Length")


class Client:
    """Asks over one connection, and opens another when that is lost or idled long."""

    def __init__(self, host, port, idle):
        self._address = host, port
        self._idle = idle
        self._connection = None
        self._used = None  # when it was last

    async def connect(self):
        if self._connection is not None and time.monotonic() > self._used + self._idle:
            self._connection.close()
        if self._connection is None or not self._connection.is_open:
            loop = asyncio.get_running_loop()
            _, self._connection = await loop.create_connection(
                Connection, *self._address
            )
        self._used = time.monotonic()

    async def ask(self, request):
        """None for an answer of status 200, else a word that says what came."""
        try:
            async with asyncio.timeout(TIMEOUT):
                await self.connect()
                status = await self._connection.ask(request)
        except (OSError, TimeoutError, ValueError) as error:
            if self._connection is not None:
                self._connection.close()
            return type(error).__name__
        return None if status == 200 else str(status)


class Log:
    """What was answered since the last line."""

    def __init__(self):
        self.start()

    def start(self):
        self.latencies = []
        self.failed = collections.Counter()
        self._begin = time.perf_counter(), time.process_time()

    def note(self, seconds, reason):
        if reason is None:
            self.latencies.append(round(seconds, 6))
        else:
            self.failed[reason] += 1

    def write(self):
        wall, processor = self._begin
        line = {
            "seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - processor,
            "latencies": self.latencies,
            "failed": self.failed,
        }
        print(json.dumps(line), flush=True)
        self.start()


async def closed_loop(job, requests, make_client, log):
    clients = [make_client() for _ in range(job["clients"])]
    await asyncio.gather(*(client.connect() for client in clients))
    numbers = itertools.count()
    log.start()
    end = time.perf_counter() + (job.get("seconds") or float("inf"))
    most = job.get("requests") or float("inf")

    async def ask(client):
        while time.perf_counter() < end and (number := next(numbers)) < most:
            begin = time.perf_counter()
            reason = await client.ask(requests[number % len(requests)])
            log.note(time.perf_counter() - begin, reason)
            if reason is not None:
                await asyncio.sleep(PAUSE)

    await asyncio.gather(*map(ask, clients))


async def open_loop(job, requests, make_client, log):
    idle = [make_client() for _ in range(8)]
    await asyncio.gather(*(client.connect() for client in idle))
    free = asyncio.Semaphore(MAX_CONNECTIONS)
    chance = random.Random(job.get("seed", 0))
    running = set()
    log.start()
    due = time.perf_counter()
    end = due + job["seconds"]

    async def ask(request, due):
        async with free:
            client = idle.pop() if idle else make_client()
            reason = await client.ask(request)
            log.note(time.perf_counter() - due, reason)
            idle.append(client)

    for request in itertools.cycle(requests):
        due += chance.expovariate(job["rate"])
        if due >= end:
            break
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        task = asyncio.create_task(ask(request, due))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    await asyncio.sleep(max(0.0, end - time.perf_counter()))


async def write_windows(log, window, seconds):
    """A line after each window but the last, which ends with the work."""
    begin = time.perf_counter()
    for number in range(1, round(seconds / window)):
        await asyncio.sleep(begin + number * window - time.perf_counter())
        log.write()


async def main(job):
    url = urllib.parse.urlsplit(job["url"])
    requests = [
        (
            f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        + body
        for body in (text.encode() for text in job["bodies"])
    ]
    log = Log()
    loop = closed_loop if "clients" in job else open_loop
    idle = job.get("idle", IDLE)
    work = loop(job, requests, lambda: Client(url.hostname, url.port, idle), log)
    if job.get("window"):
        await asyncio.gather(work, write_windows(log, job["window"], job["seconds"]))
    else:
        await work
    log.write()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.stdin.readline())))
