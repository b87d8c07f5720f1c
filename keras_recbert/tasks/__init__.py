"""Encoders with a head, a default recipe and a text front."""

import importlib

_MODULES = {"TextClassifier": "text_classifier", "TextRegressor": "text_regressor"}
__all__ = list(_MODULES)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
