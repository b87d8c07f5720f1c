"""Commands that answer over HTTP: serve, and play, a page in the browser."""

from typing import Annotated

from tyro.conf import Positional, arg

from keras_recbert.config import ServeConfig
from keras_recbert.core.answering import only_answer
from keras_recbert.core.machine import num_cores


def serve(config: Annotated[ServeConfig, arg(name="")]):
    """Serves SavedModels over HTTP, as TensorFlow Serving's REST API does.

    It loads a new version of a folder of numbered ones while it runs, and answers what
    it accepted before it stops. `--recipe FILE` takes the options from a YAML file.
    """
    only_answer(max(1, num_cores() // config.num_batch_threads))
    from keras_recbert import server

    server.serve(config)


def play(
    models: Annotated[Positional[list[str]], arg(metavar="MODEL [MODEL ...]")],
    port: int = 8501,
    open: bool = False,
):
    """Serves a page to play with models: type a text and see what each answers.

    Args:
        models: SavedModels, folders of numbered ones, or of runs of `recbert finetune`
            or `recbert distill`. Several answer side by side.
        port: Port of this machine to listen at; 0 takes a free one.
        open: Open the page in the browser.
    """
    from keras_recbert import server

    server.play(*models, port=port, open_browser=open)
