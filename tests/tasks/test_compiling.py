"""XLA compiles for each shape: only where that pays."""

import time

import keras
import numpy as np
import pytest
from toy_texts import reviews, tiny_model

import keras_recbert
from keras_recbert.models.recbert_encoder import RecBertEncoder
from keras_recbert.ops import implementation
from keras_recbert.ops.implementation import choose, compiling
from keras_recbert.tasks.compiling import compiling_pays
from keras_recbert.text.vocabulary import learn_vocabulary

TEXTS, LABELS = reviews()


def encoder(**arguments):
    sizes = {"num_layers": 4, "hidden_dim": 256, "vocabulary_size": 30}
    return RecBertEncoder(**{**sizes, **arguments})


def test_few_repeats_of_many_lengths_do_not_pay():
    lengths = [8, 16, 24, 32] * 5
    assert not compiling_pays(encoder(), 32, lengths * 40)
    assert compiling_pays(encoder(), 32, lengths * 1000)
    # As many tokens of a single length.
    assert compiling_pays(encoder(), 32, [20] * 20 * 40)


@pytest.mark.parametrize(
    "arguments", [{"implementation": "loop"}, {"hidden_dim": 32, "num_heads": 1}]
)
def test_what_is_not_compiled_anyway_does_not_pay(arguments):
    assert not compiling_pays(encoder(**arguments), 32, [64] * 100_000)


def test_the_scope_overrules_auto_alone():
    with compiling(False):
        assert choose("auto", 4096)[0] == "loop"
        assert choose("xla", 4096)[0] == "xla"
        with compiling(True):
            assert choose("auto", 4096)[0] == "xla"
    assert choose("auto", 4096)[0] == "xla"


def test_a_short_fit_and_predictions_compile_nothing(monkeypatch):
    chosen = []

    def spy(*args):
        chosen.append(choose(*args)[0])
        return chosen[-1], "as chosen"

    model = tiny_model(hidden_dim=256, num_heads=1)  # as wide as what is compiled
    ids = model.preprocessor(TEXTS)
    monkeypatch.setattr(implementation, "choose", spy)
    model.fit(TEXTS, LABELS, epochs=1, verbose=0)
    model.predict(TEXTS, verbose=0)
    model.predict(TEXTS, batch_size=5, verbose=0)
    model.evaluate(TEXTS, LABELS, verbose=0)
    assert set(chosen) == {"loop"}
    model(ids)
    assert chosen[-1] == "xla"


@pytest.mark.benchmark
@pytest.mark.parametrize("num_texts, limit", [(640, 1.2), (20_000, 1.0)])
def test_auto_is_as_quick_as_loop(num_texts, limit, data_dir):
    lines = (data_dir / "glue" / "SST-2" / "train.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines[1 : num_texts + 1]]
    texts, labels = [row[0] for row in rows], [int(row[1]) for row in rows]
    vocabulary = learn_vocabulary(texts, 2000)
    seconds = {"auto": [], "loop": []}
    for _ in range(3):
        for name, found in seconds.items():
            keras.utils.set_random_seed(0)
            model = keras_recbert.build(
                "swish_tiny",
                task="classifier",
                vocabulary=vocabulary,
                implementation=name,
            )
            start = time.perf_counter()
            model.fit(texts, labels, epochs=3, verbose=0)
            found.append(time.perf_counter() - start)
    ratios = np.divide(seconds["auto"], seconds["loop"])
    print(f"{num_texts} texts: {seconds}, auto : loop {np.median(ratios):.2f}")
    assert np.median(ratios) <= limit + 0.1  # noise of the machine
