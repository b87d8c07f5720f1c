"""What a fine-tuning run is, as data: a recipe file or the flags of a command."""

import dataclasses
import math
from typing import ClassVar, Literal

from keras_recbert.config.own_data import check_own_data, table_name
from keras_recbert.config.run import STRATEGIES, RunConfig, check
from keras_recbert.core.checks import check_seed

POOLINGS = ("mean", "first")
COMBINATIONS = ("concatenate", "sum", "weighted_sum")
CONCATENATIONS = ("none", "cls", "next_sentence")
EPOCHS = ("best", "last")
LONG_TEXTS = ("truncate", "windows")
WINDOW_POOLINGS = ("mean", "max")
OF_ONE_TASK = ("train", "submission", "class_weights", "long_texts", "window_pooling")


@dataclasses.dataclass
class FineTuningConfig(RunConfig):
    """One fine-tuning run.

    Args:
        model: Name of the encoder, see `recbert list`.
        task: Data set, one of `recbert list --tasks`; by default sst2. Or several, such
            as sst2 mrpc stsb, which one model with a head for each learns together,
            each batch of one of them; data_dir then is the folder of all. Of a table of
            your own: classifier or regressor, by default what its labels look like; or
            multilabel_classifier. Of other files of your own: token_classifier or
            question_answering, by default by the ending of the name.
        data_dir: Folder with the files of the task, its own or the one above.
        tfds: Read the task through TensorFlow Datasets instead (downloads it).
        submission: Predict the test files of the task, too, and write what its
            leaderboard takes, such as RTE.tsv of GLUE or BoolQ.jsonl of SuperGLUE.
        train: A table of your own to train on instead of a task: .csv, .tsv, .jsonl
            (one JSON object a line) or .parquet; or words and tags in columns (.conll,
            .conllu), or questions in SQuAD's form (.json).
        validation: A file like it that decides which epoch is kept; by default a part
            of the training file.
        test: A table like it to predict at the end, and to score if it has labels.
        text_column: Column of the texts, or two columns of pairs; guessed by default.
        label_column: Column of the labels; guessed by default.
        label_separator: What stands between the labels in a cell of a
            multilabel_classifier; by default |, ; or a comma, the first that is there.
        encoding: Encoding of the tables; by default UTF-8, or Windows-1252 for CSV
            and TSV that have no character of UTF-8.
        validation_fraction: Part of the labelled examples to validate on; the same text
            is never on both sides. Of a table of your own without a validation table,
            and of a data set with one labelled file, it is part of that; by default
            0.1. Of a data set with a validation file, it is part of train, and no score
            reads that file.
        tuning_fraction: Of a data set: part of the training examples to score on, in
            place of the validation set, which no score then reads: to choose options
            by.
        split_seed: Seed of these splits; by default seed.
        output_dir: Folder for everything the run writes; by default
            runs/TASK-MODEL-seedSEED, of a table runs/FILE-MODEL-seedSEED.
        weights: A pretrained BERT to start from: a folder of Hugging Face, Google's
            TF1, the Model Garden or TF Hub, or a preset; or one on a hub, such as
            hf://user/name. Its vocabulary is used.
        vocabulary: A vocab.txt; by default the one of the weights, or one that is
            learned from the training texts.
        vocabulary_size: Word pieces to learn if no vocabulary is given.
        vectors: For an encoder of words, such as bilstm_student: a file of word vectors
            of word2vec (.bin), GloVe (.txt) or fastText (.vec), .gz too. Or the folder
            of a BERT: its word pieces and their vectors, for bi_attentive_student, too.
            Or learned, of the texts of the run, by what words stand beside; or random.
            By default they are learned.
        max_words: Words of the vocabulary of an encoder of words: the most frequent
            ones of the training texts.
        min_frequency: How often a word without a vector must occur to be one of them.
        num_oov_buckets: Ids that other words share, by their hash; 0, all are one.
        lowercase: Lower-case texts and strip accents (an uncased vocabulary); by
            default what the weights say, true without weights.
        epochs: Passes over the training examples.
        keep_epoch: best, the one with the highest main score on validation; or last, so
            that the scores reported on a validation set chose nothing.
        early_stopping: Stop after so many epochs without a better main score.
        class_weights: balanced: each class counts the same in the loss, however many
            examples it has. By default each example does.
        batch_size: Examples per step, over all devices.
        learning_rate: Highest learning rate; by default 3e-4 from scratch and from a
            preset of a pre-training run; of bilstm_student 1e-3; from another BERT 5e-5
            at a width of 768, 1e-4 at 384, with one over the width up to 3e-4; 3e-3
            under freeze: encoder.
        warmup_fraction: Part of all steps in which the learning rate rises.
        weight_decay: Decoupled weight decay, not on biases and LayerNorm.
        dropout: Dropout rate of encoder and head.
        pooling: What the head reads: mean (of all outputs) or first (BERT's pooled
            first token, the final states of bilstm_student); by default first of
            bilstm_student and from another BERT that has a pooler, else mean; of
            several layers, or of one below the last block, mean.
        layer: Block that the head reads, from 1; 0, the embeddings; -1, the last block.
            Or several, such as -4 -3 -2 -1; or all, all blocks. By default the last,
            or the one that was pre-trained to be read: where the pooling is first, that
            of the next sentence; where it is mean, that of masked LM.
        combine: What is made of several layers: concatenate (the default), sum, or
            weighted_sum, with trained weights.
        concatenate: What mean pooling has behind each output: cls (the first token of
            the block of the next sentence head), next_sentence (the logits of that
            head) or none; by default as the weights were pre-trained.
        freeze: What is not trained: embeddings, encoder, or the number of the lowest
            blocks (and the embeddings).
        lora_rank: Train adapters of this rank and the head only.
        layerwise_decay: In (0, 1]: what the learning rate is multiplied with once
            for the highest block and once more for each below.
        long_texts: What is read of a text that is longer than a row: truncate (its
            begin, the default) or windows (all of it, in rows that overlap).
        window_pooling: What joins the windows of a text: mean (the default) or max.
        max_sequence_length: Word pieces of a row. Longer texts are truncated, or cut
            into windows, as contexts of questions are. By default 128, of question
            answering 384, or as many positions as the weights have if that is less.
        precision: float32; bfloat16 (computed in bfloat16, weights kept in float32);
            or auto, the one that suits this machine, whose matrix rate is measured.
            Another machine may choose another, so name one for a run to repeat.
        gradient_checkpointing: Keep only the inputs of the blocks for the backward
            pass and compute the rest again: less memory, more time, same numbers.
        strategy: auto, one_device, mirrored (all GPUs of this machine) or tpu.
        seed: Seed of initial weights, order, dropout and splits.
        limit: Train on the first LIMIT examples only.
        checkpoint_every: Steps between two checkpoints, from which a stopped run
            resumes; by default one a minute of training. There is one at the end of
            each epoch, too.
        export: Write a SavedModel of the best epoch into the output folder.
        overwrite: Replace what is in the output folder of a finished run, or of one
            with other options. A stopped run with these options resumes all the same.
        overrides: Sizes that differ from the model's, such as {num_layers: 2}, and
            arguments of the head and the packer of the task, such as {decoder: blstm}.
    """

    command: ClassVar[str] = "finetune"
    _of_one_task: ClassVar[tuple[str, ...]] = OF_ONE_TASK
    model: str = "swish_small"
    task: str | list[str] | None = None
    data_dir: str | None = None
    tfds: bool = False
    submission: bool = False
    train: str | None = None
    validation: str | None = None
    test: str | None = None
    text_column: str | list[str] | None = None
    label_column: str | None = None
    label_separator: str | None = None
    encoding: str | None = None
    validation_fraction: float | None = None
    tuning_fraction: float | None = None
    split_seed: int | None = None
    output_dir: str | None = None
    weights: str | None = None
    vocabulary: str | None = None
    vocabulary_size: int = 8000
    vectors: str | None = None
    max_words: int = 30_000
    min_frequency: int = 2
    num_oov_buckets: int = 0
    lowercase: bool | None = None
    epochs: int = 3
    keep_epoch: str = "best"
    early_stopping: int | None = None
    class_weights: str | None = None
    batch_size: int = 32
    learning_rate: float | None = None
    warmup_fraction: float = 0.1
    weight_decay: float = 0.01
    dropout: float = 0.1
    pooling: str | None = None
    layer: int | Literal["all"] | list[int] | None = None
    combine: str | None = None
    concatenate: str | None = None
    freeze: int | str | None = None
    lora_rank: int | None = None
    layerwise_decay: float | None = None
    long_texts: str | None = None
    window_pooling: str | None = None
    max_sequence_length: int | None = None
    precision: str = "float32"
    gradient_checkpointing: bool = False
    strategy: str = "auto"
    seed: int = 0
    limit: int | None = None
    checkpoint_every: int | None = None
    export: bool = True
    overwrite: bool = False
    overrides: dict[str, bool | int | float | str | list[int] | None] = (
        dataclasses.field(default_factory=dict)
    )

    def __post_init__(self):
        for name in (
            "epochs",
            "batch_size",
            "vocabulary_size",
            "max_words",
            "min_frequency",
        ):
            check(getattr(self, name) >= 1, self, name, "at least 1")
        check(self.num_oov_buckets >= 0, self, "num_oov_buckets", "at least 0")
        rate = self.learning_rate
        valid = rate is None or 0 < rate < math.inf
        check(valid, self, "learning_rate", "above 0 and finite")
        check(0 <= self.warmup_fraction <= 1, self, "warmup_fraction", "in [0, 1]")
        finite = 0 <= self.weight_decay < math.inf
        check(finite, self, "weight_decay", "at least 0 and finite")
        check(0 <= self.dropout < 1, self, "dropout", "in [0, 1)")
        self._check_reading()
        valid = (None, *LONG_TEXTS)
        check(self.long_texts in valid, self, "long_texts", " or ".join(LONG_TEXTS))
        valid = (None, *WINDOW_POOLINGS)
        rule = " or ".join(WINDOW_POOLINGS)
        check(self.window_pooling in valid, self, "window_pooling", rule)
        if self.window_pooling is not None and not self.reads_windows():
            raise ValueError(
                "`window_pooling` joins the windows of a text. Received: "
                f"window_pooling={self.window_pooling!r}, without windows. Add "
                "long_texts: windows (--long-texts windows), or leave it out."
            )
        freezable = self.freeze in (None, "embeddings", "encoder") or (
            isinstance(self.freeze, int) and self.freeze >= 0
        )
        rule = "embeddings, encoder or a number of blocks"
        check(freezable, self, "freeze", rule)
        rank, decay = self.lora_rank, self.layerwise_decay
        check(rank is None or rank >= 1, self, "lora_rank", "at least 1")
        check(decay is None or 0 < decay <= 1, self, "layerwise_decay", "in (0, 1]")
        length = self.max_sequence_length
        check(length is None or length >= 8, self, "max_sequence_length", "at least 8")
        for name in ("limit", "checkpoint_every", "early_stopping"):
            value = getattr(self, name)
            check(value is None or value >= 1, self, name, "at least 1")
        check(self.keep_epoch in EPOCHS, self, "keep_epoch", " or ".join(EPOCHS))
        if self.keep_epoch == "last" and self.early_stopping is not None:
            raise ValueError(
                "`early_stopping` chooses the epoch by its score, keep_epoch='last' "
                f"leaves no choice. Received: early_stopping={self.early_stopping}. "
                "Leave one out."
            )
        check(self.strategy in STRATEGIES, self, "strategy", " or ".join(STRATEGIES))
        valid = self.class_weights in (None, "balanced")
        check(valid, self, "class_weights", "balanced")
        if self.data_dir is not None and self.tfds:
            raise ValueError(
                "The examples come from one place. Received: both data_dir="
                f"{self.data_dir!r} and tfds=True. Leave one out."
            )
        if self.split_seed is not None:
            check_seed(self.split_seed, "split_seed")
        if self.submission and (self.data_dir is None or self.train is not None):
            raise ValueError(
                "`submission` is of the test files of a task. Received: "
                f"submission=True, data_dir={self.data_dir!r}, train={self.train!r}. "
                "Name their folder: data_dir (--data-dir DIR)."
            )
        self._check_tasks()
        self._check_shared()
        check_own_data(self)

    def _check_tasks(self):
        """Raises `ValueError` for what several tasks cannot have; one is a name."""
        if not isinstance(self.task, list):
            return
        check(self.task != [], self, "task", "one name or more")
        if len(self.task) == 1:
            self.task = self.task[0]
            return
        check(len(set(self.task)) == len(self.task), self, "task", "names, each once")
        for name in self._of_one_task:
            default = type(self).__dataclass_fields__[name].default
            if getattr(self, name) != default:
                raise ValueError(
                    f"`{name}` is of runs of one task. Received: {name}="
                    f"{getattr(self, name)!r}, task={self.task}. Leave it out."
                )

    def _check_reading(self):
        """Raises `ValueError` for what no head can read."""
        valid = (None, *POOLINGS)
        check(self.pooling in valid, self, "pooling", " or ".join(POOLINGS))
        check(self.layer != [], self, "layer", "one number or more")
        valid = (None, *COMBINATIONS)
        check(self.combine in valid, self, "combine", " or ".join(COMBINATIONS))
        if self.combine is not None and not isinstance(self.layer, (str, list)):
            raise ValueError(
                "`combine` is of several layers. Received: "
                f"combine={self.combine!r}, layer={self.layer!r}. Name them, such as "
                "layer: [-2, -1] (--layer -2 -1) or all, or leave it out."
            )
        valid = (None, *CONCATENATIONS)
        rule = " or ".join(CONCATENATIONS)
        check(self.concatenate in valid, self, "concatenate", rule)

    def run_dir(self):
        """Folder of the run."""
        task = self.resolved().task if self.train is None else table_name(self.train)
        task = "+".join(task) if isinstance(task, list) else task
        return self.output_dir or f"runs/{task}-{self.model}-seed{self.seed}"

    def reads_windows(self):
        """Whether a long text is read in windows."""
        return self.long_texts == "windows"

    def seed_of_splits(self):
        """What decides which examples are held out."""
        return self.seed if self.split_seed is None else self.split_seed

    def resolved(self, stopped=None):
        """This run with the default task; that of a table is guessed."""
        if self.train is not None or self.task is not None:
            return self
        return dataclasses.replace(self, task="sst2")

    def changes(self, stopped):
        """As `RunConfig.changes`; a run that names no task is one of the default."""
        return RunConfig.changes(self.resolved(), stopped)

    def _free_options(self):
        return [*super()._free_options(), "checkpoint_every", "export"]
