"""The table of names and cards."""

import re

import pytest
from toy_texts import SIZES, VOCABULARY

import keras_recbert
from keras_recbert.models import registry

ALL = keras_recbert.list_models()


def test_every_name_of_the_papers_is_there_in_order():
    names = [
        "bert_tiny",
        "bert_mini",
        "bert_small",
        "bert_medium",
        "bert_base",
        "bert_large",
        "bert_large_48",
        "bert_ltr_base",
        "bert_rab_tiny",
        "bert_rab_small",
        "bert_rab_base",
        "bert_rab_large",
        "swish_tiny",
        "swish_small",
        "swish_base",
        "swish_large",
        "trans_blstm_tiny",
        "trans_blstm_small",
        "trans_blstm_base",
        "trans_blstm_large",
        "trans_blstm_half_base",
        "trans_blstm_half_large",
        "trans_blstm_1_base",
        "trans_blstm_1_large",
        "blstm_base",
        "bilstm_student",
        "bilstm_student_300",
        "siamese_bilstm_student",
        "transformer_student",
        "transformer_student_minilm",
        "swish_student",
        "bi_attentive_student",
        "bi_attentive_word_student",
    ]
    assert [name for name in ALL if name in names] == names


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*", ALL),
        ("swish_*", [name for name in ALL if name.startswith("swish_")]),
        ("*blstm*", [name for name in ALL if "blstm" in name]),
        ("*_1_[bl]*", ["trans_blstm_1_base", "trans_blstm_1_large"]),
        ("bert_t?ny", ["bert_tiny"]),
        ("BERT*", []),
        ("base", []),
    ],
)
def test_list_models_takes_a_shell_pattern(pattern, names):
    assert keras_recbert.list_models(pattern) == names


@pytest.mark.parametrize("name", ALL)
def test_card_says_where_its_sizes_and_scores_come_from(name):
    card = keras_recbert.get_card(name)
    assert card.name == name
    assert re.search(r"\(arXiv:\d{4}\.\d{5}\)$", card.paper)
    assert re.search("table|section|miniature", card.table)
    assert isinstance(card.num_parameters, int)
    is_bert = card.encoder == "RecBertEncoder"
    assert {"hidden_dim" if is_bert else "recurrent_dim"} <= set(card.sizes)
    assert ({"block", "num_layers"} <= set(card.sizes)) is is_bert
    for score_name, score in card.targets.items():
        assert re.search("validation|test", score_name), score_name
        assert 40 < score < 100
    # A card without scores of a paper says why.
    assert card.targets or card.note
    if card.published_parameters:
        millions = float(card.published_parameters.removesuffix("M"))
        # The papers round; the widest gap is BERT-large, 340M for 335.1M.
        assert card.num_parameters == pytest.approx(1e6 * millions, rel=0.015)


def test_published_scores_of_some_cards():
    """Read from the papers' tables once more, by another pair of eyes."""
    targets = {name: keras_recbert.get_card(name).targets for name in ALL}
    assert targets["bert_base"]["SQuAD 1.1 validation F1"] == 88.5
    assert targets["bert_base"]["CoNLL-2003 validation F1"] == 96.4
    assert targets["bert_large"]["SQuAD 1.1 validation exact match"] == 84.1
    assert targets["trans_blstm_large"]["SQuAD 1.1 validation F1"] == 93.82
    assert targets["trans_blstm_half_base"]["MNLI-m validation accuracy"] == 85.46
    assert targets["trans_blstm_base"]["SST-2 validation accuracy"] == 94.26
    assert targets["trans_blstm_1_base"]["SQuAD 1.1 validation F1"] == 91.52
    assert targets["blstm_base"]["SQuAD 1.1 validation F1"] == 83.43
    assert targets["bilstm_student"]["SST-2 test accuracy"] == 86.7
    assert targets["siamese_bilstm_student"]["MRPC test F1"] == 80.9
    assert targets["bi_attentive_student"]["RTE test accuracy"] == 67.3
    assert targets["transformer_student"]["MNLI-m test accuracy"] == 79.2
    assert targets["bert_large_48"]["SQuAD 1.1 validation F1"] == 92.32


def test_unknown_name_gets_the_nearest_ones():
    message = (
        "No model is called 'swish_bsae'. Did you mean 'swish_base' or .*\\? "
        "`keras_recbert.list_models\\(\\)` lists all names."
    )
    with pytest.raises(ValueError, match=message):
        keras_recbert.get_card("swish_bsae")


def test_name_like_no_other_gets_the_list_alone():
    message = "^No model is called 'qqq'. `keras_recbert.list_models"
    with pytest.raises(ValueError, match=message):
        keras_recbert.get_card("qqq")


def test_second_registration_of_a_name_raises():
    card = keras_recbert.get_card("bert_tiny")
    message = "A model needs a name of its own. Received: 'bert_tiny'. Taken: "
    with pytest.raises(ValueError, match=message):
        keras_recbert.register(card)
    assert keras_recbert.list_models("bert_tiny") == ["bert_tiny"]


def test_registered_name_builds(monkeypatch):
    monkeypatch.setattr(registry._CARDS, "entries", dict(registry._CARDS.entries))
    card = keras_recbert.ModelCard(
        name="swish_pico",
        sizes={"block": "swish_rnn", "num_layers": 1, "hidden_dim": 12, "num_heads": 1},
        paper="none",
        table="none",
        num_parameters=0,
    )
    keras_recbert.register(card)
    assert "swish_pico" in keras_recbert.list_models("swish_*")
    encoder = keras_recbert.build("swish_pico", vocabulary_size=10)
    assert encoder.name == "swish_pico"
    assert len(encoder.blocks) == 1


def test_a_card_with_its_own_positions_gets_a_head(monkeypatch):
    monkeypatch.setattr(registry._CARDS, "entries", dict(registry._CARDS.entries))
    sizes = {"block": "transformer", **SIZES, "max_sequence_length": 24}
    keras_recbert.register(keras_recbert.ModelCard("mine", sizes))
    model = keras_recbert.build("mine", task="classifier", vocabulary=VOCABULARY)
    assert model.preprocessor.max_sequence_length == 24
    assert model.predict(["a film " * 40], verbose=0).shape == (1, 2)


def test_card_cannot_be_changed():
    with pytest.raises(AttributeError, match="cannot assign to field"):
        keras_recbert.get_card("bert_tiny").num_parameters = 1
