"""The page of results: from files, with published scores and what is wrong."""

import json
import pathlib
import re

import pytest

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.models.registry import get_card, list_models
from keras_recbert.train.published import METRICS, TITLES, published_score
from keras_recbert.train.results_files import find_results, read_results
from keras_recbert.train.results_page import make_results_page

ROOT = pathlib.Path(__file__).parents[2]


def run(seed, score, model="bert_minilm", recipe="rates", stage=None, **more):
    middle = f"-{stage}" if stage else ""
    return {
        "run": f"{recipe}{middle}-{model}-seed{seed}",
        "recipe": recipe,
        "point": {"learning_rate": 1e-4} if stage else {},
        **({"stage": stage} if stage else {}),
        "task": "rte",
        "task_version": 1,
        "model": model,
        "scores": {"validation_loss": 3.0, "validation_accuracy": score},
        "config": {"seed": seed, "epochs": 4, "keep_epoch": "last"},
        "seconds": 90.0 * (1 + seed),
        "device": "CPU, 3 cores",
        "versions": {
            "keras_recbert": keras_recbert.__version__,
            "keras": "3.1",
            "tensorflow": "2.2",
            "python": "3.11",
        },
        "precision": {"policy": "float32"},
        "notes": ["RTE: a note."],
        "train_examples": 2490,
        "num_parameters": 22_713_986,
        **more,
    }


