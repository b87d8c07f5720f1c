"""Task models that cannot be are refused."""

import keras
import pytest
import tensorflow as tf
from toy_texts import SIZES, VOCABULARY, tiny_model

import keras_recbert
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


def test_texts_need_a_vocabulary():
    model = tiny_model(vocabulary=None, vocabulary_size=30)
    labelled = tf.data.Dataset.from_tensor_slices((["a film"], [0]))
    for call in (
        lambda: model.predict(["a film"]),
        lambda: model.predict(tf.data.Dataset.from_tensor_slices(["a film"])),
        lambda: model.fit(["a film"], [0]),
        lambda: model.fit(labelled),
        lambda: model.evaluate(["a film"], [0]),
        lambda: model.evaluate(labelled),
    ):
        with pytest.raises(ValueError, match="built without a vocabulary.*vocab"):
            call()
    with pytest.raises(ValueError, match="built without a vocabulary"):
        model.export_savedmodel("never_written")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 1}, "at least 2 classes.*num_classes=1.*task='regressor'"),
        ({"num_classes": 0}, "`num_classes` must be a whole number of at least 1"),
        ({"label_names": ["a", "a"]}, "different name for each class.*'a', 'a'"),
        ({"num_classes": 3, "label_names": ["a", "b"]}, "num_classes=3, label_names"),
        (
            {"num_clases": 3},
            "TextClassifier takes no argument 'num_clases'.*Did you mean 'num_classes'",
        ),
        ({"vocabulery": "x"}, "takes no argument 'vocabulery'.*Did you.* 'vocabulary'"),
        ({"hiden_dim": 8}, "takes no argument 'hiden_dim'.*Did you mean 'hidden_dim'"),
        ({"gate": "gelu"}, "'bert_tiny' takes no argument 'gate'"),
        (
            {"vocabulary_size": 12},
            "more word pieces.*26 word pieces, vocabulary_si.*12",
        ),
        ({"sequence_length": 100}, "`sequence_length` must not exceed"),
        ({"vocabulary": None, "lowercase": False}, "'lowercase' need a vocabulary"),
        ({"truncation": "middle"}, "`truncation` must be one of"),
    ],
)
def test_impossible_tasks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        tiny_model(**arguments)


def test_the_preprocessor_must_fit_the_encoder():
    from keras_recbert.tasks import TextClassifier

    encoder = keras_recbert.build("bert_tiny", vocabulary_size=26, **SIZES)
    preprocessor = TextPreprocessor(
        WordPieceTokenizer(VOCABULARY), max_sequence_length=65
    )
    with pytest.raises(ValueError, match="65 word pieces, max_sequence_length=64"):
        TextClassifier(encoder, preprocessor)
    with pytest.raises(ValueError, match="must be an Encoder.*Received: Dense"):
        TextClassifier(keras.layers.Dense(3))


def test_unknown_task_gets_the_nearest_name():
    with pytest.raises(ValueError, match="'clasifier'. Did you mean 'classifier'"):
        keras_recbert.build("bert_tiny", task="clasifier")
