"""The least memory that a model takes, beside what the machine has.

Lower bounds: what they refuse cannot be computed here, and what they let through may
still not fit.
"""

import math
import os
import pathlib
from numbers import Integral

import tensorflow as tf
from keras.src.backend.common.stateless_scope import in_stateless_scope

from keras_recbert.blocks import get_block

# Of any accelerator there is; what is there beyond the machine's own memory.
LARGEST_ACCELERATOR = 288 * 2**30
MEMINFO = pathlib.Path("/proc/meminfo")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
OWN_CGROUP = pathlib.Path("/proc/self/cgroup")
ADVICE = {
    "weights": "num_layers, hidden_dim, vocabulary_size, max_sequence_length or what "
    "else was raised",
    "words": "max_words, vocabulary_size or vector_dim",
    "step": "batch_size or the length of the examples, or compute the batch in parts "
    "or with gradient_checkpointing",
}


def available_memory():
    """Bytes that this process may still take, or None where nothing says it.

    What the system has free, swap included, or what the control group of a container
    leaves, whichever is less; and the memory that accelerators may have.
    """
    limits = [limit for limit in (_of_system(), *_of_groups()) if limit is not None]
    if not limits:
        return None
    accelerators = tf.config.list_physical_devices("GPU")
    accelerators += tf.config.list_physical_devices("TPU")
    return min(limits) + len(accelerators) * LARGEST_ACCELERATOR


def parameters_at_least(config):
    """A lower bound of the weights of an encoder: its matrices and tables.

    Args:
        config: dict. Arguments of `RecBertEncoder` with their defaults.

    Returns:
        int, of the zoo's own kinds of block at most 5 % below the number of
        parameters.
    """
    width, num_layers = int(config["hidden_dim"]), int(config["num_layers"])
    tables = ("vocabulary_size", "max_sequence_length", "num_segments")
    rows = sum(int(config[key]) for key in tables)
    layer = get_block(config["block"]).count_weights(_sizes(config))
    return rows * width + num_layers * layer + width**2


def activations_at_least(config, num_tokens, num_pairs):
    """A lower bound of the numbers that a training step keeps for its gradients.

    Args:
        config: dict. Arguments of `RecBertEncoder` with their defaults.
        num_tokens: float. Tokens of the batch, padding included.
        num_pairs: float. Sum of the squared lengths of its rows: what attention
            looks at.

    Returns:
        int.
    """
    width, num_layers = config["hidden_dim"], config["num_layers"]
    if config["gradient_checkpointing"]:
        return int(num_tokens * width * num_layers)
    kind = get_block(config["block"])
    kept = kind.count_kept(_sizes(config), num_pairs / num_tokens)
    return int(num_layers * num_tokens * kept)


def _sizes(config):
    """The arguments, with 0 where the layers say later what is wrong with a size."""
    names = ("hidden_dim", "num_heads", "intermediate_dim", "recurrent_dim")
    return config | {
        name: int(size) if isinstance(size, Integral) and size > 0 else 0
        for name, size in config.items()
        if name in names
    }


def check_fits(needed, what, lower):
    """Raises `ValueError` if so many bytes cannot be had on this machine.

    Args:
        needed: int. Bytes.
        what: str. What needs them, with a verb, as the subject of the message.
        lower: str. Key of `ADVICE`.
    """
    # Weights that are made in such a scope get shapes only.
    available = None if in_stateless_scope() else available_memory()
    if available is not None and needed > available:
        raise ValueError(
            f"{what} at least {_readable(needed)} of memory, and this machine has "
            f"{_readable(available)} left. Lower {ADVICE[lower]}."
        )


def check_weights(config, policy):
    """Checks that the weights of an encoder fit in memory, before they are made.

    Args:
        config: dict. Arguments of `RecBertEncoder` with their defaults.
        policy: `keras.DTypePolicy`.

    Raises:
        ValueError: if they do not.
    """
    count = parameters_at_least(config)
    needed = count * _size_of(policy.variable_dtype)
    sizes = ("num_layers", "hidden_dim", "vocabulary_size", "max_sequence_length")
    named = ", ".join(f"{key}={config[key]}" for key in sizes)
    check_fits(needed, f"An encoder with {named}, ... needs", "weights")


def check_step(model, num_tokens, num_pairs, num_slots=2):
    """Checks that a training step fits in memory beside the weights, which stand.

    Args:
        model: task model with a `encoder`.
        num_tokens, num_pairs: see `activations_at_least`.
        num_slots: int. Numbers that the optimizer keeps for each weight.

    Raises:
        ValueError: if it does not.
    """
    compute = _size_of(model.encoder.policy.compute_dtype)
    activations = model.encoder.activations_at_least(num_tokens, num_pairs) * compute
    optimizer = num_slots * sum(map(_nbytes, model.trainable_weights))
    check_fits(
        activations + optimizer,
        f"A training step of {int(num_tokens):,} tokens needs, beside the weights, "
        f"{_readable(activations)} for activations and {_readable(optimizer)} for the "
        "optimizer:",
        "step",
    )


def _nbytes(weight):
    return math.prod(weight.shape) * _size_of(weight.dtype)


def _size_of(dtype):
    return tf.as_dtype(dtype).size


def _of_system():
    """Free memory and swap, or all memory where nothing says what is free."""
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", ()):
            return None
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    kibibytes = {line.partition(":")[0]: line.split()[1] for line in lines}
    if "MemAvailable" not in kibibytes:
        return None
    free = int(kibibytes["MemAvailable"]) + int(kibibytes.get("SwapFree", 0))
    return 1024 * free


def _of_groups():
    """What each control group above this process leaves, where it has a limit."""
    try:
        lines = OWN_CGROUP.read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            root = CGROUPS / controllers
            group = root / path.lstrip("/")
            for folder in (group, *group.parents):
                yield _of_group(folder)
                if folder == root:
                    break


def _of_group(folder):
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            most = (folder / limit).read_text(encoding="ascii").strip()
            now = int((folder / used).read_text(encoding="ascii"))
            stat = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        if most == "max":
            return None
        counts = dict(line.split()[:2] for line in stat)
        # Pages of files are given up when memory is short.
        cache = int(counts.get("file", counts.get("total_cache", 0)))
        return max(0, int(most) - now + cache)
    return None


def _readable(size):
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:,.0f} {unit}" if size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
