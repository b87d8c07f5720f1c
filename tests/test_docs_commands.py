"""The shell commands of the README and the docs run, as a user pastes them.

Each page has a folder of its own, its commands run one after the other, and names such
as DIR and MINILM stand for real data there. Appended options make a command small.
"""

import contextlib
import csv
import glob
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sysconfig

import processes
import pytest
import yaml
from docs_pages import PAGES, ROOT, blocks, inline_commands, shell_commands
from foreign_berts import minilm_folder
from registries import registries_kept
from toy_texts import tiny_model

from keras_recbert.cli import COMMANDS, main
from keras_recbert.cli.extensions import VARIABLE
from keras_recbert.data import python_docs
from keras_recbert.train import quickstart

# What is not run here, and why.
NOT_RUN = {
    "hf download nreimers/MiniLM-L6-H384-uncased --local-dir MINILM": "the network",
    "recbert push RUN hf://user/name": "the network",
    "recbert benchmark --install-peers": "gigabytes of packages, hours",
    "recbert benchmark serving RUN --texts reviews.csv --text-column review": (
        "tests/benchmark/test_serving_benchmark.py runs it"
    ),
    "recbert benchmark frontier --install-peers --data-dir DIR --models STUDENT "
    "--teacher TEACHER --weights MINILM": "gigabytes of packages",
    "recbert predict gs://BUCKET/film_model --input 'gs://BUCKET/reviews/*.jsonl' "
    "--output gs://BUCKET/scores.jsonl --beam-options='--runner=FlinkRunner "
    "--flink_master=HOST:8081'": "the network",
}
ONE_BLOCK = "--overrides num_layers 1"
TRAINED = "--epochs 1 --limit 16 --batch-size 8 --max-sequence-length 24"
BENCHMARK = "--passes forward --rounds 1"
PIP = "--dry-run --no-index --no-deps --no-build-isolation"
# Options for commands that begin so; the first that fits. Others run as they are.
SMALL = {
    "recbert finetune --recipe": "--no-export",
    "recbert finetune --train": f"{TRAINED} {ONE_BLOCK}",
    "recbert finetune --task sst2 mrpc stsb": f"{TRAINED} {ONE_BLOCK}",
    "recbert finetune": f"{TRAINED} {ONE_BLOCK} --no-export",
    "recbert distill": "--epochs 1 --limit 16 --n-iter 1",
    "recbert probe": "--epochs 2",
    "recbert pretrain --recipe": "--steps 2 --batch-size 8 --validation-examples 8",
    "recbert pretrain": f"--steps 2 --batch-size 8 --sequence-length 24 {ONE_BLOCK}",
    "recbert table --recipe": "--grid learning_rate=1e-3,2e-3 --seeds 0 "
    "--models bert_minilm",
    "recbert table configs/recipes": "--grid learning_rate=1e-4 --seeds 0 "
    "--models bert_minilm --no-background",
    "recbert table": "--seeds 0 --no-background",
    "recbert benchmark frontier --data-dir": "--rounds 1 --num-texts 4 "
    "--peers tfidf --speed-only",
    "recbert benchmark savedmodel": f"--quick {BENCHMARK}",
    "recbert benchmark tasks": f"--quick {BENCHMARK}",
    "recbert benchmark teacher": f"--quick {BENCHMARK}",
    "recbert benchmark": f"swish_rnn --shapes 2x8 {BENCHMARK}",
    "recbert profile": "--shape 2x8 --steps 1",
    "curl": "--fail --silent --show-error",
    "pip install": PIP,
    "pytest": "tests/core/test_checks.py -p no:cacheprovider",
}
# What sentences and tables name in part, in full: run at the end of a page.
IN_FULL = {
    "README.md": [
        "recbert export RUN/model.keras exported",
        "recbert predict exported 'a small marvel' 'no charm at all'",
    ],
    "commands.md": [
        "recbert list 'bert_t*' --params",
        "recbert list --tasks --markdown",
        "recbert list --markdown",
        "recbert vocabulary held_out.txt --size 300",
        "recbert profile swish_tiny",
        "recbert finetune --task sst2 --data-dir DIR --model swish_tiny "
        "--precision auto --layer 0 1 --combine weighted_sum --concatenate none "
        "--freeze encoder --gradient-checkpointing",
        'pip install -e ".[data]"',
    ],
    "distillation.md": [
        "recbert --import tags.py distill --teacher TEACHER --train reviews.csv "
        "--tagger tags:tagger --output-dir TAGGED",
    ],
    "extending.md": [
        "recbert --import my_encoders.py finetune --model bilstm_tiny --task sst2 "
        "--data-dir DIR --overrides units 8",
    ],
    "results_notes.md": [
        "recbert results configs --output results.md",
    ],
    "small_devices.md": [
        "recbert export STUDENT/model.keras small.tflite --int8",
    ],
    "sweeps.md": [
        "recbert table configs/recipes/minilm_mrpc.yaml --data-dir DIR "
        "--weights MINILM --tasks mrpc --grid overrides.num_layers=1,2 epochs=1",
    ],
    "pretraining.md": [
        "recbert evaluate pretrained/model.keras --corpora held_out test",
    ],
    "weights.md": [
        "recbert convert MINILM back --model bert_minilm --to huggingface",
    ],
}
COMMANDS_OF = {
    name: [*shell_commands(text), *IN_FULL.get(name, [])]
    for name, text in PAGES.items()
}
COMMANDS_OF = {name: found for name, found in COMMANDS_OF.items() if found}
ALL_COMMANDS = {command for found in COMMANDS_OF.values() for command in found}


