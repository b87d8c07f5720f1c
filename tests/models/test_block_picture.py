"""Pictures of blocks: what the graph of a call has, and that of the docs is today's."""

import pytest
from docs_pages import PAGES, ROOT

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.models.block_graph import block_graph

SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "vocabulary_size": 12}


def sources(name, **sizes):
    graph = block_graph(keras_recbert.build(name, **{**SIZES, **sizes}))
    return {part: found.sources for part, found in graph.items()}, graph


def test_lstm_beside_both_sublayers_joins_before_the_last_norm():
    found, graph = sources("trans_blstm_tiny", recurrent_dim=5, intermediate_dim=6)
    assert found == {
        "x": set(),
        "attention": {"x"},
        "attention_norm": {"x", "attention"},
        "feed_forward": {"attention_norm"},
        "bidirectional_lstm": {"x"},
        "projection": {"bidirectional_lstm"},
        "add": {"feed_forward", "projection"},
        "output_norm": {"add", "attention_norm"},
    }
    assert graph["bidirectional_lstm"].detail == "5 units a direction"
    kinds = [part.kind for part in graph.values()]
    assert kinds == [
        "input",
        "layer",
        "norm",
        "layer",
        "recurrent",
        "layer",
        "sum",
        "norm",
    ]


def test_recurrence_takes_the_place_of_the_feed_forward_layer():
    found, graph = sources("swish_tiny", recurrent_dim=6, step_size=3)
    assert found["swish_rnn"] == {"attention_norm"}
    assert found["output_norm"] == {"swish_rnn", "attention_norm"}
    assert graph["swish_rnn"].detail == "6 units, step 3"
    assert graph["attention"].detail == "2 heads, relative bias"


def test_a_picture_has_every_layer_and_arrow(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "bert_tiny", "trans_blstm_tiny", "--output", "a.svg"]) == 0
    assert capsys.readouterr().out == "Wrote a.svg: bert_tiny, trans_blstm_tiny.\n"
    text = (tmp_path / "a.svg").read_text("utf-8")
    assert text.count("<rect") == 4 + 7
    arrows = sum(len(own) for own in sources("bert_tiny")[0].values())
    arrows += sum(len(own) for own in sources("trans_blstm_tiny")[0].values())
    assert text.count('<path marker-end="url(#end)"') == arrows + 2  # out of the top
    picture = keras_recbert.draw("bert_tiny", "trans_blstm_tiny")
    assert picture == text == picture._repr_svg_()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bilstm_student"], "bilstm_student has no blocks of several layers"),
        (["bert_tinny"], "bert_tiny"),
        (["bert_tiny", "--output", "a.png"], "must end with .svg"),
        (["bert_tiny", "--output", "no/a.svg"], "no"),
    ],
)
def test_what_cannot_be_drawn_is_told(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["draw", *words]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_no_model_is_told():
    with pytest.raises(ValueError, match="Name a model"):
        keras_recbert.draw()


def check_picture(file, names):
    assert len(names) >= 3
    assert keras_recbert.draw(*names) == (ROOT / "docs" / file).read_text("utf-8")


def test_the_picture_of_the_readme_is_drawn_from_todays_code():
    check_picture("blocks.svg", ["bert_base", "swish_base", "trans_blstm_base"])


@pytest.mark.slow
def test_the_picture_of_all_kinds_is_drawn_from_todays_code():
    command = PAGES["papers.md"].partition("`recbert draw ")[2]
    check_picture("kinds.svg", command.partition(" --output")[0].split())
