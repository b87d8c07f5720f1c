import dataclasses
import inspect
import pathlib
import shlex

import pytest

import keras_recbert
from keras_recbert.builder.encoder import encoder_class
from keras_recbert.config import (
    FineTuningConfig,
    PretrainingConfig,
    read_recipe,
    recipe_class,
)
from keras_recbert.config.fine_tuning import CONCATENATIONS, POOLINGS
from keras_recbert.data.task_spec import get_task
from keras_recbert.objectives import read_objectives
from keras_recbert.train.glue_average import TASKS

ROOT = pathlib.Path(__file__).parents[2]
RECIPES = sorted((ROOT / "configs" / "recipes").rglob("*.yaml"))
PRETRAINING = sorted((ROOT / "configs" / "pretraining").rglob("*.yaml"))
COMPARED = [path for path in PRETRAINING if path.parent.name == "pretraining"]


TINY = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2}


def test_there_are_recipes():
    assert len(RECIPES) >= 3


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_parse_and_build(eager_steps, path):
    config = read_recipe(path, recipe_class(path))
    several = isinstance(config.task, list)
    tasks = list(map(get_task, config.task if several else [config.task]))
    task, head, arguments = tasks[-1], tasks[-1].head, tasks[-1].head_arguments
    sizes = dict(config.overrides)
    if several:
        units = sizes.pop("relu_units", None)
        own = {"relu_units": units}
        head = {n.name: {"task": n.head, **n.head_arguments, **own} for n in tasks}
        arguments = {}
    encoder = encoder_class(keras_recbert.get_card(config.model).encoder)
    sizes |= getattr(encoder, "test_sizes", None) or TINY
    model = keras_recbert.build(
        config.model,
        task=head,
        vocabulary=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"],
        dropout=config.dropout,
        **{} if config.pooling is None else {"pooling": config.pooling},
        **arguments,
        **sizes,
    )
    lists = ("words", "choices")
    x = [[["a", "a a"]] if field in lists else ["a a"] for field in task.fields]
    predicted = model.predict(x[0] if len(x) == 1 else tuple(x), verbose=0)
    if isinstance(predicted, dict):
        predicted = next(iter(predicted.values()))
    assert len(predicted) == 1


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_open_with_the_command_that_runs_them(path):
    first = path.read_text().splitlines()[0]
    assert first.startswith("# ")
    words = shlex.split(first[2:])
    command = recipe_class(path).command
    assert words[:4] == ["recbert", command, "--recipe", str(path.relative_to(ROOT))]
    data = ["--data-dir", "DIR"]
    if command == "distill":
        data += ["--teacher", "TEACHER"]
    starts = [[*data, "--weights", name] for name in ("MINILM", "BERT", "PRESET")]
    starts += [[*data, "--vectors", "MINILM"]]
    unlabelled = ["--unlabelled", "FILE"]
    if "FIRST" in words:  # several teachers
        data[-1:] = ["FIRST", "SECOND", "THIRD"]
        starts = [[*data, "--weights", "MINILM", *unlabelled]]
    assert words[4:] in ([], data, *starts, [*data, *unlabelled])


def test_recipes_of_glue_have_the_protocol_of_bert():
    """Devlin et al. 2018, section 4.1.1."""
    recipes = [read_recipe(p) for p in RECIPES if p.parent.name == "glue"]
    assert sorted(recipe.task for recipe in recipes) == sorted(TASKS)
    for recipe in recipes:
        assert (recipe.batch_size, recipe.epochs, recipe.dropout) == (32, 3, 0.1)
        assert (recipe.learning_rate, recipe.pooling) == (5e-5, "first")


@pytest.mark.parametrize("path", PRETRAINING, ids=lambda path: path.stem)
def test_pretraining_recipes_parse_and_build(path):
    config = read_recipe(path, PretrainingConfig)
    objectives = read_objectives(config.objectives)
    layers = [getattr(objectives, name).layer or 3 for name in objectives.names()]
    num_layers = max(layers)
    sizes = {"num_layers": num_layers, "hidden_dim": 16}
    if config.model != "blstm_base":
        sizes["num_heads"] = 2
    pretrainer = keras_recbert.build(
        config.model,
        task="pretrainer",
        objectives=objectives,
        vocabulary=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"],
        **sizes,
    )
    assert pretrainer.encoder.get_config()["num_layers"] == num_layers


@pytest.mark.parametrize("path", PRETRAINING, ids=lambda path: path.stem)
def test_pretraining_recipes_open_with_the_command_that_runs_them(path):
    first = path.read_text().splitlines()[0]
    words = shlex.split(first.removeprefix("# "))
    command = ["recbert", "pretrain", "--recipe", str(path.relative_to(ROOT))]
    assert words[:6] == [*command, "--corpus", words[5]]
    if path.parent.name == "started":
        assert words[-2:] == ["--weights", "MINILM"]
        words = words[:-2]
    assert words[6:] in ([], ["--validation", "wikitext", "WIKITEXT"])


