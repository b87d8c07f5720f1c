"""The load generator and the peer's batching, against small servers here."""

import asyncio
import contextlib
import http.client
import json
import socket
import sys
import threading
import time
import urllib.parse

import fastapi
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from keras_recbert.benchmark.load import (
    Turn,
    all_failed,
    mean_of_passes,
    measure_turn,
    percentiles,
    run_load,
)
from keras_recbert.benchmark.server_answers import ask_all, check_agreement
from keras_recbert.benchmark.server_process import ServerProcess
from keras_recbert.benchmark.worker_process import WORKERS, WorkerError

SECONDS = 0.05  # that the small server takes for an answer


@contextlib.contextmanager
def serving(app):
    """The address of an application that a thread serves."""
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


@pytest.fixture(scope="module")
def asked():
    """What the small server was asked, in the order of arrival."""
    return []


@pytest.fixture(scope="module")
def url(asked):
    """A server that answers texts by their lengths, and `bad` by status 503."""

    async def answer(request):
        texts = (await request.json())["instances"]
        asked.append((request.client.port, texts))
        await asyncio.sleep(SECONDS)
        status = 503 if "bad" in texts else 200
        rows = [{"scores": [float(len(text))], "label": text} for text in texts]
        return JSONResponse({"predictions": rows}, status)

    app = Starlette(routes=[Route("/predict", answer, methods=["POST"])])
    with serving(app) as url:
        yield f"{url}/predict"


def bodies(*texts):
    return [json.dumps({"instances": [text]}) for text in texts]


# The load generator -----------------------------------------------------------------


def test_clients_ask_in_turn_and_keep_their_connections(url, asked):
    asked.clear()
    job = {"url": url, "bodies": bodies("a", "bad", "c"), "clients": 2, "requests": 6}
    (window,) = run_load(job, 30)
    assert sorted(texts[0] for _, texts in asked) == ["a", "a", "bad", "bad", "c", "c"]
    assert len({port for port, _ in asked}) == 2
    assert len(window["latencies"]) == 4 and window["failed"] == {"503": 2}
    assert min(window["latencies"]) >= SECONDS
    assert window["seconds"] >= 3 * SECONDS
    assert 0 < window["cpu_seconds"] < window["seconds"]


def test_a_connection_that_idled_is_used_no_more(url, asked):
    asked.clear()
    job = {"url": url, "bodies": bodies("a"), "clients": 1, "requests": 3, "idle": 0.0}
    (window,) = run_load(job, 30)
    assert len(window["latencies"]) == 3
    assert len({port for port, _ in asked}) == 3


def test_random_arrivals_wait_for_no_answer(url):
    job = {"url": url, "bodies": bodies("a"), "rate": 100, "seconds": 1.0}
    told = []
    windows = run_load({**job, "window": 0.5}, 30, told.append)
    assert windows == told and len(windows) == 2
    answered = [len(window["latencies"]) for window in windows]
    # One client of a closed loop would get 20; the spread of 100 is 10.
    assert 60 < sum(answered) < 140 and min(answered) > 10
    assert all(not window["failed"] for window in windows)


def test_a_server_that_is_gone_is_told(url):
    port = urllib.parse.urlsplit(url).port
    with socket.create_server(("127.0.0.1", 0)) as closed:
        gone = f"http://127.0.0.1:{closed.getsockname()[1]}/predict"
    job = {"bodies": bodies("a"), "clients": 1, "seconds": 0.1}
    with pytest.raises(WorkerError, match="(?s)status 1.*ConnectionRefusedError"):
        run_load({**job, "url": gone}, 30)
    with pytest.raises(WorkerError, match="does not answer: ConnectionRefusedError"):
        ask_all("gone", gone, ["a"], 1)
    refusing = f"http://127.0.0.1:{port}/nothing"
    (window,) = run_load({**job, "url": refusing}, 30)
    assert window["latencies"] == [] and set(window["failed"]) == {"404"}
    with pytest.raises(WorkerError, match="server of small answers 404 to 'a'"):
        ask_all("small", refusing, ["a"], 1)


def test_a_load_that_takes_too_long_is_ended(url):
    job = {"url": url, "bodies": bodies("a"), "clients": 1, "seconds": 60}
    begin = time.monotonic()
    with pytest.raises(WorkerError, match="ended with status -9"):
        run_load(job, 0.5)
    assert time.monotonic() - begin < 10


def test_answers_stand_beside_their_texts(url):
    texts = ["x" * number for number in range(7)]
    rows = ask_all("small", url, texts, 3)
    assert [row["label"] for row in rows] == texts


# Figures ----------------------------------------------------------------------------


class Small:
    """A server in the thread of another, for `measure_turn`."""

    label = "small"

    def cpu_seconds(self):
        return time.process_time()

    def check(self):
        pass


def test_a_turn_has_rate_latency_and_processor_time(url):
    job = {"url": url, "bodies": bodies("a", "bad"), "clients": 4, "seconds": 0.5}
    turn = measure_turn(Small(), job, 30)
    assert turn.requests > 5 and turn.failed["503"] > 5
    assert turn.rate == pytest.approx(turn.requests / 0.5, rel=0.4)
    assert SECONDS <= turn.latency[50] / 1000 <= turn.latency[99] / 1000 < 1
    assert 0 < turn.load_cores < 1.5 and turn.server_cores > 0
    assert turn.others is None or 0 <= turn.others <= 1
    with pytest.raises(WorkerError, match="server of small answered no request"):
        measure_turn(Small(), {**job, "bodies": bodies("bad")}, 30)


