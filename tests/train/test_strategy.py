import keras
import pytest
import tensorflow as tf

from keras_recbert.train.strategy import make_strategy, steps_done


@pytest.mark.parametrize("accumulation", [None, 2])
def test_steps_are_counted_on_one_device(accumulation):
    optimizer = keras.optimizers.SGD(gradient_accumulation_steps=accumulation)
    weight = keras.Variable([1.0])
    for _ in range(4):
        optimizer.apply([tf.constant([1.0])], [weight])
    assert steps_done(optimizer) == 4 // (accumulation or 1)


def test_one_cpu_is_one_device():
    for name in ("auto", "one_device"):
        assert make_strategy(name).num_replicas_in_sync == 1
    with pytest.raises(RuntimeError, match="at least two devices. Found:.*CPU:0.*auto"):
        make_strategy("mirrored")


def test_no_tpu_is_told():
    with pytest.raises(RuntimeError, match="strategy='tpu' found no TPU.*'auto'"):
        make_strategy("tpu")
