import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
import tensorflow as tf

from keras_recbert.train.even_batches import even_batches, even_features


def test_even_batches_keep_the_mean_over_real_rows():
    labels = np.arange(7)
    batches = tf.data.Dataset.from_tensor_slices(({"x": labels}, labels)).batch(5)
    strategy = types.SimpleNamespace(num_replicas_in_sync=4)
    first, second = even_batches(batches, strategy).as_numpy_iterator()
    assert first[1].tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert second[1].tolist() == [5, 6, 5, 6]
    for features, filled, weights in (first, second):
        assert features["x"].tolist() == filled.tolist()
        real = list(dict.fromkeys(filled.tolist()))
        assert np.mean(filled * weights) == pytest.approx(np.mean(real))
    strategy.num_replicas_in_sync = 1
    assert even_batches(batches, strategy) is batches


def test_features_are_filled_at_the_end_of_a_batch():
    features = tf.data.Dataset.from_tensor_slices({"x": [3, 4, 5]}).batch(2)
    strategy = types.SimpleNamespace(num_replicas_in_sync=2)
    filled = even_features(features, strategy).as_numpy_iterator()
    assert [batch["x"].tolist() for batch in filled] == [[3, 4], [5, 5]]
    strategy.num_replicas_in_sync = 1
    assert even_features(features, strategy) is features


TWO_DEVICES = """
    import sys
    import numpy as np
    import tensorflow as tf
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    sys.path.insert(0, {tests!r})
    from toy_texts import reviews, tiny_model
    from keras_recbert.tasks.text_batches import ordered_batches
    from keras_recbert.train.even_batches import even_batches
    from keras_recbert.train.strategy import make_strategy

    texts, labels = reviews({num_texts})
    trained = []
    for name in ("one_device", "mirrored"):
        strategy = make_strategy(name)
        print(name, strategy.num_replicas_in_sync)
        with strategy.scope():
            model = tiny_model({model!r}, dropout=0.0, pooling={pooling!r})
            before = model.get_weights()
            model.compile_for_fine_tuning(20, learning_rate=1e-2)
            batches = ordered_batches(
                model.preprocessor, texts, (labels,), {batch_size}
            )
        model.fit(even_batches(batches, strategy), epochs=2, verbose=0)
        trained.append(model.get_weights())
    assert strategy.num_replicas_in_sync == 2
    moved = max(np.abs(a - b).max() for a, b in zip(before, trained[0]))
    differ = max(np.abs(a - b).max() for a, b in zip(*trained))
    print("RESULT", moved, differ)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "pooling", "num_texts", "batch_size"),
    [
        ("swish_tiny", "first", 24, 8),
        # Batches of odd sizes, one example among them: a device gets none.
        ("bert_tiny", "mean", 21, 5),
    ],
)
def test_two_devices_equal_one(request, model, pooling, num_texts, batch_size):
    script = textwrap.dedent(TWO_DEVICES).format(
        tests=str(request.config.rootpath / "tests"),
        model=model,
        pooling=pooling,
        num_texts=num_texts,
        batch_size=batch_size,
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    moved, differ = map(float, result.stdout.split("RESULT")[1].split())
    print(f"{model}: weights moved {moved:.3f}; two devices differ by {differ:.2e}")
    assert moved > 0.01
    assert differ <= 1e-5
