"""Sides, duplicates and classes of the texts of `python_docs`, by hashes of them."""

import hashlib
import re
from collections import Counter

# Held out: this share of the packages and of the manual topics.
VALIDATION_SHARE = 0.2
# Differing in one word is a near-duplicate only when there are this many words:
# "Return the first item" and "Return the last item" are two texts.
_MIN_WORDS_NEAR = 6


def stable_hash(seed, *parts):
    """Eight bytes of the seed and strings, the same in each process."""
    # Not hash(): that one differs from process to process.
    value = "\0".join([str(seed), *parts])
    return hashlib.blake2b(value.encode(errors="replace"), digest_size=8).digest()


def _fraction(seed, *parts):
    return int.from_bytes(stable_hash(seed, *parts), "big") / 2**64


def side_of(seed, kind, name):
    """The side of a package or a topic: train, or validation, which is held out."""
    return "validation" if _fraction(seed, kind, name) < VALIDATION_SHARE else "train"


def text_key(text):
    """The text as duplicates are compared: letters of the ASCII alphabet only."""
    return " ".join(re.findall(r"[a-z]+", text.lower()))


def near_keys(key):
    """Yields keys that two texts share when one word differs, is extra or moved."""
    words = key.split()
    yield key
    if len(words) >= _MIN_WORDS_NEAR:
        for i in range(len(words)):
            yield " ".join([*words[:i], *words[i + 1 :]])


def deduplicate(found, counts):
    """Drops texts that are there twice, with two labels, or nearly in training."""
    labels = {}
    for documents in found.values():
        for text, label in documents:
            labels.setdefault(text_key(text), set()).add(label)
    seen = set()
    near_train = set()
    result = {"train": [], "validation": []}
    for side in ("train", "validation"):  # so that a shared text stays in training
        for text, label in found[side]:
            key = text_key(text)
            if len(labels[key]) > 1:
                counts["dropped_two_labels"] += 1
            elif key in seen:
                counts["dropped_duplicate"] += 1
            elif side == "validation" and not near_train.isdisjoint(near_keys(key)):
                counts["dropped_near_duplicate"] += 1
            else:
                seen.add(key)
                result[side].append((text, label))
                counts[f"found_{label}"] += 1
                if side == "train":
                    near_train.update(near_keys(key))
    return result


def shuffle(texts, seed):
    """Texts in an order that the seed alone decides."""
    return sorted(texts, key=lambda text: stable_hash(seed, "order", text))


def balance(documents, limit, seed):
    """Cuts the largest class to the size of the others together, then to `limit`."""
    documents = sorted(documents, key=lambda item: stable_hash(seed, "order", item[0]))
    sizes = Counter(label for _, label in documents)
    if not sizes:
        return []
    largest, size = sizes.most_common(1)[0]
    most = {largest: min(size, sizes.total() - size)}
    kept = Counter()
    result = []
    for text, label in documents:
        if kept[label] < most.get(label, size):
            kept[label] += 1
            result.append((text, label))
    # A hash order over everything, so a prefix is a fair sample of it.
    return sorted(result, key=lambda item: stable_hash(seed, "sample", item[0]))[:limit]


def final_stop(text):
    """The text, every second one with a full stop."""
    return f"{text}." if _fraction(0, "final stop", text) < 0.5 else text
