"""A user's own files of tags and of questions: what is typed, what comes back."""

import json

import pytest

from keras_recbert.cli import main
from keras_recbert.config import FineTuningConfig
from keras_recbert.data.conll import read_conll
from keras_recbert.metrics.tagging import tagging_scores
from keras_recbert.train.fine_tuning import fine_tune
from keras_recbert.train.own_files import load_own_files

SMALL = "--vocabulary-size 80 --max-sequence-length 24 --epochs 1 --batch-size 8"
SMALL += " --model bert_tiny --no-export"
SMALL += " --overrides num_layers 1 hidden_dim 16 num_heads 2 stride 5"
NAMES = ("Ada", "Zoë", "Emil", "Uma", "Ida", "Otto", "Nils")


def sentences(number):
    """Lines of sentences of 3 to 30 words, names in them tagged."""
    lines = []
    for index in range(number):
        for place in range(1 + 5 * index % 10):
            name = NAMES[(index + place) % len(NAMES)]
            lines += [f"{name} B-person", f"sang{index} O", "so O"]
        lines.append("")
    return lines


def write_lines(path, lines):
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def write_questions(path, number, without=()):
    """Questions on contexts of their own, in SQuAD's form."""
    paragraphs = []
    for index in range(number):
        context = (
            f"Ünder {'the sea ' * index}{NAMES[index % 7]} sang in {1900 + index}."
        )
        answer = {"text": NAMES[index % 7]}
        answer["answer_start"] = context.index(answer["text"])
        question = {"id": f"q{index}", "question": "Who sang?", "answers": [answer]}
        if index in without:
            question |= {"answers": [], "is_impossible": True}
        paragraphs.append({"context": context, "qas": [question]})
    data = {"data": [{"title": "songs", "paragraphs": paragraphs}]}
    path.write_text(json.dumps(data), encoding="utf-8")
    return str(path)


def load(**options):
    return load_own_files(FineTuningConfig(**options))


@pytest.mark.slow
def test_files_of_tags(tmp_path):
    train = write_lines(tmp_path / "letters.conll", sentences(24))
    validation = write_lines(tmp_path / "more.conll", sentences(7))
    run = tmp_path / "run"
    line = f"finetune --train {train} --validation {validation} --output-dir {run}"
    assert main(f"{line} {SMALL}".split()) == 0
    results = json.loads((run / "results.json").read_text())
    assert results["task"] == "letters"
    assert results["main_score"] == "validation_entity_f1"
    written = read_conll(run / "predictions.conll", "validation")
    gold = read_conll(validation, "validation")
    assert written.fields["words"] == gold.fields["words"]
    scores = tagging_scores(
        ("accuracy",), gold.targets["tags"], written.targets["tags"]
    )
    found = results["scores"]["validation_accuracy"]
    assert found == pytest.approx(scores["accuracy"])


@pytest.mark.slow
def test_files_of_questions(tmp_path):
    train = write_questions(tmp_path / "mine.json", 12)
    validation = write_questions(tmp_path / "other.json", 5, without=(2,))
    run = tmp_path / "run"
    line = f"finetune --task question_answering --train {train} --output-dir {run}"
    assert main(f"{line} --validation {validation} {SMALL}".split()) == 0
    results = json.loads((run / "results.json").read_text())
    assert results["main_score"] == "validation_f1"
    answers = json.loads((run / "predictions.json").read_text(encoding="utf-8"))
    assert list(answers) == [f"q{index}" for index in range(5)]
    assert (run / "null_odds.json").exists()  # one has no answer
    assert any("1 of 5 questions have no answer" in one for one in results["notes"])


def test_a_part_is_held_out_where_there_is_one_file(tmp_path):
    tags = load(train=write_lines(tmp_path / "a.conll", sentences(30)))
    words = [
        set(map(tuple, one.fields["words"])) for one in (tags.train, tags.validation)
    ]
    assert not words[0] & words[1] and len(tags.validation) == 3
    assert tags.task.head_arguments == {"label_names": ("O", "B-person")}
    data = load(
        train=write_questions(tmp_path / "b.json", 20), validation_fraction=0.25
    )
    contexts = [set(one.fields["context"]) for one in (data.train, data.validation)]
    assert not contexts[0] & contexts[1] and len(data.validation) == 5
    assert data.task.head_arguments == {"no_answer": False}
    assert any("25% held out to validate on, no context" in note for note in data.notes)
    with pytest.raises(ValueError, match=r"c.json: .*--validation FILE"):
        load(train=write_questions(tmp_path / "c.json", 1))


