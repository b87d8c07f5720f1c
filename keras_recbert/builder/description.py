"""What an encoder is, told without filling its weights."""

import os
from concurrent.futures import ThreadPoolExecutor

from keras_recbert.builder.encoder import complete_arguments, encoder_class
from keras_recbert.builder.model import build
from keras_recbert.builder.saved import load
from keras_recbert.core.names import check_arguments
from keras_recbert.keras_backend import require_tensorflow
from keras_recbert.models.registry import get_card, list_models


def count_parameters(name, **overrides):
    """Number of parameters of an encoder, counted without filling its weights.

    The model is built for real, but its variables get shapes only: counting
    `trans_blstm_large` needs no 3 GB.

    Args:
        name: str. One of `keras_recbert.list_models()`.
        **overrides: as for `build`.

    Returns:
        int.
    """
    require_tensorflow()
    return _unfilled(lambda: build(name, **overrides).count_params())


def explain(model, **overrides):
    """Says what each kind of layer of an encoder runs on this machine, and why.

    Args:
        model: str or path. A name of the zoo, or what `load` takes. Of a name, and of
            anything but a `.keras` file, no weights are filled.
        **overrides: arguments of the encoder to change, such as
            `implementation="loop"`.

    Returns:
        `keras_recbert.models.explain.Explanation`; `print` it.

    Raises:
        ValueError, FileNotFoundError: as `build` and `load`.
    """
    require_tensorflow()
    from keras_recbert.models.explain import explain as explain_encoder

    cls, arguments = _encoder_and_arguments(model, overrides)
    return _unfilled(lambda: explain_encoder(encoder_class(cls)(**arguments)))


def draw(*models):
    """Draws the block of encoders, from the graph of a call: what feeds what.

    Args:
        *models: str or path. Each a name of the zoo, or what `load` takes; of each the
            first block, with random weights.

    Returns:
        `keras_recbert.models.block_picture.Picture`, a str of SVG, which a notebook
        shows; a layer with a recurrence is in colour.

    Raises:
        ValueError: if there is no model, or one has no blocks.
        ValueError, FileNotFoundError: as `build` and `load`.
    """
    require_tensorflow()
    from keras_recbert.models.block_graph import block_graph
    from keras_recbert.models.block_picture import draw_blocks

    if not models:
        raise ValueError('Name a model or more, such as draw("swish_base").')
    graphs = {}
    for model in models:
        cls, arguments = _encoder_and_arguments(model, {})
        less = {"num_layers": 1, "vocabulary_size": 32}
        less = {name: size for name, size in less.items() if name in arguments}
        encoder = encoder_class(cls)(**{**arguments, **less})
        graph = block_graph(encoder) if getattr(encoder, "blocks", None) else ()
        if len(graph) < 2:
            raise ValueError(
                f"{model} has no blocks of several layers to draw: its encoder is a "
                f"{cls}. Draw one such as bert_base, swish_base or trans_blstm_base."
            )
        graphs[str(model)] = graph
    return draw_blocks(graphs)


def encoder_arguments(model, **overrides):
    """Arguments of the encoder of anything that has one.

    Args:
        model, overrides: as for `explain`.

    Returns:
        dict, for the class of the encoder.
    """
    return _encoder_and_arguments(model, overrides)[1]


def random_encoder(model, **overrides):
    """The encoder of anything that has one, with random weights.

    Args:
        model, overrides: as for `explain`.

    Returns:
        `keras_recbert.models.encoder.Encoder`.
    """
    cls, arguments = _encoder_and_arguments(model, overrides)
    return encoder_class(cls)(**arguments)


def _encoder_and_arguments(model, overrides):
    """Name of the class of an encoder, and its arguments."""
    from keras_recbert.convert.hub_folder import local_folder

    model = local_folder(model)
    is_file = str(model).endswith(".keras")
    if model not in list_models() and (is_file or os.path.exists(model)):
        from keras_recbert.convert.open_checkpoint import is_preset, open_checkpoint

        if is_file:
            loaded = load(model)
            encoder = getattr(loaded, "encoder", loaded)
            cls, arguments = type(encoder).__name__, encoder.get_config()
        elif is_preset(model):
            from keras_recbert.convert.preset import read_preset

            preset = read_preset(model)
            cls, arguments = preset.encoder_class, preset.encoder_arguments
        else:
            cls = "RecBertEncoder"
            sizes = {"block": "transformer", **open_checkpoint(model).sizes}
            arguments = {"name": "bert", **sizes}
        valid = encoder_class(cls).arguments(arguments)
        check_arguments(model, overrides, (*valid, "dtype"))
        return cls, {**arguments, **overrides}
    try:
        card = get_card(model)
    except ValueError as error:
        raise ValueError(
            f"{error} There is no file or folder {model} either."
        ) from None
    return card.encoder, complete_arguments(card, overrides, None)


def _unfilled(function):
    """Calls a function that builds models whose variables get shapes only."""

    def call():
        import keras

        with keras.StatelessScope(initialize_variables=False):
            return function()

    # Keras keeps a list of the variables that were never filled and fills them when
    # the next scope of this kind ends, here or in Keras itself. The list is one of
    # each thread, so in a thread of its own it goes when the thread does.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(call).result()
