"""Options of commands that run nothing to resume, as data. Imports no TensorFlow."""

import dataclasses
import ipaddress
import math
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from keras_recbert.config.augmentation import Augmentation
from keras_recbert.config.grid import Grid, check_grid
from keras_recbert.core.checks import check_integer
from keras_recbert.core.lines import MAX_LINE_BYTES
from keras_recbert.core.machine import num_cores


class CommandConfig:
    """What the options of such commands have in common."""

    # Options that may hold empty strings: what is asked, not where something is.
    _texts = ()

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in self._texts or field.default == "":
                continue
            values = value.values() if isinstance(value, dict) else [value]
            if "" in (value if isinstance(value, list) else values):
                raise ValueError(f"`{field.name}` is empty. Expected a path or a name.")


@dataclasses.dataclass
class PrepareConfig(CommandConfig):
    """A corpus to pre-train on, and what it is made of.

    Args:
        inputs: Files, folders, patterns, or tfds: and a name. Text (.txt), JSON lines
            (.jsonl), SQuAD (.json) and WikiText (.tokens), also .gz and .bz2.
        output_dir: Folder to write.
        vocabulary: A vocab.txt.
        vocabulary_size: Learn a vocabulary of so many pieces from the documents.
        lowercase: Lower-case the text and strip accents.
        strip_accents: By default as lowercase.
        format: What the files hold; by default their endings say it.
        documents: blocks, text files hold documents with blank lines between; or
            files, each is one.
        sentences: split lines into sentences, or take lines as sentences.
        text_field: Field of JSON lines or of a data set that holds the text.
        split: Split of a data set.
        tfds_data_dir: Where TensorFlow Datasets keeps its files.
        num_shards: Files to write.
        num_workers: Processes; the files are the same.
        beam_options: Options of Apache Beam, after an equals sign:
            --beam-options='--runner=FlinkRunner ...'.
        overwrite: Replace a corpus that is there.
        max_line_bytes: The most that is read of a line; longer ones are counted.
    """

    inputs: Annotated[Positional[list[str]], arg(metavar="INPUT [INPUT ...]")]
    output_dir: str
    vocabulary: str | None = None
    vocabulary_size: int | None = None
    lowercase: bool = True
    strip_accents: bool | None = None
    format: Literal["text", "jsonl", "squad", "wikitext"] | None = None
    documents: Literal["blocks", "files"] = "blocks"
    sentences: Literal["split", "lines"] = "split"
    text_field: str = "text"
    split: str = "train"
    tfds_data_dir: str | None = None
    num_shards: int = 16
    num_workers: int = 1
    beam_options: str = ""
    overwrite: bool = False
    max_line_bytes: int = MAX_LINE_BYTES


@dataclasses.dataclass
class PredictConfig(CommandConfig):
    """A model, and what it is asked.

    Args:
        model: Folder of a SavedModel or a preset, a model.keras, .tflite or .onnx.
        texts: One text or more.
        pairs: The texts are pairs: first, second, first, second, ...
        head: The head that answers, where the model has several; words of a tagger,
            where the column holds lists of words.
        input: A file in place of texts: .csv, .tsv, .jsonl, .parquet, or .txt with a
            text a line. Or many, of JSON lines, such as 'gs://bucket/*.jsonl', which
            Apache Beam reads.
        output: The file to write, .csv, .tsv or .jsonl: the columns of the input,
            `prediction`, and `score`, its probability.
        text_column: One or two columns of the input; by default the only one, or those
            with usual names, such as text and text_pair.
        batch_size: Rows of the input that are answered at a time.
        encoding: Encoding of the input.
        overwrite: Replace the output if it exists, or was begun from something else.
        num_workers: Processes that predict for files of JSON lines.
        beam_options: Options of Apache Beam, after an equals sign:
            --beam-options='--runner=FlinkRunner --flink_master=HOST:PORT'.
    """

    model: Positional[str]
    texts: Annotated[Positional[list[str]], arg(metavar="[TEXT ...]")] = (
        dataclasses.field(default_factory=list)
    )
    pairs: bool = False
    head: str | None = None
    input: str | None = None
    output: str | None = None
    text_column: list[str] | None = None
    batch_size: int = 32
    encoding: str = "utf-8"
    overwrite: bool = False
    num_workers: int = 1
    beam_options: str = ""

    _texts = ("texts",)


