"""From names to models: sizes, counts, and errors for what cannot be built."""

import pathlib
import subprocess
import sys

import pytest
from harness import build_shrunk

import keras_recbert

HUANG_TABLE_1 = {
    "trans_blstm_half_base": 152e6,
    "trans_blstm_base": 237e6,
    "trans_blstm_half_large": 487e6,
    "trans_blstm_large": 789e6,
    "bert_large_48": 638e6,  # section 4.6
}


def run_python(code):
    """Standard output and error of a fresh interpreter that runs `code`."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# Counts ------------------------------------------------------------------------


@pytest.mark.parametrize("name", keras_recbert.list_models())
def test_card_holds_the_exact_number_of_parameters(name):
    count = keras_recbert.count_parameters(name)
    assert count == keras_recbert.get_card(name).num_parameters


def test_bert_has_exactly_the_parameters_of_the_release():
    assert keras_recbert.count_parameters("bert_base") == 109_482_240
    assert keras_recbert.count_parameters("bert_large") == 335_141_888


@pytest.mark.parametrize("name", HUANG_TABLE_1)
def test_trans_blstm_counts_are_those_of_the_paper(name):
    count = keras_recbert.count_parameters(name)
    assert count == pytest.approx(HUANG_TABLE_1[name], rel=0.005)


@pytest.mark.parametrize("size", ["base", "large"])
def test_swish_rnn_is_as_large_as_the_baseline_it_is_compared_with(size):
    swish = keras_recbert.count_parameters(f"swish_{size}")
    baseline = keras_recbert.count_parameters(f"bert_rab_{size}")
    assert swish == pytest.approx(baseline, rel=0.01)


@pytest.mark.parametrize(
    "name", ["bert_tiny", "swish_tiny", "trans_blstm_tiny", "bert_rab_tiny"]
)
def test_count_is_that_of_the_filled_model(name):
    encoder = keras_recbert.build(name)
    assert encoder.count_params() == keras_recbert.get_card(name).num_parameters
    assert encoder.count_params() == sum(
        weight.numpy().size for weight in encoder.weights
    )


def test_count_takes_overrides():
    sizes = {"num_layers": 1, "vocabulary_size": 100}
    encoder = keras_recbert.build("swish_tiny", **sizes)
    count = keras_recbert.count_parameters("swish_tiny", **sizes)
    assert count == encoder.count_params()


@pytest.mark.skipif(
    not pathlib.Path("/proc/self/status").exists(),
    reason="reads the peak of memory from Linux's /proc",
)
@pytest.mark.slow
def test_counting_the_largest_model_fills_no_weights():
    """Its weights take 3 GB; the peak may grow by a tenth of that, later on too."""
    # Not `resource.ru_maxrss`: a child starts with the peak of its parent there.
    output, _ = run_python(
        "import re, keras_recbert\n"
        "def peak():\n"
        "    status = open('/proc/self/status').read()\n"
        "    return 1024 * int(re.search(r'VmHWM:\\s+(\\d+) kB', status)[1])\n"
        "keras_recbert.count_parameters('bert_tiny')\n"
        "before = peak()\n"
        "print(keras_recbert.count_parameters('trans_blstm_large'))\n"
        # Keras would fill every variable it still knows of here.
        "import keras\n"
        "with keras.StatelessScope():\n"
        "    pass\n"
        "print(peak() - before)\n"
    )
    count, growth = map(int, output.split())
    assert count == 788_347_904
    assert growth < 300e6


# Import ------------------------------------------------------------------------


def test_import_is_light_and_silent():
    output, errors = run_python(
        "import sys; before = set(sys.modules)\n"
        "import keras_recbert\n"
        "from keras_recbert import layers, models, ops\n"
        "keras_recbert.list_models(), keras_recbert.get_card('swish_base')\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "heavy = {'tensorflow', 'tensorflow_text', 'keras', 'numpy', 'torch'} & new\n"
        "assert not heavy, heavy\n"
        "assert len(set(sys.modules) - before) < 200, len(sys.modules)\n"
    )
    assert output == ""
    assert errors == ""


def test_unknown_attribute_of_the_package():
    with pytest.raises(AttributeError, match="attribute zoo"):
        keras_recbert.zoo  # noqa: B018


# Sizes -------------------------------------------------------------------------


def test_overrides_replace_the_sizes_of_the_card():
    encoder = keras_recbert.build(
        "bert_tiny",
        num_layers=1,
        hidden_dim=12,
        num_heads=4,
        intermediate_dim=20,
        vocabulary_size=50,
        max_sequence_length=9,
        num_segments=3,
        dropout=0.0,
    )
    config = encoder.get_config()
    assert config["num_heads"] == 4
    shapes = {weight.path: weight.shape for weight in encoder.weights}
    assert shapes["embeddings/token_embedding/embeddings"] == (50, 12)
    assert shapes["embeddings/segment_embedding/embeddings"] == (3, 12)
    assert shapes["embeddings/position_embedding/embeddings"] == (9, 12)
    assert shapes["block_0/feed_forward/intermediate_dense/kernel"] == (12, 20)
    assert encoder.blocks[0].dropout_rate == 0.0
    assert encoder.max_sequence_length == 9


def test_other_sizes_follow_a_width_that_is_named_alone():
    config = keras_recbert.build("swish_tiny", hidden_dim=192).get_config()
    assert config["num_heads"] == 3
    assert config["recurrent_dim"] == 512  # 8 / 3 of the width
    config = keras_recbert.build("bert_mini", hidden_dim=64).get_config()
    assert (config["num_heads"], config["intermediate_dim"]) == (1, 256)
    config = keras_recbert.build("trans_blstm_tiny", hidden_dim=64).get_config()
    assert config["recurrent_dim"] == 64


def test_same_width_keeps_the_sizes_of_the_card():
    config = keras_recbert.build("swish_small", num_layers=1, hidden_dim=512)
    assert config.get_config()["recurrent_dim"] == 1376


@pytest.mark.parametrize(
    ("step_size", "used"),
    [
        (None, [1, 2, 4, 1, 2]),  # interleaved, as in the paper
        (2, [2, 2, 2, 2, 2]),
        ([4, 1], [4, 1, 4, 1, 4]),
        ((3,), [3, 3, 3, 3, 3]),
    ],
)
def test_step_sizes_are_interleaved_across_the_layers(step_size, used):
    overrides = {} if step_size is None else {"step_size": step_size}
    encoder = build_shrunk("swish_tiny", num_layers=5, **overrides)
    assert [block.feed_forward.step_size for block in encoder.blocks] == used


def test_gate_reaches_every_layer():
    encoder = build_shrunk("swish_tiny", gate="sigmoid")
    assert {block.feed_forward.gate for block in encoder.blocks} == {"sigmoid"}


# Errors ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        (
            "bert_tinny",
            {},
            "No model is called 'bert_tinny'. Did you mean 'bert_tiny' or",
        ),
        (
            "swish_tiny",
            {"hidden_size": 128},
            "'swish_tiny' takes no argument 'hidden_size'. Received: hidden_size=128. "
            "Did you mean 'hidden_dim'.*Valid: num_layers, hidden_dim, vocabulary_siz",
        ),
        (
            "bert_tiny",
            {"step_size": 2},
            "'bert_tiny' takes no argument 'step_size'.*Valid: num_layers",
        ),
        (
            "blstm_base",
            {"num_heads": 2},
            "'blstm_base' takes no argument 'num_heads'",
        ),
        (
            "trans_blstm_half_base",
            {"recurrent_dim": 100},
            "'trans_blstm_half_base' takes no argument 'recurrent_dim'",
        ),
        (
            "bert_tiny",
            {"hidden_dim": 10, "num_heads": 3},
            "must be a multiple of `num_heads`. Received: hidden_dim=10, num_heads=3. "
            "Try hidden_dim=12.",
        ),
        (
            "trans_blstm_half_base",
            {"hidden_dim": 15, "num_heads": 3},
            "`hidden_dim` must be even.*hidden_dim=15. Try hidden_dim=16.",
        ),
        ("bert_tiny", {"num_layers": 0}, "`num_layers` must be a whole number of at"),
        ("bert_tiny", {"num_layers": 2.0}, "Received: num_layers=2.0"),
        ("bert_tiny", {"hidden_dim": -8}, "`hidden_dim` must be a whole number of at"),
        ("bert_tiny", {"hidden_dim": "a"}, "Received: hidden_dim='a'"),
        ("bert_tiny", {"num_heads": 0}, "`num_heads` must be a whole number of at le"),
        ("bert_tiny", {"vocabulary_size": 0}, "`vocabulary_size` must be a whole num"),
        ("bert_tiny", {"num_segments": 0}, "`num_segments` must be a whole number"),
        (
            "bert_tiny",
            {"max_sequence_length": 0},
            "`max_sequence_length` must be a whole number of at least 1",
        ),
        (
            "bert_tiny",
            {"intermediate_dim": None},
            "`intermediate_dim` must be a whole number of at least 1",
        ),
        ("bert_tiny", {"dropout": 1.5}, r"`dropout` must be a number in \[0, 1\)"),
        ("bert_tiny", {"dropout": 1}, "Received: dropout=1."),
        ("swish_tiny", {"step_size": 0}, "`step_size` must be a whole number of at"),
        ("swish_tiny", {"step_size": [1, 0]}, "Received: step_size=0"),
        ("swish_tiny", {"step_size": []}, "`step_size` must name at least one step"),
        ("swish_tiny", {"step_size": "a"}, "Received: step_size='a'"),
        ("swish_tiny", {"step_size": 1.5}, "Received: step_size=1.5"),
        ("swish_tiny", {"step_size": None}, "Received: step_size=None"),
        ("swish_tiny", {"gate": "relu"}, "`gate` must be one of .*gate='relu'"),
        ("swish_tiny", {"recurrent_dim": 0}, "`recurrent_dim` must be a whole number"),
        ("blstm_base", {"recurrent_dim": 0}, "`recurrent_dim` must be a whole number"),
        (
            "trans_blstm_tiny",
            {"recurrent_dim": 0},
            "`recurrent_dim` must be a whole number of at least 1",
        ),
    ],
)
def test_impossible_models(name, overrides, message):
    with pytest.raises(ValueError, match=message):
        keras_recbert.build(name, **overrides)


def test_unknown_task_gets_the_valid_ones():
    message = (
        "No task is called 'classifer'. Did you mean 'classifier'.* Valid: "
        "classifier, multilabel_classifier, .*pretrainer, .* or None for the encoder"
    )
    with pytest.raises(ValueError, match=message):
        keras_recbert.build("bert_tiny", task="classifer")


def test_unknown_kind_of_block():
    from keras_recbert.models.recbert_encoder import RecBertEncoder

    with pytest.raises(ValueError, match="No kind of block is called 'gru'"):
        RecBertEncoder(block="gru")
    with pytest.raises(ValueError, match="an encoder of 'blstm' blocks takes no arg"):
        RecBertEncoder(block="blstm", num_heads=2)


# Pre-training --------------------------------------------------------------------


PRETRAINER = {"hidden_dim": 12, "num_heads": 2, "vocabulary_size": 37}


def test_pretrainer_of_the_default_objectives():
    model = keras_recbert.build("bert_tiny", task="pretrainer", **PRETRAINER)
    assert model.objectives.names() == ["masked_lm", "next_sentence"]
    assert model.encoder.name == "bert_tiny"
    assert model.preprocessor is None


def test_pretrainer_builds_the_encoder_that_its_objectives_read():
    model = keras_recbert.build(
        "swish_tiny",
        task="pretrainer",
        objectives={
            "masked_lm": {"concatenate": "next_sentence"},
            "next_sentence": {"layer": 1},
        },
        vocabulary=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"],
        hidden_dim=12,
        num_heads=2,
    )
    assert model.encoder.pretrained_heads == {
        "masked_lm": {"layer": None, "concatenate": "next_sentence"},
        "next_sentence": {"layer": 1, "concatenate": None},
    }
    assert model.encoder.config["vocabulary_size"] == 7
    assert model.encoder.preprocessor is model.preprocessor


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"objectives": {"masked_ml": None}},
            "No objective is called 'masked_ml'. Did you mean 'masked_lm'",
        ),
        (
            {"objectives": {"masked_lm": {"layer": 3}}},
            "`layer` of masked_lm must be a block of the encoder, from 1 to 2.",
        ),
        (
            {"pretrained_heads": {}},
            "read follows from its objectives.*Received: pretrained_heads={}.",
        ),
        ({"objective": {}}, "'objective'.*Did you mean 'objectives'"),
        ({"num_classes": 2}, "Pretrainer takes no argument 'num_classes'"),
        ({"num_layers": "a"}, "`num_layers` must be a whole number.*num_layers='a'"),
    ],
)
def test_impossible_pretrainers(overrides, message):
    with pytest.raises(ValueError, match=message):
        keras_recbert.build("bert_tiny", task="pretrainer", **PRETRAINER, **overrides)
