"""BERTs of the TensorFlow Model Garden: TF2 checkpoints and TF Hub SavedModels.

In both, "gelu" is the tanh approximation (`official.modeling.activations.gelu`), as
in google-research/bert since 2019. The encoders here compute the exact GELU with the
same weights, as `transformers` does with these models.
"""

import difflib
import pathlib

from keras_recbert.convert.bert_config import read_bert_config
from keras_recbert.convert.checkpoint import (
    Checkpoint,
    CheckpointError,
    bert_origins,
    guess_lowercase,
)
from keras_recbert.convert.model_garden_names import (
    LOWERCASE,
    count_layers,
    find_names,
)
from keras_recbert.convert.model_garden_params import read_params
from keras_recbert.convert.tensorflow_files import open_tensors
from keras_recbert.convert.whole_vocabulary import check_whole
from keras_recbert.models.encoder_names import POOLER


def read_model_garden(prefix):
    """Opens a TF2 checkpoint of `BertEncoder`, or of a model that holds one.

    Args:
        prefix: path without `.index`, such as `folder/bert_model.ckpt` or
            `folder/ckpt-100`. The sizes are in `bert_config.json` or `params.yaml`
            beside it; without either they are those of the tensors.

    Returns:
        `Checkpoint`. Its tensors have the names of the variables.

    Raises:
        CheckpointError: if a file is damaged, or the model is no BERT.
    """
    prefix = pathlib.Path(prefix)
    folder = prefix.parent
    sizes, source = None, None
    if (folder / "bert_config.json").is_file():
        source = folder / "bert_config.json"
        sizes = read_bert_config(source)
    elif (folder / "params.yaml").is_file():
        source = folder / "params.yaml"
        sizes = read_params(source)
    return _open(
        prefix, folder, "Model Garden TF2", folder / "vocab.txt", sizes, source
    )


def read_tf_hub(folder):
    """Opens a SavedModel of `export_tfhub`. Its graph is looked at, never loaded.

    Args:
        folder: path. Holds `saved_model.pb`, `variables` and perhaps
            `assets/vocab.txt`.

    Returns:
        `Checkpoint`, with the sizes of the tensors.

    Raises:
        CheckpointError: if a file is damaged, or the model is no BERT.
    """
    folder = pathlib.Path(folder)
    _check_activation(folder / "saved_model.pb")
    return _open(
        folder / "variables" / "variables",
        folder,
        "TF Hub SavedModel",
        folder / "assets" / "vocab.txt",
    )


def _open(prefix, folder, form, vocabulary_file, sizes=None, source=None):
    from keras_recbert.text.vocabulary import load_vocabulary

    stored, read = open_tensors(prefix)
    keys, naming = find_names(prefix, stored, read)
    shapes = {name: stored[key] for name, key in keys.items()}
    found = count_layers(naming, shapes)
    if sizes is None:
        source = f"the shapes in {prefix}.index"
        sizes = _sizes_of(naming, shapes, found, prefix)
    elif found > sizes["num_layers"]:
        raise CheckpointError(
            f"{source} says {sizes['num_layers']} layers, but {prefix} holds the "
            f"tensors of {found}. They do not belong together."
        )
    vocabulary = None
    if vocabulary_file.is_file():
        vocabulary = tuple(load_vocabulary(vocabulary_file))
        check_whole(vocabulary, sizes["vocabulary_size"], vocabulary_file, str(source))
    if LOWERCASE in stored:
        lowercase = bool(read(LOWERCASE))
    else:
        lowercase = None if vocabulary is None else guess_lowercase(vocabulary)

    def read_named(name):
        try:
            return read(keys[name])
        except CheckpointError as error:  # names the key, such as `variables/17/...`
            raise CheckpointError(f"{error} It is the variable {name!r}.") from error

    return Checkpoint(
        path=str(folder),
        format=form,
        sizes=sizes,
        sizes_from=str(source),
        shapes=shapes,
        files=dict.fromkeys(shapes, str(prefix)),
        read=read_named,
        origins=bert_origins(naming, sizes, shapes, str(source)),
        optional=POOLER,
        vocabulary=vocabulary,
        lowercase=lowercase,
        note=(
            "the Model Garden trains with the tanh form of GELU; here the exact one is "
            "computed, as transformers does"
        ),
    )


def _sizes_of(naming, shapes, num_layers, prefix):
    """Sizes of the encoder, from the shapes of its tensors."""

    def shape(name, rank):
        if name not in shapes:
            nearest = difflib.get_close_matches(name, shapes, n=1)
            hint = f" It has {nearest[0]!r}: was it renamed?" if nearest else ""
            raise CheckpointError(
                f"{prefix} lacks the tensor {name!r}, which every BERT of the Model "
                f"Garden has.{hint}"
            )
        if len(shapes[name]) != rank:
            raise CheckpointError(
                f"{prefix}: the tensor {name!r} has the shape {shapes[name]}. In a "
                f"BERT of the Model Garden it has {rank} axes."
            )
        return shapes[name]

    width, num_heads, _ = shape(naming.query.format(layer=0) + naming.kernel, 3)
    return {
        "num_layers": num_layers,
        "hidden_dim": width,
        "num_heads": num_heads,
        "intermediate_dim": shape(
            naming.intermediate.format(layer=0) + naming.kernel, 2
        )[1],
        "vocabulary_size": shape(naming.token_embedding, 2)[0],
        "max_sequence_length": shape(naming.position_embedding, 2)[0],
        "num_segments": shape(naming.segment_embedding, 2)[0],
    }


def _check_activation(path):
    """Raises unless the functions of a SavedModel compute a GELU.

    The graph is read as data. It is the only place that says the activation: an
    encoder with ReLU has variables of the same names and shapes.
    """
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    try:
        model = SavedModel.FromString(path.read_bytes())
    except DecodeError as error:
        raise CheckpointError(
            f"{path} is damaged ({error}). Get the SavedModel again."
        ) from error
    for graph in model.meta_graphs:
        for function in graph.graph_def.library.function:
            ops = {node.op for node in function.node_def}
            # The exact GELU, or the x^3 in its tanh: a pooler has a tanh, no power.
            if ops & {"Erf", "Erfc"} or ops >= {"Tanh", "Pow"}:
                return
    raise CheckpointError(
        f"{path}: nothing in its graph computes a GELU, the activation of BERT. The "
        "encoders here would give other outputs than this one."
    )
