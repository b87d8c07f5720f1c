"""Several pre-training recipes, several seeds each, in one table and one picture."""

import dataclasses
import functools
import hashlib
import pathlib
import statistics

import numpy as np

from keras_recbert.config import PretrainingConfig, read_recipe
from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import check_place, locked_folder, new_file
from keras_recbert.core.json_files import write_json
from keras_recbert.train.pretraining_curves import (
    save_pretraining_curves,
    training_seconds,
)
from keras_recbert.train.table_runs import (
    check_different,
    finished,
    markdown_table,
    raise_failed,
    read_result,
    refuse_other_options,
    run_each,
    spread,
)


def pretrain_table(recipes, seeds, output_dir, test=None, jobs=1, **options):
    """Runs each recipe with each seed, and writes `table.md` and `curves.png`.

    Each run is a process of its own, `recbert pretrain`, in the folder
    `RECIPE-seedSEED`. What is finished is not run again, what was stopped is
    resumed, so the same command may be stopped and run again at any time. The seeds
    take turns: all recipes with the first seed, then all with the second. Table and
    picture are written anew after each run. At the end all models are scored on the
    whole of the corpora of `test`; a run keeps these scores in its `test_scores.json`.

    Args:
        recipes, seeds, output_dir, test, **options: as `plan_table`.
        jobs: int. Processes at a time.

    Returns:
        Path of the table.

    Raises:
        ValueError, OSError: as `plan_table`; before anything runs.
        RuntimeError: at the end, if runs failed; says which, how, and where their
            output is.
    """
    configs = plan_table(recipes, seeds, output_dir, test, **options)
    folder, test = pathlib.Path(output_dir), test or {}
    folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(folder):
        report = functools.partial(_report, folder, configs, test)
        failed = run_each(configs, folder, report, jobs=jobs)
        for number, run in enumerate(configs if test else (), start=1):
            if run not in failed and _test_scores(folder / run, test) is None:
                names = ", ".join(test)
                print(f"[{number}/{len(configs)}] {run}, scored on {names}", flush=True)
                _score(folder / run, test)
        if len(failed) < len(configs):
            report()
    raise_failed(failed)
    return folder / "table.md"


def plan_table(recipes, seeds, output_dir, test=None, **options):
    """The runs of a table, checked.

    Args:
        recipes: paths of YAML files with the fields of `PretrainingConfig`.
        seeds: list of int.
        output_dir: folder.
        test: dict of name to a folder that `recbert prepare` wrote, with the word
            pieces of `corpus`.
        **options: fields of `PretrainingConfig` that all runs share, such as `corpus`
            and `validation`.

    Returns:
        dict of `RECIPE-seedSEED` to `PretrainingConfig`, in the order of the runs.

    Raises:
        ValueError: if a recipe is wrong, two have one name, a seed comes twice, or a
            run that is there was made with other options or another text.
        OSError: if the folder cannot be written, or something cannot be read.
    """
    from keras_recbert.data.corpus import corpus_sha256, load_corpus
    from keras_recbert.train.pretraining_data import check_same_pieces

    check_installed("`recbert table`", "pretrain", "matplotlib")
    recipes = [pathlib.Path(recipe) for recipe in recipes]
    names = [recipe.stem for recipe in recipes]
    check_different(recipes=names, seeds=seeds)
    check_place(output_dir)
    folder = pathlib.Path(output_dir)
    shared = [
        dataclasses.replace(read_recipe(recipe, PretrainingConfig), **options)
        for recipe in recipes
    ]
    if not all(config.corpus for config in shared):
        raise ValueError(
            "Name the corpus: corpus (--corpus DIR), a folder that `recbert prepare` "
            "wrote."
        )
    configs = {
        f"{name}-seed{seed}": dataclasses.replace(
            config, seed=seed, output_dir=str(folder / f"{name}-seed{seed}")
        )
        for seed in seeds
        for name, config in zip(names, shared, strict=True)
    }
    checksums = {
        path: corpus_sha256(path)
        for config in shared
        for path in (config.corpus, *config.validation.values())
    }
    for run, results in finished(configs, folder).items():
        config = configs[run]
        now = {
            "corpus": checksums[config.corpus],
            "validation": {
                name: checksums[path] for name, path in config.validation.items()
            },
        }
        if "checksums" not in results:
            raise ValueError(
                f"{folder / run} holds a run of an older version of keras_recbert. "
                "Remove it to run it anew, or choose another output_dir."
            )
        if results["checksums"] != now:
            changed = "another text in the folders of corpus or validation"
            refuse_other_options(folder / run, changed)
    for source in {config.corpus for config in shared} if test else ():
        trained = load_corpus(source)
        for path in test.values():
            check_same_pieces(load_corpus(path), trained, source)
    return configs


