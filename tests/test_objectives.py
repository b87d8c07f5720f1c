import dataclasses
import inspect

import pytest

from keras_recbert.objectives import OBJECTIVES, MaskedLM, Objectives, read_objectives


def test_entries_set_what_they_name():
    objectives = read_objectives(
        {"next_sentence": {"layer": 3}, "masked_lm": {"concatenate": "cls"}}
    )
    assert objectives.names() == ["masked_lm", "next_sentence"]
    assert objectives.masked_lm == MaskedLM(concatenate="cls")
    assert objectives.layer_of("next_sentence", 12) == 3
    assert objectives.layer_of("masked_lm", 12) == 12
    assert read_objectives({"causal_lm": None}).names() == ["causal_lm"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "needs an objective. Valid: masked_lm, next_sentence, bigram_shift"),
        (["masked_lm"], r"must be a mapping of names.*Received: \['masked_lm'\]"),
        ({"masked_ml": None}, "called 'masked_ml'. Did you mean 'masked_lm'"),
        ({"masked_lm": 3}, "masked_lm.*3"),
        ({"masked_lm": {"rate": 0.1}}, "unknown key 'rate'. .*mask_rate"),
        ({"masked_lm": {"mask_rate": "much"}}, "`mask_rate` must be of type float"),
        (
            {"masked_lm": {"mask_rate": 1.5}},
            "`mask_rate` of .* must be above 0 and below 1",
        ),
        (
            {"masked_lm": {"mask_rate": 0}},
            "`mask_rate` of .* must be above 0 and below 1",
        ),
        (
            {"masked_lm": {"mask_fraction": 1.1}},
            r"`mask_fraction` of .* must be in \[0, 1\]",
        ),
        (
            {"masked_lm": {"mask_fraction": 0.95}},
            "`random_fraction` of .* must be at most 1 together with mask_fraction",
        ),
        (
            {"masked_lm": {"unit": "word"}},
            "`unit` of .* must be one of word_piece, whole_w",
        ),
        ({"masked_lm": {"max_ngram": 0}}, "`max_ngram` of .* must be at least 1"),
        ({"masked_lm": {"layer": 0}}, "`layer` of .* must be at least 1"),
        (
            {"masked_lm": {"concatenate": "nsp"}},
            "`concatenate` of .* must be one of None",
        ),
        ({"masked_lm": {"concatenate": "cls"}}, "without next_sentence. Add next_se"),
        (
            {"next_sentence": {"random_fraction": 1.0}},
            "`random_fraction` of .* must be ab",
        ),
        (
            {"next_sentence": {"freeze_patience": 0}},
            "`freeze_patience` of .* must be at l",
        ),
        (
            {"next_sentence": {"freeze_patience": 1, "freeze_at_step": 1}},
            "freezes at a step or by patience, not both",
        ),
        (
            {"bigram_shift": {"swap_rate": 1.0}},
            "`swap_rate` of .* must be above 0 and be",
        ),
        ({"bigram_shift": {"loss_weight": 0.0}}, "`loss_weight` of .* must be above 0"),
        ({"causal_lm": None, "masked_lm": None}, "causal_lm sees the words that mas"),
        ({"causal_lm": None, "bigram_shift": None}, "causal_lm sees the words"),
    ],
)
def test_wrong_entries_are_told(entries, message):
    with pytest.raises(ValueError, match=message):
        read_objectives(entries)


def test_heads_are_at_blocks_of_the_encoder():
    objectives = Objectives(masked_lm=MaskedLM(layer=13))
    objectives.check_layers(13)
    with pytest.raises(ValueError, match="from 1 to 12. Received: layer=13"):
        objectives.check_layers(12)


@pytest.mark.parametrize("cls", OBJECTIVES.values())
def test_every_argument_is_documented(cls):
    for field in dataclasses.fields(cls):
        assert f"\n    {field.name}: " in inspect.getdoc(cls)
