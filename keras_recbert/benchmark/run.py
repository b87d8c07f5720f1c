"""`recbert benchmark`: checks what is asked, measures it, writes what came out."""

import dataclasses
import pathlib
import sys
import tempfile

from keras_recbert.benchmark.comparisons import (
    PASSES,
    PRECISIONS,
    choose,
    parse_shape,
)
from keras_recbert.benchmark.environments import PEERS, find_environments
from keras_recbert.benchmark.growth import growth_table
from keras_recbert.benchmark.measuring import Trial, measure
from keras_recbert.benchmark.picture import check_matplotlib, save_pictures
from keras_recbert.benchmark.progress import Progress
from keras_recbert.benchmark.report import (
    describe_device,
    describe_trial,
    describe_versions,
    save_csv,
    save_text,
)
from keras_recbert.benchmark.teacher_inputs import (
    check_teacher,
    find_teacher,
    read_examples,
    teacher_jobs,
)
from keras_recbert.benchmark.worker_process import Worker
from keras_recbert.core.folders import check_place
from keras_recbert.core.names import nearest
from keras_recbert.data.squad_json import read_squad
from keras_recbert.models.registry import get_card

ROUNDS, QUICK_ROUNDS = 7, 3
# A step of `savedmodel` and of `tasks` is a walk through the texts or questions.
TEXTS, QUICK_TEXTS = 1000, 64
READ = {"texts": "one text a line", "questions": "a file of SQuAD's JSON"}
NEEDS_OF_TEACHER = "--teacher FOLDER, --task NAME and --data-dir FOLDER"
ANSWERS = {"texts": "scores", "questions": "answer"}  # what a SavedModel is asked for


def benchmark(
    names=(),
    quick=False,
    shapes=(),
    precisions=(),
    passes=(),
    rounds=None,
    output_dir="runs/benchmark",
    pythons=None,
    install_peers=False,
    weights=None,
    texts=None,
    questions=None,
    model="bert_minilm",
    teacher=None,
    task=None,
    data_dir=None,
    timeout=900.0,
):
    """Times comparisons and writes benchmark.csv, benchmark.txt and pictures.

    Nothing starts before every argument is checked. The files are written anew after
    each trial, so that a run that is stopped leaves what it had.

    Args:
        names: names of comparisons; all that can run, by default.
        quick: bool. Small models, one shape, few rounds.
        shapes: texts such as `"8x128"`, or rows such as `"32"` where texts are read;
            those of each comparison by default.
        precisions, passes: as the shapes.
        rounds: int. Turns of each candidate.
        output_dir: str or path.
        pythons: dict of key of `PEERS` to interpreter, or None.
        install_peers: bool. Makes environments for peers that are nowhere.
        weights: path of a Hugging Face folder, for `savedmodel` and `tasks`.
        texts: path of a file with one text a line, for `savedmodel`.
        questions: path of a file of SQuAD's JSON, for `tasks`.
        model: str. Encoder that reads the weights, for `savedmodel` and `tasks`.
        teacher: path of a preset, or the output folder of `recbert finetune`, for
            `teacher`.
        task, data_dir: str, str or path. The data set whose training texts it scores.
        timeout: float. Seconds a worker may take for one request.

    Returns:
        List of `(Trial, list of Measurement)`.

    Raises:
        ValueError: if an argument is wrong; FileNotFoundError: if a file is not
            there. Before any work.
        RuntimeError: at the end, if a worker failed; everything else is written.
    """
    check_matplotlib()
    shapes = [parse_shape(shape, needs_tokens=False) for shape in shapes]
    _check_among("--precision", precisions, PRECISIONS)
    _check_among("--passes", passes, PASSES)
    rounds = (QUICK_ROUNDS if quick else ROUNDS) if rounds is None else rounds
    if rounds < 1:
        raise ValueError(f"--rounds must be at least 1. Received: {rounds}.")
    if not timeout > 0:
        raise ValueError(f"--timeout must be above 0 seconds. Received: {timeout}.")
    files = {"texts": texts, "questions": questions}
    is_given = {name: None not in (weights, file) for name, file in files.items()}
    is_given["examples"] = None not in (teacher, task, data_dir)
    chosen, notes = _comparisons(names, quick, passes, shapes, is_given)
    most = QUICK_TEXTS if quick else TEXTS
    wanted = {comparison.reads for comparison in chosen}
    reads = wanted & files.keys()
    if reads:
        get_card(model)
        _check_weights(weights)
    columns = {name: READERS[name](files[name], most) for name in sorted(reads)}
    if "examples" in wanted:
        teacher = find_teacher(teacher)
        check_teacher(teacher, task)
        columns["examples"] = read_examples(task, data_dir, most)
    output_dir = _check_output_dir(output_dir)

    progress = Progress()
    keys = dict.fromkeys(
        candidate.worker
        for comparison in chosen
        for candidate in (comparison.subject, *comparison.references)
    )
    environments, missing = find_environments(
        keys, pythons or {}, output_dir / "environments", install_peers, progress.say
    )
    trials = [
        Trial(comparison, shape, precision, pass_)
        for comparison in chosen
        for precision in precisions or comparison.precisions
        for pass_ in (one for one in comparison.passes if one in (passes or PASSES))
        for shape in _shapes(comparison, shapes)
    ]
    header = [
        *describe_device(),
        *describe_versions(environments),
        *notes,
        *missing.values(),
    ]
    for line in header:
        progress.say(line)
    output_dir.mkdir(parents=True, exist_ok=True)
    inputs = _Inputs(columns, model, weights, teacher, timeout)
    results = _measure_all(
        trials, inputs, environments, rounds, output_dir, header, progress
    )
    _report(results, output_dir, header, progress)
    return results


