"""What a distillation run is, as data: a recipe file or the flags of a command."""

import dataclasses
import hashlib
import json
import math
from typing import ClassVar

from keras_recbert.config.augmentation import Augmentation
from keras_recbert.config.fine_tuning import OF_ONE_TASK, FineTuningConfig
from keras_recbert.config.run import check
from keras_recbert.core.beam_options import read_beam_options
from keras_recbert.core.checks import check_integer, check_seed

OBJECTIVES = ("logits", "probabilities")
OPTIMIZERS = ("adamw", "adadelta")
AUGMENTATION = (
    "n_iter",
    "mask_probability",
    "pos_probability",
    "tagger",
    "ngram_probability",
    "augmentation_seed",
)
# What has no meaning where a student learns from a teacher.
REFUSED = ("tfds", "submission", "class_weights", "long_texts", "window_pooling")


@dataclasses.dataclass
class DistillationConfig(FineTuningConfig):
    """One distillation run: a teacher, texts, a student.

    The options of `FineTuningConfig` are those of the student: of its data, model,
    training and output.

    Args:
        teacher: Model to learn from: the output folder of `recbert finetune`, a preset
            or a model.keras. Of several, such as runs of three seeds, the student
            learns the mean of their logits.
        teacher_logits: In place of a teacher: JSON lines (.jsonl) of texts and logits
            that another tool has made, and labels if any. Nothing is augmented.
        unlabelled: Texts without labels to learn on too: a table like that of train, or
            a text file (.txt), a text a line.
        transfer_set: Folder of the texts with the teacher's logits, which runs can
            share; by default transfer_set in output_dir.
        n_iter: Synthetic examples made of each example (Liu 2020, section 3.3), by
            default 10; those that are there already are dropped.
        mask_probability: How often a word becomes [MASK].
        pos_probability: How often a word is replaced by another of its part of speech.
        tagger: Function of a list of words to as many parts of speech, as
            module:function; by default NLTK's tagger of English.
        ngram_probability: How often an example becomes one of its n-grams.
        augmentation_seed: Seed of the augmentation, so that runs of several seeds share
            a transfer set; where a part of the examples is held out, with one
            split_seed.
        teacher_batch_size: Texts that the teacher reads at a time.
        teacher_precision: float32, bfloat16 or auto, see precision; of the teacher.
        teacher_workers: Processes that the teacher scores in, each with its share of
            the cores; the transfer set is the same. They use no GPU.
        beam_options: Options of Apache Beam, after an equals sign:
            --beam-options='--runner=FlinkRunner ...', to score on several machines.
        objective: logits, the squared distance of the logits; or probabilities, the
            cross-entropy of softened probabilities.
        temperature: What logits are divided by before they become probabilities, of
            the objective of that name.
        label_weight: In [0, 1]: share of the loss of the label where an example has
            one.
        optimizer: adamw or adadelta (rate 1.0 by default, constant).
    """

    command: ClassVar[str] = "distill"
    _of_one_task: ClassVar[tuple[str, ...]] = (
        *OF_ONE_TASK,
        "teacher_logits",
        "unlabelled",
    )
    model: str = "bilstm_student"
    epochs: int = 6
    batch_size: int = 128
    teacher: str | list[str] | None = None
    teacher_logits: str | None = None
    unlabelled: str | None = None
    transfer_set: str | None = None
    n_iter: int | None = None
    mask_probability: float = 0.1
    pos_probability: float = 0.1
    tagger: str | None = None
    ngram_probability: float = 0.0
    augmentation_seed: int = 0
    teacher_batch_size: int = 128
    teacher_precision: str = "auto"
    teacher_workers: int = 1
    beam_options: str = ""
    objective: str = "logits"
    temperature: float = 1.0
    label_weight: float = 0.0
    optimizer: str = "adamw"

    def __post_init__(self):
        super().__post_init__()
        for name in REFUSED:
            default = type(self).__dataclass_fields__[name].default
            if getattr(self, name) != default:
                raise ValueError(
                    f"`{name}` is of runs that learn from labels. Received: "
                    f"{name}={getattr(self, name)!r} in a distillation. Leave it out."
                )
        check_integer(1, teacher_batch_size=self.teacher_batch_size)
        check_integer(most=1_000, teacher_workers=self.teacher_workers)
        read_beam_options(self.beam_options, self.teacher_workers, "teacher_workers")
        check_seed(self.augmentation_seed, "augmentation_seed")
        augmentation = self.augmentation()
        if self.tagger and not (augmentation.n_iter and self.pos_probability):
            raise ValueError(
                "`tagger` is for words that are replaced by their part of speech. "
                f"Received: tagger={self.tagger!r}, n_iter={augmentation.n_iter}, "
                f"pos_probability={self.pos_probability}. Raise these, or leave it out."
            )
        if self.teacher_logits is not None:
            fields = type(self).__dataclass_fields__
            for name in ("teacher", "unlabelled", *AUGMENTATION):
                if getattr(self, name) not in (None, 0, fields[name].default):
                    raise ValueError(
                        "The file of teacher_logits has all texts. Received: "
                        f"{name}={getattr(self, name)!r}, teacher_logits="
                        f"{self.teacher_logits!r}. Leave one out."
                    )
            if self.teacher_workers > 1 or self.beam_options:
                raise ValueError(
                    "The file of teacher_logits is scored already. Received: "
                    f"teacher_workers={self.teacher_workers}, beam_options="
                    f"{self.beam_options!r}. Leave them out."
                )
        valid = 0 < self.temperature < math.inf
        check(valid, self, "temperature", "above 0 and finite")
        if self.temperature != 1 and self.objective == "logits":
            raise ValueError(
                "`temperature` softens probabilities. Received: temperature="
                f"{self.temperature}, objective='logits'. Add objective: probabilities "
                "(--objective probabilities), or leave it out."
            )
        check(0 <= self.label_weight <= 1, self, "label_weight", "in [0, 1]")
        rule = " or ".join(OBJECTIVES)
        check(self.objective in OBJECTIVES, self, "objective", rule)
        rule = " or ".join(OPTIMIZERS)
        check(self.optimizer in OPTIMIZERS, self, "optimizer", rule)
        rule = "auto, float32 or bfloat16"
        valid = self.teacher_precision in ("auto", "float32", "bfloat16")
        check(valid, self, "teacher_precision", rule)
        for name in ("teacher_logits", "unlabelled", "transfer_set"):
            check(getattr(self, name) != "", self, name, "a path")
        self._check_teachers()

    def _check_teachers(self):
        """Raises `ValueError` unless each teacher has a path; one stands alone."""
        if not isinstance(self.teacher, list):
            check(self.teacher != "", self, "teacher", "a path")
            return
        paths = self.teacher
        valid = bool(paths) and "" not in paths and len(set(paths)) == len(paths)
        check(valid, self, "teacher", "one path or more, each once")
        if len(paths) == 1:
            self.teacher = paths[0]

    def run_dir(self):
        """Folder of the run."""
        if self.output_dir is not None:
            return self.output_dir
        return f"{super().run_dir()}-distilled"

    def augmentation(self):
        """`Augmentation` of the texts."""
        default = 0 if self.teacher_logits else Augmentation.n_iter
        return Augmentation(
            n_iter=default if self.n_iter is None else self.n_iter,
            mask_probability=self.mask_probability,
            pos_probability=self.pos_probability,
            ngram_probability=self.ngram_probability,
            seed=self.augmentation_seed,
        )

    def texts_key(self):
        """A short name of what the teacher scores, but for the task.

        Runs of one name and task may share a transfer set.
        """
        names = (
            "teacher",
            "teacher_logits",
            "teacher_precision",
            "data_dir",
            "train",
        )
        names += ("validation", "validation_fraction", "tuning_fraction", "split_seed")
        names += (
            "tagger",
            "unlabelled",
            "text_column",
            "label_column",
            "encoding",
            "limit",
        )
        made_from = {name: getattr(self, name) for name in names}
        made_from["augmentation"] = dataclasses.asdict(self.augmentation())
        is_split = self.train is not None or self.validation_fraction is not None
        if is_split and self.validation is None:
            made_from["seed"] = self.seed_of_splits()
        text = json.dumps(made_from, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _free_options(self):
        free = ["transfer_set", "teacher_batch_size", "teacher_workers", "beam_options"]
        return [*super()._free_options(), *free]
