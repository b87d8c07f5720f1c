"""What tests of commands share."""

import pytest
from toy_texts import tiny_model

from keras_recbert.cli import main


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
