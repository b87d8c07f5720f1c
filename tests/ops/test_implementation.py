"""Which implementation runs, and what may be left to XLA."""

import threading
import types

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close

from keras_recbert.ops import implementation
from keras_recbert.ops.gelu import gelu
from keras_recbert.ops.implementation import (
    MIN_XLA_WIDTH,
    accelerators,
    at_least_float32,
    check_implementation,
    choose,
    portable_graphs,
    use_xla,
    with_and_without_xla,
)

WIDE, NARROW = MIN_XLA_WIDTH, MIN_XLA_WIDTH - 1


@pytest.fixture(autouse=True)
def only_cpus(monkeypatch):
    """Also on a machine with a GPU."""
    monkeypatch.setattr(implementation, "accelerators", lambda: ())


@pytest.mark.parametrize("width", [1, NARROW, WIDE])
@pytest.mark.parametrize("word", ["reference", "loop", "xla"])
def test_what_is_asked_for_runs(word, width):
    assert choose(word, width) == (word, "asked for")


def test_automatic_choice_goes_by_width():
    assert choose("auto", WIDE) == ("xla", "fuses what is not a matrix product")
    reason = "too narrow (255 < 256) to pay for compiling"
    assert choose("auto", NARROW) == ("loop", reason)


def test_automatic_choice_beside_an_accelerator(monkeypatch):
    monkeypatch.setattr(implementation, "accelerators", lambda: ("GPU",))
    name, reason = choose("auto", WIDE)
    assert name == "loop"
    assert reason == "XLA was compared on CPUs only, and there is ('GPU',)"
    for word in ("reference", "loop", "xla"):
        assert choose(word, WIDE) == (word, "asked for")


def test_accelerators_are_what_is_no_cpu(monkeypatch):
    def devices(*kinds):
        listed = [types.SimpleNamespace(device_type=kind) for kind in kinds]
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda: listed)
        return accelerators.__wrapped__()  # which remembers nothing

    assert devices("CPU", "CPU") == ()
    assert devices("CPU", "GPU", "GPU") == ("GPU",)
    assert devices("TPU", "GPU", "CPU") == ("GPU", "TPU")


def test_portable_graphs_leave_nothing_to_xla():
    expected = ("loop", "a SavedModel must run where there is no XLA")
    with portable_graphs():
        for word in ("auto", "xla"):
            assert choose(word, WIDE) == expected
            assert not use_xla(word, WIDE)
        for word in ("reference", "loop"):
            assert choose(word, WIDE) == (word, "asked for")
    assert choose("auto", WIDE)[0] == "xla"


def test_portable_graphs_end_where_they_began():
    with portable_graphs():
        with portable_graphs():
            pass
        assert choose("xla", WIDE)[0] == "loop"  # the outer one holds on
        with pytest.raises(ZeroDivisionError), portable_graphs():
            1 / 0  # noqa: B018
        assert choose("xla", WIDE)[0] == "loop"
    assert choose("xla", WIDE)[0] == "xla"
    with pytest.raises(ZeroDivisionError), portable_graphs():
        1 / 0  # noqa: B018
    assert choose("xla", WIDE)[0] == "xla"


@pytest.mark.parametrize("word", ["", "XLA", "fast", None, True])
def test_unknown_word_is_told(word):
    with pytest.raises(
        ValueError, match="must be one of auto, reference, loop, xla. Received: impl"
    ):
        check_implementation(word)


def test_known_words_pass():
    for word in ("auto", "reference", "loop", "xla"):
        check_implementation(word)


def test_only_xla_is_compiled():
    assert use_xla("auto", WIDE)
    assert use_xla("xla", NARROW)
    for word, width in (("auto", NARROW), ("loop", WIDE), ("reference", WIDE)):
        assert not use_xla(word, width)


def compiled_functions(function, *args):
    """How many functions in the graph of `function` XLA must compile."""
    graph = tf.function(function).get_concrete_function(*args).graph
    library = graph.as_graph_def().library.function
    return sum(it.attr["_XlaMustCompile"].b for it in library)


def test_one_of_either_is_compiled():
    double = with_and_without_xla(lambda x, factor: x * factor)
    x = tf.constant([1.0, 2.0])
    for xla in (False, True):
        assert compiled_functions(lambda x, xla=xla: double[xla](x, 2.0), x) == xla
        assert list(double[xla](x, 2.0).numpy()) == [2.0, 4.0]


def test_no_tape_looks_into_what_is_compiled():
    """Gradients are written by hand; those of a compiled loop could not be built."""
    double = with_and_without_xla(lambda x: 2.0 * x)
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = double[True](x)
    with pytest.raises(ValueError, match="first derivatives only"):
        tape.gradient(y, x)


def test_second_derivatives_are_those_of_the_loop_or_refused():
    x = tf.constant([0.5, -1.0])

    def slope_of_slope(xla):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = gelu(x, xla=xla)
            slope = inner.gradient(y, x)
        return outer.gradient(slope, x)

    z = x.numpy()
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    assert_close(slope_of_slope(False), density * (2.0 - z * z), 1e-6)
    with pytest.raises(ValueError, match="implementation='loop'"):
        slope_of_slope(True)


def test_threads_do_not_see_each_others_portable_graphs():
    inside, leave = threading.Event(), threading.Event()

    def export():
        with portable_graphs():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=export)
    thread.start()
    assert inside.wait(10)
    with portable_graphs():
        assert choose("xla", 512)[0] == "loop"
    assert choose("xla", 512)[0] == "xla"
    leave.set()
    thread.join()
    assert choose("xla", 512)[0] == "xla"


def test_the_same_shapes_are_traced_once():
    traced = []

    def count(x):
        traced.append(x.shape)
        return x + 1.0

    compiled = with_and_without_xla(count)[True]

    @tf.function
    def two_layers(x):
        return compiled(compiled(x))

    two_layers(tf.zeros((2, 3)))
    two_layers(tf.zeros((4, 3)))
    assert traced == [(2, 3), (4, 3)]


def test_type_to_compute_in():
    assert at_least_float32(tf.float64) == tf.float64
    for dtype in (tf.float32, tf.bfloat16, tf.float16):
        assert at_least_float32(dtype) == tf.float32
