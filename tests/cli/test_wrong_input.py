"""Wrong input at every command: one line, status 2, at once, nothing left behind."""

import os
import resource

import pytest
from toy_texts import write_glue_task

from keras_recbert.cli import main

TEXT = "the wind turns the mill\n" * 30


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with input of wrong and right kinds; `@` in the cases below."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "text.txt").write_text(TEXT)
    (folder / "latin.txt").write_bytes("à la carte\n".encode("latin-1") * 9)
    (folder / "latin.yaml").write_bytes("model: café\n".encode("latin-1"))
    (folder / "empty.txt").write_text("")
    (folder / "empty.yaml").write_text("")
    (folder / "list.yaml").write_text("- bert_tiny\n")
    (folder / "pre.yaml").write_text("model: bert_tiny\nobjectives: {masked_lm: }\n")
    (folder / "empty.keras").write_bytes(b"")
    (folder / "nothing").mkdir()
    (folder / "bert").mkdir()
    (folder / "bert" / "config.json").write_text("{}")
    write_glue_task(folder / "glue", "sst2")
    return folder


@pytest.fixture
def refused(inputs, tmp_path, monkeypatch, capsys):
    """Runs a command that is to be refused; returns its one line."""

    def run(*argv, status=2):
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("RECBERT_TRACEBACK", raising=False)
        before = sorted(inputs.rglob("*"))
        assert main([word.replace("@", str(inputs)) for word in argv]) == status
        out, err = capsys.readouterr()
        line, hint = err.splitlines()
        assert line.startswith("recbert: error: ")
        assert "TRACEBACK" in hint
        assert "Errno" not in line
        assert list(tmp_path.iterdir()) == []
        assert sorted(inputs.rglob("*")) == before
        return out, line

    return run


