"""The command that asks the layers of an encoder: probe."""

import pathlib
from typing import Annotated

from tyro.conf import arg

from keras_recbert.config import ProbeConfig


def probe(config: Annotated[ProbeConfig, arg(name="")]):
    """Asks each layer of a frozen encoder what it knows of a sentence.

    SentEval's probing tasks: a small classifier reads the features of a layer. The same
    command resumes a run that was stopped, and adds tasks and layers to one.

    `--recipe FILE` takes these options, too, from a YAML file.
    """
    from keras_recbert.train.probe_report import PICTURE, TABLE
    from keras_recbert.train.probing import run_probes

    run_probes(config)
    folder = pathlib.Path(config.run_dir())
    print((folder / TABLE).read_text(encoding="utf-8"))
    print(
        f"Test accuracies in percent. Wrote {folder}/results.json, {TABLE}, {PICTURE}."
    )
