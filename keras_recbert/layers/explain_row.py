"""What a layer says of itself in `keras_recbert.explain`."""

import dataclasses

from keras_recbert.ops.implementation import choose, portable_graphs

NOTHING = "-"


@dataclasses.dataclass(frozen=True)
class Row:
    """What one kind of layer runs.

    Args:
        what: str. What is computed.
        num_layers: int. Layers of the encoder that compute it.
        width: int, or None where it does not count.
        training, inference, exported: str. What runs in a training step, in a forward
            pass, and in a SavedModel: `"reference"`, `"loop"`, `"packed"` or `"xla"`,
            as `keras_recbert.ops.implementation` has them; or who computes it.
        reason: str. Why that runs in training.
        exported_reason: str. Why a SavedModel has something else; or empty.
    """

    what: str
    num_layers: int
    width: int | None
    training: str
    inference: str
    exported: str
    reason: str
    exported_reason: str = ""


def chosen_row(what, implementation, width, loops=False, packs=False):
    """The row of a layer that asks `choose` which implementation to run.

    Args:
        what: str. What the layer computes.
        implementation: str. Its argument.
        width: int. Width of what it computes element by element.
        loops: bool. Whether it has a loop over time.
        packs: bool. As for `choose`.

    Returns:
        `Row` of what is chosen here, and where a SavedModel is traced.
    """
    if implementation == "reference" and not loops:
        # What has no loop over time has no such form: `use_xla` is all it asks.
        implementation = "loop"
    name, reason = choose(implementation, width)
    with portable_graphs(packing=True):
        exported, exported_reason = choose(implementation, width, packs)
    if exported == name:
        exported_reason = ""
    return Row(what, 1, width, name, name, exported, reason, exported_reason)


def training_row(row, inference, exported):
    """The row of what is an op of this package in training only.

    Args:
        row: `Row`.
        inference, exported: str. What runs in a forward pass and a SavedModel.
    """
    return dataclasses.replace(
        row, inference=inference, exported=exported, exported_reason=""
    )
