"""The command that answers requests over HTTP: serve."""

from typing import Annotated

from tyro.conf import arg

from keras_recbert.config import ServeConfig


def serve(config: Annotated[ServeConfig, arg(name="")]):
    """Serves SavedModels over HTTP, as TensorFlow Serving's REST API does.

    It loads a new version of a folder of numbered ones while it runs, and answers what
    it accepted before it stops. `--recipe FILE` takes the options from a YAML file.
    """
    from keras_recbert import server

    server.serve(config)
