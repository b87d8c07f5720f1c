"""An ONNX file with the packer of its texts: texts to labels."""

from answering import serve_answers


def load():
    import onnxruntime  # noqa: F401
    import tensorflow  # noqa: F401

    import keras_recbert.serving.onnx  # noqa: F401

    return ["keras_recbert", "keras", "tensorflow", "tensorflow-text", "onnxruntime"]


def open_system(folder):
    from keras_recbert.serving.onnx import read_onnx

    (path,) = folder.glob("*.onnx")
    predictor = read_onnx(path, num_threads=1)

    def answer(texts):
        return [label for label, _ in predictor([texts])]

    return answer, None  # the file has constants, weights among them


if __name__ == "__main__":
    serve_answers(load, open_system)
