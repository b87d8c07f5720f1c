import keras
import numpy as np
import pytest

from keras_recbert.tasks.fine_tuning_optimizer import LayerwiseAdamW
from keras_recbert.train.strategy import sum_gradients_first


@pytest.mark.parametrize("accumulation", [None, 2])
def test_clipping_adds_up_the_gradients_of_a_row_first(accumulation):
    keras.utils.set_random_seed(0)
    embedding = keras.layers.Embedding(3, 1, embeddings_initializer="zeros")
    inputs = keras.Input((2,), dtype="int32")
    model = keras.Model(inputs, keras.ops.sum(embedding(inputs), axis=(1, 2)))
    optimizer = keras.optimizers.SGD(
        1.0, global_clipnorm=1.0, gradient_accumulation_steps=accumulation
    )
    model.compile(sum_gradients_first(optimizer), lambda y, prediction: -prediction)
    ids = np.array([[1, 1]] * (accumulation or 1))
    model.fit(ids, np.zeros(len(ids)), batch_size=1, verbose=0)
    # The gradient of row 1 is 2. Keras takes it for two rows of 1, of norm 1.41.
    np.testing.assert_allclose(embedding.get_weights()[0], [[0], [1], [0]], atol=1e-6)


def test_weight_decay_of_a_subclass_stays():
    optimizer = sum_gradients_first(LayerwiseAdamW(0.1, {}, weight_decay=0.1))
    assert optimizer._apply_weight_decay.__func__ is LayerwiseAdamW._apply_weight_decay


def test_what_is_saved_of_an_optimizer_stays():
    optimizer = keras.optimizers.AdamW(0.1, global_clipnorm=1.0)
    before = keras.saving.serialize_keras_object(optimizer)
    assert keras.saving.serialize_keras_object(sum_gradients_first(optimizer)) == before
