"""Chooses options by scores on a part of train, never on the validation set."""

import statistics

from keras_recbert.train.fine_tuning_plan import FINAL, TUNING
from keras_recbert.train.table_runs import spread


def tuning_rows(rows, fraction):
    """The rows that options are chosen by.

    Args:
        rows: list of `Row`.
        fraction: share of the training examples to hold out.

    Raises:
        ValueError: if a recipe chooses epochs by the validation set, or leaves none to
            score the chosen options on.
    """
    found = []
    for row in rows:
        if row.config.train is not None and row.config.validation is None:
            raise ValueError(
                f"{row.recipe}: tuning needs a table to score the chosen options on, "
                "that no choice has seen: write validation into the recipe."
            )
        try:
            found.append(row.at_stage(TUNING, fraction))
        except ValueError as error:
            raise ValueError(f"{row.recipe}: {error}") from error
    return found


def chosen_rows(rows, fraction, seeds, found):
    """Of each recipe and encoder the row with the highest mean score.

    A row of which a run failed is not chosen: options that some seeds do not survive
    are no better for the others. Of equal ones, the first in the grid is.

    Args:
        rows: list of `Row`, before any stage.
        fraction: share of the training examples that was held out.
        seeds: list of int.
        found: dict of the name of a run to its results.

    Returns:
        Tuple of a list of `Row` of the stage `FINAL`, a list of sentences on how each
        was chosen, and a dict of the recipe and encoder of which no row is whole to
        what is wrong.
    """
    groups = {}
    for row, tried in zip(rows, tuning_rows(rows, fraction), strict=True):
        groups.setdefault((row.recipe, row.model), {})[tried] = row
    chosen, sentences, failed = [], [], {}
    for (recipe, model), candidates in groups.items():
        whole = {
            row: [_main_score(found[row.name(seed)]) for seed in seeds]
            for row in candidates
            if all(row.name(seed) in found for seed in seeds)
        }
        if not whole:
            failed[f"{recipe}, {model}"] = (
                "has no options with which all seeds ran, so none were chosen"
            )
            continue
        best = max(whole, key=lambda row: statistics.mean(whole[row]))
        chosen.append(candidates[best].at_stage(FINAL))
        sentences.append(_sentence(best, whole, len(candidates), found, seeds))
    return chosen, sentences, failed


def _main_score(results):
    return results["scores"][results["main_score"]]


def _sentence(best, whole, num_candidates, found, seeds):
    first = found[best.name(seeds[0])]
    metric = first["main_score"].removeprefix("validation_").replace("_", " ")
    held_out = next(iter(first["validation_examples"].values()))
    percent = [100 * value for value in whole[best]]
    left = num_candidates - len(whole)
    failed = f"; {left} more did not run with all seeds" if left else ""
    options = ", ".join(f"{name} {value}" for name, value in best.point.items())
    return (
        f"{best.recipe}, `{best.model}`: {options} of "
        f"{len(whole)} combinations{failed}, by {metric} {spread(percent, 1)} on "
        f"{held_out:,} examples held out of train, {len(seeds)} "
        f"seed{'s' if len(seeds) > 1 else ''}."
    )
