"""Predictions for files of JSON lines that one process is not enough for."""

import contextlib
import os
import pathlib
import sys
import tempfile
import threading
import time

from tqdm import tqdm

from keras_recbert.core.answering import answering_variables
from keras_recbert.core.beam_options import read_beam_options
from keras_recbert.core.checks import check_integer
from keras_recbert.core.extras import check_installed
from keras_recbert.data.prepare_progress import quiet
from keras_recbert.data.rows import JSON_LINES, read_object
from keras_recbert.serving.predict_file import check_added, check_num_texts
from keras_recbert.serving.savedmodel import MARKER, read_meta_graph
from keras_recbert.serving.text_columns import choose_text_columns

_SECONDS_BETWEEN_LOOKS = 0.5


def predict_beam(
    model,
    pattern,
    output,
    text_columns=(),
    batch_size=32,
    head=None,
    num_workers=1,
    beam_options="",
    overwrite=False,
):
    """Writes a prediction for each line of files of JSON lines, by Apache Beam.

    Each line of the input becomes one line of the output, `prediction` and `score`
    added, or one of the file of rejected lines beside it, with the reason: exactly one,
    whatever fails. They come in no order. Of an output `scores.jsonl` the files are
    `scores-00000-of-00004.jsonl` and so on, and `scores.rejected-00000-of-00001.jsonl`.

    Args:
        model: str. Path of a SavedModel that every worker sees.
        pattern: str. Files, such as `gs://bucket/*.jsonl`; may be compressed.
        output: str. Path with the ending .jsonl or .ndjson.
        text_columns: sequence of one or two str, see `choose_text_columns`.
        batch_size: int. Rows that are answered at a time.
        head: str. The head that answers, where the model has several.
        num_workers: int. Processes of the runner on this machine.
        beam_options: str. Options of Beam; `--runner` names another runner.
        overwrite: bool. Whether an output that is there is replaced.

    Returns:
        Tuple of two int: lines that got a prediction, and lines that were rejected.

    Raises:
        ImportError: without Apache Beam.
        FileNotFoundError: if there is no such input or model.
        FileExistsError: if the output is there, and `overwrite` is False.
        ValueError: if an argument or the first line is not what it should be.
    """
    check_integer(batch_size=batch_size)
    check_integer(most=1_000, num_workers=num_workers)
    options = read_beam_options(beam_options, num_workers)
    check_installed("Predicting by Apache Beam", "prepare", "apache_beam")
    with quiet():
        from apache_beam.io.filesystems import FileSystems

        from keras_recbert.data import beam_runs
        from keras_recbert.serving import predict_pipeline as pipelines
    if options:
        beam_runs.check_options(options)
    pattern, model = _whole(pattern), _whole(model)
    prefix, ending = _split_output(_whole(output))
    written = [
        path
        for stem in (prefix, f"{prefix}.{pipelines.REJECTED}")
        for path in _files(FileSystems, f"{stem}-*-of-*{ending}")
    ]
    if written and not overwrite:
        raise FileExistsError(
            f"{written[0]} exists already. Choose another output, or pass "
            "overwrite=True (--overwrite) to replace it."
        )
    files = _files(FileSystems, pattern)
    if not files:
        raise FileNotFoundError(f"There is no file {pattern}.")
    columns = _columns(FileSystems, files)
    text_columns = choose_text_columns(files[0], columns, text_columns)
    fields, list_fields, heads = _inputs(model, head)
    check_num_texts(model, len(fields), text_columns, heads)

    if written:
        FileSystems.delete(written)
    is_local = not any("--runner" in option for option in options)
    print(
        f"Predicting {pattern}: {len(files):,} file(s), texts in "
        f"{' and '.join(text_columns)}.",
        file=sys.stderr,
        flush=True,
    )
    start = time.perf_counter()
    with _progress(is_local) as folder:
        job = pipelines.PredictJob(
            model,
            head,
            pattern,
            prefix,
            ending,
            tuple(text_columns),
            fields,
            list_fields,
            batch_size,
            folder,
        )
        result = beam_runs.run(
            lambda pipeline: pipelines.build_pipeline(pipeline, job),
            num_workers,
            options,
            {**answering_variables(), **beam_runs.share_of_cores(num_workers)},
        )
    predicted, rejected = _counts(result, *pipelines.COUNTERS)
    seconds = time.perf_counter() - start
    print(
        f"Wrote {prefix}-*-of-*{ending}: {predicted:,} rows in {seconds:.0f} s, "
        f"{predicted / max(seconds, 1e-9):,.0f} rows/s; "
        f"{rejected:,} rejected"
        + (f", see {prefix}.{pipelines.REJECTED}-*{ending}." if rejected else "."),
        file=sys.stderr,
        flush=True,
    )
    return predicted, rejected


