"""The server answers over HTTP what its SavedModel answers, and refuses the rest."""

import concurrent.futures
import contextlib
import http.client
import json
import re
import socket
import threading
import time

import httpx
import pytest
from served import TEXTS, assert_same

from keras_recbert.config import ServeConfig
from keras_recbert.server import running, serve
from keras_recbert.server.models import Signature

PREDICT = "/v1/models/film_model:predict"


@pytest.fixture(scope="module")
def client(film_model):
    """Asks a server with the options of a user who gives none, at a free port."""
    with running(film_model) as url, httpx.Client(base_url=url) as one:
        yield one


def error(response, status):
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error"}
    return response.json()["error"]


def metric(client, line):
    page = client.get("/metrics").text
    return float(re.search(rf"^{re.escape(line)} (\S+)$", page, re.MULTILINE)[1])


def test_answers_are_those_of_the_savedmodel(client, direct):
    expected = direct(TEXTS)
    assert len({str(row["scores"]) for row in expected}) > 6
    for path in (PREDICT, "/v1/models/film_model/versions/1:predict"):
        answer = client.post(path, json={"instances": TEXTS}).json()
        assert set(answer) == {"predictions"}
        assert_same(answer["predictions"], expected)
    answer = client.post(PREDICT, json={"inputs": {"text": TEXTS}}).json()["outputs"]
    assert set(answer) == {"label", "scores", "label_names"}
    rows = zip(*answer.values(), strict=True)
    assert_same([dict(zip(answer, row, strict=True)) for row in rows], expected)
    odd = ["", "a\0film", "\U0001f600", "film " * 2000]
    answer = client.post(PREDICT, json={"instances": odd}).json()
    assert_same(answer["predictions"], direct(odd))


def test_clients_at_once_share_calls_and_get_their_own_answers(client, direct):
    expected = direct(TEXTS)
    before = metric(client, 'recbert_batch_texts_count{model="film_model"}')

    def ask(index):
        part = slice(index % 9, index % 9 + 1 + index % 3)
        answer = client.post(PREDICT, json={"instances": TEXTS[part]}).json()
        assert_same(answer["predictions"], expected[part])
        return len(TEXTS[part])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(ask, range(80)))
    calls = metric(client, 'recbert_batch_texts_count{model="film_model"}') - before
    assert 0 < calls < len(counts)
    assert metric(client, 'recbert_texts_total{model="film_model"}') >= sum(counts)
    assert metric(client, 'recbert_model_version{model="film_model"}') == 1


def test_status_metadata_and_health(client):
    known = {"error_code": "OK", "error_message": ""}
    state = {"version": "1", "state": "AVAILABLE", "status": known}
    for path in ("", "/versions/1"):
        status = client.get(f"/v1/models/film_model{path}").json()
        assert status == {"model_version_status": [state]}
        described = client.get(f"/v1/models/film_model{path}/metadata").json()
        assert described["model_spec"] == {
            "name": "film_model",
            "signature_name": "",
            "version": "1",
        }
        signatures = described["metadata"]["signature_def"]["signature_def"]
        assert {"serving_default", "ids"} <= set(signatures)
        assert signatures["serving_default"]["inputs"]["text"]["dtype"] == "DT_STRING"
        assert signatures["serving_default"]["outputs"]["scores"]["tensor_shape"] == {
            "dim": [{"size": "-1", "name": ""}, {"size": "2", "name": ""}],
            "unknown_rank": False,
        }
    assert client.get("/healthz").json() == {"status": "ok"}


def test_hostile_requests_are_refused_and_harm_no_neighbour(client, direct):
    """While they are asked, a neighbour goes on, in the same calls."""
    packed = {"segment_ids": [0, 0, 0], "padding_mask": [1, 1, 1]}
    good = {**packed, "token_ids": [2, 5, 3]}
    stop, answers = threading.Event(), []

    def neighbour():
        while not stop.is_set():
            body = {"signature_name": "ids", "instances": [good]}
            answers.append(client.post(PREDICT, json=body))

    thread = threading.Thread(target=neighbour)
    thread.start()
    try:
        for ids, message in (
            ([2, 999, 3], "The model refuses this: assertion failed: [`token_ids`"),
            ([2, -1, 3], "from 0 to 25, the ids of the vocabulary"),
            ([2, 5], "uneven"),
        ):
            bad = {**packed, "token_ids": ids}
            body = {"signature_name": "ids", "instances": [bad, good]}
            assert message in error(client.post(PREDICT, json=body), 400)
        long = {name: [1] * 5000 for name in good}
        body = {"signature_name": "ids", "instances": [long]}
        assert "refuses this" in error(client.post(PREDICT, json=body), 400)
        for content in (b"", b"{", b"\xff", b"[" * 100_000, b'{"instances": [1]}'):
            error(client.post(PREDICT, content=content), 400)
        body = {"instances": ["a"] * 100_000}
        assert "At most 256" in error(client.post(PREDICT, json=body), 413)
        body = b" " * 8_000_001
        assert "longer than 8000000" in error(client.post(PREDICT, content=body), 413)
        parts = (b" " * 1_000_000 for _ in range(9))  # chunked: no length is told
        assert "longer than" in error(client.post(PREDICT, content=parts), 413)
    finally:
        stop.set()
        thread.join()
    assert len({one.text for one in answers}) == 1 and answers[0].status_code == 200
    odd = client.post(PREDICT, content=b'{"\\ud83d": ' + b'"a"}')
    assert "Unknown key" in error(odd, 400)


