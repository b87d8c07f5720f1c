"""`docs/extending.md`: what it shows is typed here, and no file of ours changes."""

import contextlib
import json
import os
import pathlib
import re
import sys

import keras
import numpy as np
import processes
import pytest
import tensorflow as tf
from harness import set_seed, token_batch
from model_contract import run_model_contract
from registries import registries_kept
from toy_texts import (
    VOCABULARY,
    review_pairs,
    reviews,
    tiny_model,
    write_corpus,
    write_glue_task,
)

import keras_recbert
from keras_recbert.blocks import BlockKind, get_block, register_block
from keras_recbert.cli import main
from keras_recbert.cli.extensions import VARIABLE

DOCS = pathlib.Path(__file__).parents[1] / "docs" / "extending.md"
SIZES = {"hidden_dim": 16, "num_layers": 1}


def write_example(name, folder, most_lines=40):
    """Writes the file of the docs that starts with a comment of this name."""
    code = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    (code,) = [one for one in code if one.startswith(f"# {name}\n")]
    assert len([line for line in code.splitlines() if line.strip()]) < most_lines
    file = folder / name
    file.write_text(code)
    return file


@contextlib.contextmanager
def imported(file):
    """Imports a file as a user does; forgets afterwards what it registered."""
    sys.path.insert(0, str(file.parent))
    try:
        with registries_kept():
            yield __import__(file.stem)
    finally:
        sys.path.remove(str(file.parent))


@pytest.fixture(scope="module")
def my_blocks(tmp_path_factory):
    file = write_example("my_blocks.py", tmp_path_factory.mktemp("own"))
    with imported(file):
        yield file


def recbert(*arguments):
    """A command in a process of its own, which knows nothing of `my_blocks` yet."""
    process = processes.start(*arguments)
    output, _ = process.communicate()
    return process.returncode, output


def test_a_block_of_ones_own_keeps_the_contract_of_the_zoo(my_blocks, tmp_path):
    run_model_contract("conv_tiny", tmp_path)


def test_a_block_of_ones_own_in_every_form_of_a_model(eager_steps, my_blocks, tmp_path):
    texts, labels = reviews()
    set_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad"]
    model = keras_recbert.build(
        "conv_tiny", task="classifier", num_classes=2, vocabulary=vocabulary, **SIZES
    )
    model.fit(texts, labels, verbose=0)
    expected = model.predict(texts, verbose=0)
    keras_recbert.save_preset(model, tmp_path / "preset")
    model.save(tmp_path / "model.keras")
    for path in ("preset", "model.keras"):
        again = keras_recbert.load(tmp_path / path)
        np.testing.assert_array_equal(again.predict(texts, verbose=0), expected)
    keras.models.load_model(tmp_path / "model.keras")
    model.export_savedmodel(tmp_path / "served")
    served = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    scores = served(text=tf.constant(texts))["scores"]
    np.testing.assert_allclose(scores, tf.nn.softmax(expected), atol=1e-6)
    assert "1 blocks of kind conv" in str(keras_recbert.explain(tmp_path / "preset"))


def test_a_bert_gives_a_block_of_ones_own_what_has_the_same_path(my_blocks, tmp_path):
    sizes = {"num_layers": 1, "hidden_dim": 12, "vocabulary_size": 37}
    bert = keras_recbert.build("bert_tiny", num_heads=3, **sizes)
    bert.save_preset(tmp_path / "bert")
    encoder = keras_recbert.build("conv_tiny", weights=tmp_path / "bert", **sizes)
    report = encoder.weights_report
    assert "embeddings/token_embedding/embeddings" in report.copied
    assert {p.partition("/")[0] for p in report.new} == {"block_0"}
    assert np.all(np.isfinite(encoder(token_batch())["sequence_output"]))