@dataclasses.dataclass
class TableConfig(CommandConfig):
    """A table of runs: of several recipes, encoders, options and seeds.

    Args:
        recipes: YAML files, such as configs/recipes/minilm_*.yaml.
        corpus: Of pre-training: folder written by `recbert prepare`.
        validation: Of pre-training: names of other prepared folders, such as books
            DIR; by default those of each recipe.
        test: Of pre-training: names of prepared folders that the models are scored on
            at the end, on the whole of each.
        data_dir: Of fine-tuning: folder with the files of the tasks; by
            default what each recipe names.
        models: Of fine-tuning: encoders that each recipe is run with; by default its
            own.
        tasks: Of fine-tuning: data sets that each recipe is run with; by default its
            own.
        grid: Of fine-tuning: values of options that each recipe is run with, such as
            learning_rate=2e-5,5e-5 epochs=3,4, in all combinations; overrides.NAME=...
            for an entry of overrides; layer=[-2,-1],all for lists. The word or stands
            between several grids. In YAML a mapping of options to lists, or a list of
            such mappings.
        tuning_fraction: Of fine-tuning: choose among the grid by the scores on such a
            part of the training examples, held out by groups, such as 0.1. Then the
            chosen options are trained on all of them and scored on the validation set,
            once, after the last epoch.
        weights: What all start from, such as pretrained/{model}/preset, where {model}
            stands for the name of the encoder; by default what each recipe names.
        vectors: Of fine-tuning: what the vectors of all begin with, as of `recbert
            finetune`; by default what each recipe names.
        teacher: Of distillation: what all students learn from, one teacher or several;
            by default what each recipe names.
        unlabelled: Of distillation: texts without labels for all students to learn
            from, too, as of `recbert distill`; by default what each recipe names.
        precision: float32, bfloat16 or auto; by default that of each recipe.
        seeds: Seeds of each recipe.
        jobs: Runs at a time, each a process with its share of the cores.
        output_dir: Folder of the runs and table.md; by default runs/pretraining or
            runs/finetuning.
        background: Return at once; the output goes to log.txt in the folder.
    """

    recipes: Annotated[Positional[list[str]], arg(metavar="RECIPE [RECIPE ...]")]
    corpus: str | None = None
    validation: dict[str, str] | None = None
    test: dict[str, str] | None = None
    data_dir: str | None = None
    models: list[str] | None = None
    tasks: list[str] | None = None
    grid: Grid = dataclasses.field(default_factory=dict)
    tuning_fraction: float | None = None
    weights: str | None = None
    vectors: str | None = None
    teacher: str | list[str] | None = None
    unlabelled: str | None = None
    precision: str | None = None
    seeds: list[int] = dataclasses.field(default_factory=lambda: [0, 1, 2])
    jobs: int = 1
    output_dir: str | None = None
    background: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.jobs < 1:
            raise ValueError(f"`jobs` must be at least 1. Received: jobs={self.jobs}.")
        check_grid(self.grid)
        fraction = self.tuning_fraction
        if fraction is None:
            return
        if not 0 < fraction < 1:
            raise ValueError(
                "`tuning_fraction` must be above 0 and below 1. Received: "
                f"tuning_fraction={fraction}."
            )
        if not self.grid:
            raise ValueError(
                "`tuning_fraction` chooses among the options of a grid. Received: "
                f"tuning_fraction={fraction} without grid. Name one, such as --grid "
                "learning_rate=2e-5,5e-5, or leave tuning_fraction out."
            )


@dataclasses.dataclass
class AugmentConfig(CommandConfig):
    """A table of texts, and how synthetic examples are made of them.

    Args:
        input: A table: .csv, .tsv, .jsonl or .parquet.
        output: The file to write, .jsonl, .csv or .tsv, with the columns text (and
            text_pair), source, the row of the original from 1, and augmented.
        text_column: Column of the texts, or two columns of pairs; guessed by default.
        n_iter: Synthetic examples of each row, before duplicates are dropped.
        mask_probability: Probability of a word to become [MASK].
        pos_probability: Probability of a word to be replaced by one of the same part of
            speech; 0 needs no NLTK.
        ngram_probability: Probability of an example to be cut to 1 to 5 words.
        seed: Seed of all of it.
        num_workers: Processes that tag words; the output is the same.
        encoding: Encoding of the input; by default UTF-8, or Windows-1252 for CSV
            and TSV that have no character of UTF-8.
        overwrite: Replace the output if it exists.
    """

    input: Annotated[Positional[str], arg(metavar="FILE")]
    output: str
    text_column: list[str] | None = None
    n_iter: int = Augmentation.n_iter
    mask_probability: float = Augmentation.mask_probability
    pos_probability: float = Augmentation.pos_probability
    ngram_probability: float = Augmentation.ngram_probability
    seed: int = Augmentation.seed
    num_workers: int = 1
    encoding: str | None = None
    overwrite: bool = False

    def __post_init__(self):
        super().__post_init__()
        self.augmentation()
        check_integer(num_workers=self.num_workers)

    def augmentation(self):
        """The `Augmentation` of these options."""
        names = (field.name for field in dataclasses.fields(Augmentation))
        return Augmentation(**{name: getattr(self, name) for name in names})


