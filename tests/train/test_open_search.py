"""The lines of docs/sweeps.md that search with Optuna, on a small table."""

import pytest
from docs_pages import PAGES, blocks
from own_tables import OPTIONS, write_rows
from toy_texts import reviews

import keras_recbert


@pytest.mark.slow
def test_the_lines_of_the_docs_search_and_continue(tmp_path, monkeypatch):
    optuna = pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    texts, labels = reviews(60)
    rows = [(t, ("bad", "good")[y]) for t, y in zip(texts, labels, strict=True)]
    write_rows(tmp_path / "reviews.csv", ("text", "label"), rows)
    finetune, rates = keras_recbert.finetune, []

    def small(**options):
        rates.append(options["learning_rate"])
        if len(rates) == 2:
            raise RuntimeError("the loss is NaN")
        return finetune(**{**OPTIONS, **options, "epochs": 1})

    monkeypatch.setattr(keras_recbert, "finetune", small)
    (block,) = blocks("python", PAGES["sweeps.md"])
    assert "n_trials=20" in block
    namespace = {}
    for num_trials in (3, 1):
        exec(block.replace("n_trials=20", f"n_trials={num_trials}"), namespace)
    study = namespace["study"]
    states = [trial.state for trial in study.trials]
    assert len(set(rates)) == 4
    assert states.count(optuna.trial.TrialState.COMPLETE) == 3
    assert states[1] == optuna.trial.TrialState.FAIL
    assert study.best_params["learning_rate"] in rates
    assert (tmp_path / "runs/search/trial3/results.json").is_file()
