"""Google's TensorFlow 1 checkpoints: `bert_config.json`, `bert_model.ckpt.*`."""

import pathlib

from keras_recbert.convert.bert_config import read_bert_config
from keras_recbert.convert.checkpoint import (
    Checkpoint,
    Naming,
    bert_origins,
    guess_lowercase,
)
from keras_recbert.convert.tensorflow_files import open_tensors
from keras_recbert.convert.whole_vocabulary import check_whole
from keras_recbert.models.encoder_names import POOLER

_LAYER = "bert/encoder/layer_{layer}/"
NAMING = Naming(
    token_embedding="bert/embeddings/word_embeddings",
    segment_embedding="bert/embeddings/token_type_embeddings",
    position_embedding="bert/embeddings/position_embeddings",
    embedding_norm="bert/embeddings/LayerNorm",
    query=_LAYER + "attention/self/query",
    key=_LAYER + "attention/self/key",
    value=_LAYER + "attention/self/value",
    attention_output=_LAYER + "attention/output/dense",
    attention_norm=_LAYER + "attention/output/LayerNorm",
    intermediate=_LAYER + "intermediate/dense",
    output=_LAYER + "output/dense",
    output_norm=_LAYER + "output/LayerNorm",
    pooler="bert/pooler/dense",
)


def read_google_tf1(prefix):
    """Opens a checkpoint of google-research/bert.

    Args:
        prefix: path without `.index`, such as `folder/bert_model.ckpt`. Beside it
            stand `bert_config.json` and perhaps `vocab.txt`.

    Returns:
        `Checkpoint`.

    Raises:
        CheckpointError: if a file is missing or damaged, or the model is no BERT.
    """
    from keras_recbert.text.vocabulary import load_vocabulary

    prefix = pathlib.Path(prefix)
    config = prefix.parent / "bert_config.json"
    sizes = read_bert_config(config)
    shapes, read = open_tensors(prefix)
    vocabulary = None
    vocabulary_file = prefix.parent / "vocab.txt"
    if vocabulary_file.is_file():
        vocabulary = tuple(load_vocabulary(vocabulary_file))
        rows = sizes["vocabulary_size"]
        check_whole(vocabulary, rows, vocabulary_file, str(config))
    return Checkpoint(
        path=str(prefix.parent),
        format="Google TF1",
        sizes=sizes,
        sizes_from=str(config),
        shapes=shapes,
        files=dict.fromkeys(shapes, str(prefix)),
        read=read,
        origins=bert_origins(NAMING, sizes, shapes, str(config)),
        optional=POOLER,
        vocabulary=vocabulary,
        # Nothing in these archives says it but the name of the download.
        lowercase=None if vocabulary is None else guess_lowercase(vocabulary),
    )
