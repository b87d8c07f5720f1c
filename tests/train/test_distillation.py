"""A student learns from a teacher: the command, the call, a stop, what is refused."""

import csv
import json

import numpy as np
import pytest
from own_tables import OPTIONS, write_rows
from stopped_runs import Stopped, stop_at
from toy_texts import review_pairs, reviews, tiny_model

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.config import DistillationConfig
from keras_recbert.data.transfer_set import open_transfer_set
from keras_recbert.train import distillation
from keras_recbert.train.distillation import distill
from keras_recbert.train.precision import Precision
from keras_recbert.train.teacher import Teacher

STUDENT = {
    "model": "bilstm_student",
    "overrides": {"recurrent_dim": 8, "pooled_dim": 7, "vector_dim": 9},
    "epochs": 4,
    "batch_size": 8,
    "learning_rate": 1e-2,
    "n_iter": 2,
    "pos_probability": 0.0,
    "max_sequence_length": 32,
    "export": False,
}
FLOAT32 = Precision("float32", "asked for")


def tables(folder):
    texts, labels = reviews(128)
    names = ("bad", "good")
    rows = [(text, names[label]) for text, label in zip(texts, labels, strict=True)]
    train = write_rows(folder / "train.csv", ("text", "label"), rows[:96])
    validation = write_rows(folder / "validation.csv", ("text", "label"), rows[96:])
    return {"train": train, "validation": validation}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables, and a teacher that has learned them."""
    folder = tmp_path_factory.mktemp("distillation")
    options = {**OPTIONS, "epochs": 8, "output_dir": folder / "teacher"}
    options |= tables(folder)
    keras_recbert.finetune(**options)
    return folder


@pytest.fixture
def options(folder, tmp_path):
    names = ("train", "validation")
    return {
        **STUDENT,
        **{name: str(folder / f"{name}.csv") for name in names},
        "teacher": str(folder / "teacher"),
        "teacher_precision": "float32",
        "output_dir": str(tmp_path / "run"),
    }


def run(options, **changes):
    return distill(DistillationConfig(**{**options, **changes}))


def test_a_student_learns_its_teacher(options, folder, tmp_path, capsys):
    more = tmp_path / "more.txt"
    more.write_text("good music\n\na very dull story\n")
    options["unlabelled"] = str(more)
    student, results = keras_recbert.distill(**options)
    out = capsys.readouterr().out
    scores = results["scores"]
    assert scores["validation_teacher_accuracy"] == 1.0
    assert scores["validation_teacher_agreement"] >= 0.9
    assert scores["validation_accuracy"] >= 0.9
    history = results["history"]
    assert history["teacher_agreement"][-1] > history["teacher_agreement"][0]
    made = results["transfer_set"]
    assert made["labels"] == 96
    assert 98 < made["records"] <= 98 * 3
    assert f"of train: {made['records']:,} texts, 96 with a label" in out
    # Logits are those of the teacher, of the very texts, masked words too.
    transfer = open_transfer_set(tmp_path / "run/transfer_set")
    texts, logits, labels = zip(*transfer.records(), strict=True)
    assert texts[96:98] == (("good music",), ("a very dull story",))
    assert any("[MASK]" in text for (text,) in texts)
    teacher = keras_recbert.load(folder / "teacher/preset")
    plain = [index for index, (text,) in enumerate(texts) if "[MASK]" not in text]
    expected = teacher.predict([texts[index][0] for index in plain], verbose=0)
    found = np.stack(logits)[plain]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    # The student has a vocabulary of its own, and forgets what it was compiled with.
    assert "[" not in student.preprocessor.tokenizer.vocabulary
    loaded = keras_recbert.load(tmp_path / "run/model.keras")
    np.testing.assert_allclose(
        loaded.predict(["a good film"]), student.predict(["a good film"]), atol=1e-5
    )


def test_several_teachers_answer_with_the_mean_of_their_logits(options, tmp_path):
    """Each with the order of its own classes; by Beam's workers the same bytes."""
    other = tmp_path / "other"
    tiny_model(label_names=["good", "bad"]).save_preset(other)
    options |= {"teacher": [options["teacher"], str(other)], "epochs": 1, "n_iter": 1}
    _, results = run(options)
    transfer = open_transfer_set(tmp_path / "run/transfer_set")
    texts, logits, _ = zip(*transfer.records(), strict=True)
    plain = [index for index, (text,) in enumerate(texts) if "[MASK]" not in text]
    plain_texts = [texts[index][0] for index in plain]
    first, second = (
        keras_recbert.load(path).predict(plain_texts, verbose=0)
        for path in (f"{options['teacher'][0]}/preset", other)
    )
    expected = (first + second[:, ::-1]) / 2
    np.testing.assert_allclose(np.stack(logits)[plain], expected, atol=1e-4)
    assert results["teacher"]["members"] == 2
    assert results["transfer_set"]["made_from"]["logits"] == [[0, 1], [1, 0]]
    by_beam = {"beam_options": "--direct_num_workers=1"}
    by_beam["transfer_set"] = str(tmp_path / "again")
    run(options, output_dir=str(tmp_path / "by_beam"), **by_beam)
    assert open_transfer_set(tmp_path / "again").sha256() == transfer.sha256()