@dataclasses.dataclass
class BenchmarkConfig(CommandConfig):
    """What is timed, beside what, and how.

    Args:
        comparisons: Some of swish_rnn, bilstm_768, bilstm_256, swish_model,
            trans_blstm_model, bert_model, savedmodel, tasks, teacher, scaling; by
            default all that can run.
        quick: Small models, one shape and few rounds, in about two minutes.
        shapes: Rows x tokens, such as 8x128, or rows, such as 32, where texts are
            read; by default what suits the comparison.
        precision: Some of float32, mixed_bfloat16 (weights in float32) and bfloat16.
        passes: Some of forward and train.
        rounds: Turns of each candidate; 7 by default, 3 with --quick.
        output_dir: Folder for what it writes. Files of an earlier run are replaced.
        install_peers: Install peers that are nowhere, in environments of their own in
            the output folder.
        torch_python: Interpreter that has torch and transformers.
        kerashub_python: Interpreter that has KerasHub.
        model_garden_python: Interpreter that has tf-models-official.
        weights: A BERT of Hugging Face, a folder, for savedmodel and tasks.
        texts: A file with one text a line, for savedmodel.
        questions: A file of SQuAD's JSON, for tasks.
        model: Encoder of this zoo that reads the weights, for savedmodel and tasks.
        teacher: Output folder of `recbert finetune`, or a preset, for teacher.
        task: Data set whose training texts it scores, such as sst2.
        data_dir: Folder of the files of the data set.
        timeout: Seconds a process may take to build a model, or for one round.
    """

    comparisons: Annotated[Positional[list[str]], arg(metavar="[COMPARISON ...]")] = (
        dataclasses.field(default_factory=list)
    )
    quick: bool = False
    shapes: list[str] = dataclasses.field(default_factory=list)
    precision: list[str] = dataclasses.field(default_factory=list)
    passes: list[str] = dataclasses.field(default_factory=list)
    rounds: int | None = None
    output_dir: str = "runs/benchmark"
    install_peers: bool = False
    torch_python: str | None = None
    kerashub_python: str | None = None
    model_garden_python: str | None = None
    weights: str | None = None
    texts: str | None = None
    questions: str | None = None
    model: str = "bert_minilm"
    teacher: str | None = None
    task: str | None = None
    data_dir: str | None = None
    timeout: float = 900.0


@dataclasses.dataclass
class ServeConfig(CommandConfig):
    """What is served over HTTP, where, and how much at a time.

    Args:
        folders: SavedModels as `recbert export` writes them, or folders of numbered
            versions, NAME/1/saved_model.pb, of which the highest is served. The name
            of the folder is that of the model.
        host: Address to listen at. Others than those of this machine need a token.
        port: Port to listen at; 0 takes a free one.
        token_file: A file with a token. Requests then need the header
            `Authorization: Bearer TOKEN`.
        max_batch_size: Texts of a call of the model, which requests share.
        batch_timeout_ms: Milliseconds that a text waits for others to share its call.
        num_batch_threads: Calls that run at a time, each on a share of the cores; by
            default one a core, which answers most texts a second. 1 answers a single
            long text soonest.
        max_waiting: Texts that may wait; requests beyond are answered by status 429.
        max_texts: Texts of a request, and of a list in one; beyond, status 413.
        max_body_mb: Megabytes of the body of a request; beyond, status 413.
        timeout_s: Seconds until an answer; beyond, status 504.
        poll_seconds: Seconds between looks for new versions.
    """

    folders: Annotated[Positional[list[str]], arg(metavar="DIR [DIR ...]")]
    host: str = "127.0.0.1"
    port: int = 8501
    token_file: str | None = None
    max_batch_size: int = 64
    batch_timeout_ms: float = 2.0
    num_batch_threads: int = dataclasses.field(default_factory=num_cores)
    max_waiting: int = 1024
    max_texts: int = 256
    max_body_mb: float = 8.0
    timeout_s: float = 30.0
    poll_seconds: float = 5.0

    def __post_init__(self):
        super().__post_init__()
        if not self.folders:
            raise ValueError(
                "There is nothing to serve: name the folder of a SavedModel or more. "
                "`recbert export MODEL FOLDER` writes one."
            )
        check_integer(least=0, most=65535, port=self.port)
        sizes = ("max_batch_size", "num_batch_threads", "max_waiting", "max_texts")
        check_integer(**{name: getattr(self, name) for name in sizes})
        if self.max_texts > self.max_waiting:
            raise ValueError(
                "A request of `max_texts` must fit among those that wait. Received: "
                f"max_texts={self.max_texts}, max_waiting={self.max_waiting}."
            )
        if not 0 <= self.batch_timeout_ms <= 10_000:
            raise ValueError(
                "`batch_timeout_ms` must be from 0 to 10000. Received: "
                f"batch_timeout_ms={self.batch_timeout_ms}."
            )
        for name in ("max_body_mb", "timeout_s", "poll_seconds"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(
                    f"`{name}` must be a number above 0. Received: {name}={value}."
                )
        if self.token_file is None and not _is_of_this_machine(self.host):
            raise ValueError(
                "Other machines reach this address, so requests need a token: "
                "--token-file FILE, which `openssl rand -hex 32 > FILE` writes. "
                f"Received: host={self.host}."
            )


def _is_of_this_machine(host):
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # another name
