import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from foreign_berts import write_huggingface_folder
from safetensors.numpy import load_file
from toy_texts import review_pairs, reviews, tiny_model, write_glue_task

import keras_recbert
from keras_recbert.cli import COMMANDS, main


@pytest.fixture
def recbert(capsys):
    """Runs a command in this process; returns status, output and errors."""

    def run(*argv):
        try:
            status = main(argv)
        except SystemExit as error:  # how a parser ends
            status = error.code
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return status, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with single.keras and pairs.keras, untrained."""
    folder = tmp_path_factory.mktemp("cli")
    for name, fields in (("single", ("text",)), ("pairs", ("text", "text_pair"))):
        model = tiny_model(label_names=["bad", "good"])
        model.fields = fields
        model.save(folder / f"{name}.keras")
    return folder


@pytest.fixture(scope="module")
def exported(saved):
    for name in ("single", "pairs"):
        output = saved / f"{name}_saved"
        assert main(["export", str(saved / f"{name}.keras"), str(output)]) == 0
    return saved


# Listing -----------------------------------------------------------------------


def test_list_shows_the_zoo(recbert):
    status, out, _ = recbert("list")
    assert status == 0
    header, *rows = out.splitlines()
    assert header.split() == ["model", "source"]
    assert [row.split()[0] for row in rows] == keras_recbert.list_models()


def test_list_takes_a_pattern(recbert):
    _, out, _ = recbert("list", "*blstm*")
    names = [row.split()[0] for row in out.splitlines()[1:]]
    assert names == keras_recbert.list_models("*blstm*")
    assert "trans_blstm_base" in names
    status, out, err = recbert("list", "*gru*")
    assert (status, out) == (2, "")
    assert "No model matches '*gru*'. `recbert list` shows all." in err


def test_list_counts_parameters(recbert):
    _, out, _ = recbert("list", "bert_[tb]*", "--params")
    counts = {row.split()[0]: row.split()[1] for row in out.splitlines()[1:]}
    assert counts == {"bert_tiny": "4,385,920", "bert_base": "109,482,240"}


# Help and mistakes -------------------------------------------------------------


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_help_names_every_command(recbert, argv):
    status, out, _ = recbert(*argv)
    assert status == 0
    for command in COMMANDS:
        assert command in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(recbert, command):
    status, out, _ = recbert(command, "--help")
    assert status == 0
    assert f"recbert {command}" in out
    assert COMMANDS[command].__doc__.split(".")[0].split("\n")[0] in " ".join(
        out.split()
    )


def test_help_is_instant_and_loads_no_tensorflow():
    script = (
        "import sys; from keras_recbert.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        "main(['list'])\nassert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["export", "none.keras", "out"], "There is no file none.keras"),
        (["predict", "none", "a text"], "There is no SavedModel at none"),
        (["vocabulary", "none.txt"], "No text file at none.txt"),
        (["finetune", "--recipe", "none.yaml"], "There is no recipe none.yaml"),
        (["finetune", "--recipe"], "--recipe needs the path of a YAML file"),
        (["finetune", "--model", "bert_tinny"], "Did you mean 'bert_tiny'"),
        (
            ["finetune", "--task", "sst3", "--data-dir", "."],
            "Unknown task: 'sst3'. Did you mean 'sst2'",
        ),
        (["finetune"], "Say where the examples are: data_dir (--data-dir DIR)"),
        (["finetune", "--weights", "none"], "There is no folder none"),
        (["list", "--tasks", "squat*"], "No task matches 'squat*'. `recbert list --ta"),
        (
            ["list", "--tasks", "--params"],
            "A data set has no parameters. Leave out --p",
        ),
        (["convert", "none", "out"], "There is no folder none"),
        (["predict", "somewhere"], "nothing to ask: give one text or more"),
        (["quickstart", "--model", "swish_tyny"], "Did you mean 'swish_tiny'"),
        (["explain", "swish_tyny"], "Did you mean 'swish_tiny'"),
        (["explain", "none.keras"], "There is no file none.keras"),
        (
            ["explain", "swish_tiny", "--implementation", "fast"],
            "must be one of auto, reference, loop, xla. Received: "
            "implementation='fast'",
        ),
        (["profile", "swish_tyny"], "Did you mean 'swish_tiny'"),
        (["profile", "swish_tiny", "--shape", "8"], "A shape is rows x tokens"),
        (
            ["prepare", "none.txt", "--output-dir", "out", "--vocabulary-size", "99"],
            "none.txt",
        ),
        (["prepare", "none.txt", "--output-dir", "out"], "`vocabulary_size`, to learn"),
        (["pretrain"], "Pass corpus=DIR (--corpus DIR), a folder that `recbert prep"),
        (["pretrain", "--corpus", "none"], "none"),
        (["pretrain", "--recipe", "none.yaml"], "There is no recipe none.yaml"),
        (["table", "none.yaml", "--corpus", "c"], "There is no recipe none"),
        (["evaluate", "none.keras", "--corpora", "a", "b"], "No corpus at b"),
    ],
)
def test_mistakes_are_one_clear_line(recbert, tmp_path, monkeypatch, argv, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECBERT_TRACEBACK", raising=False)
    status, out, err = recbert(*argv)
    assert status == 2
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith("recbert: error: ")
    assert message in first
    assert second == "(RECBERT_TRACEBACK=1 shows where it arose.)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["lst"], "lst"),
        (["list", "--parms"], "--parms"),
        (["finetune", "--epoch", "3"], "--epoch"),
        (["finetune", "--epochs", "many"], "many"),
        (["finetune", "--epochs", "0"], "`epochs` must be at least 1"),
        (["pretrain", "--steps", "0"], "`steps` must be at least 1"),
        (["table", "a.yaml", "--corpora", "a"], "--corpora"),
        (["export", "model.keras"], "required"),
    ],
)
def test_wrong_flags_are_told(recbert, argv, message):
    status, _, err = recbert(*argv)
    assert status == 2
    assert message in err


def test_a_traceback_on_request(monkeypatch):
    monkeypatch.setenv("RECBERT_TRACEBACK", "1")
    with pytest.raises(FileNotFoundError, match="There is no file none.keras"):
        main(["export", "none.keras", "out"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_a_command_with_a_message(recbert, monkeypatch, number):
    cleaned = []

    def work():
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        finally:
            cleaned.append(number)

    monkeypatch.setitem(COMMANDS, "list", work)
    handler = signal.getsignal(number)
    status, out, err = recbert("list")
    assert (status, out) == (128 + number, "")
    assert err.startswith("\nrecbert: stopped. The same command resumes a run of ")
    assert cleaned == [number]
    assert signal.getsignal(number) is handler


def test_an_ignored_signal_stays_ignored(recbert, monkeypatch):
    monkeypatch.setitem(COMMANDS, "list", lambda: os.kill(os.getpid(), signal.SIGHUP))
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        assert recbert("list") == (0, "", "")
    finally:
        signal.signal(signal.SIGHUP, handler)


# Work --------------------------------------------------------------------------


def test_export_follows_what_the_model_was_trained_on(recbert, exported):
    status, out, _ = recbert("predict", str(exported / "single_saved"), "a good film")
    assert status == 0
    (line,) = out.splitlines()
    label, score, percent, *text = line.split()
    assert label in ("bad", "good")
    assert 50 <= float(score) <= 100
    assert (percent, text) == ("%", ["a", "good", "film"])

    path = str(exported / "pairs_saved")
    first, second, _ = review_pairs(2)
    texts = [first[0], second[0], first[1], second[1]]
    status, out, _ = recbert("predict", path, *texts, "--pairs")
    assert status == 0
    assert [line.split("%  ")[1] for line in out.splitlines()] == [
        f"{a} | {b}" for a, b in zip(first, second, strict=True)
    ]
    for argv, message in (
        (("a",), "takes 2 text(s) an example. Add --pairs."),
        (("a", "b", "c", "--pairs"), "Received: 3 texts."),
    ):
        status, out, err = recbert("predict", path, *argv)
        assert (status, out) == (2, "")
        assert message in err


@pytest.mark.slow  # two processes that load TensorFlow
@pytest.mark.parametrize("name", ["single", "pairs"])
def test_the_line_for_saved_model_cli_runs_as_printed(recbert, saved, tmp_path, name):
    output = tmp_path / "a folder"
    status, out, _ = recbert("export", str(saved / f"{name}.keras"), str(output))
    assert status == 0
    _, line = out.strip().split("call it as: ")
    result = subprocess.run(
        line,
        shell=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,  # as a user without this package's sources
        env={**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:/bin"},
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert "Result for output key label:\n[b'" in result.stdout
    readme = pathlib.Path(__file__).parents[1] / "README.md"
    shown = line.replace(f"'{output}'", "film_model")
    assert (shown in readme.read_text(encoding="utf-8")) is (name == "single")


def test_a_cut_savedmodel_is_one_line(recbert, exported, tmp_path):
    path = tmp_path / "cut"
    shutil.copytree(exported / "single_saved", path)
    file = path / "variables" / "variables.data-00000-of-00001"
    file.write_bytes(file.read_bytes()[:1000])
    status, out, err = recbert("predict", str(path), "a good film")
    assert (status, out) == (2, "")
    assert err.startswith(f"recbert: error: The SavedModel at {path} is damaged: ")
    assert len(err.splitlines()) == 2


def test_explain_says_what_runs(recbert, saved):
    status, out, err = recbert("explain", "swish_base")
    assert (status, err) == (0, "")
    assert out == f"{keras_recbert.explain('swish_base')}\n"
    assert "SwishRNN" in out
    path = str(saved / "single.keras")
    status, out, _ = recbert("explain", path, "--implementation", "loop")
    assert status == 0
    assert "implementation=loop" in out
    assert out == f"{keras_recbert.explain(path, implementation='loop')}\n"


def test_export_replaces_only_on_request(recbert, exported):
    argv = ("export", str(exported / "single.keras"), str(exported / "single_saved"))
    status, _, err = recbert(*argv)
    assert status == 2
    assert "exists already" in err
    status, out, _ = recbert(*argv, "--overwrite", "--fields", "text", "text_pair")
    assert status == 0
    assert "Wrote" in out
    assert "--pairs" in out  # how to ask a model of pairs
    recbert(*argv, "--overwrite")


def test_convert_reads_accounts_and_writes(recbert, tmp_path):
    write_huggingface_folder(tmp_path / "bert")
    sizes = "num_layers=2, hidden_dim=12, num_heads=3, intermediate_dim=20"
    status, out, err = recbert(
        "convert", str(tmp_path / "bert"), str(tmp_path / "preset")
    )
    assert status == 0, err
    assert "39 tensors used, 0 unused" in out
    assert "2 x block_*/attention/query_key_value/kernel <- encoder.layer.*" in out
    assert f"Wrote the preset {tmp_path / 'preset'}" in out
    card = json.loads((tmp_path / "preset" / "card.json").read_text())
    assert card["source"] == str(tmp_path / "bert")
    status, out, _ = recbert(
        "convert",
        str(tmp_path / "preset"),
        str(tmp_path / "back"),
        "--to",
        "huggingface",
    )
    assert status == 0
    assert "transformers.AutoModel.from_pretrained" in out
    first, last = (
        load_file(tmp_path / name / "model.safetensors") for name in ("bert", "back")
    )
    assert first.keys() == last.keys()
    assert all(np.array_equal(first[name], last[name]) for name in first)
    # A name of other sizes, and a folder that is there.
    status, _, err = recbert(
        "convert", str(tmp_path / "bert"), str(tmp_path / "x"), "--model", "swish_tiny"
    )
    assert status == 2
    assert "num_heads: 2 in 'swish_tiny', 3 in the checkpoint" in err
    assert sizes.partition(", ")[2].partition(", inter")[0] in err
    status, _, err = recbert(
        "convert", str(tmp_path / "bert"), str(tmp_path / "preset")
    )
    assert status == 2 and "exists already" in err
    assert not (tmp_path / "x").exists()


def test_convert_writes_a_classifier_for_transformers(recbert, tmp_path):
    model = tiny_model(label_names=["bad", "good"], pooling="first")
    model.save_preset(tmp_path / "preset")
    output = str(tmp_path / "bert")
    argv = ("convert", str(tmp_path / "preset"), output, "--to", "huggingface")
    status, out, _ = recbert(*argv)
    assert status == 0
    assert f"transformers.pipeline('text-classification', '{output}')" in out
    again = keras_recbert.load(tmp_path / "bert")
    assert again.label_names == ["bad", "good"]
    for a, b in zip(model.weights, again.weights, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())
    # What has no class there.
    tiny_model(pooling="mean").save_preset(tmp_path / "preset", overwrite=True)
    status, _, err = recbert(*argv, "--overwrite")
    assert status == 2
    assert (
        "reads the pooled first token of the last" in err and "--pooling first" in err
    )


def test_export_takes_presets_of_tasks(recbert, tmp_path):
    model = tiny_model()
    model.save_preset(tmp_path / "preset")
    status, _, _ = recbert("export", str(tmp_path / "preset"), str(tmp_path / "saved"))
    assert status == 0
    assert (tmp_path / "saved" / "saved_model.pb").is_file()
    model.backbone.save_preset(tmp_path / "encoder")
    status, _, err = recbert("export", str(tmp_path / "encoder"), str(tmp_path / "no"))
    assert status == 2 and "an encoder without a head" in err


def test_a_file_that_is_no_model_is_told(recbert, tmp_path):
    path = tmp_path / "model.keras"
    path.write_text("not a model")
    status, _, err = recbert("export", str(path), str(tmp_path / "out"))
    assert status == 2
    assert "model.keras" in err
    assert not (tmp_path / "out").exists()


def test_a_damaged_model_is_told_in_one_line(recbert, saved, tmp_path):
    content = bytearray((saved / "single.keras").read_bytes())
    content[len(content) // 2] ^= 4
    path = tmp_path / "model.keras"
    path.write_bytes(content)
    for argv in (("export", path, "out"), ("convert", path, "out"), ("explain", path)):
        status, _, err = recbert(*map(str, argv))
        assert status == 2
        assert f"recbert: error: {path} is damaged or cut short (Bad CRC-32" in err
        assert len(err.splitlines()) == 2  # and how to see where it arose
    assert not (tmp_path / "out").exists()


def test_convert_takes_the_encoder_of_a_pretrainer(recbert, tmp_path):
    tiny_model(task="pretrainer").save(tmp_path / "model.keras")
    output = tmp_path / "preset"
    status, out, _ = recbert("convert", str(tmp_path / "model.keras"), str(output))
    assert status == 0
    assert "The heads of its objectives are left out" in out
    assert keras_recbert.load(output).preprocessor is not None


def test_vocabulary_is_learned_from_files(recbert, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(reviews(60)[0]) + "\n")
    output = tmp_path / "vocab.txt"
    status, out, _ = recbert(
        "vocabulary", str(corpus), "--output", str(output), "--size", "90"
    )
    assert status == 0
    pieces = output.read_text().splitlines()
    assert len(pieces) < 90
    first, second = out.splitlines()
    assert first == f"Wrote {len(pieces)} word pieces to {output}."
    assert second.startswith(f"Learned {len(pieces)} of 90 word pieces: the learner")
    assert "film" in pieces
    assert pieces[0] == "[PAD]"


def test_finetune_takes_a_recipe_and_flags_replace_its_values(recbert, tmp_path):
    write_glue_task(tmp_path / "glue", "sst2")
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "model: bert_tiny\ntask: sst2\nvocabulary_size: 90\nepochs: 3\nexport: false\n"
        "max_sequence_length: 32\n"
        "overrides: {num_layers: 1, hidden_dim: 16, num_heads: 2}\n"
    )
    run = tmp_path / "run"
    status, out, err = recbert(
        *("finetune", "--recipe", str(recipe), "--data-dir", str(tmp_path / "glue")),
        *("--epochs", "1", "--seed", "5", "--output-dir", str(run)),
    )
    assert status == 0, err
    results = json.loads((run / "results.json").read_text())
    assert results["config"]["epochs"] == 1
    assert results["config"]["seed"] == 5
    assert results["config"]["vocabulary_size"] == 90
    assert results["config"]["overrides"]["hidden_dim"] == 16
    assert f"dev accuracy: {results['scores']['dev_accuracy']:.4f}" in out
    assert "best epoch 1 of 1" in out
    assert "savedmodel" not in out


def test_text_is_prepared_and_an_encoder_pretrained_on_it(recbert, tmp_path):
    text = tmp_path / "reviews.txt"
    text.write_text("\n\n".join("\n".join(reviews(12, seed)[0]) for seed in range(4)))
    corpus = str(tmp_path / "corpus")
    status, out, err = recbert(
        *("prepare", str(text), "--output-dir", corpus, "--vocabulary-size", "90"),
        *("--num-shards", "2"),
    )
    assert status == 0, err
    assert dict(re.findall(r"^(\w[\w ]*\w) +([\d,]+)$", out, re.M))["documents"] == "4"
    assert f"Train on it: recbert pretrain --corpus {corpus}" in out

    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "model: bert_tiny\nobjectives: {masked_lm: {mask_rate: 0.3}}\nsteps: 9\n"
        "checkpoint_every: 1\nwarmup_steps: 1\nbatch_size: 2\nsequence_length: 16\n"
        "overrides: {num_layers: 1, hidden_dim: 16, num_heads: 2}\n"
    )
    run = tmp_path / "run"
    status, out, err = recbert(
        *("pretrain", "--recipe", str(recipe), "--corpus", corpus, "--steps", "2"),
        *("--validation", "same", corpus, "--validation-examples", "4"),
        *("--seed", "5", "--output-dir", str(run)),
    )
    assert status == 0, err
    results = json.loads((run / "results.json").read_text())
    assert results["config"]["steps"] == 2
    assert results["config"]["seed"] == 5
    assert results["config"]["objectives"] == {"masked_lm": {"mask_rate": 0.3}}
    perplexity = results["scores"]["val_same_masked_lm_perplexity"]
    assert f"val same masked lm perplexity: {perplexity:.4f}\n" in out
    assert "2 steps, 0.0 M tokens" in out
    assert keras_recbert.load(run / "preset").get_config()["num_layers"] == 1

    status, out, err = recbert(
        *("evaluate", str(run / "model.keras"), "--corpora", "same", corpus),
        *("--num-examples", "4", "--seed", "5"),
    )
    assert status == 0, err
    found = float(re.search(r"same masked lm perplexity: ([\d.]+)\n", out)[1])
    assert found == pytest.approx(perplexity, rel=1e-4)


def test_recipe_with_an_equals_sign(recbert, tmp_path):
    status, _, err = recbert("finetune", f"--recipe={tmp_path / 'none.yaml'}")
    assert status == 2
    assert "There is no recipe" in err


def test_the_console_script_is_installed():
    script = os.path.join(os.path.dirname(sys.executable), "recbert")
    result = subprocess.run([script, "list", "*gru*"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "No model matches" in result.stderr
