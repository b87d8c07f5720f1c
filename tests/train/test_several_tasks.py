"""Several tasks that one model learns together, and a student of such a teacher."""

import csv
import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from own_tables import OPTIONS
from stopped_runs import Stopped, stop_at

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.config import DistillationConfig, FineTuningConfig
from keras_recbert.data.task_files import read_split
from keras_recbert.train.fine_tuning import fine_tune, load_run_data
from keras_recbert.train.fine_tuning_table import make_fine_tuning_table
from keras_recbert.train.precision import choose_precision

SAMPLES = pathlib.Path(__file__).parent.parent / "data" / "samples"
TASKS = ["sst2", "mrpc", "stsb"]
PAIRS = {"sst2": ["text"], "mrpc": ["text", "text_pair"], "stsb": ["text", "text_pair"]}
STUDENT = {key: OPTIONS[key] for key in ("overrides", "learning_rate")}
STUDENT |= {"model": "bert_tiny", "vocabulary_size": 90, "max_sequence_length": 32}


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    """A folder of three data sets, as GLUE has them."""
    folder = tmp_path_factory.mktemp("glue")
    for task in TASKS:
        (path,) = (path for path in (SAMPLES / task).iterdir() if path.is_dir())
        (folder / path.name).symlink_to(path)
    return str(folder)


@pytest.fixture(scope="module")
def teacher(glue, tmp_path_factory):
    """The folder of a run of the command."""
    folder = tmp_path_factory.mktemp("several") / "teacher"
    arguments = [
        f"--{k.replace('_', '-')}={v}" for k, v in OPTIONS.items() if k in FLAGS
    ]
    sizes = [str(one) for pair in OPTIONS["overrides"].items() for one in pair]
    main(
        ["finetune", "--task", *TASKS, "--data-dir", glue, "--output-dir", str(folder)]
        + [*arguments, "--overrides", *sizes]
    )
    return folder


FLAGS = ("model", "vocabulary_size", "epochs", "batch_size", "learning_rate")


def config(glue, **options):
    options = {"task": TASKS, "data_dir": glue, **OPTIONS, **options}
    return FineTuningConfig(**options)


def test_the_command(teacher, tmp_path, capsys):
    results = json.loads((teacher / "results.json").read_text())
    assert results["task"] == "sst2+mrpc+stsb"
    assert set(results["validation_examples"]) == {f"{t} validation" for t in TASKS}
    table = make_fine_tuning_table([{**results, "run": "a-swish_tiny-seed0"}])
    assert "mrpc f1" in table
    scores = results["scores"]
    mains = ("sst2_accuracy", "mrpc_f1", "stsb_spearman")
    mean = np.mean([scores[f"validation_{name}"] for name in mains])
    assert scores["validation_mean"] == pytest.approx(mean)
    assert results["main_score"] == "validation_mean"
    model = keras_recbert.load(teacher / "preset")
    assert {name: list(f) for name, f in model.fields_by_head.items()} == PAIRS
    served = tf.saved_model.load(str(teacher / "savedmodel")).signatures
    assert set(served) == {"serving_default", "ids", "tokenize", *TASKS}
    single, pairs = ["a film", "dull, long"], ["a bore", "no film"]
    inputs = {"text": tf.constant(single), "text_pair": tf.constant(pairs)}
    every = served["serving_default"](**inputs)
    for task, fields in PAIRS.items():
        own = served[task](**{name: inputs[name] for name in fields})
        texts = tuple(inputs[name].numpy().tolist() for name in fields)
        logits = model.predict(texts if len(texts) > 1 else texts[0])[task]
        expected = model.heads[task].answer(tf.constant(logits))
        for key in own:
            assert own[key].numpy().tolist() == every[f"{task}_{key}"].numpy().tolist()
        np.testing.assert_allclose(own["scores"], expected["scores"], atol=1e-5)
    # Rows of a file, of one head.
    source, found = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text('sentence\na film\n"dull, long"\n')
    for path in (teacher / "savedmodel", teacher / "preset"):
        found.unlink(missing_ok=True)
        arguments = ["--input", str(source), "--output", str(found)]
        main(["predict", str(path), *arguments, "--head", "sst2"])
        with found.open() as file:
            rows = list(csv.DictReader(file))
        label = served["sst2"](text=inputs["text"])["label"].numpy()
        assert [row["prediction"].encode() for row in rows] == label.tolist()
    arguments += ["--overwrite", "--head", "rte"]
    assert main(["predict", str(teacher / "preset"), *arguments]) != 0
    assert "no head 'rte' of several" in capsys.readouterr().err


