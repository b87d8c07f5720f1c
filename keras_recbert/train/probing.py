"""Probing: what the layers of a frozen encoder know of a sentence."""

import dataclasses
import pathlib
import time

import keras
import numpy as np

import keras_recbert
from keras_recbert.config.probing import FREE
from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import check_place, locked_folder, new_file
from keras_recbert.core.json_files import read_json, write_json
from keras_recbert.data.task_files import available_splits, read_split
from keras_recbert.data.task_labels import name_labels
from keras_recbert.data.task_spec import get_task
from keras_recbert.data.tasks.senteval import PROBING_TASKS
from keras_recbert.heads.reading import read_layers
from keras_recbert.models.registry import list_models
from keras_recbert.tasks.model_inputs import need_preprocessor
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.vocabulary import load_vocabulary
from keras_recbert.text.word_tokenizer import get_tokenizer
from keras_recbert.train.probe_classifier import train_probe
from keras_recbert.train.probe_features import LayerFeatures, texts_checksum
from keras_recbert.train.probe_report import (
    KIND,
    PICTURE,
    TABLE,
    make_table,
    save_heatmap,
)
from keras_recbert.train.run_facts import device_name, versions

RESULTS = "results.json"
SPLITS = ("train", "validation", "test")


def run_probes(config, model=None):
    """Probes layers of an encoder with classification tasks (Aksoy et al. 2020, 4.4).

    The encoder is frozen. The features of all its layers are computed in one pass over
    the texts of a task and kept on disk; then each layer gets a classifier, see
    `train_probe`. The folder gets `results.json`, `table.md` and `heatmap.png`, written
    anew after each layer and task, so that the same call resumes; a task and layer
    that is done is skipped. More tasks and layers may be added later.

    Args:
        config: `keras_recbert.config.ProbeConfig`.
        model: optional encoder or task model with a preprocessor, in place of
            `config.model`.

    Returns:
        dict in `results.json`.

    Raises:
        ValueError: if the model, a task or a layer is unknown, a file is not as it
            should be, or the folder holds results of other options, weights or texts;
            before anything is written.
        FileNotFoundError: if model or files are not there.
        RuntimeError: if another process works in the folder.
        ImportError: without what trains and draws.
    """
    check_installed("`recbert probe`", "train", "sklearn", "matplotlib")
    folder = pathlib.Path(config.run_dir())
    check_place(folder)
    tasks = {name: _read_task(name, config.data_dir) for name in _task_names(config)}
    held = _held_results(folder, config)
    keras.utils.set_random_seed(config.seed)
    encoder, tokenizer = _encoder_and_tokenizer(config, model)
    everything = config.layers == "all"
    layers = range(len(encoder.blocks) + 1) if everything else config.layers
    layers = sorted(set(read_layers(encoder, layers)))
    cache = pathlib.Path(config.cache_dir or folder / "features")
    features = LayerFeatures(encoder, tokenizer, config.pooling, cache)
    held = _held_of(held, config, features, tasks, folder)
    results = _begin(held, config, encoder)
    with locked_folder(folder):
        for task in tasks.values():
            _probe_task(task, layers, features, results, config, folder)
        _write(folder, results)
    return results


@dataclasses.dataclass(frozen=True)
class _Task:
    """A probing task in memory.

    Args:
        spec: `TaskSpec` with `label_names`.
        splits: dict of split name to `Examples` with class ids.
        checksum: str. Of texts and labels.
    """

    spec: object
    splits: dict
    checksum: str

    def facts(self):
        """What `results.json` has of it before any layer is done."""
        labels = {name: one.targets["label"] for name, one in self.splits.items()}
        common = np.bincount(labels["train"]).argmax()
        return {
            "version": self.spec.version,
            "data_sha256": self.checksum,
            "classes": len(self.spec.label_names),
            "examples": {name: len(one) for name, one in self.splits.items()},
            "majority": float(np.mean(labels["test"] == common)),
            "layers": {},
        }


def _task_names(config):
    if config.tasks:
        return [get_task(name).name for name in config.tasks]
    found = [name for name in PROBING_TASKS if available_splits(name, config.data_dir)]
    if not found:
        raise FileNotFoundError(
            f"{config.data_dir} holds none of the files of SentEval's probing tasks, "
            f"{PROBING_TASKS[0]}.txt to {PROBING_TASKS[-1]}.txt, nor a folder probing "
            "with them. Name the folder that does: data_dir (--data-dir DIR)."
        )
    return found


def _read_task(name, data_dir):
    spec = get_task(name)
    fits = spec.head == "classifier" and set(SPLITS) <= set(spec.files)
    if not fits or spec.fields != ("text",) or spec.targets != ("label",):
        raise ValueError(
            f"Task {name!r} is none to probe with: expected a classifier's task of "
            "single texts with the splits train, validation and test. Received: head "
            f"{spec.head!r}, fields {', '.join(spec.fields)}, splits "
            f"{', '.join(spec.files)}. SentEval's are: {', '.join(PROBING_TASKS)}."
        )
    splits = {split: read_split(spec, data_dir, split) for split in SPLITS}
    for split, examples in splits.items():
        if examples.targets is None:
            raise ValueError(
                f"The {split} split of task {name!r} has no labels to score on."
            )
    if spec.labels_of_train:
        spec, train, others = name_labels(
            spec, splits["train"], {key: splits[key] for key in SPLITS[1:]}
        )
        splits = {"train": train, **others}
    columns = [
        [*one.fields["text"], *map(str, one.targets["label"])]
        for one in splits.values()
    ]
    parts = [*spec.label_names, *(value for column in columns for value in column)]
    return _Task(spec, splits, texts_checksum(parts))


