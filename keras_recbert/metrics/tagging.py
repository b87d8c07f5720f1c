"""Accuracy of tags, and precision, recall and F1 of entities, as conlleval counts them.

Tjong Kim Sang and Buchholz 2000 (CoNLL-2000, section 4) and the script `conlleval` of
the CoNLL shared tasks. The tests compare with `seqeval`, whose default does the same.
"""

import re

ENTITY_METRICS = ("entity_f1", "entity_precision", "entity_recall")
METRICS = ("accuracy", *ENTITY_METRICS)
OUTSIDE = "O"
_ENTITY_TAG = re.compile(r"[BIES]-.+", re.DOTALL)
# Those of BILOU and BMES, too, which are told how to rename.
_ANY_SCHEME = re.compile(r"[BIESLUM]-.+", re.DOTALL)


def are_entity_tags(tags) -> bool:
    """Whether tags are `O` and such as `B-person`: IOB1, IOB2 (BIO), IOBES (BIOES).

    Args:
        tags: sequence of str, all that there are.
    """
    others = [tag for tag in tags if tag != OUTSIDE]
    return len(others) < len(tags) and all(map(_ENTITY_TAG.fullmatch, others))


def stray_tags(tags) -> list[str]:
    """Tags that are none of entities, where half of those beside `O` or more are.

    Parts of speech have no strays: few of them, if any, look like `B-person`.

    Args:
        tags: sequence of str, that of each word.

    Returns:
        list of str, in their order.
    """
    others = [tag for tag in tags if tag != OUTSIDE]
    alike = sum(_ANY_SCHEME.fullmatch(tag) is not None for tag in others)
    if len(others) == len(tags) or 2 * alike < len(others):
        return []
    return [tag for tag in others if not _ENTITY_TAG.fullmatch(tag)]


def split_tag(tag: str) -> tuple[str, str]:
    """`("B", "person")` of `"B-person"`, `("O", "")` of `"O"`."""
    prefix, _, label = tag.partition("-")
    return prefix, label


def continues(previous: str, tag: str) -> bool:
    """Whether a tag continues the entity of the tag before it.

    That of conlleval in every scheme: inside or at the end of an entity, of the same
    label, behind its begin or inside. So `I-x` begins an entity behind `O` or another
    label, as in IOB1.
    """
    before, label = split_tag(previous)
    prefix, own = split_tag(tag)
    return before in ("B", "I") and prefix in ("I", "E") and label == own


def entities_of(tags) -> list[tuple[str, int, int]]:
    """The entities of a sentence.

    Args:
        tags: sequence of str.

    Returns:
        List of tuples of the label, the position of the first word, and the one after
        the last.
    """
    found = []
    previous = OUTSIDE
    for position, tag in enumerate(tags):
        if tag != OUTSIDE:
            label = split_tag(tag)[1]
            start = position
            if continues(previous, tag):
                _, start, _ = found.pop()
            found.append((label, start, position + 1))
        previous = tag
    return found


def tagging_scores(metric_names, gold, found) -> dict[str, float]:
    """Scores of the tags of sentences.

    `accuracy` is the part of the words whose tag is right. An entity is right if its
    label and all of its words are; `entity_precision` is the part of those found that
    are right, `entity_recall` the part of the gold ones that were found, `entity_f1`
    their harmonic mean; each is 0 where there is nothing to divide by.

    Args:
        metric_names: sequence of names among `METRICS`.
        gold, found: sequences of sequences of str, a tag a word.

    Returns:
        dict of metric name to a float from 0 to 1.

    Raises:
        ValueError: for an unknown metric, no words, or numbers that differ; names the
            sentence.
    """
    unknown = [name for name in metric_names if name not in METRICS]
    if unknown:
        raise ValueError(f"Unknown metrics: {unknown}. Valid: {', '.join(METRICS)}.")
    if len(gold) != len(found) or not any(map(len, gold)):
        raise ValueError(
            "Each sentence needs tags, and there must be one word at least. Received: "
            f"{len(gold)} sentences with gold tags, {len(found)} with tags found."
        )
    num_right = num_words = num_gold = num_found = num_common = 0
    for index, (expected, tags) in enumerate(zip(gold, found, strict=True)):
        if len(expected) != len(tags):
            raise ValueError(
                f"Each word needs a tag. Received: {len(expected)} gold tags and "
                f"{len(tags)} found at index {index}."
            )
        num_words += len(tags)
        num_right += sum(map(str.__eq__, expected, tags))
        wanted, given = set(entities_of(expected)), set(entities_of(tags))
        num_gold += len(wanted)
        num_found += len(given)
        num_common += len(wanted & given)
    scores = {
        "accuracy": num_right / num_words,
        "entity_precision": num_common / max(num_found, 1),
        "entity_recall": num_common / max(num_gold, 1),
        "entity_f1": 2 * num_common / max(num_found + num_gold, 1),
    }
    return {name: scores[name] for name in metric_names}
