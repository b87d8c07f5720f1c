"""Names, cards and default sizes of the zoo. Imports no TensorFlow."""

import dataclasses

from keras_recbert.core.registry import Registry


@dataclasses.dataclass(frozen=True)
class ModelCard:
    """What the zoo knows of a named encoder.

    Attributes:
        name: str. Name for `keras_recbert.build`.
        sizes: dict. Arguments of the encoder.
        paper: str. Where the architecture is described.
        table: str. Section or table row that gives these sizes.
        num_parameters: int or None. Exact number of parameters, pooler included.
        published_parameters: str or None. The number the paper prints.
        targets: dict. Published scores, `{"SST-2 validation accuracy": 93.5}`, percent.
        measured: dict. Validation scores of this project's own runs from a checkpoint,
            by the same names, in percent; docs/results.md says seeds and device.
        note: str. Choices the paper leaves open.
        encoder: str. Name of the class of the encoder.
        first_layers: bool. Whether it starts from the first layers of a deeper BERT as
            it is; by default the caller must name a `num_layers` below the BERT's.
    """

    name: str
    sizes: dict
    paper: str = ""
    table: str = ""
    num_parameters: int | None = None
    published_parameters: str | None = None
    targets: dict = dataclasses.field(default_factory=dict)
    measured: dict = dataclasses.field(default_factory=dict)
    note: str = ""
    encoder: str = "RecBertEncoder"
    first_layers: bool = False


_CARDS = Registry("model", hint="`keras_recbert.list_models()` lists all names.")


def register(card):
    """Adds a `ModelCard` to the zoo; its name then builds, and joins the tests.

    Raises:
        ValueError: if the name is taken.
    """
    _CARDS.add(card.name, card)


def list_models(pattern="*"):
    """Names of the zoo that match a shell pattern such as `"*blstm*"`.

    Args:
        pattern: str. `*`, `?` and `[...]` as in file names.

    Returns:
        List of str, in the order of registration (by paper, then by size).
    """
    return _CARDS.names(pattern)


def get_card(name):
    """The `ModelCard` of a name.

    Raises:
        UnknownNameError: if the name is unknown; names the nearest ones.
    """
    return _CARDS[name]
