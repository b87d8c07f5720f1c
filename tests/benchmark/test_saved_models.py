"""What saved models say of themselves."""

import pytest
from toy_texts import tiny_model

import keras_recbert
from keras_recbert.benchmark.saved_models import label_names_of, read_model_facts


@pytest.mark.parametrize("kind", ["numbers", "mean", "words", "swish"])
def test_saved_models_tell_their_head_without_being_built(kind, tmp_path, preset_of):
    facts = read_model_facts(preset_of(kind))
    model = keras_recbert.load(preset_of(kind))
    model.save(tmp_path / "model.keras")
    for found in (facts, read_model_facts(tmp_path / "model.keras")):
        assert found.head["task"] == "classifier" and found.fields == ("text",)
        assert found.head["pooling"] == model.pooling and found.has_vocabulary
        assert label_names_of(found.head) == model.label_names
        assert found.encoder_class == type(model.encoder).__name__
        assert found.encoder_arguments.items() >= model.encoder.config.items()


def test_heads_by_name_and_encoders_have_no_head_alone(preset_of):
    several = read_model_facts(preset_of("heads"))
    assert several.head is None and list(several.heads) == ["sst2", "stars"]
    assert several.heads["stars"]["task"] == "regressor"
    encoder = read_model_facts(preset_of("encoder"))
    assert (encoder.heads, encoder.encoder_class) == ({}, "RecBertEncoder")


def test_a_lone_head_of_a_text_model_is_told(tmp_path):
    model = tiny_model(task="multilabel_classifier", label_names=["long", "good"])
    model.save_preset(tmp_path / "preset")
    facts = read_model_facts(tmp_path / "preset")
    assert facts.describe_heads() == "a multilabel_classifier"
    assert facts.head["label_names"] == ["long", "good"]
