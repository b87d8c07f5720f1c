"""Options of `recbert benchmark frontier`, as data. Imports no TensorFlow."""

import dataclasses

from keras_recbert.config.commands import CommandConfig
from keras_recbert.core.checks import check_integer
from keras_recbert.core.names import nearest

PEERS = ("tfidf", "fasttext", "model2vec", "torch")


@dataclasses.dataclass
class FrontierConfig(CommandConfig):
    """Trained models, what they are compared with, and on which data.

    Args:
        models: Students: output folders of `recbert distill` or `finetune`, presets or
            model.keras files, of classifiers of one text.
        teacher: The model that they learned from, such as a fine-tuned BERT.
        data_dir: Folder with the files of the task.
        task: A data set of one text an example and classes, see `recbert list --tasks`.
        weights: A BERT of Hugging Face, a folder, for Model2Vec to distil.
        peers: Some of tfidf, fasttext, model2vec and torch (the teacher on torch).
        speed_only: Encoders with random weights, of which only the speed counts.
        num_texts: Texts of the validation set that are timed, from all over it.
        rounds: Turns of each system, at each size of a batch.
        output_dir: Folder for frontier.json, frontier.md and frontier.png, which are
            replaced.
        install_peers: Install peers that are nowhere, in environments of their own in
            the output folder.
        sklearn_python: Interpreter that has scikit-learn.
        fasttext_python: Interpreter that has fasttext-wheel.
        model2vec_python: Interpreter that has model2vec[distill] and scikit-learn.
        torch_python: Interpreter that has torch and transformers.
        timeout: Seconds a process may take to train or load a system, or for one round.
    """

    models: list[str]
    teacher: str
    data_dir: str
    task: str = "sst2"
    weights: str | None = None
    peers: list[str] = dataclasses.field(default_factory=lambda: list(PEERS))
    speed_only: list[str] = dataclasses.field(
        default_factory=lambda: ["bert_base", "bert_large"]
    )
    num_texts: int = 256
    rounds: int = 5
    output_dir: str = "runs/frontier"
    install_peers: bool = False
    sklearn_python: str | None = None
    fasttext_python: str | None = None
    model2vec_python: str | None = None
    torch_python: str | None = None
    timeout: float = 900.0

    def __post_init__(self):
        super().__post_init__()
        check_integer(num_texts=self.num_texts, rounds=self.rounds)
        if not self.timeout > 0:
            raise ValueError(
                f"`timeout` must be above 0 seconds. Received: timeout={self.timeout}."
            )
        for name in self.peers:
            if name not in PEERS:
                raise ValueError(
                    f"`peers` must be of {', '.join(PEERS)}. Received: {name!r}. "
                    f"{nearest(name, PEERS)}".rstrip()
                )
        if not self.models:
            raise ValueError(
                "`models` is empty. Expected one output folder of `recbert distill` "
                "or more."
            )

    def pythons(self):
        """Interpreters that were named, or None, by the workers of peers."""
        return {
            "tfidf": self.sklearn_python,
            "fasttext": self.fasttext_python,
            "model2vec": self.model2vec_python,
            "torch_classifier": self.torch_python,
        }
