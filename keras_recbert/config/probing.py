"""What a probing run is, as data. Imports no TensorFlow."""

import dataclasses
from typing import Literal

from tyro.conf import Positional

from keras_recbert.config.commands import CommandConfig
from keras_recbert.config.run import check
from keras_recbert.core.checks import check_positive, check_seed

# What may differ between two calls that write into one folder.
FREE = ("data_dir", "tasks", "layers", "output_dir", "cache_dir", "overwrite")


@dataclasses.dataclass
class ProbeConfig(CommandConfig):
    """An encoder, and what its layers are asked.

    Args:
        model: Name of an encoder, see `recbert list`; or a preset, a model.keras, a
            BERT of another tool.
        data_dir: Folder with SentEval's files, such as bigram_shift.txt, or the one
            above its folder probing.
        tasks: Some of SentEval's ten, or data sets of your own with labelled train,
            validation and test splits; by default those whose file is there.
        weights: Of a name: a pretrained BERT to start from, as of `recbert finetune`.
        vocabulary: Of a name without weights: a vocab.txt. The encoder is random then,
            the baseline of the others.
        lowercase: Of a vocabulary: lower-case texts and strip accents.
        layers: all, or some such as 0 6 -1: 0 is the embeddings, 1 the first block, -1
            the last one.
        pooling: cls, the first token; mean or max of the tokens.
        standardize: Bring each number of a layer to the mean 0 and the deviation 1 of
            the training examples. Without it, as in SentEval, a layer whose numbers
            vary little scores low whatever it knows.
        hidden_units: Widths of the hidden layers of the classifier; 0 for none, a
            logistic regression.
        epochs: The most passes over the training examples.
        early_stopping: Stop after so many epochs without a better validation score.
        batch_size: Examples a step of the classifier.
        learning_rate: Of the classifier.
        seed: Seed of the classifier, and of what is random in the encoder.
        output_dir: Folder for results; by default runs/probe-MODEL-seedSEED.
        cache_dir: Folder for features, which runs may share; by default features in
            the output folder.
        overwrite: Replace the results of other options.
    """

    model: Positional[str]
    data_dir: str
    tasks: list[str] = dataclasses.field(default_factory=list)
    weights: str | None = None
    vocabulary: str | None = None
    lowercase: bool = True
    layers: Literal["all"] | list[int] = "all"
    pooling: Literal["cls", "mean", "max"] = "cls"
    standardize: bool = True
    hidden_units: list[int] = dataclasses.field(default_factory=lambda: [128])
    epochs: int = 50
    early_stopping: int = 5
    batch_size: int = 32
    learning_rate: float = 1e-3
    seed: int = 0
    output_dir: str | None = None
    cache_dir: str | None = None
    overwrite: bool = False

    def __post_init__(self):
        super().__post_init__()
        # As a list, or as one word with commas.
        self.tasks = [name for one in self.tasks for name in one.split(",") if name]
        if len(set(self.tasks)) < len(self.tasks):
            raise ValueError(f"`tasks` must differ. Received: tasks={self.tasks}.")
        check(self.layers != [], self, "layers", "all, or numbers of layers")
        if self.hidden_units != [0]:
            check(bool(self.hidden_units), self, "hidden_units", "widths, or 0")
            for width in self.hidden_units:
                check_positive(hidden_units=width)
        check_positive(
            epochs=self.epochs,
            early_stopping=self.early_stopping,
            batch_size=self.batch_size,
        )
        check(self.learning_rate > 0, self, "learning_rate", "above 0")
        check_seed(self.seed)
        if self.weights is not None and self.vocabulary is not None:
            raise ValueError(
                "The vocabulary comes with the weights. Received: "
                f"weights={self.weights!r}, vocabulary={self.vocabulary!r}. Leave "
                "vocabulary (--vocabulary) out."
            )

    def run_dir(self):
        """Folder of the results."""
        if self.output_dir is not None:
            return self.output_dir
        name = self.model.rstrip("/").replace("/", "-").lstrip("-.")
        return f"runs/probe-{name}-seed{self.seed}"

    def changes(self, stopped):
        """What must be the same to add to the results in a folder, and is not.

        Args:
            stopped: dict of the fields of the run there, as JSON gives them back.

        Returns:
            str such as `seed=0 (now 1)`; empty if nothing stands against it.
        """
        stopped = {"standardize": False, **stopped}  # earlier versions had no choice
        return ", ".join(
            f"{name}={stopped.get(name)!r} (now {value!r})"
            for name, value in dataclasses.asdict(self).items()
            if name not in FREE and stopped.get(name) != value
        )
