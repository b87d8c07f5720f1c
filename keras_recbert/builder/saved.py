"""From a file or folder to a model, and back."""

from keras_recbert.builder.encoder import (
    encoder_class,
    make_preprocessor,
    started_from,
)
from keras_recbert.keras_backend import require_tensorflow


def load(path):
    """Loads a model that was saved, or a BERT of another tool.

    Args:
        path: str or path. A folder written by `save_preset`; a file `model.keras`;
            either on a hub, as `"hf://user/name"`;
            or a BERT that `build(weights=...)` reads, which gives the plain encoder
            in the sizes of the checkpoint, and of a `BertForSequenceClassification`
            the classifier or regressor.

    Returns:
        The model that was saved: `RecBertEncoder`, `TextClassifier`,
        `TextRegressor`, `TextModel`, or of a `.keras` file also `Pretrainer`. Of a
        BERT, a `RecBertEncoder` with `weights_report`; or a task model with its
        labels, whose `encoder` has the report.

    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ValueError: if a file is damaged, or is not what its card says; naming file
            and tensor.
    """
    require_tensorflow()
    from keras_recbert.convert.hub_folder import local_folder
    from keras_recbert.convert.open_checkpoint import is_preset, open_checkpoint

    path = local_folder(path)
    if str(path).endswith(".keras"):
        from keras_recbert.convert.load_keras import load_model

        return _trained(load_model(path))
    if is_preset(path):
        from keras_recbert.convert.preset import load_preset

        return _trained(load_preset(path, _classes()))
    from keras_recbert.convert.warm_start import load_weights

    checkpoint = open_checkpoint(path)
    encoder = encoder_class("RecBertEncoder")(**checkpoint.sizes, name="bert")
    encoder.weights_report = load_weights(encoder, checkpoint)
    encoder.started_from = started_from(encoder, checkpoint)
    preprocessor = None
    if checkpoint.vocabulary is not None:
        preprocessor = make_preprocessor(checkpoint, encoder)
    if checkpoint.head is None:
        encoder.preprocessor = preprocessor
        return encoder
    from keras_recbert.convert.huggingface_head import load_head
    from keras_recbert.tasks.task_models import make_model

    arguments = {"pooling": "first"}
    if checkpoint.head.label_names is not None:
        arguments["label_names"] = checkpoint.head.label_names
    task = "regressor" if checkpoint.head.label_names is None else "classifier"
    model = make_model(task, encoder, preprocessor, arguments)
    encoder.weights_report = load_head(model.head.dense, encoder, checkpoint)
    return model


def save_preset(model, directory, metrics=None, overwrite=False, **card):
    """Writes a model into a folder that `load` reads; `model.save_preset` does it too.

    Args:
        model: `RecBertEncoder`, `TextClassifier` or `TextRegressor`.
        directory: str or path. A folder that does not exist yet.
        metrics: optional dict of JSON, such as `{"SST-2 validation accuracy": 91.4}`.
        overwrite: bool. Replaces `directory` if it is a preset and nothing else.
        **card: `source` and `license`, str: where the weights come from, and under
            what terms they may be used.

    Raises:
        FileExistsError, TypeError, ValueError: see
            `keras_recbert.convert.preset.write_preset`.
    """
    from keras_recbert.convert.preset import write_preset

    write_preset(model, directory, metrics, overwrite=overwrite, **card)


def _trained(model):
    """A model that was saved, so that a head put on it knows."""
    getattr(model, "encoder", model).started_from = "preset"
    return model


def _classes():
    """The classes a preset may name."""
    from keras_recbert.models.encoders import get_encoder, list_encoders
    from keras_recbert.tasks.text_classifier import TextClassifier
    from keras_recbert.tasks.text_model import TextModel
    from keras_recbert.tasks.text_regressor import TextRegressor

    encoders = map(get_encoder, list_encoders())
    classes = (*encoders, TextClassifier, TextModel, TextRegressor)
    return {cls.__name__: cls for cls in classes}