@pytest.mark.parametrize("sent", [1, 30, None])
@pytest.mark.parametrize("is_read", [True, False])
def test_sockets_that_close_halfway_harm_nobody(client, direct, caplog, sent, is_read):
    url, body = client.base_url, json.dumps({"instances": TEXTS}).encode()
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((url.host, url.port), timeout=20) as halfway:
        halfway.sendall(head.encode() + body[:sent])
        halfway.shutdown(socket.SHUT_WR)
        answer = client.post(PREDICT, content=body)
        while is_read and halfway.recv(4096):
            pass
    assert_same(answer.json()["predictions"], direct(TEXTS))
    assert client.get("/healthz").json() == {"status": "ok"}
    assert not any(record.exc_info for record in caplog.records)


def test_what_is_not_served_is_told(client):
    body = {"instances": ["a"]}
    for path, status, message in (
        ("/v1/models/film_modal:predict", 404, "film_model"),
        ("/v1/models/film_model/versions/2:predict", 404, "Version 2.* Valid: 1"),
        ("/v1/models/film_model:classify", 405, "Valid: GET /v1/models,"),
        ("/v2", 404, "Valid: GET /v1/models, GET /v1/models/NAME"),
        ("/", 404, "Valid: GET"),  # the page is for `recbert play`
    ):
        found = error(client.post(path, json=body), status)
        assert re.search(message, found), found
    assert "Not Allowed" in error(client.get(PREDICT), 405)
    error(client.get("/v1/models/other/metadata"), 404)
    assert metric(client, 'recbert_requests_total{model="",status="404"}') >= 1


def test_limits_of_time_and_queue_and_a_token(
    film_model, tmp_path, monkeypatch, direct
):
    (tmp_path / "token").write_text("open-sesame\n")
    config = ServeConfig(
        [str(film_model)],
        port=0,
        token_file=str(tmp_path / "token"),
        num_batch_threads=1,
        max_waiting=4,
        max_texts=4,
        timeout_s=1.0,
    )
    free, asked = threading.Event(), threading.Event()
    call = Signature.__call__

    def slow(self, columns):
        asked.set()
        free.wait(20)
        return call(self, columns)

    with running(config) as url, httpx.Client(base_url=url) as client:
        monkeypatch.setattr(Signature, "__call__", slow)
        body = {"instances": TEXTS[:3]}
        for shown in ({}, {"Authorization": "Bearer open"}, {"Authorization": b"\xff"}):
            refused = client.post(PREDICT, json=body, headers=shown)
            assert "Bearer TOKEN" in error(refused, 401)
        assert client.get("/healthz").status_code == 200
        client.headers["Authorization"] = "Bearer open-sesame"
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            first = pool.submit(client.post, PREDICT, json=body)
            assert asked.wait(10)
            second = pool.submit(client.post, PREDICT, json=body)
            until = time.monotonic() + 10
            while metric(client, "recbert_waiting_texts") < 3:
                assert time.monotonic() < until
            full = client.post(PREDICT, json=body)
            assert "3 texts wait, 4 may" in error(full, 429)
            assert full.headers["Retry-After"] == "1"
            for late in (first.result(), second.result()):
                assert "no answer in 1.0 s" in error(late, 504)
            assert metric(client, "recbert_waiting_texts") == 0
            free.set()
        answer = client.post(PREDICT, json=body)
        assert_same(answer.json()["predictions"], direct(TEXTS[:3]))
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as slow_client:
            head = f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n"
            head += "Authorization: Bearer open-sesame\r\n\r\n"
            slow_client.sendall(head.encode())
            assert slow_client.recv(12) == b"HTTP/1.1 408"


@pytest.mark.slow
def test_a_connection_may_idle(client):
    url = client.base_url
    with contextlib.closing(http.client.HTTPConnection(url.host, url.port)) as one:
        for seconds in (6, 0):  # uvicorn by itself would close it after 5
            one.request("POST", PREDICT, '{"instances": ["a film"]}')
            kept = one.sock
            with one.getresponse() as answer:
                assert answer.status == 200 and answer.read()
            assert one.sock is kept
            time.sleep(seconds)


def test_wrong_options_are_refused_before_a_model_is_loaded(tmp_path, film_model):
    for options, message in (
        ({"host": "0.0.0.0"}, "need a token: --token-file FILE"),
        ({"host": "example.org"}, "need a token: --token-file FILE"),
        ({"port": 70_000}, "`port` must be a whole number from 0 to 65535"),
        ({"max_batch_size": 0}, "`max_batch_size`"),
        ({"max_texts": 2000}, "max_texts=2000, max_waiting=1024"),
        ({"timeout_s": 0}, "`timeout_s` must be a number above 0"),
        ({"batch_timeout_ms": -1}, "`batch_timeout_ms`"),
    ):
        with pytest.raises(ValueError, match=message):
            ServeConfig(["nothing"], **options)
    with pytest.raises(ValueError, match="nothing to serve: name the folder"):
        ServeConfig([])
    (tmp_path / "token").write_text("\n")
    config = ServeConfig(["nothing"], host="::1", token_file=str(tmp_path / "token"))
    with pytest.raises(ValueError, match=r"token must hold a token.*openssl|cannot be"):
        serve(config)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"127.0.0.1:{port} cannot be served"):
            serve(ServeConfig([str(film_model)], port=port))