PREPARE = ("prepare", "@/text.txt", "--output-dir")
LEARN = ("--vocabulary-size", "90")
FINETUNE = ("finetune", "--data-dir", "@/glue")
TABLE = ("table", "@/pre.yaml", "--corpus")
EVALUATE = ("evaluate", "model.keras", "--corpora")
BENCHMARK = ("benchmark", "swish_rnn", "--quick")
SAVEDMODEL = ("benchmark", "savedmodel", "--weights", "@/bert", "--texts")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        # Empty: a variable of the shell that is not set.
        (("export", "model.keras", ""), "`output` is empty. Expected a path or a name"),
        (("export", "", "out"), "`model` is empty"),
        (("convert", "folder", ""), "`output` is empty"),
        (("predict", "", "a text"), "`model` is empty"),
        (("explain", ""), "`model` is empty"),
        (("quickstart", "--output-dir", ""), "`output_dir` is empty"),
        (("vocabulary", ""), "`corpus` is empty"),
        (("vocabulary", "@/text.txt", "--output", ""), "`output` is empty"),
        (("prepare", "", "--output-dir", "out", *LEARN), "`inputs` is empty"),
        ((*PREPARE, "", *LEARN), "`output_dir` is empty"),
        ((*PREPARE, "out", "--vocabulary", ""), "`vocabulary` is empty"),
        ((*FINETUNE, "--output-dir", ""), "`output_dir` is an empty path"),
        ((*FINETUNE, "--vocabulary", ""), "`vocabulary` is an empty path"),
        ((*FINETUNE, "--weights", ""), "`weights` is an empty path"),
        (("finetune", "--data-dir", ""), "`data_dir` is an empty path"),
        (("pretrain", "--corpus", ""), "`corpus` is an empty path"),
        (("pretrain", "--validation", "books", ""), "`validation` has an empty name"),
        (("pretrain", "--validation", "", "books"), "`validation` has an empty name"),
        ((*TABLE, ""), "`corpus` is empty"),
        ((*EVALUATE, "books", ""), "`corpora` is empty"),
        ((*BENCHMARK, "--torch-python", ""), "`torch_python` is empty"),
        (("profile", "bert_tiny", "--csv", ""), "`csv` is empty"),
        # Out of range, told before TensorFlow starts to work.
        (("quickstart", "--seed", "-1"), "`seed` must be from 0 to 2**32 - 1"),
        ((*FINETUNE, "--seed", "4294967296"), "Received: seed=4294967296."),
        (("pretrain", "--seed", "-1"), "`seed` must be from 0"),
        ((*TABLE, "@", "--seeds", "0", "-1"), "Received: seed=-1."),
        ((*EVALUATE, "a", "@", "--seed", "-1"), "`seed` must be from 0"),
        (
            (*EVALUATE, "a", "@", "--batch-size", "0"),
            "`batch_size` must be a whole number of",
        ),
        (
            (*EVALUATE, "a", "@", "--num-examples", "-1"),
            "`num_examples` must be a whole number of",
        ),
        (
            (*EVALUATE, "a", "@", "--sequence-length", "7"),
            "`sequence_length` must be a whole number of",
        ),
        ((*FINETUNE, "--epochs", "-1"), "`epochs` must be at least 1"),
        ((*FINETUNE, "--dropout", "nan"), "`dropout` must be in [0, 1)"),
        ((*FINETUNE, "--precision", "int8"), "`precision` must be auto or float32"),
        ((*FINETUNE, "--pooling", "max"), "`pooling` must be mean or first"),
        ((*FINETUNE, "--overrides", "hiden_dim", "8"), "Did you mean 'hidden_dim'"),
        ((*FINETUNE, "--overrides", "hidden_dim", "null"), "hidden_dim=None"),
        (("vocabulary", "@/text.txt", "--size", "-1"), "must be at least 7"),
        ((*PREPARE, "a/b", "--vocabulary-size", "-1"), "must be at least 7"),
        # Interpreters and options that nothing would have used.
        ((*BENCHMARK, "--torch-python", "nope"), "There is none at 'nope'"),
        ((*BENCHMARK, "--kerashub-python", "@/text.txt"), "There is none at"),
        (
            (*BENCHMARK, "--model-garden-python", "true"),
            "true does not run as a Python",
        ),
        ((*PREPARE, "out", *LEARN, "--beam-options=--nope"), "no option --nope"),
        ((*PREPARE, "out", *LEARN, '--beam-options="--x'), "No closing quotation"),
        # A file for a folder, a folder for a file, nothing where something was named.
        (("quickstart", "--output-dir", "@/text.txt"), "text.txt holds something that"),
        (("vocabulary", "@"), "No text file at"),
        (("vocabulary", "@/text.txt", "--output", "@"), "is a folder. Choose"),
        (("vocabulary", "@/text.txt", "--output", "no/v"), "there is no folder no"),
        (("profile", "bert_tiny", "--csv", "@/text.txt/x"), "text.txt is a file"),
        ((*PREPARE, "@/text.txt", *LEARN), "text.txt is a file"),
        ((*PREPARE, ".", *LEARN), "is the folder you are in"),
        ((*PREPARE, "out", "--vocabulary", "@"), "is a directory"),
        (("prepare", "@/nothing", "--output-dir", "out", *LEARN), "No files in"),
        (("prepare", "@/empty.txt", "--output-dir", "a/b", *LEARN), "holds no word"),
        (("finetune", "--recipe", "@"), "It is a folder"),
        (("finetune", "--recipe", "@/empty.yaml"), "a recipe is a mapping"),
        (("finetune", "--recipe", "@/list.yaml"), "a recipe is a mapping"),
        (("finetune", "--data-dir", "@/nothing"), "train.tsv or dev.tsv not found"),
        (("finetune", "--data-dir", "@/text.txt"), "is not a folder"),
        ((*FINETUNE, "--output-dir", "@/text.txt/run"), "text.txt is a file"),
        ((*FINETUNE, "--vocabulary", "none.txt"), "No vocabulary file at none.txt"),
        (("pretrain", "--corpus", "@/nothing"), "holds no corpus.json"),
        (("pretrain", "--corpus", "@/text.txt"), "this is a file"),
        ((*TABLE, "@/nothing"), "holds no corpus.json"),
        ((*EVALUATE, "a", "none"), "No corpus at none"),
        (("explain", "@/nothing"), "holds no checkpoint"),
        (("explain", "@/empty.keras"), "empty.keras is damaged or cut short"),
        (("export", "@/empty.keras", "out"), "empty.keras is damaged or cut short"),
        (("convert", "@/nothing", "out"), "holds no checkpoint"),
        (("predict", "@/nothing", "a text"), "holds no checkpoint that can be read"),
        ((*SAVEDMODEL, "@"), "--texts must be a file"),
        ((*SAVEDMODEL, "@/empty.txt"), "empty.txt is empty"),
        # Bytes that are not UTF-8.
        (("finetune", "--recipe", "@/latin.yaml"), "latin.yaml: not UTF-8"),
        ((*FINETUNE, "--vocabulary", "@/latin.txt"), "latin.txt, line 1: not UTF-8"),
        ((*SAVEDMODEL, "@/latin.txt"), "latin.txt is not: 'utf-8'"),
    ],
)
def test_what_is_wrong_is_one_line(refused, argv, message):
    out, line = refused(*argv)
    assert message in line
    assert "Learning" not in out  # told before work starts


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        (("vocabulary", "@/text.txt"), "vocab.txt"),
        ((*PREPARE, "out", "--vocabulary-size", "40"), "out/vocab.txt"),
    ],
)
def test_a_full_disk_names_the_path_that_was_asked_for(refused, argv, path):
    """Files may not grow: as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
    try:
        _, line = refused(*argv)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"{path} cannot be written: it would be larger than" in line


def test_a_text_to_answer_may_be_empty(refused):
    _, line = refused("predict", "none", "")
    assert "There is no SavedModel at none" in line


def test_versions_in_a_line(capsys):
    assert main(["--version"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("recbert 0.1.0 (Keras 3.")
    assert "TensorFlow 2." in out and len(out.splitlines()) == 1


def test_a_reader_that_has_seen_enough_ends_it_quietly(capfd, monkeypatch):
    class Gone:
        def write(self, _):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

        def fileno(self):
            return reading

    reading, writing = os.pipe()
    monkeypatch.setattr("sys.stdout", Gone())
    assert main(["list"]) == 128 + 13
    monkeypatch.undo()
    os.close(reading)
    os.close(writing)
    assert capfd.readouterr().err == ""