@pytest.mark.slow
def test_the_command_line_knows_a_block_that_it_imports(my_blocks, tmp_path):
    status, printed = recbert("explain", "conv_tiny")
    assert status == 2 and "--import" not in printed
    status, printed = recbert("--import", my_blocks, "explain", "conv_tiny")
    assert status == 0, printed
    corpus = write_corpus(tmp_path)
    run = ["--model", "conv_tiny", "--overrides", "hidden_dim", "16"]
    pretrain = ["pretrain", *run, "--corpus", corpus, "--steps", "2", "--batch-size"]
    pretrain += ["4", "--sequence-length", "24", "--output-dir", tmp_path / "run"]
    status, printed = recbert(*pretrain, "--import", my_blocks)
    assert status == 0, printed
    write_glue_task(tmp_path / "glue", "sst2")
    finetune = [
        "finetune",
        "--model",
        "conv_tiny",
        "--weights",
        tmp_path / "run/preset",
    ]
    finetune += ["--data-dir", tmp_path / "glue", "--task", "sst2", "--epochs", "1"]
    finetune += ["--output-dir", tmp_path / "tuned"]
    status, printed = recbert("--import", my_blocks, *finetune)
    assert status == 0, printed
    results = json.loads((tmp_path / "tuned" / "results.json").read_text())
    assert results["model"] == "conv_tiny"
    status, printed = recbert("predict", tmp_path / "tuned" / "savedmodel", "a film")
    assert status == 0, printed


def test_a_head_of_ones_own_in_every_form_of_a_model(eager_steps, tmp_path):
    texts, labels = reviews()
    ranks = [2 * label + index % 2 for index, label in enumerate(labels)]
    with imported(write_example("my_heads.py", tmp_path)):
        model = tiny_model(task="ordinal_regressor", num_ranks=4)
        model.fit(texts, ranks, epochs=3, verbose=0)
        logits = model.predict(texts, verbose=0)
        assert logits.shape == (len(texts), 3)
        targets = model.head.as_targets(ranks)
        scores = model.head.scores(model.head.metric_names, targets, logits)
        assert list(scores) == ["spearman", "accuracy"]
        found = model.head.predictions(logits)
        assert scores["accuracy"] == pytest.approx(np.mean(found == ranks))
        with pytest.raises(ValueError, match="ranks from 0 to 3"):
            model.fit(texts, [rank + 1 for rank in ranks])
        model.save(tmp_path / "model.keras")
        model.save_preset(tmp_path / "preset")
        for path in ("model.keras", "preset"):
            again = keras_recbert.load(tmp_path / path)
            np.testing.assert_array_equal(again.predict(texts, verbose=0), logits)
        model.export_savedmodel(tmp_path / "served")
    served = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    answer = served(text=tf.constant(texts))["rank"].numpy()
    assert np.mean(answer == found) > 0.95  # a logit of nearly 0 may fall either way
    with pytest.raises(ValueError, match="import the module that adds it"):
        keras_recbert.load(tmp_path / "preset")


def test_an_encoder_of_ones_own_in_every_form_of_a_model(eager_steps, tmp_path):
    texts, labels = reviews()
    with imported(write_example("my_encoders.py", tmp_path, 50)):
        arguments = {"units": 6, "vocabulary": VOCABULARY, "dropout": 0.0}
        for options in ({}, {"freeze": "embeddings"}, {"layerwise_decay": 0.5}):
            model = keras_recbert.build(
                "bilstm_tiny", task="classifier", **arguments, **options
            )
            table = model.encoder.embeddings.embeddings.numpy()
            model.fit(texts, labels, epochs=2, verbose=0)
            moved = np.any(model.encoder.embeddings.embeddings.numpy() != table)
            assert moved != (options.get("freeze") == "embeddings")
        expected = model.predict(texts, verbose=0)
        # A text alone, and beside longer ones.
        alone = model.predict(texts[:1], verbose=0)
        np.testing.assert_allclose(alone, expected[:1], atol=1e-6)
        model.save(tmp_path / "model.keras")
        model.save_preset(tmp_path / "preset")
        for path in ("model.keras", "preset"):
            again = keras_recbert.load(tmp_path / path)
            np.testing.assert_array_equal(again.predict(texts, verbose=0), expected)
        model.export_savedmodel(tmp_path / "served")
        explained = str(keras_recbert.explain(tmp_path / "preset"))
        assert explained == str(keras_recbert.explain("bilstm_tiny", units=6)).replace(
            "bilstm_tiny", model.encoder.name
        )
        assert "1 blocks, 12 wide" in explained and "bidirectional LSTM" in explained
        assert keras_recbert.count_parameters("bilstm_tiny", units=6) > 30522 * 6
        with pytest.raises(ValueError, match="'unit'.*Did you mean 'units'"):
            keras_recbert.build("bilstm_tiny", unit=3)
        tiny_model().encoder.save_preset(tmp_path / "bert")
        for name, weights in (("bilstm_tiny", "bert"), ("bert_tiny", "preset")):
            with pytest.raises(ValueError, match="an encoder of the same class"):
                keras_recbert.build(name, weights=tmp_path / weights)
        start = keras_recbert.build("bilstm_tiny", weights=tmp_path / "preset")
        np.testing.assert_array_equal(start.encode(texts), model.encode(texts))
        with pytest.raises(ValueError, match="heads read encoders of BERT's frame"):
            keras_recbert.build("bilstm_tiny", task="pretrainer")
    with pytest.raises(ValueError, match="import the module that adds it"):
        keras_recbert.load(tmp_path / "preset")