@pytest.mark.parametrize(("is_hierarchical", "number"), [(False, 7), (True, 9)])
def test_compared_recipes_differ_only_in_what_is_compared(is_hierarchical, number):
    kept = []
    for path in COMPARED:
        if path.stem.startswith("hierarchical") == is_hierarchical:
            values = dataclasses.asdict(read_recipe(path, PretrainingConfig))
            # The one compares encoders, the other objectives, of the same sizes.
            compared = ("objectives",) if is_hierarchical else ("model", "overrides")
            kept.append({k: v for k, v in values.items() if k not in compared})
    assert len(kept) == number
    assert all(values == kept[0] for values in kept)


@pytest.fixture
def recipe(tmp_path):
    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return path

    return write


def test_a_recipe_sets_what_it_names(recipe):
    config = read_recipe(
        recipe(
            "model: bert_tiny\nlearning_rate: 1\nlimit: null\nexport: false\n"
            "lowercase: false\nfreeze: 2\nlayerwise_decay: 1\n"
            "overrides: {num_layers: 1}\nmeasured: {validation_accuracy: 0.5}\n"
        )
    )
    expected = FineTuningConfig(
        model="bert_tiny",
        learning_rate=1,
        export=False,
        lowercase=False,
        freeze=2,
        layerwise_decay=1,
        overrides={"num_layers": 1},
    )
    assert config == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch: 3", "mine.yaml: unknown key 'epoch'. Did you mean 'epochs'"),
        ("zzz: 3", "mine.yaml: unknown key 'zzz'. Valid: model, task, data_dir"),
        (
            "learning_rate: 3e-4",
            r"mine.yaml: `learning_rate` must be of type float \| None. "
            "Received: '3e-4' of type str. YAML reads 3.0e-4",
        ),
        ("epochs: 2.5", "mine.yaml: `epochs` must be of type int. Received: 2.5"),
        ("epochs: true", "mine.yaml: `epochs` must be of type int. Received: True"),
        ("epochs: null", "mine.yaml: `epochs` must be of type int. Received: None"),
        ("tfds: 1", "mine.yaml: `tfds` must be of type bool. Received: 1 of type int"),
        ("limit: many", r"mine.yaml: `limit` must be of type int \| None.*'many'"),
        ("freeze: true", r"mine.yaml: `freeze` must be of type int \| str \| None"),
        ("lowercase: 1", r"mine.yaml: `lowercase` must be of type bool \| None"),
        ("overrides: 3", "mine.yaml: `overrides` must be of type dict"),
        ("overrides: {3: 4}", "mine.yaml: `overrides`"),
        ("data_dir: a\ntfds: true", "mine.yaml: .*both data_dir='a' and tfds=True"),
        ("dropout: 1.0", r"mine.yaml: `dropout` must be in \[0, 1\). Rec.*dropout=1.0"),
        ("- model", "mine.yaml: a recipe is a mapping"),
        ("", "mine.yaml: a recipe is a mapping"),
        ("model: [a", "mine.yaml: not valid YAML.*line 1"),
    ],
)
def test_a_wrong_recipe_is_told_by_file_and_key(recipe, text, message):
    with pytest.raises(ValueError, match=message):
        read_recipe(recipe(text))


