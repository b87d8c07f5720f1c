"""Preparation by several processes: equal shards, and what a killed one leaves."""

import os
import signal
import subprocess
import sys
import time

import pytest
from prepared_corpora import VOCABULARY, shards

from keras_recbert.data import prepare_sources
from keras_recbert.data.documents import DocumentError
from keras_recbert.data.prepare import prepare
from keras_recbert.text.vocabulary import save_vocabulary


@pytest.mark.slow  # every worker imports TensorFlow
def test_shards_do_not_depend_on_the_number_of_workers(
    inputs, tmp_path, monkeypatch, capfd
):
    prepare(inputs, tmp_path / "1", VOCABULARY, num_shards=3)
    monkeypatch.setattr(prepare_sources, "BYTES_PER_ITEM", 200)
    description = prepare(
        inputs, tmp_path / "3", VOCABULARY, num_shards=3, num_workers=3
    )
    assert shards(tmp_path / "3") == shards(tmp_path / "1")
    assert description["counts"]["documents"] == 42
    (inputs / "b.jsonl").write_text('{"text": "good"}\n{')
    with pytest.raises(DocumentError, match="b.jsonl, line 2: not JSON"):
        prepare(inputs, tmp_path / "3", VOCABULARY, num_workers=2, overwrite=True)
    assert shards(tmp_path / "3") == shards(tmp_path / "1")
    printed = capfd.readouterr()
    assert "Traceback" not in printed.err and "INFO" not in printed.err


@pytest.mark.slow
def test_a_worker_that_is_killed_ends_the_run(inputs, tmp_path):
    with (inputs / "big.txt").open("w") as file:
        file.writelines(
            "The windmills turn. Is a wind old.\n\n" for _ in range(200_000)
        )
    save_vocabulary(VOCABULARY, tmp_path / "vocab.txt")
    process = start_prepare(inputs, tmp_path, num_workers=2)
    workers = wait_for_workers(process, tmp_path)
    os.kill(workers[0], signal.SIGKILL)
    assert process.wait(timeout=120) != 0
    assert not list(tmp_path.glob("*out*"))


def start_prepare(inputs, tmp_path, num_workers):
    code = (
        "import sys; from keras_recbert.data.prepare import prepare\n"
        "prepare(*sys.argv[1:4], num_workers=int(sys.argv[4]))"
    )
    paths = [os.fspath(inputs), f"{tmp_path}/out", f"{tmp_path}/vocab.txt"]
    return subprocess.Popen([sys.executable, "-c", code, *paths, str(num_workers)])


def wait_for_workers(process, tmp_path):
    """Waits until work is being done; returns who does it."""
    deadline = time.monotonic() + 200
    while not list(tmp_path.glob(".out.*/new/parts/part-*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    # Children of the shell that Beam starts each worker with.
    found, parents = [], {process.pid}
    for _ in range(2):
        parents = {
            int(pid)
            for parent in parents
            for pid in subprocess.run(
                ["pgrep", "-P", str(parent)], capture_output=True, text=True
            ).stdout.split()
        }
        found += parents
    assert found
    return sorted(found, reverse=True)


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_no_corpus(inputs, tmp_path):
    """And its workers end too."""
    with (inputs / "big.txt").open("w") as file:
        file.writelines(
            "The windmills turn. Is a wind old.\n\n" for _ in range(200_000)
        )
    save_vocabulary(VOCABULARY, tmp_path / "vocab.txt")
    process = start_prepare(inputs, tmp_path, num_workers=2)
    workers = wait_for_workers(process, tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out").exists()
    deadline = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{pid}") for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    # What the killed one left behind goes with the next.
    assert list(tmp_path.glob(".out.*"))
    (inputs / "big.txt").unlink()
    prepare(inputs, tmp_path / "out", VOCABULARY)
    assert sorted(os.listdir(tmp_path)) == ["in", "out", "vocab.txt"]
