"""Augmentation word by word (Liu 2020, section 3.3; Tang et al. 2019, section 3.3).

On texts whose words stand between single spaces, word by word.
"""

import collections

import numpy as np

CYCLE = {1: ("first",), 2: ("second",), 0: ("first", "second")}


def unigrams(texts, tag_of):
    """The words of each tag as often as they are in the texts, equal ones together."""
    words = {}
    for word in " ".join(texts).split():
        words.setdefault(tag_of(word), collections.OrderedDict())
        words[tag_of(word)][word] = words[tag_of(word)].get(word, 0) + 1
    return {
        tag: [word for word in counts for _ in range(counts[word])]
        for tag, counts in words.items()
    }


def augment_once(example, options, iteration, row, words, tag_of):
    """A synthetic example of a text, or of a pair of them.

    Args:
        example: list of one or two str.
        options: `Augmentation`.
        iteration: int from 1.
        row: int.
        words: as `unigrams` gives them.
        tag_of: function of a word to its tag.
    """
    draws = np.random.default_rng([options.seed, iteration, row])
    is_ngram = draws.random() < options.ngram_probability
    example = dict(zip(("first", "second"), example, strict=False))
    sides = ("first",) if len(example) == 1 else CYCLE[iteration % 3]
    for side in sides:
        synthetic, replaced = [], []
        for place, word in enumerate(example[side].split()):
            x = draws.random()
            if x < options.mask_probability:
                word = "[MASK]"
            elif x < options.mask_probability + options.pos_probability:
                replaced.append(place)
            synthetic.append(word)
        for place in replaced:
            same_tag = words[tag_of(synthetic[place])]
            synthetic[place] = same_tag[int(draws.random() * len(same_tag))]
        if is_ngram and synthetic:
            n = min(draws.integers(1, 6), len(synthetic))
            start = draws.integers(0, len(synthetic) - n + 1)
            synthetic = synthetic[start : start + n]
        example[side] = " ".join(synthetic)
    return tuple(example.values())


def augment_all(columns, options, tag_of):
    """The originals, then what is new of each iteration."""
    words = unigrams([text for column in columns for text in column], tag_of)
    examples = list(zip(*columns, strict=True))
    for iteration in range(1, options.n_iter + 1):
        for row, example in enumerate(list(zip(*columns, strict=True))):
            new = augment_once(example, options, iteration, row, words, tag_of)
            if new not in examples:
                examples.append(new)
    return examples
