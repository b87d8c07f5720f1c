"""Runs of one recipe, averaged into one model."""

import dataclasses
import pathlib

import numpy as np

import keras_recbert
from keras_recbert.config import DistillationConfig, FineTuningConfig
from keras_recbert.convert.hub_folder import with_revision
from keras_recbert.core.extras import check_installed
from keras_recbert.core.mappings import from_mapping
from keras_recbert.models.precision import in_precision
from keras_recbert.train.fine_tuning import load_run_data
from keras_recbert.train.run import open_run
from keras_recbert.train.run_folder import (
    PRESET,
    RESULTS,
    RunKind,
    clear_folder,
)
from keras_recbert.train.table_runs import read_result
from keras_recbert.train.training_run import FINE_TUNING, KEPT

CONFIGS = {"fine-tuning": FineTuningConfig, "distillation": DistillationConfig}
AVERAGING = RunKind(
    name="averaging",
    own_files=FINE_TUNING.own_files,
    own_folders=FINE_TUNING.own_folders,
    next_step=FINE_TUNING.next_step,
)
# In which runs that are averaged may differ.
OWN_OPTIONS = ("seed", "output_dir", "checkpoint_every", "export", "overwrite")
OWN_OPTIONS += ("transfer_set", "teacher_workers", "beam_options")


def average(runs, output_dir, export=True, overwrite=False):
    """Averages the weights of runs that differ in their seeds, and scores the mean.

    A uniform soup (Wortsman et al. 2022, arXiv:2203.05482): models that were
    fine-tuned from the same weights lie near each other, and their mean often scores
    better than each, at the cost of one. Writes the folder of a run, as
    `keras_recbert.finetune` does, but for what is of training.

    Args:
        runs: list of str or path, output folders of `recbert finetune` or
            `recbert distill`, two at least, of the same options but for the seed,
            started from the same weights.
        output_dir: str or path. Folder for what this writes.
        export: bool. Write a SavedModel, too.
        overwrite: bool. Replace what is in `output_dir` of another one.

    Returns:
        Tuple of the model and the dict in `results.json`: `scores` on the validation
        set of the runs, `averaged_seeds`, and the `seconds` of all runs together.

    Raises:
        ValueError: if there are fewer than two runs, one comes twice, or they differ in
            an option, in their data or in what they started from; names runs and
            option. Before anything is written.
        FileNotFoundError: if a folder holds no finished run, or the data is not there.
        FileExistsError, RuntimeError, OSError: as
            `keras_recbert.train.fine_tuning.fine_tune`.
    """
    check_installed("`recbert average`", "train", "sklearn", "scipy", "matplotlib")
    members = _members(runs)
    first = members[0]
    config = dataclasses.replace(
        first.config, output_dir=str(output_dir), export=export, overwrite=overwrite
    )
    with open_run(config, AVERAGING) as run:
        return _average(run, members)


@dataclasses.dataclass(frozen=True, eq=False)
class _Member:
    """A run that is averaged.

    Args:
        folder: path.
        results: dict, its `results.json`.
        config: `FineTuningConfig`.
    """

    folder: pathlib.Path
    results: dict
    config: FineTuningConfig

    @classmethod
    def of(cls, folder):
        folder = pathlib.Path(folder)
        path = folder / RESULTS
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} holds no finished run: there is no {RESULTS}. Expected the "
                "output folder of `recbert finetune` or `recbert distill`."
            )
        results = read_result(path)
        kind = results.get("kind") if isinstance(results, dict) else None
        if kind not in CONFIGS:
            raise ValueError(
                f"{path} is of {kind or 'something else'}. Only runs of "
                f"{' or '.join(CONFIGS)} are averaged."
            )
        config = from_mapping(CONFIGS[kind], results["config"], str(path))
        return cls(folder, results, config)

    def load(self, policy):
        """The trained model, in a precision."""
        return in_precision(keras_recbert.load(self.folder / PRESET), policy)


def _members(runs):
    """The runs, once they are found to be alike."""
    folders = [pathlib.Path(folder) for folder in runs]
    if len(folders) < 2 or len({folder.resolve() for folder in folders}) < len(runs):
        raise ValueError(
            "Name the folders of two runs or more, each once. Received: "
            f"{', '.join(map(str, folders)) or 'none'}."
        )
    members = [_Member.of(folder) for folder in folders]
    first = members[0]
    if first.config.weights is None:
        raise ValueError(
            f"{first.folder} started from random weights. Only runs that started from "
            "the same weights (--weights) are averaged: others have units that do not "
            "stand for each other."
        )
    own = dataclasses.asdict(first.config)
    for member in members[1:]:
        pairs = {
            name: (own.get(name), value)
            for name, value in dataclasses.asdict(member.config).items()
            if name not in OWN_OPTIONS
        }
        pairs["kind"] = (first.results["kind"], member.results["kind"])
        pairs["data"] = (first.results["checksums"], member.results["checksums"])
        for name, (there, here) in pairs.items():
            if there != here:
                what = name if name == "data" else f"{name}: {there!r} and {here!r}"
                raise ValueError(
                    f"Runs that are averaged differ in their seeds alone. "
                    f"{first.folder} and {member.folder} differ in {what}."
                )
    return members


def _average(run, members):
    config, first = run.config, members[0]
    data = load_run_data(config).limited(config.limit)
    checksums = data.checksums()
    before = first.results["checksums"]
    changed = [name for name, value in checksums.items() if before.get(name) != value]
    if changed:
        raise ValueError(
            f"The runs had other examples than there are now: {', '.join(changed)} of "
            f"{data.name}. Put the files of {first.folder} back."
        )
    run.check_texts(checksums)
    with run.strategy.scope():
        model = _mean_of([member.load(run.precision.policy) for member in members])
    validation = data.splits(run, model, None)
    next(iter(validation.values())).tune(model)
    scores = {
        f"{split}_{name}": value
        for split, examples in validation.items()
        for name, value in examples.scores(model, data.metrics).items()
    }
    with run.checkpoints.report_write_errors():
        clear_folder(run.folder, AVERAGING)
        state = {
            "step": first.results["steps"],
            "seconds": sum(member.results["seconds"] for member in members),
            "history": {},
            "checksums": checksums,
        }
        shared = ("task_version", "num_parameters", "learning_rate", "pooling")
        results = run.results(
            state,
            task=data.name,
            **{name: first.results[name] for name in (*shared, "main_score")},
            scores=scores,
            averaged_seeds=[member.config.seed for member in members],
            averaged=[_told(member) for member in members],
            **data.sizes(),
            notes=first.results["notes"],
        )
        results["scores"] |= data.final_scores(run, model)
        kept = [name for name in KEPT if name in results] + ["averaged_seeds"]
        run.write_model(model, results, kept, with_revision(config.weights))
        if config.export:
            model.export_savedmodel(run.folder / "savedmodel", overwrite=True)
        run.finish(results)
    return model, results


def _told(member):
    """What results say of a run: a dict of JSON."""
    results = member.results
    main = results["main_score"]
    return {"seed": member.config.seed, main: results["scores"][main]}


def _mean_of(models):
    """The first of the models, with the mean of all weights."""
    shapes = [[tuple(v.shape) for v in model.weights] for model in models]
    if any(one != shapes[0] for one in shapes):
        raise ValueError(
            "The runs have weights of other shapes, so their vocabularies or sizes "
            "differ: they cannot be averaged."
        )
    values = zip(*(model.get_weights() for model in models), strict=True)
    models[0].set_weights([np.mean(value, axis=0) for value in values])
    return models[0]
