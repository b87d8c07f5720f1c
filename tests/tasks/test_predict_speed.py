"""Asking a model in Python again and again: about as quick as its SavedModel."""

import time

import numpy as np
import pytest
import tensorflow as tf

import keras_recbert
from keras_recbert.benchmark.workers.worker_protocol import memory_bytes
from keras_recbert.text.vocabulary import learn_vocabulary

NUM_CALLS = 5000
WARM_UP = 200


@pytest.mark.benchmark
def test_calls_of_a_few_texts_cost_what_the_signature_does(data_dir, tmp_path):
    lines = (data_dir / "glue" / "SST-2" / "dev.tsv").read_text("utf-8").splitlines()
    texts = [line.split("\t")[0] for line in lines[1:]]
    model = keras_recbert.build(
        "swish_minilm", task="classifier", vocabulary=learn_vocabulary(texts, 2000)
    )
    model.export_savedmodel(tmp_path / "savedmodel")
    signature = tf.saved_model.load(tmp_path / "savedmodel").signatures
    signature = signature["serving_default"]
    rng = np.random.default_rng(0)
    seconds = {"predict": [], "signature": []}
    for call in range(NUM_CALLS):
        batch = list(rng.choice(texts, rng.integers(1, 9)))
        start = time.perf_counter()
        model.predict(batch, verbose=0)
        middle = time.perf_counter()
        signature(text=tf.constant(batch))
        if call == WARM_UP:
            before = memory_bytes("VmRSS")
        if call >= WARM_UP:
            seconds["predict"].append(middle - start)
            seconds["signature"].append(time.perf_counter() - middle)
    rise = memory_bytes("VmRSS") - before
    medians = {key: 1000 * np.median(values) for key, values in seconds.items()}
    print(f"ms a call: {medians}; memory rose by {rise / 2**20:.0f} MB")
    assert medians["predict"] < 3 * medians["signature"]
    assert rise < 100 * 2**20
