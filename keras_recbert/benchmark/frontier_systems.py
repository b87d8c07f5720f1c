"""The systems of `recbert benchmark frontier`: from raw strings to labels."""

import dataclasses
import pathlib

from keras_recbert.hub.names import is_hub_name, parse_hub_name

# Forms of a model of this zoo, as `workers/export_worker.py` knows them: what a row is
# called, what it computes in, and the worker that answers.
FORMS = {
    "float32": ("SavedModel", "float32", "labels"),
    "bfloat16": ("SavedModel, bfloat16 weights", "bfloat16", "labels"),
    "litert": ("LiteRT", "float32", "litert"),
    "litert_int8": ("LiteRT int8", "int8 weights, float32", "litert"),
    "onnx": ("ONNX Runtime", "float32", "onnx"),
    "huggingface": ("torch", "float32", "torch_classifier"),
}
PEERS = {
    "tfidf": ("TF-IDF, 1-2-grams, logistic regression", "float64"),
    "fasttext": ("fastText, 2-grams", "float32"),
    "model2vec": ("Model2Vec, 256 wide, logistic regression", "float16 vectors"),
}
STUDENT_FORMS = ("float32", "bfloat16", "litert", "litert_int8", "onnx")


@dataclasses.dataclass(eq=False)
class System:
    """A system that answers raw strings with labels, and what was measured of it.

    Attributes:
        name: str. Its row in every table.
        group: str. `"peer"`, `"student"`, `"teacher"` or `"speed only"`.
        worker: str. Which of `environments.PEERS` answers.
        folder: path. Holds all that is needed to serve it, and nothing else.
        precision: str. Of its weights.
        form: str. Of a model of this zoo, one of `FORMS`.
        source: path or str. The model, or the name of an encoder that is timed only.
        error: str. Why it was not measured, or an empty string.
        parameters: int or None.
        num_bytes: int or None. Of all files in its folder.
        accuracy: float or None. Part of the validation set with the right label.
        iterations: int. Steps in a turn.
        items: dict of the size of a batch to the texts that a step answers.
        seconds: dict of the size of a batch to the seconds of a step, of each round.
        cores: dict of the size of a batch to the processor time that its process took
            in a second, of each round.
        versions: dict of distribution to version, and of `python`.
    """

    name: str
    group: str
    worker: str
    folder: pathlib.Path
    precision: str
    form: str = ""
    source: object = None
    error: str = ""
    parameters: int | None = None
    num_bytes: int | None = None
    accuracy: float | None = None
    iterations: int = 0
    items: dict = dataclasses.field(default_factory=dict)
    seconds: dict = dataclasses.field(default_factory=dict)
    cores: dict = dataclasses.field(default_factory=dict)
    versions: dict = dataclasses.field(default_factory=dict)

    def rates(self, batch_size):
        """Texts a second of each round, sorted."""
        times = self.seconds.get(batch_size, ())
        return sorted(self.items[batch_size] / one for one in times)


def list_systems(config, models, teacher, folder):
    """All systems that were asked for, those of this zoo by their sources.

    Args:
        config: `keras_recbert.config.FrontierConfig`.
        models: dict of name to path of a preset or model.keras: the students.
        teacher: tuple of name and path of the teacher.
        folder: path. Where the folders of the systems come.

    Returns:
        List of `System`.
    """
    found = []

    def add(name, group, worker, precision, form="", source=None):
        place = folder / f"{len(found):02}"
        found.append(System(name, group, worker, place, precision, form, source))

    for key in (key for key in PEERS if key in config.peers):
        name, precision = PEERS[key]
        add(name, "peer", key, precision)
        if key == "model2vec" and config.weights is None:
            found[-1].error = "not measured: name a BERT to distil, --weights FOLDER"
    wanted = [(name, path, "student", STUDENT_FORMS) for name, path in models.items()]
    forms = ("float32", "huggingface") if "torch" in config.peers else ("float32",)
    wanted.append((*teacher, "teacher", forms))
    wanted += [(name, name, "speed only", ("float32",)) for name in config.speed_only]
    for name, source, group, forms in wanted:
        for form in forms:
            shown, precision, worker = FORMS[form]
            add(f"{name}, {shown}", group, worker, precision, form, source)
    return found


def name_models(paths, find):
    """Names of models by their folders.

    Args:
        paths: list of str.
        find: function from a path to that of a preset or model.keras.

    Returns:
        dict of name to path of the preset or file.

    Raises:
        FileNotFoundError: as `find`.
        ValueError: if two have the same name.
    """
    found = {}
    for path in paths:
        file = find(path)
        last = file.resolve()
        inside = last.name in ("preset", "model.keras")
        name = last.parent.name if inside else last.stem
        if is_hub_name(path):  # whose folder is named by the revision
            name = parse_hub_name(path).model.split("/")[1]
        if name in found:
            raise ValueError(
                f"`models` must have folders of different names. Received: {name!r} "
                f"twice, {found[name]} and {file}."
            )
        found[name] = file
    return found
