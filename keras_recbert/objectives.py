"""Pre-training objectives, as data. Imports no TensorFlow."""

import dataclasses
import types

from keras_recbert.core.mappings import from_mapping
from keras_recbert.core.names import nearest

UNITS = ("word_piece", "whole_word", "ngram")
CONCATENATIONS = (None, "cls", "next_sentence")


@dataclasses.dataclass(frozen=True)
class MaskedLM:
    """Guess words that were masked (Devlin et al. 2018, section 3.3.1).

    Args:
        layer: Block that the head reads, from 1; by default the last. A lower one is
            Lower Mask (Aksoy et al. 2020, section 3).
        mask_rate: Part of the word pieces of a row to guess.
        mask_fraction: Part of those that become [MASK]; 1 as in Lei et al. 2022.
        random_fraction: Part of those that become another word piece, drawn evenly.
            The rest stays as it is.
        unit: What is chosen together: word_piece, whole_word (Huang et al. 2020,
            section 4.1), or ngram, up to max_ngram words.
        max_ngram: Most words of an n-gram; n has a probability in proportion to 1 / n.
        concatenate: What the head reads beside each output, of the level of the next
            sentence head: cls, the output of [CLS], or next_sentence, the logits of
            that head (Aksoy et al. 2020, section 3, figure 2).
        loss_weight: Factor of the loss in the sum of losses.
    """

    layer: int | None = None
    mask_rate: float = 0.15
    mask_fraction: float = 0.8
    random_fraction: float = 0.1
    unit: str = "word_piece"
    max_ngram: int = 3
    concatenate: str | None = None
    loss_weight: float = 1.0

    def __post_init__(self):
        _check_shared(self)
        _check(0 < self.mask_rate < 1, self, "mask_rate", "above 0 and below 1")
        for name in ("mask_fraction", "random_fraction"):
            _check(0 <= getattr(self, name) <= 1, self, name, "in [0, 1]")
        rest = 1 - self.mask_fraction - self.random_fraction
        rule = "at most 1 together with mask_fraction"
        _check(rest > -1e-9, self, "random_fraction", rule)
        _check(self.unit in UNITS, self, "unit", f"one of {', '.join(UNITS)}")
        _check(self.max_ngram >= 1, self, "max_ngram", "at least 1")
        rule = "one of None, cls, next_sentence"
        _check(self.concatenate in CONCATENATIONS, self, "concatenate", rule)


@dataclasses.dataclass(frozen=True)
class NextSentence:
    """Say whether the second span follows the first (Devlin et al. 2018, 3.3.2).

    Args:
        layer: Block whose [CLS] the head reads, from 1; by default the last. A lower
            one is Lower NSP (Aksoy et al. 2020, section 3).
        random_fraction: Part of the second spans that come from another document.
        freeze_at_step: Optimizer step from which everything that feeds the head stays
            as it is: Lower NSP-Freeze (Aksoy et al. 2020, section 3).
        freeze_patience: Validations without a new lowest validation loss of this head
            after which that happens instead.
        loss_weight: Factor of the loss in the sum of losses.
    """

    layer: int | None = None
    random_fraction: float = 0.5
    freeze_at_step: int | None = None
    freeze_patience: int | None = None
    loss_weight: float = 1.0

    def __post_init__(self):
        _check_shared(self)
        value = self.random_fraction
        _check(0 < value < 1, self, "random_fraction", "above 0 and below 1")
        for name in ("freeze_at_step", "freeze_patience"):
            value = getattr(self, name)
            _check(value is None or value >= 1, self, name, "at least 1")
        if self.freeze_at_step is not None and self.freeze_patience is not None:
            raise ValueError(
                "next_sentence freezes at a step or by patience, not both. Received: "
                f"freeze_at_step={self.freeze_at_step}, "
                f"freeze_patience={self.freeze_patience}."
            )


@dataclasses.dataclass(frozen=True)
class BigramShift:
    """Say of each word piece whether it is in place (Aksoy et al. 2020, section 3).

    Args:
        layer: Block that the head reads, from 1; by default the last.
        swap_rate: Part of the pairs of neighbouring words that are swapped.
        loss_weight: Factor of the loss in the sum of losses.
    """

    layer: int | None = None
    swap_rate: float = 0.15
    loss_weight: float = 1.0

    def __post_init__(self):
        _check_shared(self)
        _check(0 < self.swap_rate < 1, self, "swap_rate", "above 0 and below 1")