@pytest.fixture
def write(tmp_path):
    def write(runs, name="some_results.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(runs if isinstance(runs, str) else json.dumps(runs))
        return path

    return write


def test_the_docs_have_the_page_of_the_files(monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert make_results_page(["configs"], "docs") == page


def test_ours_stands_beside_the_published_score(write, tmp_path):
    write("task: rte\nepochs: 4\n", "rates.yaml")
    tuned = [run(0, 0.66, stage="tuned"), run(1, 0.70, stage="tuned")]
    tried = [
        run(
            seed, 0.5, stage="tuning", run=f"rates-tuning-{rate}-bert_minilm-seed{seed}"
        )
        for seed in (0, 1)
        for rate in (1, 2, 3)
    ]
    others = [run(seed, 0.6, model="swish_minilm") for seed in (0, 1)]
    write([*tried, *tuned, *others])
    page = make_results_page([tmp_path], tmp_path / "docs")
    assert "## RTE\n\nGLUE (Wang et al. 2019), RTE.\n" in page
    assert (
        "| rates-tuned | `bert_minilm` | a part of train, of 3 | last | accuracy "
        "| 68.0 (66.0–70.0) | 68.8 | 2,490 | 0, 1 | 2 (2–3) | 1 |"
    ) in page
    assert "| rates | `swish_minilm` | not searched | last | accuracy | 60.0 " in page
    assert "| 50.0" not in page  # scores on train are no results
    assert page.count("- RTE: a note.") == 1
    smaller = [run(0, 0.66, recipe="small", num_parameters=5_000_000)]
    write(smaller, "smaller_results.json")
    page_of_smaller = make_results_page([tmp_path / "smaller_results.json"])
    assert "| accuracy | 66.0 | – | 2,490" in page_of_smaller  # not the published one
    assert "1. CPU, 3 cores; float32; keras_recbert" in page
    assert "- `bert_minilm`: Wang et al. 2020, MiniLM (arXiv:2002.10957), sec" in page
    assert "[some_results.json](../some_results.json)" in page
    assert page.endswith("## Stale and partial files\n\nNone.\n")


def test_a_mean_of_runs_names_their_seeds_and_is_no_part_of_others(write, tmp_path):
    """A seed that other recipes lack does not make them partial."""
    name = "rates-average-bert_minilm-seed3"
    mean = run(3, 0.7, run=name, averaged_seeds=[3, 4])
    write([run(0, 0.6), run(1, 0.6), mean])
    page = make_results_page([tmp_path], tmp_path / "docs")
    (row,) = (row for row in page.splitlines() if row.startswith("| rates-average |"))
    assert row.split(" | ")[8] == "3+4"
    assert "partial" not in page.partition("## Stale")[2].partition("\n")[2]


def test_a_recipe_names_published_scores(write, tmp_path):
    """In place of those of the card, which are of other runs."""
    write("task: rte\npublished: {accuracy: 64.5, source: A thesis}\n", "rates.yaml")
    write([run(0, 0.6), run(1, 0.7)])
    page = make_results_page([tmp_path], tmp_path / "docs")
    assert "| accuracy | 65.0 (60.0–70.0) | 64.5 | 2,490 |" in page
    assert page.count("- rates: A thesis\n") == 1


def test_the_recipe_that_a_table_wrote_names_published_scores(write, tmp_path):
    """A table of recipes in a folder of one's own, which its results do not name."""
    table, copies = [run(0, 0.6), run(1, 0.7)], tmp_path / "table"
    write(table, "table/results.json")
    page = make_results_page([copies])
    assert "| accuracy | 65.0 (60.0–70.0) | 68.8 |" in page
    published = "published: {accuracy: 64.5, source: A thesis}\n"
    for one in table:
        write(f"task: rte\nepochs: 3\n{published}", f"table/{one['run']}.yaml")
        write({**one, "point": {}}, f"table/{one['run']}/results.json")
    assert "(60.0–70.0) | 64.5 | 2,490 |" in make_results_page([copies])
    alone = make_results_page([copies / table[0]["run"]])
    assert "| accuracy | 60.0 | 64.5 |" in alone
    assert page.count("- rates: A thesis\n") == 0 < alone.count("- rates: A thesis\n")


def test_a_run_without_a_recipe_is_not_called_up_to_date(write, tmp_path):
    path = write([run(0, 0.6)])
    assert make_results_page([path]).endswith(
        "## Stale and partial files\n\nNone is known. Whether runs have the options of "
        "their recipes was not checked for rates: no recipe of that name was found "
        "beside the results file or in ../recipes.\n"
    )
    write("task: rte\nepochs: 4\n", "rates.yaml")
    assert make_results_page([path]).endswith("## Stale and partial files\n\nNone.\n")


def test_a_run_of_several_tasks_stands_in_the_section_of_each(write, tmp_path):
    scores = {"validation_rte_accuracy": 0.61, "validation_mrpc_f1": 0.82}
    scores |= {"validation_mean": 0.715, "validation_loss": 2.0}
    config = {"seed": 0, "task": ["rte", "mrpc"]}
    versions = {"rte": 1, "mrpc": 0}
    several = run(
        0, 0, "bert_small", task="rte+mrpc", task_version=versions, scores=scores,
        config=config,
    )  # fmt: skip
    write([several])
    recipe = tmp_path / "rates.yaml"
    recipe.write_text("task: [rte, mrpc]\npublished: {rte_accuracy: 67.9, source: T}\n")
    page = make_results_page([tmp_path], tmp_path / "docs")
    mrpc, rte = page.split("## MRPC")[1].split("## RTE")
    assert "| accuracy | 61.0 | 67.9 |" in rte and "82.0" not in rte
    assert "| f1 | 82.0 | – |" in mrpc
    assert "mean" not in page.split("## Stale")[0].split("## MRPC")[1]
    assert "version 0 of the task, which now has version 1" in page


def test_what_is_stale_or_partial_is_named(write, tmp_path):
    write("task: rte\nepochs: 5\nseed: 9\n", "rates.yaml")
    versions = {**run(0, 0)["versions"], "keras_recbert": "0.0.1"}
    path = write(
        [
            run(0, 0.6),
            run(1, 0.6, versions=versions),
            run(0, 0.6, recipe="new", task_version=7),
            run(0, 0.6, recipe="half", stage="tuning"),
            run(1, 0.6, recipe="half", stage="tuning"),
        ]
    )
    assert read_results(path).problems == [
        "stale: rates, bert_minilm: made with epochs=4, rates.yaml now has 5",
        "stale: rates, bert_minilm: made by keras_recbert 0.0.1, this is "
        f"{keras_recbert.__version__}",
        "stale: new, bert_minilm: version 7 of the task, which now has version 1",
        "partial: new, bert_minilm: seeds 0 of 0, 1",
        "partial: half, bert_minilm: options were tried, none was chosen",
    ]
    write("{", "other_results.json")
    write([{"run": "a", "task": "sst2"}], "short_results.json")
    page = make_results_page([tmp_path], tmp_path)
    assert "- [some_results.json](some_results.json): stale: rates, " in page
    assert "[other_results.json](other_results.json) is left out: is damaged:" in page
    assert re.search(r"short_results.json\) is left out: record 1: no model, sc", page)


def probes(seed, tasks, model="runs/swish/preset", config=(), **more):
    return {
        "kind": "probing",
        "config": {
            "model": model,
            "seed": seed,
            "pooling": "mean",
            "hidden_units": [128],
            "learning_rate": 1e-3,
            **dict(config),
        },
        "policy": "float32",
        "device": "CPU, 3 cores",
        **run(0, 0)["versions"],
        "tasks": {
            name: {
                "version": 1,
                "classes": 2,
                "majority": 0.5,
                "layers": {
                    str(layer): {"test_accuracy": score} for layer, score in scores
                },
            }
            for name, scores in tasks.items()
        },
        **more,
    }


def test_probes_of_several_encoders_stand_beside_each_other(write, tmp_path):
    tasks = {"tree_depth": [(0, 0.3), (2, 0.2)], "bigram_shift": [(0, 0.5), (1, 0.6)]}
    write(json.dumps(probes(0, tasks)), "swish-seed0_results.json")
    tasks = {"tree_depth": [(0, 0.4), (2, 0.6)]}
    write(json.dumps(probes(1, tasks)), "swish-seed1_results.json")
    older = probes(0, tasks, "runs/bert/preset", keras_recbert="0.0.1")
    write(json.dumps(older), "bert/results.json")
    page = make_results_page([tmp_path], tmp_path)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[0].endswith("| embeddings | block 1 | block 2 | seeds | setup |")
    assert rows[2:] == [
        "| tree depth | 2 | 50.0 | bert | mean | 128 | 40.0 |  | **60.0** | 0 | 1 |",
        "| tree depth | 2 | 50.0 | swish | mean | 128 | 35.0 (30.0–40.0) |  "
        "| **40.0 (20.0–60.0)** | 0, 1 | 2 |",
        "| bigram shift | 2 | 50.0 | swish | mean | 128 | 50.0 | **60.0** |  | 0 | 2 |",
    ]
    assert "- [results.json](bert/results.json): stale: made by keras_recb" in page
    assert "## Published scores" not in page
    write([run(0, 0.6)])
    page = make_results_page([tmp_path], tmp_path)
    assert page.index("## RTE") < page.index("## Probing") < page.index("## Setups")


def encoders_of(page):
    """Encoder and seeds of each row of the section on probing."""
    rows = page.partition("## Probing")[2].partition("## ")[0].splitlines()
    cells = [row.split(" | ") for row in rows if row.startswith("| tree depth")]
    return [(row[3], row[-2]) for row in cells]


def test_seeds_of_one_encoder_share_a_row_whatever_their_folders(write, tmp_path):
    tasks = {"tree_depth": [(0, 0.3)]}
    random = {"vocabulary": "vocab.txt", "weights": None}
    several = [
        probes(0, tasks, features_sha256="1" * 64),
        probes(1, tasks, features_sha256="1" * 64),
        probes(0, tasks, features_sha256="2" * 64),  # trained anew in one place
        probes(0, tasks, config={"learning_rate": 0.1}, features_sha256="1" * 64),
        probes(0, tasks, "bert_tiny", random, features_sha256="3" * 64),
        probes(1, tasks, "bert_tiny", random, features_sha256="4" * 64),
        probes(1, tasks, "swish_tiny", {"weights": "a/bert/"}),
        probes(0, tasks, "text_classifier", encoder="swish_tiny"),
    ]
    for number, one in enumerate(several):
        (tmp_path / f"{number}").mkdir()
        write(json.dumps(one), f"{number}/probe/results.json")
    assert encoders_of(make_results_page([tmp_path], tmp_path)) == [
        ("swish (checksum 11111111, learning rate 0.001)", "0, 1"),
        ("swish (checksum 22222222, learning rate 0.001)", "0"),
        ("swish (checksum 11111111, learning rate 0.1)", "0"),
        ("bert_tiny, random", "0, 1"),
        ("swish_tiny from bert", "1"),
        ("text_classifier of swish_tiny", "0"),
    ]


def test_what_a_probe_reads_is_told(write, tmp_path):
    tasks = {"tree_depth": [(0, 0.3)]}
    for number, told in enumerate(({}, {"standardize": False}, {"standardize": True})):
        write(json.dumps(probes(number, tasks, config=told)), f"{number}_results.json")
    page = make_results_page([tmp_path], tmp_path)
    assert encoders_of(page) == [("swish", "0, 1"), ("swish", "2")]
    assert "| swish | mean | 128 |" in page
    assert "| swish | mean, standardized | 128 |" in page


def test_a_layer_that_a_seed_scored_twice_is_refused(write, tmp_path):
    first = write(json.dumps(probes(0, {"tree_depth": [(0, 0.3)]})), "a/results.json")
    write(json.dumps(probes(0, {"tree_depth": [(1, 0.4)]})), "b/results.json")
    page = make_results_page([tmp_path], tmp_path)
    assert encoders_of(page) == [("swish", "0")] and "| 30.0 | **40.0** |" in page
    write(first.read_text(), "c/results.json")
    message = r"a.results.json and .*c.results.json hold the same probe: tree_depth, l"
    with pytest.raises(ValueError, match=message):
        make_results_page([tmp_path], tmp_path)


def test_wrong_files_are_told(write, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    good, bad = str(write([run(0, 0.6)])), str(write("[]", "b.json"))
    for arguments, message in (
        ([str(tmp_path / "none.json")], "none.json: expected a results file"),
        ([str(tmp_path / "empty")], "empty: expected a results file"),
        (
            [bad],
            "No file holds runs of fine-tuning or probes: .*b.json: expected a list",
        ),
        ([good, "--output", f"{tmp_path}/no/page.md"], "There is no folder|no folder"),
    ):
        assert main(["results", *arguments]) == 2
        assert re.search(message, capsys.readouterr().err), arguments
    assert not list(tmp_path.glob("**/*.md"))
    assert main(["results", good]) == 0
    assert capsys.readouterr().out == make_results_page([good])
    assert main(["results", good, "--output", f"{tmp_path}/page.md"]) == 0
    page = (tmp_path / "page.md").read_text()
    assert page == make_results_page([good], tmp_path)
    assert "results_notes.md" not in page
    (tmp_path / "results_notes.md").write_text("What a user did.")
    assert "[results_notes.md](results_notes.md)" in make_results_page([good], tmp_path)


def test_files_are_found_in_folders(write, tmp_path):
    paths = [write("[]", "b_results.json"), write("[]", "a/results.json")]
    write("[]", "other.json")
    assert find_results([tmp_path]) == [paths[1], paths[0]]


def test_a_table_has_the_runs_in_its_folder_and_single_runs_are_found(write, tmp_path):
    one = run(0, 0.6)
    name = one.pop("run")
    (tmp_path / "runs").mkdir()
    table = write([run(0, 0.6)], "runs/results.json")
    write(one, f"runs/{name}/results.json")
    (tmp_path / "alone").mkdir()
    alone = write(one, f"alone/{name}/results.json")
    assert find_results([tmp_path]) == [alone, table]
    assert read_results(alone).runs[0]["run"] == name


@pytest.mark.parametrize("vectors", ["learned", "a/folder"])
def test_runs_are_joined_to_one_file_without_places(write, tmp_path, vectors, capsys):
    (tmp_path / "runs").mkdir()
    kept = write([run(0, 0.6), run(1, 0.7)], "kept_results.json")
    again = run(1, 0.8)
    again["config"] |= {"data_dir": "/here", "vectors": vectors}
    name = again.pop("run")
    folder = tmp_path / "runs" / name
    write(again, f"{folder}/results.json")
    assert main(["results", str(kept), str(folder), "--output", str(kept)]) == 0
    assert "2 runs" in capsys.readouterr().out
    first, second = json.loads(kept.read_text())
    assert first == run(0, 0.6)
    del again["config"]["data_dir"]
    if vectors != "learned":
        del again["config"]["vectors"]
    assert second == {**again, "run": name}
    page = make_results_page([kept])
    assert "70.0 (60.0–80.0)" in page


def test_what_is_no_run_is_not_joined(write, tmp_path, capsys):
    bad = write({"config": {"seed": 0}, "model": "bert_tiny"}, "bad/results.json")
    output = tmp_path / "joined.json"
    assert main(["results", str(bad), "--output", str(output)]) == 2
    assert re.search("bad/results.json, record 1: no task", capsys.readouterr().err)
    kept = write(json.dumps(probes(0, {})), "bert/results.json")
    assert main(["results", str(kept), "--output", str(output)]) == 2
    assert re.search("bert/results.json: probes", capsys.readouterr().err)
    assert not output.exists()


def test_every_published_score_of_a_task_is_found():
    reached = {
        (model, score)
        for model in list_models()
        for task in TITLES
        for metric in (*METRICS, "accuracy")
        if (score := published_score(model, task, metric))
    }
    named = {
        (model, (score, "test" if " test " in name else "validation"))
        for model in list_models()
        for name, score in get_card(model).targets.items()
        if not name.startswith("GLUE")  # averages
    }
    assert named == reached
    assert published_score("bert_minilm", "rte", "accuracy") == (68.8, "validation")
    assert published_score("bert_tiny", "sst2", "accuracy") == (83.2, "test")
    assert published_score("swish_minilm", "rte", "accuracy") is None
    assert published_score("nobody", "rte", "accuracy") is None