def test_each_of_several_teachers_is_checked(options, tmp_path):
    teacher, other = options["teacher"], tmp_path / "other"
    tiny_model(label_names=["bad", "fine"]).save_preset(other)
    with pytest.raises(ValueError, match=rf"teacher at {other} has bad, fine"):
        run(options, teacher=[teacher, str(other)])
    assert not (tmp_path / "run/transfer_set").exists()
    for wrong in ([], [teacher, teacher], [teacher, ""]):
        with pytest.raises(ValueError, match="one path or more, each once"):
            DistillationConfig(teacher=wrong)
    assert DistillationConfig(teacher=[teacher]).teacher == teacher


def test_masks_reach_the_teacher(folder):
    """As `[MASK]` of its vocabulary, not as three words."""
    teacher = Teacher(folder / "teacher", FLOAT32)
    packed = teacher._packer(["a [MASK] film", "[MASK]."])
    tokenizer = teacher.model.preprocessor.tokenizer
    ids = packed["token_ids"].numpy()
    assert tokenizer.mask_id in ids[0] and tokenizer.mask_id in ids[1]
    plain = teacher.model.preprocessor(["a [MASK] film"])["token_ids"].numpy()
    assert tokenizer.mask_id not in plain


def test_logits_do_not_depend_on_order_or_batches(folder):
    texts, _ = reviews(17)
    few = Teacher(folder / "teacher", FLOAT32, batch_size=3).logits([texts])
    many = Teacher(folder / "teacher", FLOAT32, batch_size=64).logits([texts[::-1]])
    np.testing.assert_allclose(few, many[::-1], atol=1e-5)
    bfloat16 = Teacher(folder / "teacher", Precision("bfloat16", "asked for"))
    assert bfloat16.model.encoder.policy.name == "mixed_bfloat16"
    difference = np.abs(bfloat16.logits([texts]) - few).max()
    assert 0 < difference < 0.1


