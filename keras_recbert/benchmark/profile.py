"""`recbert profile`: the ops that a step of an encoder spends its time in."""

import collections
import csv
import dataclasses
import pathlib
import re
import statistics
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf

# TensorFlow has no public name for what its profiler writes.
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from keras_recbert.benchmark.comparisons import parse_shape
from keras_recbert.benchmark.progress import Progress
from keras_recbert.builder import random_encoder
from keras_recbert.core.checks import check_positive
from keras_recbert.core.folders import check_file, new_file
from keras_recbert.ops.implementation import accelerators
from keras_recbert.tasks.optimizers import AdamW
from keras_recbert.train.precision import POLICIES

COLUMNS = ("op", "milliseconds", "calls", "share", "is_matrix_product")
ROWS_SHOWN = 25
PICOSECONDS = 1e-9  # to milliseconds
# "encoder/block_0/dense/MatMul:MatMul": the op's name, and its type.
TENSORFLOW_OP = re.compile(r"^[^:\s]+:(_?[A-Z]\w*)$")
# XLA names a module after the function that it compiled.
XLA_MODULE = re.compile(r"^a_inference_+(.+?)_+\d+__")


@dataclasses.dataclass(frozen=True)
class OpTime:
    """Time that all ops of one type take in a step.

    Args:
        op: str. Type of op of TensorFlow; of what XLA compiled, the function it is in.
        milliseconds: float. Of a step, summed over threads.
        calls: float. In a step; of what XLA compiled, kernels.
        share: float. Of the time of all ops.
        is_matrix_product: bool.
    """

    op: str
    milliseconds: float
    calls: float
    share: float
    is_matrix_product: bool


@dataclasses.dataclass(frozen=True)
class Profile:
    """Where the time of a step goes; `print` it.

    Args:
        title: str. What was run.
        seconds: float. Median of the steps that were not profiled, by the clock.
        ops: list of `OpTime`, longest first.
    """

    title: str
    seconds: float
    ops: list

    @property
    def matrix_share(self):
        """Share of matrix products in the time of all ops."""
        return sum(one.share for one in self.ops if one.is_matrix_product)

    def __str__(self):
        total = sum(one.milliseconds for one in self.ops)
        shown, rest = self.ops[:ROWS_SHOWN], self.ops[ROWS_SHOWN:]
        rows = [(f"{'*' * one.is_matrix_product}{one.op}", one) for one in shown]
        if rest:
            others = OpTime(
                "",
                sum(one.milliseconds for one in rest),
                sum(one.calls for one in rest),
                sum(one.share for one in rest),
                False,
            )
            rows.append((f"{len(rest)} more", others))
        width = max(len(label) for label, _ in rows)
        lines = [
            f"{self.title}: {1000 * self.seconds:,.1f} ms a step.",
            f"{'op':<{width}}  {'ms a step':>9}  {'calls':>7}  {'share':>6}",
        ]
        lines += [
            f"{label:<{width}}  {one.milliseconds:>9,.2f}  {one.calls:>7,.0f}  "
            f"{one.share:>6.1%}"
            for label, one in rows
        ]
        lines += [
            f"{'all ops':<{width}}  {total:>9,.2f}",
            f"Matrix products (*) take {self.matrix_share:.1%} of the time of all ops.",
            "Ops run side by side on several threads and are slowed by the profiler: "
            "their sum may exceed the time of a step. Calls of XLA are its kernels.",
        ]
        return "\n".join(lines)


def profile(
    model,
    shape="8x128",
    precision="float32",
    forward=False,
    steps=3,
    csv_file=None,
    **overrides,
):
    """Runs steps of an encoder under TensorFlow's profiler, on a CPU.

    A training step is `train_on_batch` of a classifier with two classes on
    `pooled_output`: cross entropy, dropout, AdamW. Weights and ids are random, rows
    are full.

    Args:
        model: str or path, as `keras_recbert.explain` takes it.
        shape: str. Rows x tokens.
        precision: `"float32"` or `"bfloat16"` (weights in float32).
        forward: bool. `predict_on_batch` instead of a training step.
        steps: int. Steps to time, and steps to profile.
        csv_file: optional path of a CSV to write, all ops in it.
        **overrides: arguments of the encoder to change.

    Returns:
        `Profile`.

    Raises:
        ValueError: if an argument is wrong, or there is an accelerator; before any
            work.
        OSError: if `csv_file` cannot be written; before any work.
    """
    shape = parse_shape(shape)
    check_positive(steps=steps)
    if precision not in POLICIES:
        raise ValueError(
            f"`precision` must be one of {', '.join(POLICIES)}. "
            f"Received: precision={precision!r}."
        )
    if csv_file is not None:
        check_file(csv_file)
    if accelerators():
        raise ValueError(
            f"Only ops of a CPU are profiled, and there is {accelerators()}. Hide "
            "it: CUDA_VISIBLE_DEVICES=-1."
        )
    progress = Progress()
    progress.live(f"building {model}")
    encoder = random_encoder(model, dtype=POLICIES[precision], **overrides)
    if shape.sequence_length > encoder.max_sequence_length:
        raise ValueError(
            f"{model} has {encoder.max_sequence_length} positions. "
            f"Received: shape={str(shape)!r}, {shape.sequence_length} tokens a row."
        )
    step = _make_step(encoder, shape, forward)
    progress.live("compiling the step, a minute for a large model")
    for _ in range(2):
        step()
    seconds = []
    for number in range(steps):
        progress.live(f"timing step {number + 1} of {steps}")
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    progress.live("profiling")
    times, calls = _profile(step, steps)
    total = sum(times.values())
    ops = [
        OpTime(op, time_ / steps, calls[op] / steps, time_ / total, is_product(op))
        for op, time_ in times.most_common()
    ]
    kind = "forward pass" if forward else "training step"
    title = f"{encoder.name}, {kind}, {shape}, {precision}"
    found = Profile(title, statistics.median(seconds), ops)
    if csv_file is not None:
        _save_csv(csv_file, found)
    progress.say(found)
    return found


