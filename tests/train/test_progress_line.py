import pytest

from keras_recbert.train.progress_line import ProgressLine

SCORES = (
    "loss",
    "masked_lm_accuracy",
    "masked_lm_cross_entropy",
    "next_sentence_accuracy",
    "next_sentence_loss",
    "seconds",
    "tokens_per_second",
    "seconds_per_step",
)


def logs_of(*corpora, objectives=("masked_lm", "next_sentence")):
    logs = dict.fromkeys(SCORES, 1234.5)
    for corpus in corpora:
        logs[f"val_{corpus}_loss"] = 5.25
        for objective in objectives:
            for score in ("accuracy", "cross_entropy"):
                logs[f"val_{corpus}_{objective}_{score}"] = 5.25
            if objective.endswith("_lm"):
                logs[f"val_{corpus}_{objective}_perplexity"] = 190.5
    return logs


def printed_by(line, logs, verbose, capsys):
    line.set_params({"verbose": verbose, "epochs": 2, "steps": 2})
    line.on_train_begin()
    for epoch in range(2):
        line.on_epoch_begin(epoch)
        for batch in range(2):
            line.on_train_batch_end(batch, {name: logs[name] for name in SCORES})
        line.on_epoch_end(epoch, dict(logs))
    return capsys.readouterr().out


def test_lines_are_short_and_name_the_file_of_all_scores_once(capsys):
    logs = logs_of("books", "wiki")
    out = printed_by(
        ProgressLine(("books", "wiki"), "run/history.csv", 4, 2), logs, 2, capsys
    )
    lines = [line for line in out.splitlines() if line.startswith("2/2")]
    assert len(lines) == 2
    for line in lines:
        assert line.partition("step - ")[2] == (
            "loss: 1234.5000 - tokens_per_second: 1234.5000 - "
            "val_books_masked_lm_perplexity: 190.5000 - "
            "val_wiki_masked_lm_perplexity: 190.5000"
        )
    assert out.count("All scores are in run/history.csv.\n") == 1


def test_a_corpus_without_a_perplexity_shows_its_loss(capsys):
    logs = logs_of("a", "a_b", objectives=("next_sentence",))
    out = printed_by(ProgressLine(("a", "a_b"), "history.csv", 4, 2), logs, 2, capsys)
    assert "val_a_loss: 5.2500 - val_a_b_loss: 5.2500\n" in out
    assert "accuracy" not in out


@pytest.mark.parametrize("verbose", [0, 1])
def test_it_follows_the_verbosity_of_fit(capsys, verbose):
    out = printed_by(ProgressLine((), "history.csv", 4, 2), logs_of(), verbose, capsys)
    assert ("loss" in out) == bool(verbose)
    assert "seconds_per_step" not in out
    assert ("history.csv" in out) == bool(verbose)


def test_an_epoch_is_called_what_it_is(capsys):
    line = ProgressLine((), "history.csv", 2000, 1000)
    lines = printed_by(line, logs_of(), 2, capsys).splitlines()
    assert lines[0] == "Steps 1 to 1,000 of 2,000 (checkpoint interval 1 of 2)"
    assert "Steps 1,001 to 2,000 of 2,000 (checkpoint interval 2 of 2)" in lines
    assert not any("Epoch" in line for line in lines)
    line = ProgressLine((), "history.csv", 2000, 1000, accumulation_steps=4)
    out = printed_by(line, logs_of(), 1, capsys)
    assert "of 2,000, 4 batches each (checkpoint interval 1 of 2)" in out
