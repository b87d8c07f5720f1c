"""Hugging Face folders: `config.json`, safetensors, vocabulary."""

import itertools
import pathlib
import reprlib
import warnings

from keras_recbert.convert.bert_config import SIZES, read_bert_config, read_object
from keras_recbert.convert.checkpoint import (
    Checkpoint,
    CheckpointError,
    Naming,
    bert_origins,
    guess_lowercase,
)
from keras_recbert.convert.huggingface_head import describe_head, read_head
from keras_recbert.convert.safetensors_files import (
    read_tensor,
    tensor_shapes,
    write_tensors,
)
from keras_recbert.convert.whole_vocabulary import check_equal, check_whole
from keras_recbert.core.folders import write_folder
from keras_recbert.core.json_files import write_json
from keras_recbert.models.encoder_names import POOLER

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# What `write_huggingface` writes.
FILES = ("config.json", WEIGHTS, "vocab.txt", "tokenizer_config.json")


def naming(prefix="", gamma=".weight", beta=".bias"):
    """Names of `BertModel`; `prefix` is `"bert."` in models with a head."""
    layer = prefix + "encoder.layer.{layer}."
    return Naming(
        token_embedding=prefix + "embeddings.word_embeddings.weight",
        segment_embedding=prefix + "embeddings.token_type_embeddings.weight",
        position_embedding=prefix + "embeddings.position_embeddings.weight",
        embedding_norm=prefix + "embeddings.LayerNorm",
        query=layer + "attention.self.query",
        key=layer + "attention.self.key",
        value=layer + "attention.self.value",
        attention_output=layer + "attention.output.dense",
        attention_norm=layer + "attention.output.LayerNorm",
        intermediate=layer + "intermediate.dense",
        output=layer + "output.dense",
        output_norm=layer + "output.LayerNorm",
        pooler=prefix + "pooler.dense",
        kernel=".weight",
        bias=".bias",
        gamma=gamma,
        beta=beta,
        transposed=True,
    )


def read_huggingface(folder):
    """Opens a Hugging Face folder of a BERT.

    Args:
        folder: path. Holds `config.json` and `model.safetensors`, or the index of
            several such files, and perhaps `vocab.txt` or `tokenizer.json`.

    Returns:
        `Checkpoint`.

    Raises:
        CheckpointError: if a file is missing or damaged, or the model is no BERT.
    """
    folder = pathlib.Path(folder)
    sizes = read_bert_config(folder / "config.json")
    files, shapes = _tensor_files(folder)
    prefix = "bert." if any(name.startswith("bert.") for name in files) else ""
    # Checkpoints converted in 2018 and 2019 kept TensorFlow's names here.
    old = f"{prefix}embeddings.LayerNorm.gamma" in files
    names = naming(prefix, ".gamma", ".beta") if old else naming(prefix)
    return Checkpoint(
        path=str(folder),
        format="Hugging Face",
        sizes=sizes,
        sizes_from=str(folder / "config.json"),
        shapes=shapes,
        files={name: str(file) for name, file in files.items()},
        read=lambda name: read_tensor(files[name], name),
        origins=bert_origins(names, sizes, shapes, str(folder / "config.json")),
        optional=POOLER,
        head=read_head(
            read_object(folder / "config.json"),
            shapes,
            sizes["hidden_dim"],
            f"{folder / 'config.json'}: ",
        ),
        **_read_tokenizer(folder, sizes["vocabulary_size"]),
    )


def _tensor_files(folder):
    """Two dicts: of tensor name to file, and to shape."""
    if (folder / WEIGHTS).is_file():
        shapes = tensor_shapes(folder / WEIGHTS)
        return dict.fromkeys(shapes, folder / WEIGHTS), shapes
    index = folder / INDEX
    files = read_object(index).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise CheckpointError(f"{index} has no weight_map from tensors to files.")
    shards = sorted(set(map(str, files.values())))
    for name in shards:
        if pathlib.PurePath(name).name != name:
            raise CheckpointError(
                f"{index} names the file {name!r}. Only files beside it are read."
            )
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder / name} is missing. {index} names it.")
    held = {name: tensor_shapes(folder / name) for name in shards}
    for tensor, name in files.items():
        if tensor not in held[name]:
            raise CheckpointError(
                f"{folder / name} lacks the tensor {tensor!r}, which {index} says is "
                "in it."
            )
    shapes = {tensor: held[name][tensor] for tensor, name in files.items()}
    return {tensor: folder / name for tensor, name in files.items()}, shapes


