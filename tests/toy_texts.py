"""Small texts that are easy to tell apart, and small models that read them."""

import json

import numpy as np
from harness import set_seed

import keras_recbert
from keras_recbert.data.prepare import prepare

LIKED = ("good", "fine", "warm")
DISLIKED = ("bad", "dull", "cold")
FILLERS = ("a", "film", "story", "with", "actors", "and", "music", "very")
VOCABULARY = (
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    + [*LIKED, *DISLIKED, *FILLERS]
    + ["##s", ".", "!", "x", "##x", "f", "##ilm"]
)
# Two heads and odd widths; one layer, as tracing is what costs.
SIZES = {"num_layers": 1, "hidden_dim": 18, "num_heads": 2, "max_sequence_length": 64}


def reviews(num_texts=24, seed=0):
    """Texts of 2 to 14 words and their labels, 1 where a liked word is in them."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(num_texts) % 2).astype("int32")
    texts = []
    for index, label in enumerate(labels):
        words = list(rng.choice(FILLERS, 1 + (5 * index) % 13))
        words.insert(rng.integers(len(words) + 1), rng.choice((DISLIKED, LIKED)[label]))
        texts.append(" ".join(words) + ".")
    return texts, labels


def review_pairs(num_pairs=12):
    """First texts, second texts, and 1 where both are of one opinion."""
    texts, labels = reviews(2 * num_pairs, seed=1)
    order = np.random.default_rng(2).permutation(num_pairs)
    first, second = texts[:num_pairs], [texts[num_pairs + i] for i in order]
    same = labels[:num_pairs] == labels[num_pairs:][order]
    return first, second, same.astype("int32")


def texts_with_choices(number=20, seed=0):
    """Texts of 0 to 7 words with 2 to 4 choices, one of which has a liked word."""
    rng = np.random.default_rng(seed)
    texts, choices, labels = [], [], []
    for index in range(number):
        texts.append(" ".join(rng.choice(FILLERS, index % 8)))
        own = [
            " ".join([*rng.choice(FILLERS, (place + index) % 5), word])
            for place, word in enumerate(rng.permutation(DISLIKED)[: 1 + index % 3])
        ]
        labels.append(int(rng.integers(len(own) + 1)))
        own.insert(labels[-1], f"very {rng.choice(LIKED)}")
        choices.append(own)
    return {"text": texts, "choices": choices}, labels


def tiny_model(name="bert_tiny", task="classifier", seed=0, **overrides):
    """An untrained model of one layer that reads `VOCABULARY`."""
    set_seed(seed)
    arguments = {"vocabulary": VOCABULARY, **SIZES, **overrides}
    return keras_recbert.build(name, task=task, **arguments)


def write_corpus(folder, num_documents=9, num_shards=2):
    """Prepares documents of 1, 2, 3, ... sentences; the path of the corpus, a str."""
    rng = np.random.default_rng(0)
    documents = [
        "\n".join(
            " ".join(rng.choice(FILLERS, 3 + (sentence + document) % 9)) + "."
            for sentence in range(1 + document)
        )
        for document in range(num_documents)
    ]
    (folder / "toy.txt").write_text("\n\n".join(documents))
    options = {"sentences": "lines", "num_shards": num_shards}
    prepare([folder / "toy.txt"], folder / "corpus", vocabulary=VOCABULARY, **options)
    return str(folder / "corpus")


def write_glue_task(root, task, num_train=24, num_validation=10):
    """Writes the official files of a task, with toy rows, below `root`."""
    texts, labels = reviews(num_train + num_validation)
    first, second, same = review_pairs(num_train + num_validation)
    if task == "sst2":
        folder, header = "SST-2", "sentence\tlabel"
        rows = [f"{text}\t{label}" for text, label in zip(texts, labels, strict=True)]
        validation_names = ["dev"]
    elif task == "rte":
        folder, header = "RTE", "index\tsentence1\tsentence2\tlabel"
        names = ("not_entailment", "entailment")
        rows = [
            f"{index}\t{a}\t{b}\t{names[label]}"
            for index, (a, b, label) in enumerate(zip(first, second, same, strict=True))
        ]
        validation_names = ["dev"]
    elif task == "stsb":
        folder, header = "STS-B", "index\tsentence1\tsentence2\tscore"
        rows = [
            f"{index}\t{a}\t{b}\t{5 * label * (index % 4) / 3:.3f}"
            for index, (a, b, label) in enumerate(zip(first, second, same, strict=True))
        ]
        validation_names = ["dev"]
    else:
        folder, header = "MNLI", "index\tsentence1\tsentence2\tgold_label"
        names = ("contradiction", "entailment", "neutral")
        rows = [
            f"{index}\t{a}\t{b}\t{names[index % 3]}"
            for index, (a, b) in enumerate(zip(first, second, strict=True))
        ]
        validation_names = ["dev_matched", "dev_mismatched"]
    path = root / folder
    path.mkdir(parents=True)
    for name, part in (
        ("train", rows[:num_train]),
        *((name, rows[num_train:]) for name in validation_names),
    ):
        path.joinpath(f"{name}.tsv").write_text("\n".join([header, *part]) + "\n")
    return root


def write_arc(root):
    """Writes toy questions in the form of ARC below `root`."""
    folder = root / "ARC-Challenge"
    folder.mkdir(parents=True)
    for split, number in (("Train", 23), ("Dev", 13)):
        x, labels = texts_with_choices(number, seed=number)
        lines = []
        for index, label in enumerate(labels):
            choices = [
                {"text": choice, "label": letter}
                for choice, letter in zip(x["choices"][index], "ABCD", strict=False)
            ]
            question = {"stem": x["text"][index], "choices": choices}
            row = {"id": f"q{index}", "question": question, "answerKey": "ABCD"[label]}
            lines.append(json.dumps(row) + "\n")
        (folder / f"ARC-Challenge-{split}.jsonl").write_text("".join(lines))