@pytest.mark.slow
def test_the_command_line_trains_an_encoder_that_it_imports(tmp_path):
    file = write_example("my_encoders.py", tmp_path, 50)
    write_glue_task(tmp_path / "glue", "sst2")
    finetune = ["finetune", "--model", "bilstm_tiny", "--overrides", "units", "8"]
    finetune += ["--data-dir", tmp_path / "glue", "--task", "sst2", "--epochs", "1"]
    finetune += ["--output-dir", tmp_path / "run"]
    status, printed = recbert("--import", file, *finetune)
    assert status == 0, printed
    status, printed = recbert("predict", tmp_path / "run" / "savedmodel", "a film")
    assert status == 0, printed


@pytest.fixture
def help_desk(tmp_path):
    """Folder of the data set that the docs register, with toy questions."""
    first, second, same = review_pairs(20)
    rows = [
        {"idx": f"q{row}", "question": a, "passage": b, "label": bool(label)}
        for row, (a, b, label) in enumerate(zip(first, second, same, strict=True))
    ]
    folder = tmp_path / "data" / "HelpDesk"
    folder.mkdir(parents=True)
    for name, part in (("train", rows[:12]), ("val", rows[12:])):
        lines = "".join(json.dumps(row) + "\n" for row in part)
        (folder / f"{name}.jsonl").write_text(lines)
    return folder


TINY = "--model swish_tiny --vocabulary-size 90 --epochs 1 --no-export --overrides"
TINY = [*TINY.split(), "num_layers", "1", "hidden_dim", "16", "num_heads", "2"]