# What BERT's tokenizer is, where a file may say otherwise. A missing key means that.
TOKENIZER_CONFIG = {
    "tokenizer_class": ("BertTokenizer", "BertTokenizerFast", None),
    "do_basic_tokenize": (True, None),
    "tokenize_chinese_chars": (True, None),
    "never_split": (None, []),
    "do_lower_case": (True, False, None),
    "strip_accents": (True, False, None),
}
TOKENIZER = {
    ("model", "type"): ("WordPiece",),
    ("model", "continuing_subword_prefix"): ("##", None),
    ("model", "unk_token"): ("[UNK]", None),
    ("normalizer", "type"): ("BertNormalizer", None),
    ("normalizer", "clean_text"): (True, None),
    ("normalizer", "handle_chinese_chars"): (True, None),
    ("normalizer", "lowercase"): (True, False, None),
    ("normalizer", "strip_accents"): (True, False, None),
    ("pre_tokenizer", "type"): ("BertPreTokenizer", None),
}


def _read_tokenizer(folder, rows):
    """Vocabulary, `lowercase` and `strip_accents` of a folder, where it has them."""
    from keras_recbert.text.vocabulary import load_vocabulary

    config, vocabulary, normalizer = {}, None, {}
    file = folder / "tokenizer_config.json"
    if file.is_file():
        config = read_object(file)
        for key, valid in TOKENIZER_CONFIG.items():
            _check_tokenizer(file, key, config.get(key), valid)
    file = folder / "tokenizer.json"
    if file.is_file():
        tokenizer = read_object(file)
        for (part, key), valid in TOKENIZER.items():
            held = tokenizer.get(part)
            held = {} if held is None else held
            value = held.get(key) if isinstance(held, dict) else held
            _check_tokenizer(file, f"{part}.{key}", value, valid)
        normalizer = tokenizer.get("normalizer") or {}
        vocabulary = _pieces(file, tokenizer["model"].get("vocab"))
    plain = folder / "vocab.txt"
    if plain.is_file():
        whole, vocabulary = vocabulary, load_vocabulary(plain)
        if whole is not None:
            check_equal(vocabulary, whole, plain, file)
        else:
            added = folder / "added_tokens.json"
            num_added = len(read_object(added)) if added.is_file() else 0
            config_file = str(folder / "config.json")
            check_whole(vocabulary, rows, plain, config_file, num_added)
    lowercase = config.get("do_lower_case", normalizer.get("lowercase"))
    if lowercase is None and vocabulary is not None:
        lowercase = guess_lowercase(vocabulary)
    return {
        "vocabulary": None if vocabulary is None else tuple(vocabulary),
        "lowercase": lowercase,
        "strip_accents": config.get("strip_accents", normalizer.get("strip_accents")),
    }


def _check_tokenizer(file, key, value, valid):
    # By identity for True, False and None: 1 == True, and "" is no False.
    if not any(
        value is v or (isinstance(v, (str, list)) and value == v) for v in valid
    ):
        raise CheckpointError(
            f"{file}: {key} must be {valid[0]!r}, as in BERT's tokenizer. It is "
            f"{reprlib.repr(value)}. To load the weights alone, move the tokenizer's "
            "files and vocab.txt away."
        )


def _pieces(file, ids):
    """Word pieces in the order of their ids."""
    from keras_recbert.text.vocabulary import check_vocabulary

    valid = isinstance(ids, dict) and all(type(i) is int for i in ids.values())
    if not valid or sorted(ids.values()) != list(range(len(ids))):
        raise CheckpointError(
            f"{file}: model.vocab must be a JSON object from word pieces to the ids 0, "
            "1, 2, ... without gaps."
        )
    return check_vocabulary(sorted(ids, key=ids.get), str(file))


