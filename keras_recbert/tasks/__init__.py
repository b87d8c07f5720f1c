"""Encoders with a head, a default recipe and a preprocessor."""

import lazy_loader

from keras_recbert.keras_backend import require_tensorflow

require_tensorflow()
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "lora_adapters": ["merge_adapters"],
        "pretrainer": ["Pretrainer"],
        "text_classifier": ["TextClassifier"],
        "text_model": ["TextModel"],
        "text_regressor": ["TextRegressor"],
    },
)