def test_the_score_of_a_task_is_that_of_its_head(teacher, glue):
    """As the saved model gives it for texts, whatever was packed with them."""
    scores = json.loads((teacher / "results.json").read_text())["scores"]
    model = keras_recbert.load(teacher / "preset")
    for task, names in (("sst2", ["accuracy"]), ("stsb", ["pearson"])):
        examples = read_split(task, glue, "validation")
        head = model.heads[task]
        logits = model.predict(dict(examples.fields))[task]
        found = head.scores(names, head.as_targets(examples.targets["label"]), logits)
        (name,) = names
        assert found[name] == pytest.approx(scores[f"validation_{task}_{name}"])


def test_batches_are_of_one_task_in_an_order_by_chance(glue):
    """Algorithm 1 of Liu et al. 2019: all batches of all tasks, shuffled anew."""
    keras.utils.set_random_seed(0)  # orders of three batches are often the same
    data = load_run_data(config(glue, batch_size=4, learning_rate=1e-3))
    learned = data.labelled(config(glue, batch_size=4))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
    heads = {name: {"task": one.task.head} for name, one in data.data.items()}
    for name, fields in PAIRS.items():
        heads[name]["fields"] = fields
    options = {key: OPTIONS[key] for key in ("max_sequence_length",)}
    sizes = {**OPTIONS["overrides"], **options}
    model = keras_recbert.build("bert_tiny", task=heads, vocabulary=vocabulary, **sizes)
    batches = learned.batches(model, 4, None)
    orders, rows = [], dict.fromkeys(TASKS, 0)
    for _ in range(2):
        orders.append([])
        for features, targets, weights in batches.dataset:
            (task,) = (name for name in TASKS if weights[name].numpy().any())
            assert weights[task].numpy().all()
            assert set(targets) == set(TASKS)
            has_pairs = features["segment_ids"].numpy().any()
            assert has_pairs == (len(PAIRS[task]) == 2)
            orders[-1].append(task)
            rows[task] += len(weights[task])
    assert rows == {name: 2 * len(one.train) for name, one in data.data.items()}
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    assert len(batches.lengths) == len(orders[0])
    # The loss of a batch is that of its task alone.
    model.compile_for_fine_tuning(10)
    for features, targets, weights in batches.dataset.take(5):
        (task,) = (name for name in TASKS if weights[name].numpy().any())
        logits = model(features, training=False)
        loss = model.compute_loss(features, targets, logits, weights)
        own = model.heads[task].loss()(targets[task], logits[task])
        assert float(loss) == pytest.approx(float(own), rel=1e-5)


def test_overrides_are_of_heads_or_of_the_encoder(glue):
    """`relu_units` goes to each head that has it, `pooled_dim` to the student."""
    recipe = {"model": "bilstm_student", "vectors": None, "learning_rate": 1e-3}
    sizes = {"recurrent_dim": 5, "vector_dim": 6, "pooled_dim": None, "relu_units": 4}
    options = config(glue, **recipe, overrides=sizes)
    data = load_run_data(options)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film"]
    precision = choose_precision("float32")
    model = data.build(options, words, None, precision)
    assert {n: h.relu.units for n, h in model.heads.items()} == dict.fromkeys(TASKS, 4)
    assert model.encoder.config["pooled_dim"] is None