def test_a_data_set_of_ones_own(eager_steps, help_desk, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(os.environ, VARIABLE, "")
    file, run = write_example("my_data.py", tmp_path), tmp_path / "run"
    command = ["--import", str(file), "finetune", "--task", "mine", *TINY]
    command += ["--data-dir", str(help_desk.parent), "--output-dir", str(run)]
    with imported(file):
        assert main(command) == 0
        assert "validation f1: " in capsys.readouterr().out
        results = json.loads((run / "results.json").read_text())
        assert (results["task"], results["task_version"]) == ("mine", 1)
        assert {"validation_accuracy", "validation_f1"} < set(results["scores"])
        assert results["validation_examples"] == {"validation": 8}
        model = keras_recbert.load(run / "preset")
        assert model.label_names == ["false", "true"]
        assert model.fields == ("text", "text_pair")
        card = json.loads((run / "preset" / "card.json").read_text())
        assert '"task": "mine"' in json.dumps(card)

        assert main(["--import", str(file), "list", "--tasks", "m*"]) == 0
        shown = capsys.readouterr().out.splitlines()[1:]
        names = [line.split()[0] for line in shown]
        assert names == ["mrpc", "mnli", "multirc", "mine"]
        assert "question, passage classifier f1, accuracy" in " ".join(
            shown[-1].split()
        )
        with pytest.raises(SystemExit):
            main(["--import", str(file), "finetune", "--help"])
        told = capsys.readouterr().out.replace("\u2502", " ")
        assert "mine; by default sst2" in " ".join(told.split())


def test_a_data_set_of_ones_own_says_what_is_wrong(help_desk, tmp_path):
    options = {"task": "mine", "data_dir": help_desk, "model": "swish_tiny"}
    with imported(write_example("my_data.py", tmp_path)):
        path = help_desk / "train.jsonl"
        text = path.read_text()
        path.write_text(text.replace("true", '"maybe"', 1))
        with pytest.raises(
            ValueError, match="'maybe' is not a label of task 'mine'.*'f"
        ):
            keras_recbert.finetune(**options)
        path.write_text(text.replace('"passage"', '"text"', 1))
        with pytest.raises(ValueError, match="train.jsonl:1: .* no column 'passage'"):
            keras_recbert.finetune(**options)
        with pytest.raises(ValueError, match="'mine' is not read from TensorFlow Data"):
            keras_recbert.finetune(task="mine", tfds=True, model="swish_tiny")
        with pytest.raises(ValueError, match="the folder with the files of mine; "):
            keras_recbert.finetune(task="mine", model="swish_tiny")
        with pytest.raises(FileNotFoundError, match="hold HelpDesk/train.jsonl and"):
            keras_recbert.finetune(**{**options, "data_dir": tmp_path / "no"})


def test_a_file_that_cannot_be_imported_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(os.environ, VARIABLE, "")  # put back at the end
    for arguments in (["--import", "no.py"], ["--import"], ["--import", tmp_path]):
        assert main(["list", *map(str, arguments)]) == 2
        assert "--import needs a Python file that is there" in capsys.readouterr().err
    file = tmp_path / "json.py"
    file.write_text("")
    assert main(["--import", str(file), "list"]) == 2
    assert "there is a module 'json' already" in capsys.readouterr().err


def test_a_file_is_imported_once_and_by_the_commands_of_a_command(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(os.environ, VARIABLE, "")
    file = tmp_path / "says_hello.py"
    file.write_text("print('hello')")
    for _ in range(2):
        assert main(["--import", str(file), "list"]) == 0
    assert capsys.readouterr().out.count("hello") == 1
    status, printed = recbert("list")  # inherits the environment
    assert status == 0 and "hello" in printed
    monkeypatch.delitem(sys.modules, "says_hello")


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="a name of its own. Received: 'tra"):

        @register_block
        class Mine(BlockKind):
            name = "transformer"

    with pytest.raises(ValueError, match="Taken: .*transformer, swish_rnn"):

        @register_block
        class Nameless(BlockKind):
            pass

    assert type(get_block("transformer")).__name__ == "Transformer"


def test_a_packer_of_ones_own_in_every_form_of_a_model(eager_steps, tmp_path):
    titles = ["good", "bad", "a good film", "a film", "bad bad"]
    bodies = ["film " * 40, "", "good", "bad film", "a"]
    labels = ["up", "down", "up", "down", "down"]
    news = {"title": titles, "body": bodies}
    with imported(write_example("my_packers.py", tmp_path)):
        set_seed(0)
        model = keras_recbert.build(
            "bert_tiny",
            task="news_classifier",
            vocabulary=VOCABULARY,
            title_length=2,
            max_sequence_length=12,
            num_heads=2,
            **SIZES,
        )
        packed = model.preprocessor(news)
        assert packed["token_ids"].shape == (5, 12)
        tokenizer = model.preprocessor.tokenizer
        assert packed["token_ids"][2, 3] == tokenizer.sep_id  # two of three pieces
        model.fit(news, labels, verbose=0)
        assert model.fields == ("title", "body")
        expected = model.predict(news, verbose=0)
        dataset = tf.data.Dataset.from_tensor_slices((news, [0, 1, 0, 1, 1]))
        model.fit(dataset, verbose=0)
        np.testing.assert_allclose(
            model.predict((titles, bodies), verbose=0).shape, expected.shape
        )
        keras_recbert.save_preset(model, tmp_path / "preset")
        model.save(tmp_path / "model.keras")
        expected = model.predict(news, verbose=0)
        for path in ("preset", "model.keras"):
            again = keras_recbert.load(tmp_path / path)
            assert again.preprocessor.title_length == 2
            np.testing.assert_array_equal(again.predict(news, verbose=0), expected)
        model.export_savedmodel(tmp_path / "served")
        served = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
        scores = served(**{k: tf.constant(v) for k, v in news.items()})["scores"]
        np.testing.assert_allclose(scores, tf.nn.softmax(expected), atol=1e-6)
        with pytest.raises(ValueError, match="fields 'title', 'body'. Received: 'text"):
            model.predict({"text": titles})
        with pytest.raises(ValueError, match="'title', 'body'. Received: a list"):
            model.predict(titles)
