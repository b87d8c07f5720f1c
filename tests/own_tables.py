"""Tables of a user, and options of a run on them of a few seconds."""

import csv

from keras_recbert.config import FineTuningConfig

OPTIONS = {
    "model": "swish_tiny",
    "vocabulary_size": 90,
    "epochs": 2,
    "batch_size": 8,
    "learning_rate": 1e-2,
    "max_sequence_length": 32,
    "export": False,
    "overrides": {"num_layers": 1, "hidden_dim": 16, "num_heads": 2},
}


def write_rows(path, header, rows, encoding="utf-8"):
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return str(path)


def config(**options):
    return FineTuningConfig(**{**OPTIONS, **options})