@pytest.mark.slow
def test_a_stopped_run_resumes_bit_for_bit(glue, tmp_path, monkeypatch, eager_steps):
    options = {"checkpoint_every": 3, "epochs": 2, "model": "bert_tiny"}
    whole, _ = fine_tune(config(glue, **options, output_dir=str(tmp_path / "whole")))
    stopped = config(glue, **options, output_dir=str(tmp_path / "stopped"))
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        stop_at(patch, 3)
        fine_tune(stopped)
    resumed, _ = fine_tune(stopped)
    for one, other in zip(whole.weights, resumed.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def distilled(teacher, glue, folder, **options):
    options = {**STUDENT, "epochs": 1, "batch_size": 8, "export": False, **options}
    return keras_recbert.distill(
        teacher=teacher,
        data_dir=glue,
        output_dir=folder,
        **{"n_iter": 1, "pos_probability": 0.0, "task": TASKS, **options},
    )


@pytest.mark.slow
def test_a_student_of_several_tasks(teacher, glue, tmp_path, eager_steps):
    student, results = distilled(teacher, glue, tmp_path / "run")
    scores = results["scores"]
    told = json.loads((teacher / "results.json").read_text())["scores"]
    for name in ("sst2_accuracy", "mrpc_f1", "stsb_spearman"):
        task, metric = name.split("_")
        of_teacher = scores[f"validation_{task}_teacher_{metric}"]
        assert of_teacher == pytest.approx(told[f"validation_{name}"], abs=1e-6)
    assert 0 <= scores["validation_mrpc_teacher_agreement"] <= 1
    assert -1 <= scores["validation_stsb_teacher_correlation"] <= 1
    sets = sorted(path.name for path in (tmp_path / "run/transfer_set").iterdir())
    assert sets == sorted(TASKS)
    assert set(results["tasks"]) == set(TASKS)
    assert set(student.heads) == set(TASKS)
    # One task of the same teacher, and the set of its texts again.
    of_one = {"task": "sst2", "transfer_set": tmp_path / "run/transfer_set/sst2"}
    _, results = distilled(teacher, glue, tmp_path / "one", **of_one)
    assert results["scores"]["validation_teacher_accuracy"] == pytest.approx(
        scores["validation_sst2_teacher_accuracy"]
    )


def test_a_premise_is_a_text(tmp_path, eager_steps):
    """Fields go by their places, whatever a data set calls them."""
    for task in ("rte", "cb"):
        (path,) = (path for path in (SAMPLES / task).iterdir() if path.is_dir())
        (tmp_path / path.name).symlink_to(path)
    options = {"task": ["rte", "cb"], "output_dir": str(tmp_path / "run")}
    model, results = fine_tune(config(str(tmp_path), **options, limit=8))
    assert model.head_view("cb").fields == ("text", "text_pair")
    assert "validation_cb_accuracy" in results["scores"]


def test_what_is_refused(teacher, glue, tmp_path):
    def refused(match, **options):
        with pytest.raises(ValueError, match=match):
            fine_tune(config(glue, output_dir=str(tmp_path / "run"), **options))

    refused("names, each once", task=["sst2", "sst2"])
    refused("No task is called 'ss2'|ss2", task=["ss2", "mrpc"])
    refused("heads are classifier", task=["sst2", "squad1"])
    refused("`train` is of runs of one task", train="a.csv")
    refused("`class_weights` is of runs of one task", class_weights="balanced")
    with pytest.raises(ValueError, match="`unlabelled` is of runs of one task"):
        DistillationConfig(task=TASKS, data_dir=glue, unlabelled="more.txt")
    with pytest.raises(ValueError, match="has no head for cola. It has: sst2, mrpc"):
        (tmp_path / "CoLA").symlink_to(SAMPLES / "cola" / "CoLA")
        distilled(teacher, str(tmp_path), tmp_path / "run", task="cola")
    assert not (tmp_path / "run").exists()
    assert FineTuningConfig(task=["sst2"], data_dir=glue).task == "sst2"
    with pytest.raises(ValueError, match="The model has no head 'mrcp'"):
        keras_recbert.load(teacher / "preset").head_view("mrcp")
