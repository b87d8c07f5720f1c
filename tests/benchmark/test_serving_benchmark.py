"""`recbert benchmark serving`: what it measures, writes, and refuses."""

import json
import re

import pytest
from harness import randomize
from toy_texts import reviews, tiny_model

from keras_recbert.benchmark import serving, serving_report
from keras_recbert.benchmark.environments import PEERS, Peer
from keras_recbert.benchmark.load import Turn
from keras_recbert.benchmark.serving_systems import OURS, PEER, list_systems
from keras_recbert.benchmark.soak import rise_of
from keras_recbert.cli import main
from keras_recbert.cli.command_line import SUBCOMMANDS, with_config
from keras_recbert.config import ServingBenchmarkConfig

NOWHERE = Peer("Nowhere", "torch_server.py", ("no-such-thing",), ("no-such-thing",))
TEXTS, _ = reviews(12)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder with a few files that are no model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS))
    (tmp_path / "empty.txt").write_text("\n\n")
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2\na,b\n")
    (tmp_path / "odd.csv").write_text("one,two\na,b\n")
    return tmp_path


def turn(rate, p99, failed=()):
    latency = {50: p99 / 4, 95: p99 / 2, 99: p99}
    return Turn(rate, latency, int(10 * rate), dict(failed), 1.5, 0.2, 0.01)


def measured(folder):
    """Systems with figures that no machine gave."""
    ours, ours16, peer, peer16 = list_systems(["float32", "bfloat16"], folder)
    ours.turns = [turn(200, 40), turn(220, 50, {"429": 3}), turn(210, 45)]
    peer.turns = [turn(100, 80), turn(100, 100), turn(105, 90)]
    ours.together, ours.direct[32] = [0.05, 0.06, 0.055], [0.04, 0.05, 0.05]
    ours.direct[1], peer.direct[1] = [0.002, 0.003], [0.004, 0.006]
    ours.versions = {"python": "3", "tensorflow": "2", "uvloop": None}
    ours16.turns = [turn(400, 20)]
    peer16.error = "not measured: pip install torch\nin full"
    return [ours, ours16, peer, peer16]


SOAK = {
    "system": "recbert serve, float32",
    "requests_per_second": 160.0,
    "windows": [
        {
            "minute": float(minute + 1),
            "requests": 9600 if minute else 0,
            "failed": {"429": minute},
            "milliseconds": {50: 5.0, 95: 9.0, 99: 11.0} if minute else {},
            "rss_bytes": int(1e9) + minute * 10**6,
        }
        for minute in range(7)
    ],
    "memory_rise": 2e6 / 1.004e9,
}
FACTS = {
    "model": "runs/films",
    "texts": 12,
    "direct_texts": {32: 12, 1: 12},
    "together": 32,
    "clients": 32,
    "seconds": 10.0,
    "rounds": 3,
    "max_batch_size": 64,
    "batch_timeout_ms": 2.0,
    "num_batch_threads": 2,
    "cores": 2,
    "device": ["processor: one, 2 cores"],
    "agreement": [],
    "soak": SOAK,
}


# Options ----------------------------------------------------------------------------


def test_a_model_and_texts_are_enough():
    words = ["benchmark", "serving", "runs/films", "--texts", "lines.txt"]
    command, config = with_config(words)
    assert command is SUBCOMMANDS["benchmark", "serving"][0]
    assert config == ServingBenchmarkConfig("runs/films", "lines.txt")
    assert (config.clients, config.precision) == (32, ["float32", "bfloat16"])


