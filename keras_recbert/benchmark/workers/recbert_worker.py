"""Layers and models of this zoo."""

from worker_protocol import serve


def load():
    import tensorflow  # noqa: F401
    import tensorflow_text  # noqa: F401

    import keras_recbert
    import keras_recbert.layers
    import keras_recbert.tasks  # noqa: F401

    return ["keras_recbert", "keras", "tensorflow"]


def prepare(job):
    import keras
    from keras_steps import layer_step, model_step

    import keras_recbert
    from keras_recbert.tasks.optimizers import AdamW

    keras.utils.set_random_seed(0)
    if job["kind"] == "layer":
        cls = getattr(keras_recbert.layers, job["name"])
        layer = cls(**job["arguments"], dtype=job["precision"])
        return layer_step(keras, layer, job)
    if job["kind"] == "export":
        return export(job)
    if job["kind"] == "export_huggingface":
        keras_recbert.load(job["teacher"]).save_huggingface(job["to"])
        return (lambda: None), {}
    if job["kind"] == "teacher":
        return teacher_step(job)
    model = keras_recbert.build(
        job["name"],
        task="classifier",
        num_classes=2,
        dtype=job["precision"],
        **job["overrides"],
    )
    names = ("token_ids", "segment_ids", "padding_mask")
    return model_step(keras, model, job, names, AdamW)


def export(job):
    """Writes the SavedModel that `savedmodel_worker` times."""
    import keras_recbert

    classes = {"num_classes": 2} if job["task"] == "classifier" else {}
    model = keras_recbert.build(
        job["name"],
        task=job["task"],
        weights=job["weights"],
        dtype=job["precision"],
        **classes,
    )
    model.export_savedmodel(job["savedmodel"])
    return (lambda: None), {}


def teacher_step(job):
    """Texts to logits, as `recbert distill` makes a transfer set."""
    import tensorflow as tf

    from keras_recbert.train.precision import Precision
    from keras_recbert.train.teacher import Teacher

    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    precision = Precision(job["precision"], "asked for")
    teacher = Teacher(job["teacher"], precision, job["batch_size"])
    columns = list(job["columns"].values())

    def step():
        return teacher.logits(columns)

    facts = {"parameters": teacher.model.count_params(), "items": len(columns[0])}
    return step, {**facts, "logits": step().tolist()}


if __name__ == "__main__":
    serve(load, prepare)