def test_other_columns_and_names(tmp_path):
    """CoNLL-U by its ending; columns of any name by the task; tags of no entities."""
    line = "{}\t{}\t_\t{}\t_\t_\t_\t_\t_\t_"
    lines = []
    for index in range(12):
        lines += [line.format(1, NAMES[index % 7], "PROPN")]
        lines += [line.format(2, f"sings{index}", "VERB"), ""]
    found = load(train=write_lines(tmp_path / "a.conllu", lines))
    assert found.task.label_names == ("PROPN", "VERB")
    assert found.task.metrics == ("accuracy",)
    path = write_lines(tmp_path / "tags.txt", sentences(30))
    assert load(train=path, task="token_classifier").task.label_names[0] == "O"


@pytest.mark.parametrize(
    "train, validation, message",
    [
        (["Ada B-person", "sang"], None, r"train.conll:2: expected 2 columns"),
        (
            ["Ada B-person", "sang O", "", "Uma person"],
            None,
            r"train.conll:4: expected a tag of an entity.*Received: 'person'",
        ),
        (["Ada O"], None, r"train.conll: expected two different tags or more"),
        ([""], None, "train.conll has no sentences"),
        (
            ["Ada B-person", "sang O"],
            ["Uma B-persn"],
            "validation.conll:1: 'B-persn' is not a valid tag. Did you mean 'B-pers",
        ),
        (
            ["Ada B-person", "sang O"],
            ["Uma"],
            r"validation.conll:1: expected 2 columns",
        ),
    ],
)
def test_files_of_tags_that_are_wrong(tmp_path, train, validation, message):
    paths = {"train": write_lines(tmp_path / "train.conll", train)}
    if validation is not None:
        paths["validation"] = write_lines(tmp_path / "validation.conll", validation)
    with pytest.raises(ValueError, match=message):
        load(**paths)


def test_files_of_questions_that_are_wrong(tmp_path):
    path = write_questions(tmp_path / "train.json", 3)
    wrong = tmp_path / "validation.json"
    text = (tmp_path / "train.json").read_text(encoding="utf-8")
    wrong.write_text(text.replace('"text": "Ada"', '"text": "Adam"'), "utf-8")
    message = r"validation.json, data\[0\].paragraphs\[0\].qas\[0\] \(q0\).answers\[0\]"
    with pytest.raises(ValueError, match=f"{message}.*is not in its context"):
        load(train=path, validation=str(wrong))
    wrong.write_text('{"question": "Who?"}\n{"question": "When?"}\n', "utf-8")
    message = r'validation.json, line 2, column 1: .* form of SQuAD.*{"data": '
    with pytest.raises(ValueError, match=message):
        load(train=path, validation=str(wrong))
    wrong.write_text(text[:-20], "utf-8")
    with pytest.raises(ValueError, match=r"validation.json, line 1, column \d+"):
        load(train=path, validation=str(wrong))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"train": "a.conll", "test": "b.conll"}, "`test` is of tables"),
        ({"train": "a.json", "text_column": "a"}, "`text_column` is of tables"),
        ({"train": "a.conllu.gz", "encoding": "utf-8"}, "`encoding` is of tables"),
        ({"train": "a.csv", "task": "squad1"}, "of SQuAD's JSON question_answering"),
        ({"task": "question_answering"}, "`task` needs a table of your own"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        FineTuningConfig(**options)


def test_a_file_that_is_not_there(tmp_path):
    train = write_lines(tmp_path / "a.conll", sentences(3))
    missing = str(tmp_path / "b.conll")
    options = {"train": train, "validation": missing, "output_dir": str(tmp_path / "r")}
    with pytest.raises(FileNotFoundError, match="There is no file at .*b.conll"):
        fine_tune(FineTuningConfig(**options))
    options["validation"] = str(tmp_path)
    with pytest.raises(
        FileNotFoundError, match="`validation` must be a file.*a folder"
    ):
        fine_tune(FineTuningConfig(**options))
    assert not (tmp_path / "r").exists()