def test_percentiles_are_milliseconds():
    found = percentiles([number / 1000 for number in range(101)])
    assert found == pytest.approx({50: 50.0, 95: 95.0, 99: 99.0})
    assert percentiles([]) == {}


def test_failures_of_turns_are_added_up():
    turns = [Turn(1, {}, 1, failed, None, 0.1, None) for failed in ({"503": 2}, {})]
    assert all_failed([*turns, *turns]) == {"503": 4}


def test_time_of_a_request_is_the_median_of_walks():
    window = {"latencies": [1, 3, 2, 4, 10, 30], "failed": {}}
    assert mean_of_passes(window, 2) == 3
    with pytest.raises(WorkerError, match="failed: {'429': 1}"):
        mean_of_passes({"latencies": [1], "failed": {"429": 1}}, 1)


def rows(*scores, label="good"):
    return [{"label": label, "scores": [one, 1 - one]} for one in scores]


def test_servers_that_answer_differently_are_refused():
    def compare(precision, ours, theirs):
        return check_agreement(["a"], precision, ("Ours", ours), ("Torch", theirs))

    found = compare("float32", rows(0.7), rows(0.7005))
    assert found["largest_difference"] == pytest.approx(5e-4)
    assert found["labels_that_differ"] == 0
    with pytest.raises(RuntimeError, match="Ours: good.*Torch: good.*Text: 'a'"):
        compare("float32", rows(0.7), rows(0.702))
    with pytest.raises(RuntimeError, match="answer differently"):
        compare("float32", rows(0.5), rows(0.5, label="bad"))
    close = compare("bfloat16", rows(0.51), rows(0.49, label="bad"))
    assert close["labels_that_differ"] == 1
    with pytest.raises(RuntimeError, match="differ by 0.05"):
        compare("bfloat16", rows(0.7), rows(0.76))


# Servers as processes ---------------------------------------------------------------


def server_of(code, timeout=30):
    command = [sys.executable, "-c", code]
    return ServerProcess("a film", command, True, 1, timeout)


def test_a_server_says_its_address_and_ends():
    code = (
        "import time; print('starting', flush=True)\n"
        "print('Serving films, version 1, at http://127.0.0.1:1', flush=True)\n"
        "time.sleep(60)"
    )
    with server_of(code) as server:
        server.wait()
        assert server.url == "http://127.0.0.1:1"
        assert server.cpu_seconds() >= 0 and server.rss_bytes() > 1e6
        server.check()
    for code, seconds, message in (
        (
            "print('out of memory'); raise SystemExit(3)",
            30,
            "(?s)a film ended with status 3.*out of memory",
        ),
        ("import time; time.sleep(60)", 0.2, "does not listen after 0.2 seconds"),
    ):
        with (
            server_of(code, seconds) as server,
            pytest.raises(WorkerError, match=message),
        ):
            server.wait()


# The peer ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch_server():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(WORKERS)
        import torch_server

        yield torch_server


def test_requests_to_the_peer_share_a_call_and_get_their_rows(torch_server):
    calls = []

    def answer(texts):
        calls.append(list(texts))
        if "bad" in texts:
            raise ValueError("bad")
        return [text.upper() for text in texts]

    async def ask_together(*requests):
        batches = torch_server.Batches(answer, 4, 0.05, 6, num_threads=1)
        task = asyncio.create_task(batches.run())
        asked = (batches.ask(texts) for texts in requests)
        try:
            return await asyncio.gather(*asked, return_exceptions=True), batches
        finally:
            task.cancel()

    found, batches = asyncio.run(ask_together(["a"], ["b", "c"], ["d", "e"]))
    assert found == [["A"], ["B", "C"], ["D", "E"]]
    assert calls == [["a", "b", "c"], ["d", "e"]] and batches.waiting == 0
    found, _ = asyncio.run(ask_together(["a"], ["bad"]))
    assert [str(one) for one in found] == ["bad", "bad"]
    found, _ = asyncio.run(ask_together(["a"] * 5, ["b"] * 4, ["c"] * 3, []))
    codes = [getattr(one, "status_code", None) for one in found]
    assert codes == [413, None, 429, 413]
    assert all(isinstance(found[at], fastapi.HTTPException) for at in (0, 2, 3))


def test_the_peer_answers_in_the_form_of_our_server(torch_server):
    def answer(texts):
        row = {"label": "good", "scores": [0.25, 0.75], "label_names": ["bad", "good"]}
        return [torch_server.Prediction.model_construct(**row) for _ in texts]

    app = torch_server.make_app(answer, 4, 0.001, 8, 2)
    with serving(app) as url:
        rows = ask_all("peer", f"{url}/predict", ["a", "b"], 2)
        connection = http.client.HTTPConnection(url.removeprefix("http://"))
        with contextlib.closing(connection):
            connection.request("POST", "/predict", b'{"instances": "a"}')
            assert connection.getresponse().status == 422
    assert (
        rows
        == [{"label": "good", "scores": [0.25, 0.75], "label_names": ["bad", "good"]}]
        * 2
    )