def small(command):
    """The command with the options that make it small."""
    plain = re.sub(r"^recbert --import \S+ ", "recbert ", command)
    options = (more for begin, more in SMALL.items() if plain.startswith(begin))
    more = next(options, "")
    if ONE_BLOCK in more and "--overrides" in command:
        more = more.replace(ONE_BLOCK, "")
    return f"{command} {more}"


def run(command):
    """Runs a command in the current folder; raises where it ends with an error."""
    if not command.startswith("recbert "):
        environment = {k: v for k, v in os.environ.items() if "PYTEST" not in k}
        shell = {"stderr": subprocess.STDOUT, "text": True, "env": environment}
        ended = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, **shell)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}"
        # A warning of pip, which then succeeds.
        assert "does not provide the extra" not in ended.stdout, ended.stdout
        return
    words = shlex.split(command)[1:]
    argv = [path for word in words for path in _as_the_shell(word, command)]
    assert main(argv) == 0, command


def _as_the_shell(word, command):
    """The paths that a pattern stands for; what has quotes around it stays."""
    quoted = f"'{word}'" in command
    return not quoted and sorted(glob.glob(word)) or [word]


@contextlib.contextmanager
def servers():
    """Gives a function that starts `recbert serve` or `play` and waits for it.

    At the end of the block each gets SIGTERM, and must end well.
    """
    started = []

    def start(command):
        process = processes.start(*shlex.split(command)[1:])
        started.append(process)
        port = int((re.findall(r"--port (\d+)", command) or ["8501"])[0])
        processes.wait_for(process, lambda: _listens(port), 60)

    try:
        yield start
    finally:
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
    for process in started:
        assert "Stopped" in processes.finish(process)


def _listens(port):
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    return False


# What the names in the commands stand for -------------------------------------------


