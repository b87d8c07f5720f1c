"""TensorFlow Datasets' own builders prepare our samples; we read what they made."""

import json
import pathlib
import shutil

import pytest

from keras_recbert.data.task_files import load_splits, load_tfds
from keras_recbert.data.task_spec import get_task, list_tasks

tfds = pytest.importorskip("tensorflow_datasets")
SAMPLES = pathlib.Path(__file__).parent / "samples"
NAMES = [
    name
    for name in list_tasks()
    if get_task(name).tfds is not None and get_task(name).tfds.as_file is not None
]


CONLL2003 = {
    "train.txt": "eng.train",
    "valid.txt": "eng.testa",
    "test.txt": "eng.testb",
}


def rows_of(examples):
    """Examples as sorted JSON; with ids, unless these are their order."""
    fields = {**examples.fields, **examples.targets}
    columns = [list(column) for column in fields.values()]
    if "words" not in fields:
        columns.append(list(examples.ids))
    return sorted(
        json.dumps(row, default=lambda number: number.tolist())
        for row in zip(*columns, strict=True)
    )


def say_what_is_impossible(folder):
    """Writes `is_impossible` for each question, which the builder needs."""
    for path in folder.glob("*-v2.0.json"):
        squad = json.loads(path.read_text("utf-8"))
        for article in squad["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    question.setdefault("is_impossible", not question["answers"])
        path.write_text(json.dumps(squad), "utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_what_tfds_prepares_reads_as_the_files(name, tmp_path, monkeypatch):
    shutil.copytree(SAMPLES / name, tmp_path / "sample")
    task = get_task(name)
    if name == "arc_challenge":  # as its archive is packed
        inner = tmp_path / "sample" / "ARC-V1-Feb2018-2" / task.folder
        shutil.copytree(tmp_path / "sample" / task.folder, inner)
    if name == "squad2":
        say_what_is_impossible(tmp_path / "sample")
    if name == "conll2003":  # as the archive of TensorFlow Datasets calls them
        for theirs, ours in CONLL2003.items():
            shutil.copy(SAMPLES / name / name / ours, tmp_path / "sample" / theirs)
    if name == "ud_ewt_pos":
        pytest.importorskip("conllu")

    def found(url):
        if isinstance(url, list):
            return [found(one) for one in url]
        (path,) = (tmp_path / "sample").rglob(pathlib.PurePosixPath(url).name)
        return str(path)

    def downloaded(self, urls):
        if isinstance(urls, dict):
            return {key: found(url) for key, url in urls.items()}
        return tfds.core.Path(tmp_path / "sample")

    monkeypatch.setattr(
        tfds.download.DownloadManager, "download_and_extract", downloaded
    )
    builder = tfds.builder(task.tfds.name, data_dir=tmp_path / "tfds")
    builder.download_and_prepare(
        download_config=tfds.download.DownloadConfig(try_download_gcs=False)
    )
    train, validation, notes = load_tfds(name, tmp_path / "tfds")
    expected, expected_validation, _ = load_splits(name, SAMPLES / name)
    assert notes == []
    assert rows_of(train) == rows_of(expected)
    assert list(validation) == list(expected_validation)
    for split, examples in validation.items():
        assert rows_of(examples) == rows_of(expected_validation[split])