def is_product(op):
    """Whether a type of op, as `OpTime` has it, multiplies matrices."""
    return "MatMul" in op or "Einsum" in op or op.endswith(" dot")


def _make_step(encoder, shape, forward):
    inputs = {
        key: keras.Input((None,), dtype="int32", name=key) for key in encoder.input
    }
    head = keras.layers.Dense(2, dtype="float32", name="head")
    model = keras.Model(inputs, head(encoder(inputs)["pooled_output"]))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(AdamW(learning_rate=1e-5), loss)
    random, size = np.random.default_rng(0), (shape.batch_size, shape.sequence_length)
    vocabulary_size = encoder.config["vocabulary_size"]
    batch = {
        "token_ids": random.integers(0, vocabulary_size, size, dtype=np.int32),
        "segment_ids": np.zeros(size, np.int32),
        "padding_mask": np.ones(size, np.int32),
    }
    labels = random.integers(0, 2, shape.batch_size, dtype=np.int32)
    if forward:
        return lambda: model.predict_on_batch(batch)
    return lambda: model.train_on_batch(batch, labels)


def _profile(step, steps):
    """Milliseconds and calls by type of op: two `Counter`s."""
    with tempfile.TemporaryDirectory(prefix="recbert-") as folder:
        with tf.profiler.experimental.Profile(folder):
            for _ in range(steps):
                step()
        (file,) = pathlib.Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(file.read_bytes())
    times, calls = collections.Counter(), collections.Counter()
    for plane in space.planes:
        if plane.name != "/host:CPU":
            continue
        names = {key: value.name for key, value in plane.event_metadata.items()}
        stats = {key: value.name for key, value in plane.stat_metadata.items()}
        for line in plane.lines:
            events = []
            for event in line.events:
                op = _type_of(names[event.metadata_id], event, stats)
                if op is not None:
                    start = event.offset_ps
                    events.append((start, -event.duration_ps, op))
            _add_own_times(sorted(events), times, calls)
    return times, calls


def _type_of(name, event, stats):
    """Type of the op that an event is the run of, or None."""
    found = TENSORFLOW_OP.match(name)
    if found:
        return found[1]
    of_xla = {
        stats[one.metadata_id]: one.str_value or stats.get(one.ref_value, "")
        for one in event.stats
    }
    if "hlo_module" not in of_xla:
        return None
    module = XLA_MODULE.match(of_xla["hlo_module"])
    function = module[1] if module else of_xla["hlo_module"]
    kind = " dot" if of_xla.get("hlo_op", "").startswith("dot") else ""
    return f"XLA {function}{kind}"


def _add_own_times(events, times, calls):
    """Adds the events of a thread, each without what runs inside it."""
    open_ = []  # (end, op) of the events that the next one may be inside of
    for start, negative, op in events:
        duration = -negative
        while open_ and open_[-1][0] <= start:
            open_.pop()
        if open_:
            times[open_[-1][1]] -= duration * PICOSECONDS
        times[op] += duration * PICOSECONDS
        calls[op] += 1
        open_.append((start + duration, op))


def _save_csv(path, found):
    with (
        new_file(path) as written,
        written.open("w", encoding="utf-8", newline="") as file,
    ):
        file.write(f"# {found.title}: {1000 * found.seconds:.3f} ms a step\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in found.ops:
            writer.writerow(
                (
                    one.op,
                    f"{one.milliseconds:.6g}",
                    f"{one.calls:g}",
                    f"{one.share:.6g}",
                    one.is_matrix_product,
                )
            )