@pytest.mark.slow
def test_a_run_that_was_stopped_resumes(options, monkeypatch, tmp_path):
    """Inside an epoch, with the weights of a run that was not; the teacher rests."""
    options |= {"epochs": 2, "n_iter": 1, "checkpoint_every": 1}
    with monkeypatch.context() as patch:
        stop_at(patch, 17)
        with pytest.raises(Stopped):
            run(options)

    def never(*_):
        raise AssertionError

    transfer = tmp_path / "run/transfer_set"
    before = open_transfer_set(transfer).sha256()
    student, results = run(options)
    assert open_transfer_set(transfer).sha256() == before
    shared = {"transfer_set": str(transfer), "output_dir": str(tmp_path / "whole")}
    whole, expected = run(options, **shared)
    assert results["history"]["loss"] == expected["history"]["loss"]
    for found, weights in zip(student.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(found, weights)


@pytest.mark.slow
def test_pairs_labels_and_probabilities(tmp_path, eager_steps):
    """A student of two texts, on labels too, with another optimizer."""
    first, second, labels = review_pairs(16)
    rows = list(zip(first, second, labels.tolist(), strict=True))
    header = ("text", "text_pair", "label")
    train = write_rows(tmp_path / "train.csv", header, rows)
    teacher = tiny_model(label_names=["0", "1"])
    teacher.fields = ("text", "text_pair")
    teacher.save_preset(tmp_path / "teacher")
    changes = {
        "model": "siamese_bilstm_student",
        "train": train,
        "validation": train,
        "text_column": ["text", "text_pair"],
        "teacher": str(tmp_path / "teacher"),
        "output_dir": str(tmp_path / "run"),
        "objective": "probabilities",
        "temperature": 2.0,
        "label_weight": 0.5,
        "optimizer": "adadelta",
        "learning_rate": None,
        "epochs": 1,
        "n_iter": 1,
    }
    student, results = run(STUDENT, **changes)
    assert results["learning_rate"] == 1.0
    assert student.predict(([first[0]], [second[0]]), verbose=0).shape == (1, 2)
    assert results["transfer_set"]["labels"] == len(rows)


def test_scores(tmp_path, eager_steps):
    """A regressor learns scores on the scale of the labels."""
    texts, labels = reviews(24)
    rows = [(text, 3.0 + 2 * label) for text, label in zip(texts, labels, strict=True)]
    train = write_rows(tmp_path / "train.csv", ("text", "label"), rows)
    tiny_model(task="regressor").save_preset(tmp_path / "teacher")
    changes = {
        "task": "regressor",
        "train": train,
        "validation": train,
        "teacher": str(tmp_path / "teacher"),
        "output_dir": str(tmp_path / "run"),
        "epochs": 1,
        "n_iter": 0,
    }
    _, results = run(STUDENT, **changes)
    assert -1 <= results["scores"]["validation_teacher_correlation"] <= 1


def test_the_command(options, tmp_path, capsys, eager_steps):
    path = tmp_path / "recipe.yaml"
    path.write_text(json.dumps({**options, "epochs": 1, "n_iter": 1, "export": True}))
    assert main(["distill", str(path), "--limit", "9"]) == 0
    out = capsys.readouterr().out
    assert "validation teacher agreement: " in out
    assert main(["predict", str(tmp_path / "run/savedmodel"), "a good film"]) == 0
    with open(tmp_path / "run/history.csv") as file:
        assert "teacher_agreement" in next(csv.reader(file))
    results = json.loads((tmp_path / "run/results.json").read_text())
    agreement = results["scores"]["validation_teacher_agreement"]
    with open(tmp_path / "run/disagreements_validation.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == round(32 * (1 - agreement))
    assert all(row["teacher"] != row["student"] for row in rows)


def test_logits_of_another_tool(options, tmp_path, eager_steps):
    texts, labels = reviews(12)
    rows = [
        {"text": text, "logits": {"good": 3.0 * label, "bad": 1.5}}
        for text, label in zip(texts, labels.tolist(), strict=True)
    ]
    path = tmp_path / "logits.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    changes = {"teacher": None, "n_iter": None, "teacher_logits": str(path)}
    _, results = run(options, **changes, epochs=1)
    assert results["transfer_set"]["records"] == 12
    assert "validation_teacher_accuracy" not in results["scores"]
    transfer = open_transfer_set(tmp_path / "run/transfer_set")
    (_, logits, label) = next(transfer.records())
    assert logits.tolist() == [1.5, 3.0 * labels[0]] and np.isnan(label)
    with pytest.raises(ValueError, match="has all texts. Received: n_iter=3"):
        run(options, **{**changes, "n_iter": 3})


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"teacher": None}, "Name the model to learn from: teacher"),
        ({"teacher": "nowhere"}, "nowhere holds no teacher"),
        ({"unlabelled": "nowhere.txt"}, "nowhere.txt"),
        ({"unlabelled": "bytes.jsonl"}, "bytes.jsonl:1: not valid utf-8"),
        ({"unlabelled": "half.jsonl"}, "half.jsonl:1: half of a character"),
        ({"label_weight": 2.0}, "`label_weight` must be in"),
        ({"class_weights": "balanced"}, "`class_weights` is of runs that learn from"),
        ({"mask_probability": 0.0}, "Nothing would be changed"),
        ({"tagger": "a:b"}, "tagger='a:b', n_iter=2, pos_probability=0.0. Raise"),
        ({"temperature": 3.0}, "`temperature` softens probabilities. Received: temper"),
        (
            {"teacher": None, "n_iter": None, "teacher_logits": "a.jsonl"}
            | {"mask_probability": 0.4},
            "has all texts. Received: mask_probability=0.4",
        ),
        ({"model": "bilstm_students"}, "bilstm_student"),
        ({"overrides": {"recurrent_dim": "null"}}, "`recurrent_dim` must be a whole"),
        ({"unlabelled": "blank.txt"}, "blank.txt holds no text"),
        ({"unlabelled": "others.csv"}, "others.csv has the columns 'one', 'two'. Name"),
    ],
)
def test_what_is_wrong_is_told_before_work_starts(
    options, changes, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bytes.jsonl").write_bytes(b'{"text": "caf\xe9"}\n')
    (tmp_path / "half.jsonl").write_text('{"text": "\\ud83d"}\n')
    (tmp_path / "blank.txt").write_text("   \n \n")
    (tmp_path / "others.csv").write_text("one,two\na film,3\n")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run(options, **changes)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_precision_that_was_measured_stays(
    options, tmp_path, eager_steps, monkeypatch
):
    """A busy machine chooses another one the next time; the logits are there."""
    chosen = ["bfloat16", "float32"]

    def choose(requested):
        return Precision(chosen.pop(0) if requested == "auto" else requested, "")

    monkeypatch.setattr(distillation, "choose_precision", choose)
    options |= {"teacher_precision": "auto", "epochs": 1, "n_iter": 0, "limit": 8}
    run(options)
    _, results = run(options, overwrite=True)
    assert results["transfer_set"]["made_from"]["teacher_precision"] == "bfloat16"


@pytest.mark.slow
def test_other_labels_and_another_teacher(options, tmp_path, eager_steps):
    tiny_model(label_names=["bad", "fine"]).save_preset(tmp_path / "other")
    with pytest.raises(ValueError, match="has bad, fine; train has bad, good"):
        run(options, teacher=str(tmp_path / "other"))
    run(options, epochs=1, n_iter=0)
    tiny_model(label_names=["good", "bad"]).save_preset(tmp_path / "third")
    third = {"teacher": str(tmp_path / "third"), "n_iter": 0}
    shared = str(tmp_path / "run/transfer_set")
    message = "made from something else: another teacher or tokenizer, logits="
    with pytest.raises(ValueError, match=message):
        run(options, **third, transfer_set=shared, overwrite=True)
    # The folder of the run is its own to replace.
    _, results = run(options, **third, epochs=1, overwrite=True)
    assert results["transfer_set"]["made_from"]["logits"] == [1, 0]


@pytest.mark.slow
def test_numbers_of_a_teacher_are_not_words_of_a_table(options, tmp_path, eager_steps):
    tiny_model(label_names=["0", "1"]).save_preset(tmp_path / "other")
    with pytest.raises(ValueError, match="has 0, 1; train has bad, good. Rename"):
        run(options, teacher=str(tmp_path / "other"))


def held_out(options):
    with open(options["validation"]) as file:
        return [row["text"] for row in csv.DictReader(file)]


@pytest.mark.slow
def test_what_a_student_is_scored_on_is_not_learned(
    options, tmp_path, eager_steps, capsys
):
    """Neither as a text without a label nor with the logits of another tool."""
    scored = held_out(options)
    more = tmp_path / "more.txt"
    with open(options["train"]) as file:
        known = next(csv.DictReader(file))["text"]
    more.write_text("\n".join([*scored, "good music", "good music", known, ""]))
    run(options, unlabelled=str(more), n_iter=0, epochs=1)
    out = capsys.readouterr().out
    assert f"{more}: 1 texts to learn on too. {len(scored)} that the student" in out
    assert "left out. 2 were there already." in out
    transfer = open_transfer_set(tmp_path / "run/transfer_set")
    texts = [text for (text,), _, _ in transfer.records()]
    assert texts.count("good music") == 1 == texts.count(known)
    assert not set(scored) & set(texts)
    logits = tmp_path / "logits.jsonl"
    rows = [{"text": text, "logits": [1.0, 2.0]} for text in [*scored, "new new"]]
    logits.write_text("".join(json.dumps(row) + "\n" for row in rows))
    changes = {"teacher": None, "n_iter": None, "teacher_logits": str(logits)}
    changes |= {"epochs": 1, "output_dir": str(tmp_path / "other")}
    run(options, **changes)
    assert f"{len(scored)} texts that the student is scored" in capsys.readouterr().out
    transfer = open_transfer_set(tmp_path / "other/transfer_set")
    assert [text for (text,), _, _ in transfer.records()] == ["new new"]
    with pytest.raises(ValueError, match="has no 'label'. Received: label_weight=0.5"):
        run(options, **changes, label_weight=0.5, overwrite=True)


def tag_by_length(words):
    return ["short" if len(word) < 4 else "long" for word in words]


@pytest.mark.slow
def test_a_tagger_of_ones_own(options, tmp_path, eager_steps):
    changes = {"pos_probability": 0.3, "mask_probability": 0.0, "epochs": 1}
    changes |= {"n_iter": 1, "limit": 16}
    _, results = keras_recbert.distill(
        **{**options, **changes, "tagger": tag_by_length}
    )
    made_from = results["transfer_set"]["made_from"]
    assert made_from["augmentation"]["tagger"].endswith(":tag_by_length")
    assert results["transfer_set"]["records"] > 16
    for name in ("nowhere:tag", "json:nothing", "json:__name__"):
        with pytest.raises(ValueError, match=f"tagger='{name}'"):
            run(options, **changes, tagger=name, overwrite=True)
    with pytest.raises(ValueError, match="<lambda>"):
        keras_recbert.distill(**{**options, **changes, "tagger": lambda words: words})


@pytest.mark.slow
def test_columns_of_unlabelled_texts_are_those_of_train(
    options, tmp_path, eager_steps, capsys
):
    changes = {"text_column": None, "epochs": 1, "n_iter": 0, "validation": None}
    train, more = tmp_path / "train.csv", tmp_path / "more.csv"
    with open(options["train"]) as file:
        rows = [[row["text"], row["label"]] for row in csv.DictReader(file)]
    changes["train"] = write_rows(train, ("review", "label"), rows)
    write_rows(more, ("number", "review"), [("1", "good music"), ("2", "  ")])
    run(options, **changes, unlabelled=str(more), vocabulary_size=90)
    out = capsys.readouterr().out
    assert f"{more}: 1 texts to learn on too." in out
    assert "vocabulary_size=90 does nothing: bilstm_student reads words." in out


def test_unlabelled_texts_of_a_data_set_name_their_columns():
    options = {"task": "mrpc", "data_dir": "DIR", "teacher": "T", "text_column": ["a"]}
    assert DistillationConfig(**options, unlabelled="more.csv").text_column == ["a"]
    with pytest.raises(ValueError, match="`text_column` needs a table of your own"):
        DistillationConfig(**options)