def _measure_all(trials, inputs, environments, rounds, output_dir, header, progress):
    """Measures trial by trial; the files are written anew after each.

    Returns:
        List of `(Trial, list of Measurement)`.
    """
    results = []
    with tempfile.TemporaryDirectory(prefix="recbert-") as folder:
        for number, trial in enumerate(trials, 1):
            progress.counter = f"[{number}/{len(trials)}] "
            extra = {}
            if trial.comparison.reads:
                progress.live(f"{trial}: exporting the model")
                extra = inputs.of(trial, folder)
            measured = measure(
                trial, environments, rounds, inputs.timeout, extra, progress.live
            )
            results.append((trial, measured))
            progress.say(describe_trial(trial, measured))
            save_csv(output_dir / "benchmark.csv", header, results)
            save_text(output_dir / "benchmark.txt", header, results)
    return results


def _report(results, output_dir, header, progress):
    """Draws what was measured; raises `RuntimeError` for what failed."""
    growth = growth_table(results)
    if growth:
        progress.say(growth)
        save_text(output_dir / "benchmark.txt", header, results, growth)
    pictures = save_pictures(output_dir, header, results)
    written = ", ".join(["benchmark.csv", "benchmark.txt", *pictures])
    progress.say(f"Everything is in {output_dir}/ ({written}).")
    errors = [one.error for _, measured in results for one in measured if one.error]
    if errors:
        raise RuntimeError(
            f"{len(errors)} of {sum(len(m) for _, m in results)} measurements failed. "
            f"The first: {errors[0]}"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class _Inputs:
    """What the comparisons of served models read.

    Args:
        columns: dict of "texts", "questions" and "examples" to a dict of columns.
        model: str. Encoder that reads the weights.
        weights: path of a Hugging Face folder.
        teacher: path of a preset.
        timeout: float. Seconds a worker may take for one request.
    """

    columns: dict
    model: str
    weights: object
    teacher: object
    timeout: float

    def of(self, trial, folder):
        """Arguments of the workers of a trial, by their kind."""
        reads = trial.comparison.reads
        if reads == "examples":
            columns = self.columns[reads]
            return teacher_jobs(self.teacher, columns, folder, self.timeout)
        strings = {"columns": self.columns[reads]}
        path = _export(trial, self.model, self.weights, folder, self.timeout)
        return {
            "savedmodel": {"savedmodel": path, "answer": ANSWERS[reads], **strings},
            "torch": {"weights": str(self.weights), **strings},
            "torch_questions": {"weights": str(self.weights), **strings},
        }


def _comparisons(names, quick, passes, shapes, is_given):
    """The comparisons that can run, and sentences on those that are left out.

    `is_given` says, by what a comparison reads, whether that was named.

    Raises:
        ValueError: if one that was named cannot run.
    """
    chosen, notes = [], []
    for comparison in choose(names, quick):
        reads = comparison.reads
        if passes and not set(passes) & set(comparison.passes):
            valid = ", ".join(comparison.passes)
            why = f"{comparison.name} is timed in the pass {valid} only"
            if names:
                raise ValueError(f"{why}. Received: --passes {' '.join(passes)}.")
            notes.append(f"{why}, so it is left out.")
        elif not _shapes(comparison, shapes):
            form = "rows, such as 32" if reads else "rows x tokens, such as 8x128"
            why = f"{comparison.name} takes --shapes of {form}"
            if names:
                raise ValueError(f"{why}. Received: {', '.join(map(str, shapes))}.")
            notes.append(f"{why}, so it is left out.")
        elif reads and not is_given[reads]:
            needs, what = _needed(reads)
            why = f"{comparison.name} needs {needs}"
            if names:
                raise ValueError(f"{why}: {what}.")
            notes.append(f"{why}, so it is left out.")
        else:
            chosen.append(comparison)
    return chosen, notes


def _needed(reads):
    """Options that a comparison needs, and what they name."""
    if reads == "examples":
        return NEEDS_OF_TEACHER, "the output folder of `recbert finetune`, and its data"
    what = f"a BERT of Hugging Face, and {READ[reads]}"
    return f"--weights FOLDER and --{reads} FILE", what


def _check_output_dir(output_dir):
    if not str(output_dir):
        raise ValueError("--output-dir is an empty path. Name a folder.")
    output_dir = pathlib.Path(output_dir)
    if output_dir.exists() and not output_dir.is_dir():
        raise ValueError(f"--output-dir must be a folder. {output_dir} is a file.")
    check_place(output_dir)
    return output_dir


def _check_among(option, values, valid):
    for value in values:
        if value not in valid:
            raise ValueError(
                f"{option} must be of {', '.join(valid)}. Received: {value!r}. "
                f"{nearest(value, valid)}".rstrip()
            )


def _shapes(comparison, shapes):
    """Those of the shapes that were asked for which a comparison takes; its own if
    none were."""
    has_tokens = not comparison.reads
    own = [shape for shape in shapes if bool(shape.sequence_length) == has_tokens]
    return own if shapes else comparison.shapes


def _check_weights(weights):
    if not (pathlib.Path(weights) / "config.json").is_file():
        raise FileNotFoundError(
            f"--weights must be a folder of Hugging Face, which both sides can read. "
            f"There is no config.json in {weights}."
        )


def _read_texts(path, most):
    """The first lines of a file that are not empty, a column."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"--texts must be a file, one text a line: {path}.")
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"--texts must be UTF-8. {path} is not: {error}. Convert it, such as with "
            "iconv -f latin1 -t utf8."
        ) from None
    lines = [line for line in lines if line][:most]
    if not lines:
        raise ValueError(f"--texts must hold a text a line. {path} is empty.")
    return {"text": lines}


def _read_questions(path, most):
    """Columns of questions and contexts, from all over a file of SQuAD's JSON."""
    if not pathlib.Path(path).is_file():
        raise FileNotFoundError(f"--questions must be a file of SQuAD's JSON: {path}.")
    examples = read_squad(path, "test")
    every = max(1, len(examples) // most)
    return {name: column[::every][:most] for name, column in examples.fields.items()}


READERS = {"texts": _read_texts, "questions": _read_questions}


def _export(trial, model, weights, folder, timeout):
    """Writes a classifier as a SavedModel in a worker; returns its path."""
    task = trial.comparison.task
    path = pathlib.Path(folder) / f"{task}-{trial.precision}"
    if not path.exists():
        job = {
            "kind": "export",
            "name": model,
            "task": task,
            "weights": str(weights),
            "precision": trial.precision,
            "savedmodel": str(path),
        }
        script = PEERS["recbert"].script
        with Worker(f"export of {model}", script, sys.executable, True, timeout) as it:
            it.imported()
            it.prepare(job)
    return str(path)
