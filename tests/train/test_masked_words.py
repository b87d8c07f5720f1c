"""How sure classifiers are of a text whose words are masked in turn."""

import numpy as np
import pytest
from toy_texts import tiny_model

from keras_recbert.cli import main
from keras_recbert.train.masked_words import explain_words, make_word_table

TEXT = "a good film, dull|cold"
WORDS = ["a", "good", "film", ",", "dull", "|", "cold"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("one", "two")):
        model = tiny_model(seed=seed, label_names=["bad", "good"])
        head = model.head.dense
        head.kernel.assign(30 * head.kernel)  # to be sure of something
        model.save_preset(folder / name)
    return folder


def entropy(logits):
    """In bits, by the definition."""
    powers = [np.exp(float(logit)) for logit in logits]
    shares = [power / sum(powers) for power in powers]
    return -sum(share * np.log2(share) for share in shares)


def test_entropies(models, tmp_path):
    import keras_recbert

    paths = [models / "one", models / "two"]
    result = explain_words(paths, TEXT, tmp_path / "words.png")
    assert result["words"] == WORDS
    for path, found in zip(paths, result["models"], strict=True):
        model = keras_recbert.load(path)
        read = model.preprocessor.reading_masks()
        masked = ["a [MASK] film, dull|cold", "a good film[MASK] dull|cold"]
        ids = {name: read([TEXT, *masked])[name] for name in model.input}
        whole, good, comma = np.array(model(ids))
        assert found["entropy"] == pytest.approx(entropy(whole), rel=1e-4)
        assert found["entropies"][1] == pytest.approx(entropy(good), rel=1e-4)
        assert found["entropies"][3] == pytest.approx(entropy(comma), rel=1e-4)
        assert found["label"] == ("bad", "good")[whole.argmax()]
    assert (tmp_path / "words.png").read_bytes().startswith(b"\x89PNG")
    lines = make_word_table(result).splitlines()
    assert len(lines) == 3 + len(WORDS)
    assert lines[8].startswith("| \\| | ")


def test_the_command(models, tmp_path, capsys):
    picture = tmp_path / "words.png"
    command = ["explain-words", str(models / "one"), TEXT, "--output", str(picture)]
    assert main(command) == 0
    assert "| good | " in capsys.readouterr().out
    assert picture.is_file()


def test_one_task_of_several_answers(models, tmp_path, capsys):
    fields, names = ["text", "text_pair"], ["no", "yes"]
    heads = {
        "reviews": {"task": "classifier", "fields": fields[:1], "label_names": names},
        "pairs": {"task": "classifier", "fields": fields, "num_classes": 2},
    }
    model = tiny_model(task=heads)
    model.save_preset(tmp_path / "two")
    # The other reads two texts.
    alone = explain_words(tmp_path / "two", TEXT)
    read = model.preprocessor.reading_masks()
    ids = {name: read([TEXT])[name] for name in model.input}
    expected = entropy(np.array(model(ids)["reviews"])[0])
    assert alone["models"][0]["entropy"] == pytest.approx(expected, rel=1e-4)
    assert alone["models"][0]["label"] in ("no", "yes")
    assert explain_words(tmp_path / "two", TEXT, task="reviews") == alone
    for task, message in (
        ("pairs", "Received: pairs, a classifier of text and text_pair"),
        ("reviws", "no head 'reviws'. Did you mean 'reviews'"),
    ):
        with pytest.raises(ValueError, match=message):
            explain_words(tmp_path / "two", TEXT, task=task)
    tiny_model(task={"a": "classifier", "b": "classifier"}).save_preset(tmp_path / "ab")
    both = ["explain-words", str(models / "one"), str(tmp_path / "ab"), TEXT]
    assert main(both) == 2
    assert "several classifiers of one text, a, b. Name one" in capsys.readouterr().err
    assert main([*both, "--task", "b"]) == 0
    assert (
        f"| masked | {models / 'one'} | {tmp_path / 'ab'} |" in capsys.readouterr().out
    )


def test_what_is_wrong_is_told(models, tmp_path, capsys):
    assert main(["explain-words", "a text alone"]) == 2
    assert "Name a model and a text" in capsys.readouterr().err
    with pytest.raises(ValueError, match="There is no word in the text"):
        explain_words([models / "one"], " \n")
    with pytest.raises(FileNotFoundError, match="nowhere holds no teacher"):
        explain_words("nowhere", TEXT)
    with pytest.raises(ValueError, match="Name one model or more"):
        explain_words([], TEXT)
    with pytest.raises(ValueError, match="A picture is a .png. Received: .*words.jpg"):
        explain_words([models / "one"], TEXT, tmp_path / "words.jpg")
    assert main(["explain-words", str(models / "one"), str(models / "one")]) == 2
    assert "The text comes last" in capsys.readouterr().err
    tiny_model(task="regressor").save_preset(tmp_path / "scores")
    with pytest.raises(ValueError, match="must be a classifier of one text"):
        explain_words([tmp_path / "scores"], TEXT)
