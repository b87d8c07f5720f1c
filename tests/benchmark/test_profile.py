"""Where the time of a step goes."""

import collections
import csv

import pytest

from keras_recbert.benchmark import profile as module
from keras_recbert.benchmark.profile import (
    COLUMNS,
    TENSORFLOW_OP,
    is_product,
    profile,
)

SIZES = {"num_layers": 1, "vocabulary_size": 50}


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """A training step with a compiled recurrence, and the CSV of it."""
    file = tmp_path_factory.mktemp("profile") / "ops.csv"
    sizes = {**SIZES, "implementation": "xla"}
    return profile("swish_tiny", "3x7", steps=2, csv_file=file, **sizes), file


def test_matrix_products_are_found(profiled):
    found, _ = profiled
    products = [one for one in found.ops if one.is_matrix_product]
    assert any("MatMul" in one.op for one in products)
    # Q K V, the attention's two, its output, SwishRNN's two, pooler, head: 8 forward
    # and twice as many backward.
    assert sum(one.calls for one in products) >= 20
    assert 0 < found.matrix_share < 1


def test_shares_are_parts_of_a_whole(profiled):
    found, _ = profiled
    assert sum(one.share for one in found.ops) == pytest.approx(1.0)
    assert all(one.milliseconds >= 0 and one.calls > 0 for one in found.ops)
    times = [one.milliseconds for one in found.ops]
    assert times == sorted(times, reverse=True)
    assert len({one.op for one in found.ops}) == len(times)
    assert found.seconds > 0


def test_a_training_step_updates_weights_and_compiles_what_it_should(profiled):
    calls = {one.op: one.calls for one in profiled[0].ops}
    # One for each weight: 23 of the encoder, 2 of the head; tables have their own.
    assert calls["ResourceApplyAdam"] > 15
    assert calls["XLA gated_states"] > 0
    assert calls["XLA gated_states_gradient"] > 0


def test_the_csv_holds_every_op(profiled):
    found, file = profiled
    title, *rows = file.read_text().splitlines()
    assert title.startswith("# swish_tiny, training step, 3x7, float32: ")
    read = list(csv.DictReader(rows))
    assert tuple(read[0]) == COLUMNS
    assert [row["op"] for row in read] == [one.op for one in found.ops]
    assert sum(float(row["share"]) for row in read) == pytest.approx(1.0, abs=1e-3)
    assert [path.name for path in file.parent.iterdir()] == ["ops.csv"]


def test_a_forward_pass_in_bfloat16_updates_nothing(capsys):
    found = profile("bert_tiny", "2x5", "bfloat16", forward=True, steps=1, **SIZES)
    ops = {one.op for one in found.ops}
    assert not [op for op in ops if "Adam" in op or "Grad" in op]
    assert any("MatMul" in op for op in ops)
    out = capsys.readouterr().out
    assert out == f"{found}\n"
    first, header, *lines = out.splitlines()
    assert first.startswith("bert_tiny, forward pass, 2x5, bfloat16: ")
    assert header.split() == ["op", "ms", "a", "step", "calls", "share"]
    assert "side by side on several threads" in lines[-1]
    assert lines[-2].startswith("Matrix products (*) take ")


def test_an_encoder_of_words_is_profiled():
    sizes = {"vocabulary_size": 30, "recurrent_dim": 4, "vector_dim": 5}
    found = profile("bilstm_student", "2x5", forward=True, steps=1, **sizes)
    assert any(one.is_matrix_product for one in found.ops)


def test_time_inside_another_op_counts_once():
    times, calls = collections.Counter(), collections.Counter()
    ms = 10**9
    events = [
        (0, -10 * ms, "outer"),
        (1 * ms, -3 * ms, "inner"),
        (2 * ms, -1 * ms, "innermost"),
        (5 * ms, -2 * ms, "inner"),
        (10 * ms, -4 * ms, "next"),
    ]
    module._add_own_times(events, times, calls)
    expected = {"outer": 5, "inner": 4, "innermost": 1, "next": 4}
    assert times == pytest.approx(expected)
    assert calls == {"outer": 1, "inner": 2, "innermost": 1, "next": 1}


def test_which_events_are_ops():
    found = TENSORFLOW_OP.match("a/while/body/_1/b/MatMul:_MklMatMul")
    assert found[1] == "_MklMatMul"
    for name in (
        "ExecutorState::Process",
        "EagerLocalExecute: AssignVariableOp",
        "end: select_add_fusion",
        "FunctionRun",
    ):
        assert TENSORFLOW_OP.match(name) is None
    assert is_product("_MklBatchMatMulV2") and is_product("XLA scan_forward dot")
    assert not is_product("XLA scan_forward") and not is_product("Mul")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": "swish_tyny"}, ValueError, "Did you mean 'swish_tiny'"),
        ({"shape": "8"}, ValueError, "rows x tokens.*Received: '8'"),
        ({"shape": "0x8"}, ValueError, "both at least 1.*Received: '0x8'"),
        ({"shape": "1x513"}, ValueError, "has 512 positions.*513 tokens"),
        ({"precision": "int8"}, ValueError, "one of float32, bfloat16.*'int8'"),
        ({"steps": 0}, ValueError, "`steps` must be a whole number of at least 1"),
        ({"csv_file": "no/ops.csv"}, FileNotFoundError, "no/ops.csv.*no folder no"),
        ({"implementation": "fast"}, ValueError, "one of auto, reference, loop, xla"),
        ({"num_lyers": 1}, ValueError, "takes no argument 'num_lyers'"),
    ],
)
def test_mistakes_are_told_before_work(
    monkeypatch, tmp_path, arguments, error, message
):
    def refuse(*_):
        raise AssertionError("work was started")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_make_step", refuse)
    with pytest.raises(error, match=message):
        profile(**{"model": "swish_tiny", **arguments})


def test_beside_an_accelerator_nothing_is_profiled(monkeypatch):
    monkeypatch.setattr(module, "accelerators", lambda: ("GPU",))
    with pytest.raises(ValueError, match="Hide it: CUDA_VISIBLE_DEVICES=-1"):
        profile("swish_tiny")
