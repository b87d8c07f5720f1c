"""Small models of several kinds, by name."""

from toy_texts import VOCABULARY, tiny_model

import keras_recbert

WORDS = [word for word in VOCABULARY if not word.startswith("##")]
NAMES = ["negative", "positive"]
HEADS = {"sst2": {"task": "classifier", "label_names": NAMES}, "stars": "regressor"}
OWN = {"label_names": NAMES, "pooling": "first"}


def _word_model():
    sizes = {"recurrent_dim": 5, "vector_dim": 7, "vocabulary": WORDS}
    return keras_recbert.build(
        "bilstm_student", task="classifier", label_names=NAMES, **sizes
    )


def _pairs():
    model = tiny_model(**OWN)
    model.fields = ("text", "text_pair")
    return model


def _without_vocabulary():
    sizes = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "vocabulary_size": 9}
    return keras_recbert.build("bert_tiny", task="classifier", **OWN, **sizes)


KINDS = {
    "fitting": lambda: tiny_model(**OWN),
    "encoder": lambda: tiny_model(**OWN).encoder,
    "heads": lambda: tiny_model(task=HEADS),
    "mean": lambda: tiny_model(label_names=NAMES, pooling="mean"),
    "numbers": lambda: tiny_model(pooling="first"),
    "other_labels": lambda: tiny_model(label_names=["bad", "good"], pooling="first"),
    "pairs": _pairs,
    "regressor": lambda: tiny_model(task="regressor", pooling="first"),
    "swish": lambda: tiny_model("swish_tiny", **OWN),
    "without_vocabulary": _without_vocabulary,
    "words": _word_model,
}