def test_a_recipe_has_the_same_options(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("model: films\ntexts: lines.txt\nclients: 4\nsoak_minutes: 30\n")
    words = ["benchmark", "serving", "--recipe", str(recipe), "--rounds", "3"]
    expected = ServingBenchmarkConfig(
        "films", "lines.txt", clients=4, soak_minutes=30, rounds=3
    )
    assert with_config(words)[1] == expected


def test_texts_must_be_named(capsys):
    with pytest.raises(SystemExit):
        main(["benchmark", "serving", "runs/films"])
    assert "--texts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clients": 0}, "`clients` must be a whole number from 1 to 1024"),
        ({"rounds": 0}, "`rounds` must be a whole number of at least 1"),
        ({"seconds": 0}, "`seconds` must be a number above 0. Received: seconds=0"),
        ({"timeout": float("nan")}, "`timeout` must be a number above 0"),
        ({"soak_minutes": -1}, "`soak_minutes` must be a number of at least 0"),
        ({"batch_timeout_ms": 10_001}, "at least 0 and at most 10000. Received"),
        ({"precision": ["float16"]}, "`precision` must be some of float32, bfloat16"),
        ({"precision": ["float32"] * 2}, "each once. Received: float32 float32"),
        ({"precision": []}, "`precision` is empty"),
        ({"texts": ""}, "`texts` is empty"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ServingBenchmarkConfig(**{"model": "films", "texts": "lines.txt", **options})


# What is asked ----------------------------------------------------------------------


def test_texts_come_from_all_over_a_file(place):
    assert serving.read_texts("lines.txt", None, 1000) == TEXTS
    assert serving.read_texts("lines.txt", "ignored", 4) == TEXTS[::3]
    assert serving.read_texts("pairs.csv", "sentence2", 9) == ["b"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["preset", "--texts", "lines.txt"], "preset holds no model"),
        (["there", "--texts", "none.txt"], "There is no file none.txt"),
        (["there", "--texts", "empty.txt"], "empty.txt holds no text"),
        (["there", "--texts", "pairs.csv"], "in the columns sentence1, sentence2. Nam"),
        (["there", "--texts", "odd.csv"], "Name the one, or the two, that hold"),
        (["there", "--texts", "lines.txt", "--output-dir", "odd.csv"], "odd.csv is a"),
        (
            ["there", "--texts", "lines.txt", "--torch-python", "nowhere"],
            "--torch-python must name an interpreter",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused_before_any_work(
    place, argv, message, capsys, monkeypatch
):
    find = serving.find_model
    monkeypatch.setattr(
        serving, "find_model", lambda path: path if path == "there" else find(path)
    )
    before = sorted(place.rglob("*"))
    assert main(["benchmark", "serving", *argv]) == 2
    assert message in capsys.readouterr().err
    assert sorted(place.rglob("*")) == before


# What is written --------------------------------------------------------------------


def test_ratios_are_those_of_the_same_precision_round_by_round(tmp_path):
    systems = measured(tmp_path)
    float32, bfloat16 = serving_report.ratios_of(systems)
    assert float32["precision"] == "float32" and bfloat16 == {"precision": "bfloat16"}
    expected = {"median": 2.0, "least": 2.0, "most": 2.2}
    assert float32["requests_per_second"] == pytest.approx(expected)
    assert float32["p99"] == pytest.approx({"median": 0.5, "least": 0.5, "most": 0.5})
    single = {"median": 2.0, "least": 2.0, "most": 2.0}
    assert float32["direct_single"] == pytest.approx(single)


def test_report_has_tables_json_and_picture(tmp_path):
    systems = measured(tmp_path / "models")
    shown = serving_report.save_report(tmp_path, FACTS, systems)
    page = (tmp_path / "serving.md").read_text()
    assert page in shown
    for line in (
        "| recbert serve, float32 | 210.0 (200.0–220.0) | 11.2 (10.0–12.5) "
        "| 22.5 (20.0–25.0) | 45.0 (40.0–50.0) | 3 of 6303 | 1.50 | 0.20 |",
        "- ours over torch, float32: requests a second 2.00 (2.00–2.20); p50 0.50",
        "| SavedModel, float32 | 55.00 (50.00–60.00) | 50.00 (40.00–50.00) "
        "| 20.0 (10.0–25.0) |",
        "| Hugging Face tokenizer, torch, float32 | 5.00 (4.00–6.00) | 200.0 |",
        "- FastAPI, torch, bfloat16: not measured: pip install torch\n",
        "| 1.0 | 0 | 0 | – | – | 1000.0 |",
        "| 7.0 | 9600 | 6 | 5.0 | 11.0 | 1006.0 |",
        "memory rose by 0.20 percent: not more than 1.",
        "- recbert serve: python 3, tensorflow 2\n",
    ):
        assert line in page
    written = json.loads((tmp_path / "serving.json").read_text())
    first = written["rows"][0]
    assert first["rounds"]["requests_per_second"] == [200, 220, 210]
    assert first["failed"] == {"429": 3} and first["requests"] == 6300
    assert first["overhead"]["median"] == pytest.approx(0.2)
    assert written["soak"]["windows"][-1]["rss_bytes"] == 1_006_000_000
    picture = (tmp_path / "serving.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 20_000


def test_memory_counts_after_five_minutes():
    assert rise_of([9, 5, 7, 8, 100, 101, 99]) == pytest.approx(0.01)
    assert rise_of([1, 1, 1, 1, 100, 90]) == pytest.approx(-0.1)
    assert rise_of([1] * 5) is None and rise_of([1] * 6 + [None]) is None


# A run ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    model = tiny_model(label_names=["bad", "good"])
    randomize(model)
    folder = tmp_path_factory.mktemp("serving") / "films"
    model.save_preset(folder)
    return folder


def run(place, preset, *options):
    few = ("--clients", "2", "--seconds", "0.3", "--rounds", "2")
    words = ["benchmark", "serving", preset, "--texts", place / "lines.txt", *few]
    return main([*map(str, words), "--output-dir", "out", *options])


@pytest.mark.slow
def test_both_servers_are_measured_under_load(place, preset, monkeypatch, capsys):
    # Threads that wait for each other in a loop crawl on a busy machine.
    monkeypatch.setattr(serving, "num_cores", lambda: 1)
    one = ("--precision", "float32", "--soak-minutes", "0.02")
    assert run(place, preset, *one) == 0
    assert (place / "out/serving.md").read_text() in capsys.readouterr().out
    names = {"serving.json", "serving.md", "serving.png"}
    assert {path.name for path in (place / "out").iterdir()} == names
    written = json.loads((place / "out/serving.json").read_text())
    assert [(row["kind"], row["error"]) for row in written["rows"]] == [
        (OURS, ""),
        (PEER, ""),
    ]
    for row in written["rows"]:
        assert row["requests"] > 10 and row["failed"] == {}
        assert 0 < row["p50_ms"]["least"] <= row["p99_ms"]["most"]
        assert len(row["rounds"]["direct_single_ms"]) == 2
        assert min(row["rounds"]["direct_single_ms"]) > 0
        assert {"uvicorn", "python"} <= row["versions"].keys()
    ours = written["rows"][0]
    assert ours["http_batch_ms"]["median"] > ours["direct_batch_ms"]["median"] > 0
    (agreement,) = written["agreement"]
    assert agreement["texts"] == 12 and agreement["largest_difference"] < 1e-4
    (ratio,) = written["ratios"]
    assert ratio["requests_per_second"]["median"] > 0
    (window,) = written["soak"]["windows"]
    assert window["failed"] == {} and window["requests"] > 0
    assert window["rss_bytes"] > 1e7 and written["soak"]["memory_rise"] is None


@pytest.mark.slow
def test_without_the_peer_ours_is_measured(place, preset, monkeypatch, capsys):
    monkeypatch.setattr(serving, "num_cores", lambda: 1)
    monkeypatch.setitem(PEERS, "torch_server", NOWHERE)
    assert run(place, preset, "--precision", "bfloat16") == 0
    assert "not measured: pip install" in (place / "out/serving.md").read_text()
    ours, peer = json.loads((place / "out/serving.json").read_text())["rows"]
    assert ours["requests"] > 10 and peer["requests"] == 0
    assert "Nowhere is not installed" in capsys.readouterr().out


@pytest.mark.slow
def test_a_soak_that_is_stopped_leaves_what_came_before(place, preset, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, "num_cores", lambda: 1)
    monkeypatch.setitem(PEERS, "torch_server", NOWHERE)
    monkeypatch.setattr(serving, "soak", stop)
    assert run(place, preset, "--precision", "float32", "--soak-minutes", "60") == 130
    written = json.loads((place / "out/serving.json").read_text())
    assert written["rows"][0]["requests"] > 10 and written["soak"] is None


@pytest.mark.slow
def test_a_model_that_is_no_classifier_is_refused(place, capsys):
    tiny_model(task="regressor").save_preset("scores")
    assert run(place, "scores") == 2
    error = capsys.readouterr().err
    assert "must be a classifier of one text. Received: scores, regressor." in error
    assert not list((place / "out").iterdir())