def write_huggingface(encoder, folder, preprocessor=None, overwrite=False, model=None):
    """Writes a folder that `from_pretrained` of `transformers` loads.

    Args:
        encoder: `RecBertEncoder` of transformer blocks.
        folder: path. Written under a temporary name and renamed.
        preprocessor: optional `TextPreprocessor`; its vocabulary is written too.
        overwrite: bool. Replaces a folder that holds such files and nothing else.
        model: optional `TextClassifier` or `TextRegressor` around the encoder, whose
            head is written too: `BertForSequenceClassification`.

    Raises:
        ValueError: if the encoder is no plain BERT, or the head is none of that class.
        FileExistsError: if `folder` may not be written.
    """
    sizes, also = encoder.config, ()
    if model is None and any(
        any(h.values()) for h in encoder.pretrained_heads.values()
    ):
        also = ("pretrained_heads",)  # a BertModel reads all at its last block
    other = other_than_bert(type(encoder).__name__, sizes, also)
    if other is not None:
        raise ValueError(
            "Hugging Face's BertModel computes a plain BERT only: transformer blocks, "
            f"such as those of bert_base. Received: {other}. `save_preset` and "
            "`export_savedmodel` keep every encoder."
        )
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        **{theirs: sizes[ours] for ours, theirs in SIZES.items()},
        "hidden_act": "gelu",
        "hidden_dropout_prob": sizes["dropout"],
        "attention_probs_dropout_prob": sizes["dropout"],
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0 if preprocessor is None else preprocessor.tokenizer.pad_id,
    }
    weights = {weight.path: weight for weight in encoder.weights}
    if any("lora_kernel" in path for path in weights):
        raise ValueError(
            "The encoder has LoRA adapters, which Hugging Face's BertModel has not. "
            "`keras_recbert.tasks.merge_adapters(encoder)` gives one without."
        )
    head, tensors, prefix = {}, {}, ""
    if model is not None:
        head, tensors = describe_head(model)
        prefix = "bert."
    config |= head
    for path, origin in bert_origins(naming(prefix), sizes).items():
        parts = origin.split(weights[path].numpy().astype("float32", copy=False))
        tensors.update(zip(origin.names, parts, strict=True))
    with write_folder(folder, FILES, overwrite) as target:
        write_tensors(tensors, target / WEIGHTS, metadata={"format": "pt"})
        if preprocessor is not None:
            _write_tokenizer(preprocessor, sizes["vocabulary_size"], target)
        write_json(target / "config.json", config)
    if preprocessor is None:
        warnings.warn(
            f"{folder} has no tokenizer, as the model was built without a vocabulary. "
            "transformers needs one to read texts: copy vocab.txt and "
            "tokenizer_config.json of the vocabulary that the model was trained with "
            "into it, or build the model with vocabulary='vocab.txt'.",
            stacklevel=3,
        )


def other_than_bert(encoder_class, sizes, also=()):
    """Words on what an encoder has that Hugging Face's `BertModel` does not compute.

    Args:
        encoder_class: str.
        sizes: dict. Arguments of the encoder.
        also: names of other arguments that must be empty.

    Returns:
        str; None for a plain BERT.
    """
    if "block" not in sizes:
        return f"a {encoder_class}"
    extras = ["relative_attention_bias", "causal", *also]
    extras = [key for key in extras if sizes.get(key)]
    if sizes.get("pooled_layers", "last") != "last":
        extras.append("pooled_layers")
    if sizes["block"] == "transformer" and not extras:
        return None
    more = "".join(f", {key}={sizes[key]!r}" for key in extras)
    return f"an encoder of {sizes['block']!r} blocks{more}"


def _write_tokenizer(preprocessor, rows, folder):
    from keras_recbert.text.vocabulary import save_vocabulary

    tokenizer = preprocessor.tokenizer
    # A name for each row of the embeddings: who reads it can tell that it is whole.
    known = set(tokenizer.vocabulary)
    unused = (f"[unused{number}]" for number in itertools.count())
    unused = (piece for piece in unused if piece not in known)
    padding = itertools.islice(unused, rows - tokenizer.vocabulary_size)
    save_vocabulary([*tokenizer.vocabulary, *padding], folder / "vocab.txt")
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": tokenizer.lowercase,
            "strip_accents": tokenizer.strip_accents,
            "tokenize_chinese_chars": True,
            "model_max_length": preprocessor.max_sequence_length,
            "unk_token": "[UNK]",
            "sep_token": "[SEP]",
            "pad_token": "[PAD]",
            "cls_token": "[CLS]",
            "mask_token": "[MASK]",
        },
    )
