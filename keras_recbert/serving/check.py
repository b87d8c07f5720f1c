"""Whether a server that has TensorFlow and TF Text alone can serve a model."""

import dataclasses
import pathlib

from keras_recbert.serving.bundle import (
    WARM_UP,
    example_inputs,
    input_specs,
    read_warm_up,
)
from keras_recbert.serving.clean_process import replay_in_clean_process
from keras_recbert.serving.savedmodel import graph_ops, versions_on_disk

# Ops of TF Text that this package's tokenizers have, and the first release whose
# library holds them; 2.2 is the oldest that was looked into.
TF_TEXT_OPS = {
    "FastWordpieceTokenizeWithOffsets": "2.7",
    "NormalizeUTF8": "2.2",
    "RegexSplitWithOffsets": "2.2",
}
# Of TensorFlow, but not of every machine or process.
NOT_PORTABLE = ("Cudnn", "Xla", "PyFunc", "EagerPyFunc", "Tpu", "TPU")


@dataclasses.dataclass(frozen=True)
class Check:
    """What a check found.

    Args:
        path: path of the version that was checked.
        requests: list of tuples of examples and seconds, of each request.
        ops: dict of the ops of TF Text to the first release that has them.
        num_ops: int. Ops of TensorFlow.
        refused: list of str, ops that not every server has.
    """

    path: pathlib.Path
    requests: list
    ops: dict
    num_ops: int
    refused: list

    def __str__(self):
        lines = [f"{self.path}: {self.num_ops} ops of TensorFlow, and others:"]
        lines += [
            f"  {op}  TF Text {release} or later" for op, release in self.ops.items()
        ]
        lines += [f"  {op}  refused: not every server has it" for op in self.refused]
        lines += [
            f"  answered {number:3} in {1000 * seconds:7.1f} ms"
            for number, seconds in self.requests
        ]
        return "\n".join(lines)


def check_bundle(path):
    """Loads a SavedModel in a process without this package, and replays its warm-up.

    Args:
        path: str or path: a SavedModel, or a folder of numbered versions, of which the
            highest is checked. Without requests to warm it up it gets three texts.

    Returns:
        `Check`.

    Raises:
        FileNotFoundError: if there is no SavedModel.
        RuntimeError: if it does not answer.
        ValueError: for requests that cannot be read.
    """
    path = highest_version(path)
    if (path / WARM_UP).is_file():
        requests = read_warm_up(path)
    else:
        requests = [("serving_default", example_inputs(input_specs(path), 3))]
    plain = [
        (name, {key: value.tolist() for key, value in inputs.items()})
        for name, inputs in requests
    ]
    found = replay_in_clean_process(path, plain)
    sizes = [len(next(iter(inputs.values()))) for _, inputs in plain]
    ops = graph_ops(path)
    core = {op for op in found["ops"] if not op.startswith(NOT_PORTABLE)}
    others = sorted(ops - core)
    return Check(
        path,
        list(zip(sizes, found["seconds"], strict=True)),
        {op: TF_TEXT_OPS[op] for op in others if op in TF_TEXT_OPS},
        len(ops & core),
        [op for op in others if op not in TF_TEXT_OPS],
    )


def highest_version(path):
    """The SavedModel at a path, or the highest of its numbered versions.

    Raises:
        FileNotFoundError: if there is none.
    """
    versions = versions_on_disk(pathlib.Path(path))
    if not versions:
        raise FileNotFoundError(
            f"There is no SavedModel at {path}: neither saved_model.pb nor a numbered "
            "version, such as 1, that holds it. `recbert export MODEL DIR/NAME "
            "--version 1` writes one."
        )
    return versions[max(versions)]
