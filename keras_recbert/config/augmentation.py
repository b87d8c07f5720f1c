"""Options of augmented text, checked. Imports no TensorFlow."""

import dataclasses
from numbers import Real

from keras_recbert.core.checks import check_integer

PROBABILITIES = ("mask_probability", "pos_probability", "ngram_probability")


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """How synthetic examples are made of real ones.

    The defaults are those of Liu 2020, section 3.4.1, for its larger data sets; for the
    smaller ones (MRPC, STS-B) `n_iter` is 40 there.

    Args:
        n_iter: int. Synthetic examples of each example, before duplicates are dropped;
            0 leaves the originals.
        mask_probability: float in [0, 1]. Of a word to become `[MASK]`.
        pos_probability: float in [0, 1]. Of a word to be replaced by one of the same
            part of speech. A word is masked or replaced, never both, so the two
            probabilities add up to 1 at most.
        ngram_probability: float in [0, 1]. Of an example to be cut to 1 to 5
            neighbouring words, after its words were changed (Tang et al. 2019,
            section 3.3, where it is 0.25).
        seed: int from 0 to 2**32 - 1.

    Raises:
        ValueError: if one is out of its range, or nothing would ever be changed.
    """

    n_iter: int = 10
    mask_probability: float = 0.1
    pos_probability: float = 0.1
    ngram_probability: float = 0.0
    seed: int = 0

    def __post_init__(self):
        check_integer(0, n_iter=self.n_iter)
        check_integer(0, 2**32 - 1, seed=self.seed)
        for name in PROBABILITIES:
            value = getattr(self, name)
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not is_number or not 0 <= value <= 1:
                raise ValueError(
                    f"`{name}` must be a number from 0 to 1. Received: "
                    f"{name}={value!r}."
                )
        if self.mask_probability + self.pos_probability > 1:
            raise ValueError(
                "A word is masked or replaced, so `mask_probability` and "
                "`pos_probability` must add up to 1 at most. Received: "
                f"mask_probability={self.mask_probability}, "
                f"pos_probability={self.pos_probability}. Lower one."
            )
        if self.n_iter and not any(getattr(self, name) for name in PROBABILITIES):
            raise ValueError(
                "Nothing would be changed. Received: mask_probability=0, "
                "pos_probability=0, ngram_probability=0. Raise one, or set n_iter=0."
            )