def _held_results(folder, config):
    """What an earlier call wrote into the folder; None for nothing of these options."""
    path = folder / RESULTS
    if not path.exists():
        return None
    try:
        held = read_json(path)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Remove it.") from error
    if not isinstance(held, dict) or held.get("kind") != KIND:
        raise FileExistsError(
            f"{folder} holds something that is not a {KIND} run, which is not "
            "replaced. Choose another output_dir (--output-dir)."
        )
    changed = config.changes(held["config"])
    if not changed:
        return held
    return _other(folder, config, f"with other options: {changed}")


def _other(folder, config, what):
    """Refuses results that are not of this run, or forgets them with `overwrite`."""
    if not config.overwrite:
        raise ValueError(
            f"{folder} holds a run {what}. Repeat them to add to it, pass "
            "overwrite=True (--overwrite) to start anew, or choose another output_dir "
            "(--output-dir)."
        )


def _encoder_and_tokenizer(config, model):
    """The encoder that is probed, and how its texts are tokenized."""
    if model is None:
        model = _named_model(config)
    need_preprocessor(model.preprocessor)
    return getattr(model, "encoder", model), model.preprocessor.tokenizer


def _named_model(config):
    if config.model not in list_models():
        for name in ("weights", "vocabulary"):
            if getattr(config, name) is not None:
                raise ValueError(
                    f"{config.model} has {name} of its own, or is no name of the zoo "
                    f"(`recbert list`). Leave {name} (--{name}) out."
                )
        return keras_recbert.load(config.model)
    if config.weights is not None:
        encoder = keras_recbert.build(config.model, weights=config.weights)
        print(encoder.weights_report, flush=True)
        return encoder
    if config.vocabulary is None:
        raise ValueError(
            f"{config.model} is a name, and probing needs an encoder that reads texts. "
            "Give weights (--weights FOLDER); or, for the baseline of random weights, "
            "a vocabulary (--vocabulary FILE)."
        )
    vocabulary = load_vocabulary(config.vocabulary)
    encoder = keras_recbert.build(config.model, vocabulary_size=len(vocabulary))
    encoder.preprocessor = TextPreprocessor(
        get_tokenizer(encoder.tokenizer)(vocabulary, config.lowercase),
        max_sequence_length=encoder.max_sequence_length,
    )
    return encoder


def _held_of(held, config, features, tasks, folder):
    """The results to add to, those of this encoder, texts and lengths of rows."""
    if held is None:
        return None
    for name, found in held["tasks"].items():
        # Earlier versions read all tasks in rows of one length.
        found.setdefault("features_sha256", held.get("features_sha256"))
        length = features.length_of(found["features_sha256"])
        if length is None:
            return _other(folder, config, "of an encoder with other weights")
        if name not in tasks:
            continue
        if found["data_sha256"] != tasks[name].checksum:
            return _other(folder, config, f"on other texts or labels of {name}")
        own = features.length(tasks[name].spec.max_sequence_length)
        if length != own:
            what = (
                f"on {name} in rows of {length} word pieces, where the task has {own}"
            )
            return _other(folder, config, what)
    return held


def _begin(held, config, encoder):
    """The results to add to: those that are there, or new ones."""
    return {
        "kind": KIND,
        "config": {
            name: value
            for name, value in dataclasses.asdict(config).items()
            if name not in FREE  # such as where things are on this machine
        },
        "encoder": encoder.name,
        "num_layers": len(encoder.blocks),
        "num_parameters": encoder.count_params(),
        "policy": encoder.policy.name,
        **versions(),
        "device": device_name(),
        "tasks": {} if held is None else held["tasks"],
    }


def _probe_task(task, layers, features, results, config, folder):
    """Probes the layers that are not done yet."""
    name = task.spec.name
    length = task.spec.max_sequence_length
    facts = {"features_sha256": features.checksum(length), **task.facts()}
    found = results["tasks"].setdefault(name, facts)
    todo = [layer for layer in layers if str(layer) not in found["layers"]]
    if not todo:
        return
    texts = [text for one in task.splits.values() for text in one.fields["text"]]
    rows = features.of(name, texts, length)
    ends = np.cumsum([len(one) for one in task.splits.values()])[:-1]
    labels = {split: one.targets["label"] for split, one in task.splits.items()}
    for layer in todo:
        start = time.perf_counter()
        parts = np.split(np.array(rows[layer]), ends)
        score = train_probe(
            dict(zip(task.splits, parts, strict=True)),
            labels,
            len(task.spec.label_names),
            config,
        )
        score["seconds"] = time.perf_counter() - start
        found["layers"][str(layer)] = score
        print(
            f"{name}, layer {layer}: {100 * score['test_accuracy']:.1f} % of test, "
            f"best epoch {score['best_epoch']} of {score['epochs']}",
            flush=True,
        )
        write_json(folder / RESULTS, results)
    _write(folder, results)


def _write(folder, results):
    """Writes results, table and picture, tasks in the order of their registration."""
    order = {name: place for place, name in enumerate(PROBING_TASKS)}
    names = sorted(results["tasks"], key=lambda name: order.get(name, len(order)))
    results["tasks"] = {name: results["tasks"][name] for name in names}
    write_json(folder / RESULTS, results)
    with new_file(folder / TABLE) as written:
        written.write_text(make_table(results), encoding="utf-8")
    save_heatmap(folder / PICTURE, results)
