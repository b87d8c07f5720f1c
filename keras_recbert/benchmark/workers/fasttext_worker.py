"""fastText's classifier with its defaults, and pairs of words."""

import pathlib

from answering import serve_answers

FILE = "model.bin"
PREFIX = "__label__"


def load():
    import fasttext  # noqa: F401

    return ["fasttext-wheel"]


def fit(texts, labels, job):
    import fasttext

    folder = pathlib.Path(job["folder"])
    rows = folder / "train.txt"
    # A label ends at white space.
    names = sorted(set(labels))
    with rows.open("w", encoding="utf-8") as file:
        for text, label in zip(texts, labels, strict=True):
            file.write(f"{PREFIX}{names.index(label)} {_one_line(text)}\n")
    # In one thread: several write over each other's weights, each time otherwise.
    model = fasttext.train_supervised(str(rows), wordNgrams=2, thread=1, verbose=0)
    rows.unlink()
    model.save_model(str(folder / FILE))
    (folder / "labels.txt").write_text("\n".join(names), "utf-8")


def open_system(folder):
    import fasttext

    model = fasttext.load_model(str(folder / FILE))
    names = (folder / "labels.txt").read_text("utf-8").split("\n")

    def answer(texts):
        # Of a list: of a single text it calls NumPy as it was before version 2.
        found, _ = model.predict([_one_line(text) for text in texts])
        return [names[int(labels[0].removeprefix(PREFIX))] for labels in found]

    parameters = model.get_input_matrix().size + model.get_output_matrix().size
    return answer, parameters


def _one_line(text):
    return " ".join(text.split())


if __name__ == "__main__":
    serve_answers(load, open_system, fit)
