"""What a folder keeps a run from, of each kind: refused before anything is trained."""

import dataclasses
import json

import keras
import pytest
from toy_texts import write_corpus, write_glue_task

from keras_recbert.config import FineTuningConfig, PretrainingConfig, RunConfig
from keras_recbert.core.folders import locked_folder
from keras_recbert.train.checkpoints import Checkpoints
from keras_recbert.train.fine_tuning import fine_tune
from keras_recbert.train.pretraining_run import PRETRAINING, pretrain
from keras_recbert.train.run_folder import RunKind
from keras_recbert.train.training_run import FINE_TUNING

OVERRIDES = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2}


@dataclasses.dataclass
class Case:
    """A kind of run, its options and what starts it."""

    kind: RunKind
    config: RunConfig
    start: object
    another: dict  # an option that a run does not resume with
    missing: dict  # texts that are not there

    def run(self, folder, **options):
        options["output_dir"] = str(folder)
        return self.start(dataclasses.replace(self.config, **options))

    def write_stopped(self, folder, **changes):
        """Writes the checkpoint of a run that was stopped, of other texts."""
        state = {
            "kind": self.kind.name,
            "options": dataclasses.asdict(self.config.resolved()),
            "checksums": {"corpus": "of another text"},
            "precision": {"chosen": "float32", "reason": "asked for"},
            **changes,
        }
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile("sgd")
        model.optimizer.build(model.trainable_variables)
        Checkpoints(folder / "checkpoints").save(model, 1, state)


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    corpus = write_corpus(folder)
    write_glue_task(folder / "glue", "sst2")
    shared = {"model": "bert_tiny", "overrides": OVERRIDES}
    nowhere = str(folder / "nowhere")
    return {
        "fine-tuning": Case(
            FINE_TUNING,
            FineTuningConfig(**shared, data_dir=str(folder / "glue"), export=False),
            fine_tune,
            {"epochs": 7},
            {"data_dir": nowhere},
        ),
        "pre-training": Case(
            PRETRAINING,
            PretrainingConfig(**shared, corpus=corpus, steps=4, sequence_length=16),
            pretrain,
            {"steps": 8},
            {"corpus": nowhere},
        ),
    }


@pytest.fixture(params=["fine-tuning", "pre-training"])
def case(request, cases):
    return cases[request.param]


def contents(folder):
    """dict of each file below a folder to its bytes."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def refused(case, folder, error, message, **options):
    """Checks that a run is refused, and leaves the folder as it was."""
    before = contents(folder)
    with pytest.raises(error, match=message):
        case.run(folder, **options)
    assert contents(folder) == before


def write_results(folder, **results):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results))


def test_a_file_is_no_place_for_a_run(case, tmp_path):
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(FileExistsError, match="is a file"):
            case.run(folder)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_finished_run_is_kept(case, tmp_path):
    write_results(tmp_path, kind=case.kind.name, config={})
    message = f"{tmp_path} holds a finished run. Choose another .*--overwrite.*`recbert"
    refused(case, tmp_path, FileExistsError, message)


def test_a_stopped_run_resumes_with_its_own_options_alone(case, tmp_path):
    case.write_stopped(tmp_path)
    (name, value), *_ = case.another.items()
    message = rf"a run with other options: .*{name}=\d+ \(now {value}\).*--overwrite"
    refused(case, tmp_path, ValueError, message, **case.another)


def test_a_stopped_run_resumes_with_its_own_texts_alone(case, tmp_path):
    case.write_stopped(tmp_path)
    message = "other options: another text in the files .*--overwrite"
    refused(case, tmp_path, ValueError, message)


def test_checkpoints_that_cannot_be_read_are_told(case, tmp_path):
    case.write_stopped(tmp_path)
    (tmp_path / "checkpoints" / "step_00000001" / "state.json").write_text("{")
    message = "None of the 1 checkpoints in .* can be read: pass .*--overwrite"
    refused(case, tmp_path, ValueError, message)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_of_another_kind_is_never_replaced(case, cases, tmp_path, overwrite):
    (other,) = (one for one in cases.values() if one is not case)
    options = {"overwrite": overwrite}
    message = f"is not a {case.kind.name} run, which is not replaced"
    write_results(tmp_path / "finished", kind=other.kind.name, config={})
    refused(case, tmp_path / "finished", FileExistsError, message, **options)
    other.write_stopped(tmp_path / "stopped")
    refused(case, tmp_path / "stopped", FileExistsError, message, **options)
    (tmp_path / "foreign").mkdir()
    for text in ("[]", "{}", "not JSON"):
        (tmp_path / "foreign" / "results.json").write_text(text)
        refused(case, tmp_path / "foreign", FileExistsError, message, **options)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_of_an_older_version_is_told(case, tmp_path, overwrite):
    """Its checkpoints and results had no `kind`."""
    options = {"overwrite": overwrite}
    message = "an older version of keras_recbert.* Remove the folder, or choose another"
    write_results(tmp_path / "finished", config=dataclasses.asdict(case.config))
    refused(case, tmp_path / "finished", FileExistsError, message, **options)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd")
    state = {"options": dataclasses.asdict(case.config), "sums": {}, "step": 1}
    Checkpoints(tmp_path / "stopped" / "checkpoints").save(model, 1, state)
    refused(case, tmp_path / "stopped", FileExistsError, message, **options)


def test_what_no_run_wrote_is_not_replaced(case, tmp_path):
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "history.csv").write_text("mine")
    message = "history.csv is there already, and not of a run that can resume.*--overwr"
    refused(case, tmp_path / "named", FileExistsError, message)
    (tmp_path / "preset" / "preset").mkdir(parents=True)
    (tmp_path / "preset" / "preset" / "notes.txt").write_text("mine")
    for overwrite in (False, True):
        folder, options = tmp_path / "preset", {"overwrite": overwrite}
        refused(case, folder, FileExistsError, "preset holds no ", **options)


def test_a_folder_takes_one_process_before_texts_are_read(case, tmp_path):
    with locked_folder(tmp_path):
        message = "Another process is at work in"
        refused(case, tmp_path, RuntimeError, message, **case.missing)


def test_texts_that_are_not_there_leave_no_folder(case, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        case.run(tmp_path / "runs" / "run", **case.missing)
    assert list(tmp_path.iterdir()) == []
