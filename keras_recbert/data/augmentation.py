"""Text augmentation for distillation: masked words, replaced words, n-grams."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from keras_recbert.config.augmentation import Augmentation
from keras_recbert.core.checks import check_integer
from keras_recbert.data.pos_tagging import TaggedTexts
from keras_recbert.data.word_spans import MASK, find_words, replace_words

# Which texts of a pair are changed, from one iteration to the next.
PAIR_CYCLE = ((0,), (1,), (0, 1))
MAX_NGRAM = 5  # Tang et al. 2019, section 3.3
_RECENT = 1 << 17  # checksums that are kept unsorted


class AugmentedExample(NamedTuple):
    """An example, and what it comes from.

    Attributes:
        row: int. The original, from 0.
        iteration: int. 0 for the original itself, else from 1.
        texts: tuple of str, one a field.
    """

    row: int
    iteration: int
    texts: tuple[str, ...]


def augment(fields, augmentation=None, tagger=None, num_workers=1):
    """Gives the examples of a data set, and then synthetic ones made of them.

    Args:
        fields: list of str; a tuple of two lists for pairs; or a dict of field to list
            of str, such as `Examples.fields`, of one or two fields.
        augmentation: `Augmentation`, or None for the defaults.
        tagger: function of a list of words to as many parts of speech; by default
            `NltkTagger`. With `pos_probability=0` none is used.
        num_workers: int. Processes that tag words; the examples are the same.

    Returns:
        Iterator of tuples of str, one text a field: all originals; then the synthetic
        examples of iteration 1, of all rows; of iteration 2, and so on.

    Raises:
        ValueError: if `fields` does not hold texts.
        ImportError, FileNotFoundError: as `NltkTagger`.

    Example:

    >>> texts = ["a gripping film", "dull and too long"]
    >>> for (text,) in augment(texts, Augmentation(pos_probability=0, n_iter=0)):
    ...     print(text)
    a gripping film
    dull and too long
    """
    examples = TextAugmenter(fields, augmentation, tagger, num_workers)
    return (example.texts for example in examples)


class TextAugmenter:
    """Makes synthetic examples (Liu 2020, section 3.3; Tang et al. 2019, 3.3).

    For each word a number is drawn from the uniform distribution on [0, 1). Below
    `mask_probability` the word becomes `[MASK]`; else below `mask_probability +
    pos_probability` a word takes its place that is drawn from the unigram distribution
    of the words of its part of speech, in all texts of `fields`; it may be the same
    word. After that, with `ngram_probability`, the text is cut to n neighbouring words,
    n uniform from 1 to 5, or to all words of a shorter one. Of pairs, iteration 1
    changes the first text, iteration 2 the second, iteration 3 both, iteration 4 the
    first, and so on.

    A text without words stays as it is, and no text becomes empty. What was not drawn,
    white space too, stays byte for byte.

    An iterator gives all originals, the same ones several times if they are there
    several times; then by iteration and row the synthetic examples that equal no
    original and none before. To know these, 8 bytes are kept of each (a checksum, so of
    100 million examples one may be dropped wrongly with a probability of 0.0003).

    A candidate depends on seed, iteration, row and texts alone, see `candidate`: the
    order in which they are made, or by whom, does not matter.

    Args:
        fields, augmentation, tagger, num_workers: as for `augment`.
    """

    def __init__(self, fields, augmentation=None, tagger=None, num_workers=1):
        self.augmentation = Augmentation() if augmentation is None else augmentation
        if not isinstance(self.augmentation, Augmentation):
            raise ValueError(
                "`augmentation` must be an Augmentation, such as Augmentation(n_iter="
                f"40). Received: augmentation={augmentation!r}."
            )
        check_integer(num_workers=num_workers)
        if tagger is not None and not callable(tagger):
            raise ValueError(
                "`tagger` must be a function of a list of words to as many tags. "
                f"Received: tagger={tagger!r}."
            )
        self._columns = _text_columns(fields)
        self.num_rows = len(self._columns[0])
        self._tagged = None
        if self.augmentation.n_iter and self.augmentation.pos_probability:
            texts = [text for column in self._columns for text in column]
            self._tagged = TaggedTexts(texts, tagger, num_workers)

    def original(self, row):
        """The texts of a row, a tuple of str."""
        return tuple(column[row] for column in self._columns)

    def candidate(self, iteration, row):
        """A synthetic example, whether or not it equals another one.

        Args:
            iteration: int from 1; may be above `n_iter`.
            row: int from 0.

        Returns:
            Tuple of str, one text a field.

        Raises:
            ValueError: if there is no such iteration or row, or `n_iter` is 0: such an
                augmenter has not read the parts of speech.
        """
        check_integer(n_iter=self.augmentation.n_iter)
        check_integer(iteration=iteration)
        check_integer(0, self.num_rows - 1, row=row)
        options = self.augmentation
        draws = np.random.default_rng([options.seed, iteration, row])
        is_ngram = draws.random() < options.ngram_probability
        texts = list(self.original(row))
        changed = PAIR_CYCLE[(iteration - 1) % 3] if len(texts) == 2 else (0,)
        for field in changed:
            texts[field] = self._change(texts[field], is_ngram, draws)
        return tuple(texts)

    def __iter__(self):
        seen = _Seen()
        for row in range(self.num_rows):
            texts = self.original(row)
            seen.add(texts)
            yield AugmentedExample(row, 0, texts)
        for iteration in range(1, 1 + self.augmentation.n_iter):
            for row in range(self.num_rows):
                texts = self.candidate(iteration, row)
                if seen.add(texts):
                    yield AugmentedExample(row, iteration, texts)

    def _change(self, text, is_ngram, draws):
        """A text with its words masked and replaced, or an n-gram of that."""
        mask = self.augmentation.mask_probability
        either = mask + self.augmentation.pos_probability
        spans = find_words(text)
        if not spans:
            return text
        uniform = draws.random(len(spans))
        words = {}
        for place in np.flatnonzero(uniform < either).tolist():
            if uniform[place] < mask:
                words[place] = MASK
            else:
                words[place] = self._tagged.replacement(text, place, draws.random())
        if is_ngram:
            length = min(int(draws.integers(1, MAX_NGRAM + 1)), len(spans))
            first = int(draws.integers(len(spans) - length + 1))
            begin, end = spans[first][0], spans[first + length - 1][1]
            kept = range(first, first + length)
            words = {place - first: words[place] for place in words if place in kept}
            spans = [(spans[p][0] - begin, spans[p][1] - begin) for p in kept]
            text = text[begin:end]
        return replace_words(text, spans, words)


class _Seen:
    """Which examples there were, by checksums of 8 bytes.

    A set of Python would take ten times the memory, so only the latest are in one.
    """

    def __init__(self):
        self._sorted = np.zeros(0, np.uint64)
        self._recent = set()

    def add(self, texts):
        """Adds the texts of an example; returns whether they are new."""
        checksum = _checksum(texts)
        if checksum in self._recent:
            return False
        place = np.searchsorted(self._sorted, np.uint64(checksum))
        if place < len(self._sorted) and self._sorted[place] == checksum:
            return False
        self._recent.add(checksum)
        if len(self._recent) == _RECENT:
            recent = np.fromiter(self._recent, np.uint64)
            self._sorted = np.sort(np.concatenate([self._sorted, recent]))
            self._recent.clear()
        return True


def _checksum(texts):
    """8 bytes of an example, as an int."""
    data = repr(texts).encode("utf-8")  # escapes quotes, and halves of characters
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def _text_columns(fields):
    """The columns of texts, checked: a list of one or two lists of str."""
    if isinstance(fields, Mapping):
        named = {f"fields[{name!r}]": column for name, column in fields.items()}
    elif isinstance(fields, tuple):
        named = {f"fields[{place}]": column for place, column in enumerate(fields)}
    else:
        named = {"fields": fields}
    if len(named) not in (1, 2):
        raise ValueError(
            "An example must have one text, or two. Received: "
            f"{len(named)} columns, {', '.join(named)}."
        )
    columns = []
    for name, column in named.items():
        if isinstance(column, str) or not hasattr(column, "__len__"):
            raise ValueError(
                f"`{name}` must be a list of texts. Received: {type(column).__name__}, "
                f"{column!r}."
            )
        for row, text in enumerate(column):
            if not isinstance(text, str):
                raise ValueError(
                    f"`{name}[{row}]` must be a text. Received: {type(text).__name__}, "
                    f"{text!r}. Pairs are a tuple of two lists."
                )
        columns.append(list(column))
    if not columns[0] or len({len(column) for column in columns}) > 1:
        lengths = ", ".join(f"{name} {len(named[name])}" for name in named)
        raise ValueError(
            "`fields` must hold at least one example, and as many texts in each "
            f"column. Received: {lengths}."
        )
    return columns
