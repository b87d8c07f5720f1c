"""What cannot fit in memory is refused before it is made, and nothing else is."""

import subprocess
import sys
import textwrap

import keras
import pytest
from harness import build_shrunk
from toy_texts import tiny_model

import keras_recbert
from keras_recbert.blocks import complete_config
from keras_recbert.builder import encoder_arguments
from keras_recbert.models import memory_estimate
from keras_recbert.models.memory_estimate import (
    activations_at_least,
    available_memory,
    check_fits,
    check_step,
    parameters_at_least,
)
from keras_recbert.models.registry import get_card

GIGABYTE = 10**9
DEFAULTS = {"vocabulary_size": 30522, "max_sequence_length": 512, "num_segments": 2}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of the files that a test writes."""
    monkeypatch.setattr(memory_estimate, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory_estimate, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory_estimate, "OWN_CGROUP", tmp_path / "own")
    return tmp_path


def write_group(folder, names, most, now, cache):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in zip(names, (most, now, cache), strict=True):
        (folder / name).write_text(f"{content}\n")


def test_what_is_left_of_a_machine(machine):
    (machine / "meminfo").write_text(
        "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 4000 kB\nSwapFree: 500 kB\n"
    )
    assert available_memory() == 4500 * 1024
    # A container, whose parent is tighter, and which keeps files in its memory.
    names = ("memory.max", "memory.current", "memory.stat")
    group = machine / "cgroup" / "pod"
    write_group(group, names, 3_000_000, 2_000_000, "anon 1\nfile 300000")
    write_group(group / "own", names, "max", 2_000_000, "file 300000")
    (machine / "own").write_text("0::/pod/own\n")
    assert available_memory() == 1_300_000
    # Version 1 of control groups.
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
    old = machine / "cgroup" / "memory" / "docker"
    write_group(old, names, 900_000, 400_000, "cache 5\ntotal_cache 100000")
    (machine / "own").write_text("7:cpu,cpuacct:/\n4:memory:/docker\n")
    assert available_memory() == 600_000
    write_group(old, names, 900_000, 950_000, "total_cache 0")
    assert available_memory() == 0


def test_a_machine_that_says_little(machine):
    everything = available_memory()  # no file at all: what the system has
    assert everything > 10**8
    (machine / "meminfo").write_text("MemTotal: 9000 kB\n")
    assert available_memory() is None
    check_fits(10**30, "Everything needs", "weights")


def test_a_refusal_says_both_numbers_and_what_to_lower(machine):
    (machine / "meminfo").write_text("MemAvailable: 2000000 kB\n")
    check_fits(2 * GIGABYTE, "This needs", "weights")
    with pytest.raises(ValueError) as caught:
        check_fits(3 * GIGABYTE, "This needs", "words")
    assert str(caught.value) == (
        "This needs at least 3.0 GB of memory, and this machine has 2.0 GB left. Lower "
        "max_words, vocabulary_size or vector_dim."
    )


@pytest.mark.parametrize(
    "name",
    [n for n in keras_recbert.list_models() if "block" in get_card(n).sizes],
)
def test_the_bound_of_weights_is_close_and_never_above(name):
    config = complete_config({**DEFAULTS, **encoder_arguments(name)})
    share = parameters_at_least(config) / get_card(name).num_parameters
    assert 0.95 < share <= 1.0


@pytest.mark.parametrize("name", ["bert_tiny", "swish_tiny", "blstm_base"])
def test_the_bound_holds_for_odd_sizes(name):
    encoder = build_shrunk(name)
    assert 0 < parameters_at_least(encoder.config) <= encoder.count_params()


@pytest.mark.parametrize(
    "sizes",
    [
        {"hidden_dim": 10**8},
        {"vocabulary_size": 10**10},
        {"max_sequence_length": 10**12},
        {"num_layers": 10**7},
        {"intermediate_dim": 10**30},
    ],
)
def test_sizes_beyond_any_machine(sizes):
    (given,) = (f"{key}={size}" for key, size in sizes.items())
    with pytest.raises(ValueError, match="needs at least .* TB of memory") as caught:
        keras_recbert.build("bert_tiny", **sizes)
    assert given in str(caught.value) or "intermediate_dim" in given


def test_counting_takes_no_memory_and_is_not_refused():
    count = keras_recbert.count_parameters("bert_tiny", vocabulary_size=10**11)
    assert count > 10**13


def test_a_step_beyond_any_machine():
    model = tiny_model()
    check_step(model, 32 * 64, 32 * 64**2)
    with pytest.raises(
        ValueError, match="step of 12,800,000,000 tokens needs.*Lower b"
    ):
        check_step(model, 1e8 * 128, 1e8 * 128**2)


def test_recomputing_and_half_precision_lower_the_bound():
    config = tiny_model().encoder.config
    plain = activations_at_least(config, 1000, 64000)
    config = {**config, "gradient_checkpointing": True}
    assert 0 < activations_at_least(config, 1000, 64000) < plain


MEASURE = """
    import numpy as np
    import keras_recbert
    from keras_recbert.models.memory_estimate import activations_at_least

    def memory(key):
        lines = open("/proc/self/status").read().splitlines()
        return next(1024 * int(l.split()[1]) for l in lines if l.startswith(key))

    def step(rows, length):
        ids = np.full((rows, length), 4, "int32")
        mask = np.ones_like(ids)
        batch = {{"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}}
        model.train_on_batch(batch, np.zeros(rows, "int32"))

    rows, length = {rows}, {length}
    model = keras_recbert.build("{name}", task="classifier", vocabulary_size=999)
    model.compile_for_fine_tuning(10)
    step(2, length)
    before = memory("VmRSS")
    step(rows, length)
    config = model.encoder.config
    bound = activations_at_least(config, rows * length, rows * length**2)
    print(4 * bound / (memory("VmHWM") - before))
"""


@pytest.mark.slow  # processes of their own, whose peaks are measured
@pytest.mark.parametrize(
    "name, rows, length", [("bert_tiny", 128, 128), ("bert_small", 8, 512)]
)
def test_a_real_step_takes_more_than_the_bound_and_not_much_more(name, rows, length):
    script = textwrap.dedent(MEASURE.format(name=name, rows=rows, length=length))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    share = float(done.stdout.split()[-1])
    assert 0.3 < share < 0.95


def test_a_card_of_ones_own_is_checked_too(tmp_path):
    # Any way to an encoder passes its constructor.
    config = build_shrunk("bert_tiny").get_config()
    with pytest.raises(ValueError, match="TB of memory"):
        keras.saving.deserialize_keras_object(
            {
                "class_name": "RecBertEncoder",
                "registered_name": "keras_recbert>RecBertEncoder",
                "module": "keras_recbert.models.recbert_encoder",
                "config": {**config, "vocabulary_size": 10**13},
            }
        )
