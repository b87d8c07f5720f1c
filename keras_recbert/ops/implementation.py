"""Which implementation of an op runs."""

import contextlib
import contextvars
import functools

import tensorflow as tf

from keras_recbert.ops.compiler_log import quiet_compiler

# Whatever compiles an op of this zoo has imported this.
quiet_compiler()

# "reference": as the papers write it, one step after the other, gradients by
# TensorFlow. "loop": TensorFlow ops with gradients of their own. "xla": those
# compiled by XLA, which fuses what is not a matrix product.
IMPLEMENTATIONS = ("auto", "reference", "loop", "xla")
# Compiling costs a fraction of a second for each new shape; narrower layers do not
# win that back in a short training.
MIN_XLA_WIDTH = 256

_portable = contextvars.ContextVar("portable", default=False)
_packing = contextvars.ContextVar("packing", default=False)
_compiling = contextvars.ContextVar("compiling", default=True)


@contextlib.contextmanager
def portable_graphs(packing=False):
    """Nothing that is traced inside is left to XLA: what is saved runs anywhere.

    Args:
        packing: bool. Whether a scan may compute the tokens of a batch without its
            padding, by ops of TensorFlow that other runtimes lack.
    """
    tokens = _portable.set(True), _packing.set(packing)
    try:
        yield
    finally:
        _portable.reset(tokens[0])
        _packing.reset(tokens[1])


@contextlib.contextmanager
def compiling(pays):
    """Whether `"auto"` may compile what is traced inside.

    XLA compiles once for each shape and keeps what it compiled. Where shapes vary and
    each comes a few times only, that costs more time and memory than it saves.

    Args:
        pays: bool.
    """
    token = _compiling.set(pays)
    try:
        yield
    finally:
        _compiling.reset(token)


def check_implementation(implementation):
    """Raises `ValueError` for a word that names no implementation."""
    if implementation not in IMPLEMENTATIONS:
        raise ValueError(
            f"`implementation` must be one of {', '.join(IMPLEMENTATIONS)}. "
            f"Received: implementation={implementation!r}."
        )


def choose(implementation, width, packs=False):
    """Which implementation a layer runs, and why.

    Args:
        implementation: str. One of `IMPLEMENTATIONS`, what the user asked for.
        width: int. Width of what the layer computes element by element.
        packs: bool. Whether the layer has a loop over the tokens of a batch without
            its padding, too, `"packed"`.

    Returns:
        Tuple of `"reference"`, `"loop"`, `"packed"` or `"xla"`, and the reason in
        words.
    """
    if implementation in ("reference", "loop"):
        return implementation, "asked for"
    if _portable.get():
        if packs and _packing.get():
            return "packed", "a SavedModel has no XLA, and rows of unlike length"
        return "loop", "a SavedModel must run where there is no XLA"
    if implementation == "xla":
        return "xla", "asked for"
    if accelerators():
        return "loop", f"XLA was compared on CPUs only, and there is {accelerators()}"
    if not _compiling.get():
        return "loop", "each shape comes too seldom to pay for compiling"
    if width < MIN_XLA_WIDTH:
        return "loop", f"too narrow ({width} < {MIN_XLA_WIDTH}) to pay for compiling"
    return "xla", "fuses what is not a matrix product"


def use_xla(implementation, width):
    """Whether the element-wise work of a layer is compiled, see `choose`."""
    return choose(implementation, width)[0] == "xla"


@functools.cache
def accelerators():
    """Types of devices besides the CPU, such as `("GPU",)`."""
    types = {device.device_type for device in tf.config.list_logical_devices()}
    return tuple(sorted(types - {"CPU"}))


def with_and_without_xla(function):
    """`function` as it is, and compiled by XLA for each new shape: a dict by bool."""
    compiled = tf.function(function, jit_compile=True, autograph=False)

    def run(*args):
        places = [index for index, x in enumerate(args) if tf.is_tensor(x)]

        @tf.custom_gradient
        def off_tape(*tensors):
            # Eagerly TensorFlow would build a gradient of its own, too.
            inner = list(args)
            for index, tensor in zip(places, tensors, strict=True):
                inner[index] = tf.stop_gradient(tensor)
            return compiled(*inner), _no_gradient

        return off_tape(*(args[index] for index in places))

    return {False: function, True: run}


def _no_gradient(*upstream):
    raise ValueError(
        "What XLA compiles has first derivatives only. For derivatives of gradients "
        "build the model or layer with implementation='loop'."
    )


def at_least_float32(dtype):
    """Type to compute in: at least float32."""
    return tf.float64 if dtype == tf.float64 else tf.float32
