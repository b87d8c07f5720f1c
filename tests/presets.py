"""Presets that tests read and damage."""

from keras_recbert.convert.preset import load_preset
from keras_recbert.models.recbert_encoder import RecBertEncoder
from keras_recbert.tasks.text_classifier import TextClassifier
from keras_recbert.tasks.text_regressor import TextRegressor

CLASSES = {cls.__name__: cls for cls in (RecBertEncoder, TextClassifier, TextRegressor)}


def load(folder):
    return load_preset(folder, CLASSES)
