"""Says which implementation each kind of layer of an encoder runs, and why."""

import dataclasses

import keras

from keras_recbert.layers.explain_row import NOTHING, Row
from keras_recbert.ops.implementation import accelerators
from keras_recbert.ops.matrix_product import matrix_product

PRODUCTS = "matrix products"
TITLES = (
    "what",
    "layers",
    "width",
    "training",
    "inference",
    "SavedModel",
    "why in training",
)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What an encoder runs on this machine; `print` it.

    Args:
        name: str. Name of the encoder.
        config: dict. Its arguments.
        num_blocks, width: int. Number of blocks, and width of their outputs.
        precision: str. Its dtype policy.
        rows: list of `Row`.
    """

    name: str
    config: dict
    num_blocks: int
    width: int
    precision: str
    rows: list

    def __str__(self):
        config = self.config
        devices = " and ".join(("CPU", *accelerators()))
        kind = f" of kind {config['block']}" if "block" in config else ""
        implementation = config.get("implementation", NOTHING)
        lines = [
            f"{self.name}: {self.num_blocks} blocks{kind}, {self.width} wide, "
            f"{self.precision}, implementation={implementation}, on {devices}."
        ]
        if config.get("gradient_checkpointing"):
            lines.append("Training runs each block twice (gradient_checkpointing).")
        cells = [TITLES] + [
            (
                row.what,
                str(row.num_layers),
                NOTHING if row.width is None else str(row.width),
                row.training,
                row.inference,
                row.exported,
                row.reason,
            )
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = [
                cell.rjust(width) if number in (1, 2) else cell.ljust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(padded).rstrip())
        reasons = [row.exported_reason for row in self.rows if row.exported_reason]
        lines += [
            f"Why in a SavedModel: {reason}." for reason in dict.fromkeys(reasons)
        ]
        lines.append(
            "Which precision is faster here, `recbert finetune --precision auto` "
            "measures."
        )
        return "\n".join(lines)


def explain(encoder):
    """Walks the layers of an encoder and asks what each would run.

    A layer that has a method `explain_row`, which returns a `Row` or None, is asked.

    Args:
        encoder: `RecBertEncoder`. Its weights may be unfilled.

    Returns:
        `Explanation`.
    """
    # A row for each kind, in the order of the first layer of the kind.
    kinds = {}
    for layer in encoder._flatten_layers():
        row = layer.explain_row() if hasattr(layer, "explain_row") else None
        if row is not None:
            kinds[row] = kinds.get(row, 0) + 1
    rows = [dataclasses.replace(row, num_layers=n) for row, n in kinds.items()]
    num_products = sum(
        isinstance(layer, keras.layers.Dense) for layer in encoder._flatten_layers()
    )
    for dtype in ("float32", "bfloat16"):
        library, _ = matrix_product(dtype)
        reason = "TensorFlow's choice on this machine"
        rows.append(
            Row(
                f"{PRODUCTS}, {dtype}",
                num_products,
                None,
                library,
                library,
                "TensorFlow",
                reason,
            )
        )
    return Explanation(
        encoder.name,
        encoder.config,
        len(encoder.blocks),
        encoder.config.get("hidden_dim", encoder.sequence_dim),
        encoder.policy.name,
        rows,
    )
