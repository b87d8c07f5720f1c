"""What a model is fine-tuned with if nothing is said."""

import types

import pytest

from keras_recbert.tasks.fine_tuning_defaults import fine_tuning_defaults


@pytest.mark.parametrize(
    ("hidden_dim", "rate"),
    [(768, 5e-5), (384, 1e-4), (1024, 3.75e-5), (256, 1.5e-4), (128, 3e-4), (64, 3e-4)],
)
def test_the_rate_of_a_bert_goes_with_one_over_its_width(hidden_dim, rate):
    encoder = types.SimpleNamespace(
        started_from="bert", weights_report=None, fine_tuning={}, hidden_dim=hidden_dim
    )
    defaults = fine_tuning_defaults(encoder)
    assert defaults.learning_rate == pytest.approx(rate)
    assert (defaults.start, defaults.pooling) == ("a pretrained BERT", "first")


@pytest.mark.parametrize("started_from", [None, "preset"])
def test_other_starts_have_one_rate(started_from):
    encoder = types.SimpleNamespace(
        started_from=started_from, weights_report=None, fine_tuning={}, hidden_dim=768
    )
    assert fine_tuning_defaults(encoder).learning_rate == 3e-4


def test_an_encoder_may_have_defaults_of_its_own():
    own = {"learning_rate": 1e-3, "pooling": "first"}
    encoder = types.SimpleNamespace(
        started_from=None, fine_tuning=own, weights_report=None
    )
    frozen = fine_tuning_defaults(encoder, freeze="encoder")
    assert (frozen.learning_rate, frozen.pooling) == (3e-3, "first")
    defaults = fine_tuning_defaults(encoder)
    assert (defaults.learning_rate, defaults.pooling) == (1e-3, "first")
    assert defaults.start == "random weights"
