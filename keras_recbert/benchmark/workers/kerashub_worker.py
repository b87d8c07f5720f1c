"""BERT of KerasHub."""

from worker_protocol import serve


def load():
    import keras_hub  # noqa: F401
    import tensorflow  # noqa: F401

    return ["keras-hub", "keras", "tensorflow"]


def prepare(job):
    import keras
    import keras_hub
    from keras_steps import model_step

    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(job["precision"])
    sizes = job["sizes"]
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=sizes["vocabulary_size"],
        num_layers=sizes["num_layers"],
        num_heads=sizes["num_heads"],
        hidden_dim=sizes["hidden_dim"],
        intermediate_dim=sizes["intermediate_dim"],
        dropout=sizes["dropout"],
        max_sequence_length=sizes["max_sequence_length"],
        num_segments=sizes["num_segments"],
        dtype=job["precision"],
    )
    model = keras_hub.models.BertTextClassifier(
        backbone, num_classes=2, preprocessor=None, dropout=sizes["dropout"]
    )
    names = ("token_ids", "segment_ids", "padding_mask")
    return model_step(keras, model, job, names)


if __name__ == "__main__":
    serve(load, prepare)