def aliases(depth, key):
    """YAML of a few hundred bytes that stands for `9 ** depth` values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, depth):
        names = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{names}]")
    return "\n".join([*lines, f"{key}: *a{depth - 1}"])


@pytest.mark.parametrize(
    "text, message",
    [
        (aliases(10, "epochs"), "aliases .* make more than 10,000 values"),
        ("model: &a [*a]", "aliases .* make more than 10,000 values"),
        ("model: " + "[" * 3000, "nested too deeply"),
        (f"epochs: [{'x, ' * 3000}]", "`epochs` must be of type int"),
        (aliases(3, "epochs"), "unknown key 'a0'"),
    ],
)
def test_a_recipe_that_grows_is_refused_in_short(recipe, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_recipe(recipe(text))
    assert len(str(caught.value)) < 2000


def test_aliases_may_be_used(recipe):
    path = recipe("overrides: {num_layers: &n 2, hidden_dim: *n}")
    config = read_recipe(path)
    assert config.overrides == {"num_layers": 2, "hidden_dim": 2}


def test_a_missing_recipe_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no recipe .*none.yaml"):
        read_recipe(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("epochs", 0, "at least 1"),
        ("batch_size", 0, "at least 1"),
        ("vocabulary_size", -1, "at least 1"),
        ("learning_rate", 0.0, "above 0 and finite"),
        ("learning_rate", float("nan"), "above 0 and finite"),
        ("learning_rate", float("inf"), "above 0 and finite"),
        ("warmup_fraction", 1.1, r"in \[0, 1\]"),
        ("weight_decay", -0.1, "at least 0 and finite"),
        ("weight_decay", float("inf"), "at least 0 and finite"),
        ("dropout", -0.1, r"in \[0, 1\)"),
        ("max_sequence_length", 7, "at least 8"),
        ("limit", 0, "at least 1"),
        ("checkpoint_every", 0, "at least 1"),
        ("freeze", "everything", "embeddings, encoder or a number of blocks"),
        ("freeze", -1, "embeddings, encoder or a number of blocks"),
        ("lora_rank", 0, "at least 1"),
        ("layerwise_decay", 0.0, r"in \(0, 1\]"),
        ("layerwise_decay", 1.5, r"in \(0, 1\]"),
        ("precision", "float16", "auto or float32 or bfloat16"),
        ("strategy", "multi", "auto or one_device or mirrored or tpu"),
    ],
)
def test_values_out_of_range_are_refused(key, value, rule):
    with pytest.raises(ValueError, match=f"`{key}` must be {rule}. Received: {key}="):
        FineTuningConfig(**{key: value})


@pytest.mark.parametrize("cls", [FineTuningConfig, PretrainingConfig])
@pytest.mark.parametrize(
    ("name", "option"),
    [("dropout", "dropout"), ("seed", "seed"), ("dtype", "precision")],
)
def test_overrides_do_not_beat_an_option(cls, name, option):
    with pytest.raises(
        ValueError, match=f"`{option}` is an option of its own. .*{name}"
    ):
        cls(overrides={"num_layers": 2, name: 0})


@pytest.mark.parametrize("cls", [FineTuningConfig, PretrainingConfig])
def test_every_option_is_documented(cls):
    for field in dataclasses.fields(cls):
        assert f"\n    {field.name}: " in inspect.getdoc(cls)


def test_default_folder_names_the_run():
    config = FineTuningConfig(task="rte", model="bert_tiny", seed=3)
    assert config.run_dir() == "runs/rte-bert_tiny-seed3"
    assert FineTuningConfig(output_dir="here").run_dir() == "here"


@pytest.mark.parametrize(
    ("steps", "warmup_steps", "checkpoint_every"),
    [
        (1, 0, 1),
        (10, 1, 10),
        (499, 49, 499),
        (700, 70, 700),
        (1200, 100, 600),
        (10_000, 100, 500),
        (1_000_000, 100, 500),
    ],
)
def test_warmup_and_checkpoints_follow_the_steps(steps, warmup_steps, checkpoint_every):
    config = PretrainingConfig(steps=steps).resolved()
    assert (config.warmup_steps, config.checkpoint_every) == (
        warmup_steps,
        checkpoint_every,
    )
    # Steps may change as long as nobody has looked at what follows from them.
    assert dataclasses.replace(PretrainingConfig(), steps=steps).resolved() == config
    named = PretrainingConfig(steps=steps, warmup_steps=steps, checkpoint_every=1)
    assert named.resolved() == named


def test_steps_that_nothing_divides_need_an_interval():
    with pytest.raises(ValueError, match="steps=100003, checkpoint_every=500. Try st"):
        PretrainingConfig(steps=100_003)
    PretrainingConfig(steps=100_003, checkpoint_every=1)


def test_what_is_left_open_is_that_of_the_run_that_resumes():
    stopped = dataclasses.asdict(PretrainingConfig(steps=200))
    stopped |= {"warmup_steps": 100, "checkpoint_every": 50}  # defaults once, or named
    config = PretrainingConfig(steps=200)
    assert config.changes(stopped) == ""
    resumed = config.resolved(stopped)
    assert (resumed.warmup_steps, resumed.checkpoint_every) == (100, 50)
    other = PretrainingConfig(steps=200, warmup_steps=20)
    assert other.changes(stopped) == "warmup_steps=100 (now 20)"


def test_overrides_take_what_models_take(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("overrides: {causal: true, step_size: [1, 2], num_layers: 2}")
    for cls in (FineTuningConfig, PretrainingConfig):
        overrides = read_recipe(path, cls).overrides
        assert overrides == {"causal": True, "step_size": [1, 2], "num_layers": 2}


def test_a_recipe_takes_the_poolings_of_a_task():
    from keras_recbert.heads import reading

    assert POOLINGS == reading.POOLINGS
    assert CONCATENATIONS == reading.CONCATENATIONS