def _score(run, test):
    """Scores a finished run on whole corpora and keeps what it scored."""
    import keras

    from keras_recbert.train.pretraining_scores import score_pretrained

    scores = score_pretrained(run / "model.keras", test)
    keras.backend.clear_session()
    kept = {**_what_is_scored(run, test), "scores": scores}
    write_json(run / "test_scores.json", kept)


def _test_scores(run, test):
    """What `_score` kept; None if it was of another run or another text."""
    path = run / "test_scores.json"
    if not path.is_file():
        return None
    kept = read_result(path)
    scores = kept.pop("scores", None)
    return scores if kept == _what_is_scored(run, test) else None


def _what_is_scored(run, test):
    from keras_recbert.data.corpus import corpus_sha256

    results = (run / "results.json").read_bytes()
    return {
        "results_sha256": hashlib.sha256(results).hexdigest(),
        "corpora": {name: corpus_sha256(path) for name, path in test.items()},
    }


def _report(folder, configs, test):
    runs, every = {}, {}
    for run, results in finished(configs, folder).items():
        name = run.removesuffix(f"-seed{configs[run].seed}")
        results["scores"] |= _test_scores(folder / run, test) or {}
        runs.setdefault(name, []).append(results)
        every[name] = results["config"]["checkpoint_every"]
    with new_file(folder / "table.md") as written:
        written.write_text(make_table(runs), encoding="utf-8")
    histories = {
        name: [results["history"] for results in found] for name, found in runs.items()
    }
    save_pretraining_curves(folder / "curves.png", histories, every, folder.name)


def make_table(runs):
    """A Markdown table: a row a recipe, mean and range over its seeds.

    The training loss is read twice: at the end, and when the quickest run ended.

    Args:
        runs: dict of name to a list of the dicts in `results.json`, one a seed.

    Returns:
        str.
    """
    # By scores that all have, first; the order is that of the first run.
    scores = list(
        dict.fromkeys(
            key
            for found in runs.values()
            for key in found[0]["scores"]
            if key.endswith(("_perplexity", "_accuracy"))
        )
    )
    times = {
        name: [training_seconds(results["history"]) for results in found]
        for name, found in runs.items()
    }
    shortest = min((one[-1] for found in times.values() for one in found), default=0)
    header = ["recipe", "encoder parameters", "s/step", "training loss"]
    header.append(f"after {shortest / 60:.1f} minutes")
    header += [key.removeprefix("val_").replace("_", " ") for key in scores]
    rows = [[*header, "seeds"]]
    for name, found in runs.items():
        cells = [
            f"`{name}`",
            f"{found[0]['num_parameters']:,}",
            f"{statistics.median(r['seconds_per_step'] for r in found):.3f}",
            spread([r["history"]["loss"][-1] for r in found], 3),
            spread(
                [
                    np.interp(shortest, seconds, r["history"]["loss"])
                    for seconds, r in zip(times[name], found, strict=True)
                ],
                3,
            ),
        ]
        for key in scores:
            values = [r["scores"][key] for r in found if key in r["scores"]]
            is_percent = key.endswith("_accuracy")
            cells.append(
                spread([100 * v if is_percent else v for v in values], 1)
                if values
                else "–"
            )
        rows.append([*cells, ", ".join(str(r["config"]["seed"]) for r in found)])
    return markdown_table(rows)
