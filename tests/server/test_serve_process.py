"""`recbert serve` as a process under load: new and damaged versions, and its end."""

import concurrent.futures
import contextlib
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest
from harness import randomize
from served import TEXTS, asking, assert_same
from toy_texts import tiny_model

pytestmark = pytest.mark.slow
PREDICT = "/v1/models/films:predict"


@pytest.fixture(scope="module")
def newer_model(tmp_path_factory):
    """A SavedModel that answers otherwise than `film_model`."""
    model = tiny_model(label_names=["poor", "great"], seed=3)
    randomize(model, seed=3)
    path = tmp_path_factory.mktemp("newer") / "newer_model"
    model.export_savedmodel(path)
    return path


class Clients:
    """Threads that ask the server again and again until it is gone.

    Args:
        url: str.
        expected: dict of version to the rows that it answers to `TEXTS`.
    """

    def __init__(self, url, expected, number=6):
        self._url, self._expected = url, expected
        self.answered = 0
        self._pool = concurrent.futures.ThreadPoolExecutor(number)
        self._ended = [self._pool.submit(self._ask, index) for index in range(number)]
        self.stopping = threading.Event()

    def _ask(self, index):
        versions, count = [], 0
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while True:
                begin = (index + count) % 9
                part = slice(begin, begin + 1 + count % 3)
                try:
                    answer = client.post(PREDICT, json={"instances": TEXTS[part]})
                except httpx.TransportError:  # not accepted any more
                    assert self.stopping.is_set()
                    return versions
                assert answer.status_code == 200, answer.text
                rows = answer.json()["predictions"]
                version = 1 if rows[0]["label_names"] == ["bad", "good"] else 2
                assert_same(rows, self._expected[version][part])
                versions.append(version)
                count += 1
                self.answered += 1

    def finish(self):
        """The versions that answered each client, in their order."""
        return [one.result(timeout=60) for one in self._ended]


def until(there, seconds=60):
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end
        time.sleep(0.02)


def drop(source, folder, number, damaged=False):
    """Puts a version where the server finds it, whole or cut."""
    copy = shutil.copytree(source, folder / f"{number}.new")
    if damaged:
        marker = copy / "saved_model.pb"
        marker.write_bytes(marker.read_bytes()[:5000])
    copy.rename(folder / str(number))


@contextlib.contextmanager
def serving(folder, log, *options, port=0):
    """Process and address of `recbert serve`, once it listens; killed at the end."""
    command = [sys.executable, "-m", "keras_recbert.cli", "serve", str(folder)]
    options = ["--port", str(port), *options]
    with log.open("wb") as written:
        process = subprocess.Popen(command + options, stdout=written, stderr=written)
    try:
        until(lambda: "curl" in log.read_text() or process.poll() is not None)
        url = re.search(r"at (http://127\.0\.0\.1:\d+)\n", log.read_text())
        assert url, log.read_text()
        yield process, url[1]
    finally:
        process.kill()
        process.wait()


def test_versions_change_and_the_server_ends_without_a_lost_or_wrong_answer(
    film_model, newer_model, tmp_path
):
    folder = tmp_path / "films"
    folder.mkdir()
    drop(film_model, folder, 1)
    expected = {1: asking(film_model)(TEXTS), 2: asking(newer_model)(TEXTS)}
    log = tmp_path / "log"
    with serving(folder, log, "--poll-seconds", "0.2") as (process, url):
        check_curl(log)
        clients = Clients(url, expected)
        until(lambda: clients.answered > 50)
        drop(newer_model, folder, 2)
        status = f"{url}/v1/models/films"
        until(lambda: httpx.get(f"{status}/versions/2").status_code == 200)
        drop(film_model, folder, 3, damaged=True)
        until(lambda: '"3"' in httpx.get(status).text)
        states = httpx.get(status).json()["model_version_status"]
        assert [(s["version"], s["state"]) for s in states] == [
            ("2", "AVAILABLE"),
            ("3", "END"),
        ]
        answered = clients.answered
        until(lambda: clients.answered > answered + 50)
        end_under_load(process, url, clients, asking(newer_model))
        for versions in clients.finish():
            assert versions == sorted(versions) and {*versions} == {1, 2}
        assert process.wait(30) == 0
    told = pathlib.Path(log).read_text()
    assert "films: version 2 takes over from version 1." in told
    assert "films: version 3 is left out. The SavedModel at" in told
    assert told.endswith("Stopped: what was accepted is answered.\n")
    assert "Traceback" not in told


def test_killed_under_load_it_starts_again_at_the_same_address(film_model, tmp_path):
    folder, log = tmp_path / "films", tmp_path / "log"
    folder.mkdir()
    drop(film_model, folder, 1)
    expected = {1: asking(film_model)(TEXTS)}
    with serving(folder, log) as (process, url):
        clients = Clients(url, expected)
        until(lambda: clients.answered > 50)
        clients.stopping.set()
        process.kill()
        assert all({*versions} == {1} for versions in clients.finish())
    with serving(folder, log, port=url.rpartition(":")[2]) as (_, again):
        assert again == url
        answer = httpx.post(url + PREDICT, json={"instances": TEXTS})
        assert_same(answer.json()["predictions"], expected[1])


def check_curl(log):
    """The line that is printed is one that works."""
    line = re.search(r"^curl .*$", log.read_text(), re.MULTILINE)[0]
    done = subprocess.run(["bash", "-c", f"{line} -sS"], capture_output=True, text=True)
    assert '"predictions": [{"' in done.stdout, done.stderr


def end_under_load(process, url, clients, direct):
    """Sends SIGTERM while requests wait; each of them is answered."""
    texts = [text + " film" * 4000 for text in TEXTS * 4]  # read for a while
    body, rows = json.dumps({"instances": texts}).encode(), direct(texts)

    def ask(_):
        return httpx.post(url + PREDICT, content=body, timeout=60)

    def waiting():
        page = httpx.get(f"{url}/metrics").text
        found = re.search(r"^recbert_waiting_texts (\S+)", page, re.MULTILINE)
        return float(found[1])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, index) for index in range(8)]
        until(lambda: waiting() > 4 * len(texts) or all(one.done() for one in asked))
        time.sleep(0.3)  # all are on their way
        assert not all(one.done() for one in asked)
        clients.stopping.set()
        process.send_signal(signal.SIGTERM)
        for one in asked:
            answer = one.result()
            assert answer.status_code == 200
            assert_same(answer.json()["predictions"], rows)