@dataclasses.dataclass(frozen=True)
class CausalLM:
    """Guess the next word piece, left to right (Devlin et al. 2018, section 5.1).

    Args:
        layer: Block that the head reads, from 1; by default the last.
        loss_weight: Factor of the loss in the sum of losses.
    """

    layer: int | None = None
    loss_weight: float = 1.0

    def __post_init__(self):
        _check_shared(self)


OBJECTIVES = {
    "masked_lm": MaskedLM,
    "next_sentence": NextSentence,
    "bigram_shift": BigramShift,
    "causal_lm": CausalLM,
}


@dataclasses.dataclass(frozen=True)
class Objectives:
    """What an encoder is pre-trained on; None for what it is not.

    Raises:
        ValueError: if there is none, or two that cannot be had together.
    """

    masked_lm: MaskedLM | None = None
    next_sentence: NextSentence | None = None
    bigram_shift: BigramShift | None = None
    causal_lm: CausalLM | None = None

    def __post_init__(self):
        if not self.names():
            raise ValueError(
                f"Pre-training needs an objective. Valid: {', '.join(OBJECTIVES)}."
            )
        if self.causal_lm and (self.masked_lm or self.bigram_shift):
            raise ValueError(
                "causal_lm sees the words that masked_lm and bigram_shift ask for. "
                f"Received: {', '.join(self.names())}. Leave causal_lm or the others "
                "out."
            )
        if self.masked_lm and self.masked_lm.concatenate and not self.next_sentence:
            raise ValueError(
                "masked_lm concatenates what feeds next_sentence or comes from it. "
                f"Received: concatenate={self.masked_lm.concatenate!r} without "
                "next_sentence. Add next_sentence, or leave concatenate out."
            )

    def names(self):
        """Names of the objectives that there are, in order."""
        return [name for name in OBJECTIVES if getattr(self, name) is not None]

    def check_layers(self, num_layers):
        """Raises `ValueError` for a head at a block that the encoder does not have."""
        for name in self.names():
            layer = getattr(self, name).layer
            if layer is not None and not 1 <= layer <= num_layers:
                raise ValueError(
                    f"`layer` of {name} must be a block of the encoder, from 1 to "
                    f"{num_layers}. Received: layer={layer}."
                )

    def layer_of(self, name, num_layers):
        """Block that the head of an objective reads, from 1."""
        return getattr(self, name).layer or num_layers


def read_objectives(entries):
    """Objectives of a config entry.

    Args:
        entries: dict of the name of an objective to a dict of its arguments, or to
            None for the defaults: `{"masked_lm": {"layer": 3}, "next_sentence": None}`.

    Returns:
        `Objectives`.

    Raises:
        ValueError: for a name, an argument, a type or a value that is not valid;
            names the nearest valid one.
    """
    if not isinstance(entries, dict):
        raise ValueError(
            "`objectives` must be a mapping of names to arguments, such as "
            f"{{'masked_lm': {{'mask_rate': 0.15}}}}. Received: {entries!r}."
        )
    objectives = {}
    for name, arguments in entries.items():
        if name not in OBJECTIVES:
            raise ValueError(
                f"No objective is called {name!r}. {nearest(name, OBJECTIVES)}"
                f"Valid: {', '.join(OBJECTIVES)}."
            )
        if not isinstance(arguments, (dict, types.NoneType)):
            raise ValueError(
                f"{name} takes a mapping of arguments. Received: {arguments!r}."
            )
        objectives[name] = from_mapping(OBJECTIVES[name], arguments or {}, name)
    return Objectives(**objectives)


def _check_shared(objective):
    layer = objective.layer
    _check(layer is None or layer >= 1, objective, "layer", "at least 1")
    _check(objective.loss_weight > 0, objective, "loss_weight", "above 0")


def _check(valid, objective, name, rule):
    if not valid:
        what = next(key for key, cls in OBJECTIVES.items() if cls is type(objective))
        raise ValueError(
            f"`{name}` of {what} must be {rule}. "
            f"Received: {name}={getattr(objective, name)!r}."
        )
