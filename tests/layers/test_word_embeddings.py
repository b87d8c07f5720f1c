"""Vectors of words in their channels."""

import numpy as np
import pytest

from keras_recbert.layers import WordEmbeddings

IDS = np.array([[3, 0, 2], [1, 3, 3]])


@pytest.mark.parametrize(
    ("channels", "trained"),
    [("static", []), ("non_static", [0]), ("multichannel", [1])],
)
def test_channels_begin_equal_and_some_are_trained(channels, trained):
    layer = WordEmbeddings(5, 40, channels)
    layer.build((None, None))
    drawn = layer.tables[0].numpy()
    given = 3.0 * np.random.default_rng(0).normal(size=(2, 40)).astype("float32")
    layer.set_vectors([3, 1], given)
    found = layer(IDS).numpy()
    number = len(layer.tables)
    assert found.shape == (2, 3, 40 * number)
    for channel in np.split(found, number, axis=-1):
        np.testing.assert_array_equal(channel[0, 0], given[0])
        np.testing.assert_array_equal(channel[1, 0], given[1])
        # The others keep their direction, and get the variance of those given.
        scale = channel[0, 1] / drawn[0]
        np.testing.assert_allclose(scale, scale[0], rtol=1e-5)
        limit = np.sqrt(3 * given.var())
        np.testing.assert_allclose(scale[0] * 0.25, limit, rtol=1e-5)
    assert layer.trainable_weights == [layer.tables[index] for index in trained]
    layer.trainable = False
    layer.trainable = True  # a static channel stays what it is
    assert len(layer.trainable_weights) == len(trained)


def test_what_does_not_fit_is_told():
    with pytest.raises(ValueError, match="'static', 'non_static', 'multichannel'. Rec"):
        WordEmbeddings(5, 4, "both")
    layer = WordEmbeddings(5, 4)
    layer.build((None, None))
    with pytest.raises(ValueError, match=r"the shape \(2, 4\).*shape \(2, 3\)"):
        layer.set_vectors([1, 2], np.zeros((2, 3)))
