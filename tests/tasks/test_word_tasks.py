"""A BiLSTM on words is trained on every task."""

import numpy as np
from harness import set_seed
from toy_questions import quiz
from toy_texts import reviews

import keras_recbert

TINY = {"vector_dim": 12, "recurrent_dim": 16, "pooled_dim": 12, "dropout": 0.0}


def words_of(examples):
    """Texts of examples: fields, or lists of words."""
    columns = examples.values() if isinstance(examples, dict) else [examples]
    rows = [row for column in columns for row in column]
    return [row if isinstance(row, str) else " ".join(row) for row in rows]


def trained(x, y, name="bilstm_student", rate=0.1, **arguments):
    """A model after a few steps, which lowered its loss."""
    arguments = {"texts": words_of(x), "min_frequency": 1, **TINY, **arguments}
    set_seed(0)
    model = keras_recbert.build(name, **arguments)
    history = model.fit(x, y, epochs=5, learning_rate=rate, verbose=0).history
    assert history["loss"][-1] < 0.9 * history["loss"][0]
    return model


def test_scores_and_several_labels(eager_steps):
    texts, labels = reviews(6)
    model = trained(texts, 1.0 * labels, rate=0.02, task="regressor")
    assert model.predict(texts, verbose=0).shape == (6,)
    labels = np.stack([labels, 1 - labels, labels], axis=1)
    names = {"label_names": ["liked", "disliked", "good"]}
    model = trained(texts, labels, task="multilabel_classifier", **names)
    assert model.predict(texts, verbose=0).shape == labels.shape


def test_questions(eager_steps):
    x, y = quiz(4)
    limits = {"max_sequence_length": 24, "stride": 8}
    model = trained(x, y, task="question_answering", **limits)
    found = model.predict(x, verbose=0)
    for context, text, start, end in zip(
        x["context"], found["answer"], found["start"], found["end"], strict=True
    ):
        assert context.encode()[start:end] == text


def test_tags_of_words_in_windows(eager_steps):
    words = [["good", "a"] * number for number in range(1, 6)]
    tags = [["up", "O"] * number for number in range(1, 6)]
    arguments = {"label_names": ["up", "O"], "max_sequence_length": 8}
    model = trained(words, tags, task="token_classifier", **arguments)
    found = model.predict([*words, ["unheard", "good"]], verbose=0)["tags"]
    right = [
        found[row, place].decode() == tag
        for row, own in enumerate(tags)
        for place, tag in enumerate(own)
    ]
    assert np.mean(right) > 0.9