def _whole(path):
    """A path as workers need it, and Beam for patterns."""
    return path if "://" in path else os.path.abspath(path)


def _split_output(output):
    """The output without its ending, and the ending, which must be one of JSON."""
    prefix, ending = os.path.splitext(output)
    if ending not in JSON_LINES:
        raise ValueError(
            f"{output}: Apache Beam writes JSON lines. Name the output with one of "
            f"these endings: {', '.join(JSON_LINES)}."
        )
    return prefix, ending


def _files(file_systems, pattern):
    """Paths of files, sorted."""
    try:
        matches = file_systems.match([pattern])
    except (ValueError, OSError) as error:  # such as no library for gs://
        raise ValueError(f"{pattern} cannot be read: {error}") from error
    return sorted(found.path for match in matches for found in match.metadata_list)


def _columns(file_systems, files):
    """Names of the first row of files; each must have an ending of JSON lines."""
    for path in files:
        if not set(JSON_LINES) & set(pathlib.PurePath(path).suffixes[-2:]):
            raise ValueError(
                f"{path}: Apache Beam reads JSON lines ({', '.join(JSON_LINES)}, which "
                "may be compressed), as rows of other files can hold line ends. Save "
                "it as JSON lines; or predict it in one process: without a pattern, "
                "num_workers and beam_options."
            )
    with file_systems.open(files[0]) as file:
        line = file.readline() if hasattr(file, "readline") else b""
    where = f"{files[0]}:1"
    try:
        row = read_object(where, line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: not valid UTF-8: {error}.") from error
    check_added(where, row)
    return list(row)


def _inputs(model, head):
    """Fields, those of lists, and heads, as its `Predictor` has; loads no weights."""
    import tensorflow as tf

    from keras_recbert.serving.answers import in_order, keys_by_head

    if not tf.io.gfile.exists(os.path.join(model, MARKER)):
        raise FileNotFoundError(
            f"There is no SavedModel at {model}: it holds no {MARKER}. `recbert export "
            "MODEL FOLDER` writes one."
        )
    signatures = read_meta_graph(model).signature_def
    name = head or "serving_default"
    if name not in signatures:
        raise ValueError(
            f"The SavedModel at {model} has no head {name!r}. Valid: "
            f"{', '.join(signatures)}."
        )
    inputs = signatures[name].inputs
    lists = [key for key, spec in inputs.items() if len(spec.tensor_shape.dim) == 2]
    outputs = {key: own.outputs for key, own in signatures.items()}
    heads = () if head else tuple(keys_by_head(outputs))
    return in_order(inputs), tuple(lists), heads


def _counts(result, namespace, names):
    """What workers counted: an int for each name."""
    from apache_beam.metrics import MetricsFilter

    counts = []
    for name in names:
        found = MetricsFilter().with_namespace(namespace).with_name(name)
        counters = result.metrics().query(found)["counters"]
        counts.append(sum(counter.result or 0 for counter in counters))
    return counts


@contextlib.contextmanager
def _progress(is_local):
    """A folder for the counts of workers of this machine, shown on a terminal."""
    if not (is_local and sys.stderr.isatty()):
        yield None
        return
    finished = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        thread = threading.Thread(target=_show, args=(folder, finished), daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            finished.set()
            thread.join()


def _show(folder, finished):
    with tqdm(unit=" rows", leave=False) as bar:
        while not finished.wait(_SECONDS_BETWEEN_LOOKS):
            counts = [path.read_text() for path in pathlib.Path(folder).iterdir()]
            bar.update(sum(int(count or 0) for count in counts) - bar.n)