def write_tables(folder, data_dir):
    """Reviews with stars, as a user has them."""
    with (data_dir / "glue/SST-2/dev.tsv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    for index, name in enumerate(("reviews", "more", "test", "all")):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["review", "stars"])
            part = rows[40 * index :][:40]
            writer.writerows([text, "15"[int(label)]] for text, label in part)
    (folder / "reviews").mkdir()
    for index in range(2):
        lines = [json.dumps({"text": text}) for text, _ in rows[index::40]]
        (folder / f"reviews/{index}.jsonl").write_text("\n".join(lines), "utf-8")


def write_task(folder, data_dir):
    """DIR: the first rows of GLUE, and of the data set that the docs register."""
    for path in (data_dir / "glue").glob("*/*.tsv"):
        short = folder / "DIR" / path.relative_to(data_dir / "glue")
        short.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as file:
            short.write_bytes(b"".join(itertools.islice(file, 61)))
    test = "index\tsentence1\tsentence2\n0\tIt rains.\tIt is wet.\n"
    (folder / "DIR" / "MNLI" / "test_matched.tsv").write_text(test)
    (folder / "DIR" / "BoolQ").mkdir()
    (folder / "GLUE_DIR").symlink_to(folder / "DIR")
    (folder / "DIR" / "HelpDesk").mkdir()
    lines = (data_dir / "superglue/BoolQ/val.jsonl").read_text("utf-8").splitlines()
    for name, part in (
        ("HelpDesk/train", lines[:40]),
        ("HelpDesk/val", lines[40:60]),
        ("BoolQ/val", lines[:40]),
    ):
        path = folder / "DIR" / f"{name}.jsonl"
        path.write_text("\n".join(part) + "\n", "utf-8")

    (folder / "DIR" / "probing").mkdir()
    for name in ("bigram_shift", "tree_depth"):
        path = data_dir / f"probing/senteval_layout/{name}.txt"
        lines = path.read_text("utf-8").splitlines(keepends=True)
        short = [
            line
            for split in ("tr", "va", "te")
            for line in [one for one in lines if one.startswith(split)][:40]
        ]
        (folder / "DIR" / "probing" / path.name).write_text("".join(short), "utf-8")


def write_texts(folder, data_dir):
    """What `recbert prepare` reads, the beginnings of real files."""
    books = data_dir / "corpus/gutenberg"
    for name in ("texts", "gutenberg"):
        (folder / name).mkdir()
        for path in (books / "blake-poems.txt", books / "austen-emma.txt"):
            (folder / name / path.name).write_text(path.read_text("utf-8")[:20_000])
    held_out = (books / "blake-songs.txt").read_text("utf-8")[:20_000]
    (folder / "held_out.txt").write_text(held_out)
    squad = json.loads((data_dir / "squad/dev-v1.1.json").read_text("utf-8"))
    squad["data"] = [
        {**article, "paragraphs": article["paragraphs"][:10]}
        for article in squad["data"][:4]
    ]
    (folder / "train-v1.1.json").write_text(json.dumps(squad))
    for name in ("valid", "test"):
        text = (data_dir / f"wikitext-2/{name}.txt").read_text("utf-8")
        (folder / f"{name}.txt").write_text(text[:20_000])
    (folder / "FILE").write_text("".join(held_out.splitlines(keepends=True)[:9]))


def write_recipes(folder):
    """Recipes of the names that the docs have, of one block and a few steps."""
    for path in (
        "pretraining/bert.yaml",
        "pretraining/trans_blstm_half.yaml",
        "recipes/glue/rte.yaml",
        "recipes/minilm_mrpc.yaml",
        "recipes/sst2_swish_small.yaml",
        "recipes/stsb_trans_blstm_half.yaml",
    ):
        recipe = yaml.safe_load((ROOT / "configs" / path).read_text("utf-8"))
        less = {"epochs": 1, "limit": 16, "batch_size": 8}
        if path.startswith("pretraining"):
            less = {"steps": 2, "batch_size": 8, "checkpoint_every": 1}
            less |= {"warmup_steps": 1, "validation_examples": 8}
        if path.startswith("recipes") and "max_sequence_length" not in recipe:
            less["max_sequence_length"] = 24
        overrides = {**recipe.get("overrides", {}), "num_layers": 1}
        (folder / "configs" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "configs" / path).write_text(
            yaml.safe_dump({**recipe, **less, "overrides": overrides})
        )


def write_results(folder):
    """What `recbert results` reads without arguments, and sweeps."""
    for path in ("recipes/minilm_results.json", "sweeps/stability.yaml"):
        (folder / "configs" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "configs" / path, folder / "configs" / path)


@pytest.fixture
def place(tmp_path, data_dir, monkeypatch):
    """A folder with a clone, and with what the commands of the docs name."""
    for name in ("setup.py", "README.md", ".ruff.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("keras_recbert", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    write_tables(tmp_path, data_dir)
    write_task(tmp_path, data_dir)
    write_texts(tmp_path, data_dir)
    write_recipes(tmp_path)
    write_results(tmp_path)
    (tmp_path / "MINILM").symlink_to(minilm_folder())
    vectors = data_dir / "vectors/glove.840B.300d.top596.txt"
    (tmp_path / "glove.txt").symlink_to(vectors)
    for block in blocks("python", PAGES["extending.md"]):
        (tmp_path / re.match(r"# (\w+\.py)\n", block)[1]).write_text(block)
    (tmp_path / "tags.py").write_text("def tagger(words):\n    return words\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv("NLTK_DATA", str(data_dir / "nltk_data"))
    return tmp_path


@pytest.fixture
def few_docs(monkeypatch):
    """The quick start reads the standard library only; no option says so."""
    options = {"search_paths": [sysconfig.get_path("stdlib")], "max_examples": 3000}
    monkeypatch.setattr(
        quickstart,
        "load_python_docs",
        lambda **given: python_docs.load_python_docs(**{**given, **options}),
    )


# The commands -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMANDS_OF)
def test_commands_run_one_after_the_other(page, place, few_docs):
    if page in (
        "README.md",
        "batch_scoring.md",
        "play.md",
        "serving.md",
    ):  # the README's first block writes this
        tiny_model(label_names=["bad", "good"]).export_savedmodel("film_model")
    if page == "play.md":  # two runs of the reader's
        for run_folder in ("TEACHER", "STUDENT"):
            shutil.copytree("film_model", f"{run_folder}/savedmodel")
        tiny_model(label_names=["bad", "good"]).save("TEACHER/model.keras")
    if page == "speed.md":  # TEACHER is one of the reader's
        tiny_model(pooling="first", label_names=["0", "1"]).save_preset("TEACHER")
    if page == "extending.md":  # CORPUS is one of the reader's
        run("recbert prepare held_out.txt --output-dir CORPUS --vocabulary-size 300")
    with registries_kept(), servers() as serve:
        for command in COMMANDS_OF[page]:
            if command.startswith(("recbert serve ", "recbert play ")):
                serve(command)
            elif command not in NOT_RUN:
                run(small(command))
    if page == "README.md":
        for name in (
            "report_validation.md",
            "confusion_validation.png",
            "predictions.csv",
        ):
            assert (place / "runs/mrpc-trans_blstm_minilm-seed0" / name).is_file()


def test_what_does_not_run_is_in_the_docs_and_has_options_that_are_there():
    assert NOT_RUN.keys() <= ALL_COMMANDS
    for command in NOT_RUN:
        if not command.startswith("recbert "):  # those are parsed in test_readme.py
            run(f"{command} --help")


def test_what_makes_a_command_small_is_used():
    found = {
        small(command) for commands in COMMANDS_OF.values() for command in commands
    }
    for begin, more in SMALL.items():
        assert any(
            re.sub(r"--import \S+ ", "", one).startswith(begin)
            and more.split()[0] in one
            for one in found
        ), begin


def options_of(command):
    """The name of a command of `recbert`, and the options that it has."""
    words = re.findall(r"[-\w]+", re.sub(r"--import \S+ ", "", command))
    name = next(word for word in words[1:] if word in COMMANDS)
    return name, {word for word in words if word.startswith("--")}


def test_what_sentences_and_tables_name_is_run_too():
    run_options = {name: set() for name in COMMANDS}
    for command in ALL_COMMANDS - NOT_RUN.keys():
        if command.startswith("recbert "):
            name, options = options_of(small(command))
            run_options[name] |= options | {name}
    named = [options_of(f"recbert {name}") for name in COMMANDS]
    for text in PAGES.values():
        for command in inline_commands(text):
            if command.startswith("recbert "):
                named.append(options_of(command))
            elif command.startswith("pytest "):
                paths = re.findall(r"tests/\S*", command)
                assert all((ROOT / path).exists() for path in paths), command
    for name, options in named:
        assert options | {name} <= run_options[name], (name, options)
