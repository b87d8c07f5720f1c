"""BERT of the TensorFlow Model Garden (`tf-models-official`), which is Keras 2."""

from worker_protocol import serve


def load():
    import tensorflow  # noqa: F401
    import tf_keras  # noqa: F401
    from official.nlp.modeling import models, networks  # noqa: F401

    return ["tf-models-official", "tf_keras", "tensorflow"]


def prepare(job):
    import tf_keras
    from keras_steps import model_step
    from official.nlp.modeling import models, networks

    tf_keras.utils.set_random_seed(0)
    tf_keras.mixed_precision.set_global_policy(job["precision"])
    sizes = job["sizes"]
    encoder = networks.BertEncoder(
        vocab_size=sizes["vocabulary_size"],
        num_layers=sizes["num_layers"],
        num_attention_heads=sizes["num_heads"],
        hidden_size=sizes["hidden_dim"],
        inner_dim=sizes["intermediate_dim"],
        output_dropout=sizes["dropout"],
        attention_dropout=sizes["dropout"],
        max_sequence_length=sizes["max_sequence_length"],
        type_vocab_size=sizes["num_segments"],
    )
    model = models.BertClassifier(encoder, num_classes=2, dropout_rate=sizes["dropout"])
    names = ("input_word_ids", "input_type_ids", "input_mask")
    return model_step(tf_keras, model, job, names)


if __name__ == "__main__":
    serve(load, prepare)
