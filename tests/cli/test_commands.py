"""Commands end to end, in this process."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from foreign_berts import write_huggingface_folder
from safetensors.numpy import load_file
from toy_texts import review_pairs, reviews, tiny_model, write_glue_task

import keras_recbert


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
    readme = pathlib.Path(__file__).parents[2] / "README.md"
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
    model.encoder.save_preset(tmp_path / "encoder")
    status, _, err = recbert("export", str(tmp_path / "encoder"), str(tmp_path / "no"))
    assert status == 2 and "built without a vocabulary" in err
    assert not (tmp_path / "no").exists()


def test_export_of_an_encoder_embeds_texts(recbert, tmp_path):
    model = tiny_model()
    model.encoder.preprocessor = model.preprocessor
    model.encoder.save_preset(tmp_path / "encoder")
    vectors = str(tmp_path / "vectors")
    status, out, _ = recbert("export", str(tmp_path / "encoder"), vectors)
    assert status == 0 and f"recbert predict {vectors} 'a sentence'" in out
    status, out, _ = recbert("predict", vectors, "a film")
    assert status == 0 and "embeddings [" in out
    (tmp_path / "texts.txt").write_text("a film\n")
    files = (
        "--input",
        str(tmp_path / "texts.txt"),
        "--output",
        str(tmp_path / "a.csv"),
    )
    status, _, err = recbert("predict", vectors, *files)
    assert status == 2 and "This one gives embeddings" in err


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


def test_finetune_takes_a_recipe_and_flags_replace_its_values(
    eager_steps, recbert, tmp_path
):
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
    assert f"validation accuracy: {results['scores']['validation_accuracy']:.4f}" in out
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
