"""`keras_recbert.probe`: `recbert probe` from Python. Imports no TensorFlow."""

import os

from keras_recbert.config import ProbeConfig
from keras_recbert.core.mappings import from_mapping


def probe(model, **options):
    """Asks each layer of a frozen encoder what it knows of a sentence.

    Does what `recbert probe` does (Aksoy et al. 2020, section 4.4), and writes the
    same folder: a task and layer that is done is not done again.

    Args:
        model: what `recbert probe` takes; or an encoder or a task model with a
            vocabulary, which stays as it is.
        **options: the fields of `keras_recbert.config.ProbeConfig`, which says what
            each is: `data_dir`, `tasks`, `layers`, `pooling`, `output_dir`, ... Paths
            may be `pathlib.Path`.

    Returns:
        The dict in `results.json`: `results["tasks"]["bigram_shift"]["layers"]["6"]
        ["test_accuracy"]`.

    Raises:
        ValueError, FileNotFoundError, RuntimeError, ImportError: as
            `keras_recbert.train.probing.run_probes`, before anything is written.
    """
    is_path = isinstance(model, (str, os.PathLike))
    values = {"model": os.fspath(model) if is_path else model.name}
    for name, value in options.items():
        values[name] = os.fspath(value) if isinstance(value, os.PathLike) else value
    config = from_mapping(ProbeConfig, values, "probe")
    from keras_recbert.train.probing import run_probes

    return run_probes(config, None if is_path else model)
