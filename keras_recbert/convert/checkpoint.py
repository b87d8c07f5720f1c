"""One view of the checkpoints of all formats: this package's weights, where from."""

import dataclasses
import difflib
from collections.abc import Callable

import numpy as np


class CheckpointError(ValueError):
    """A checkpoint that cannot be read as a BERT. The message says where and why."""


@dataclasses.dataclass(frozen=True)
class SequenceHead:
    """A head on BERT's pooled output that a checkpoint has.

    Args:
        label_names: tuple of str, the classes by their ids; None for one score.
    """

    label_names: tuple | None


@dataclasses.dataclass(frozen=True)
class Origin:
    """Tensors of a checkpoint that together are one weight of this package.

    Several tensors (query, key and value) stand side by side on the last axis.

    Args:
        names: tuple of str, names of the tensors in the checkpoint.
        shape: tuple of int, shape that each of them has there.
        part_shape: tuple of int, the shape of its part of the weight.
        transposed: bool. Stored as `(out, in)`.
    """

    names: tuple
    shape: tuple
    part_shape: tuple
    transposed: bool = False

    def join(self, tensors):
        """The weight, made of the tensors in the order of `names`."""
        parts = [
            tensor.T if self.transposed else tensor.reshape(self.part_shape)
            for tensor in tensors
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def split(self, weight):
        """The tensors, made of the weight: what `join` undoes."""
        parts = np.split(weight, len(self.names), axis=-1)
        return [
            np.ascontiguousarray(part.T if self.transposed else part).reshape(
                self.shape
            )
            for part in parts
        ]


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A BERT on disk. Nothing is read but sizes and names until `weight` asks.

    Args:
        path: str. The folder, as the user named it.
        format: str. Name of the format, for people.
        sizes: dict. Sizes of the encoder in the words of `RecBertEncoder`:
            `num_layers`, `hidden_dim`, `num_heads`, `intermediate_dim`,
            `vocabulary_size`, `max_sequence_length`, `num_segments`.
        sizes_from: str. File that says so.
        shapes: dict of name to shape of every tensor in the files.
        files: dict of name to file of every tensor.
        read: function from a name to an array of any float type.
        origins: dict of weight path (`"block_0/attention/output_dense/bias"`) to
            `Origin`.
        optional: tuple of weight paths that a checkpoint may lack (the pooler).
        block: str. Kind of block of the encoder: `"transformer"` but for presets.
        vocabulary: tuple of str, or None.
        lowercase: bool, whether the vocabulary is of lower-cased texts; None if
            nothing says it.
        strip_accents: bool or None, as `WordPieceTokenizer` takes it.
        note: str. What one should know of how these weights are computed with here.
        name: str. What the encoder of a preset is called: the name of the zoo that it
            was built by, whatever its sizes; None for other formats.
        head: `SequenceHead`, or None.
        encoder_class: str. Class of the encoder: that of a BERT but for presets.
        tokenizer: str. Class of the tokenizer of the vocabulary.
        num_oov_buckets: int. Ids that words outside the vocabulary share.

    Raises:
        CheckpointError: if a tensor that `origins` names is missing or has another
            shape.
    """

    path: str
    format: str
    sizes: dict
    sizes_from: str
    shapes: dict
    files: dict
    read: Callable
    origins: dict
    optional: tuple = ()
    block: str = "transformer"
    vocabulary: tuple | None = None
    lowercase: bool | None = None
    strip_accents: bool | None = None
    note: str = ""
    name: str | None = None
    head: SequenceHead | None = None
    encoder_class: str = "RecBertEncoder"
    tokenizer: str = "WordPieceTokenizer"
    num_oov_buckets: int = 0

    def __post_init__(self):
        for path in self.optional:
            names = self.origins[path].names
            if not any(name in self.shapes for name in names):
                del self.origins[path]
        needed = {n: origin for origin in self.origins.values() for n in origin.names}
        missing = [name for name in needed if name not in self.shapes]
        if missing:
            others = [name for name in self.shapes if name not in needed]
            nearest = difflib.get_close_matches(missing[0], others, n=1)
            hint = f" It has {nearest[0]!r}: was it renamed?" if nearest else ""
            raise CheckpointError(
                f"{self._where()} lacks the tensor {missing[0]!r}"
                f"{f' and {len(missing) - 1} more' if len(missing) > 1 else ''}, which "
                f"a BERT of {self.sizes['num_layers']} layers ({self.sizes_from}) "
                f"has.{hint}"
            )
        for name, origin in needed.items():
            shape = tuple(self.shapes[name])
            if shape != tuple(origin.shape):
                raise CheckpointError(
                    f"{self.files[name]}: the tensor {name!r} has the shape {shape}. "
                    f"By the sizes in {self.sizes_from} it must be "
                    f"{tuple(origin.shape)}."
                )

        if len(self.vocabulary or ()) > self.sizes["vocabulary_size"]:
            raise CheckpointError(
                f"{self.path} has {len(self.vocabulary)} word pieces, and embeddings "
                f"for {self.sizes['vocabulary_size']} ({self.sizes_from}). They do not "
                "belong together."
            )

    def _where(self):
        files = sorted(set(self.files.values()))
        return ", ".join(files) or f"{self.path} (no tensor in its files)"

    def weight(self, path):
        """Reads one weight of this package: float32, or float64 if stored so.

        Raises:
            CheckpointError: if the file is damaged, or a number is not finite.
        """
        origin = self.origins[path]
        return origin.join([self._tensor(name) for name in origin.names])

    def _tensor(self, name):
        tensor = np.asarray(self.read(name))
        if tensor.dtype != "float64":
            tensor = tensor.astype("float32", copy=False)
        if not np.all(np.isfinite(tensor)):
            bad = int(np.size(tensor) - np.count_nonzero(np.isfinite(tensor)))
            raise CheckpointError(
                f"{self.files[name]}: the tensor {name!r} holds {bad} of "
                f"{tensor.size} numbers that are NaN or infinite. Such weights give "
                "NaN for every text; get the checkpoint again."
            )
        return tensor


@dataclasses.dataclass(frozen=True)
class Naming:
    """Names that a format gives to the tensors of a BERT.

    Each is a name, or a name before `/kernel` and the like; `{layer}` is the number
    of the layer.

    Args:
        token_embedding, segment_embedding, position_embedding: names of the tables.
        embedding_norm, query, key, value, attention_output, attention_norm,
            intermediate, output, output_norm, pooler: names of the parts.
        kernel, bias, gamma, beta: what stands behind the name of a part.
        transposed: bool. Kernels are `(out, in)`.
        heads_apart: bool. Kernels of the attention are `(in, heads, head_dim)` and
            `(heads, head_dim, out)`.
    """

    token_embedding: str
    segment_embedding: str
    position_embedding: str
    embedding_norm: str
    query: str
    key: str
    value: str
    attention_output: str
    attention_norm: str
    intermediate: str
    output: str
    output_norm: str
    pooler: str
    kernel: str = "/kernel"
    bias: str = "/bias"
    gamma: str = "/gamma"
    beta: str = "/beta"
    transposed: bool = False
    heads_apart: bool = False


def bert_origins(naming, sizes, shapes=None, sizes_from=""):
    """Where each weight of a plain BERT is in a checkpoint.

    Args:
        naming: `Naming`.
        sizes: dict, see `Checkpoint`.
        shapes, sizes_from: see `Checkpoint`; to read one, not to write one.

    Returns:
        dict of weight path to `Origin`.

    Raises:
        CheckpointError: if there are fewer tensors than layers.
    """
    if shapes is not None and sizes["num_layers"] > len(shapes):
        # Before a number that nobody checked is counted up to.
        raise CheckpointError(
            f"{sizes_from} says that there are {sizes['num_layers']} layers, and the "
            f"files hold {len(shapes)} tensors. They do not belong together."
        )
    origins = _Origins(naming, sizes)
    origins.add_embeddings()
    for layer in range(sizes["num_layers"]):
        origins.add_block(layer)
    origins.add_dense("pooler", [naming.pooler], origins.width, origins.width)
    return origins.found


class _Origins:
    """Collects the origins of the weights of a plain BERT.

    Args:
        naming: `Naming`.
        sizes: dict, see `Checkpoint`.
    """

    def __init__(self, naming, sizes):
        self.naming, self.sizes = naming, sizes
        self.width = sizes["hidden_dim"]
        self.found = {}

    def add_embeddings(self):
        width = self.width
        for name, size in (
            ("token_embedding", "vocabulary_size"),
            ("segment_embedding", "num_segments"),
            ("position_embedding", "max_sequence_length"),
        ):
            shape = self.sizes[size], width
            origin = Origin((getattr(self.naming, name),), shape, shape)
            self.found[f"embeddings/{name}/embeddings"] = origin
        self._add_norm("embeddings/norm", self.naming.embedding_norm)

    def add_block(self, layer):
        block = f"block_{layer}"
        width, inner = self.width, self.sizes["intermediate_dim"]
        heads = self.sizes["num_heads"], width // self.sizes["num_heads"]

        def part(name):
            return getattr(self.naming, name).format(layer=layer)

        self.add_dense(
            f"{block}/attention/query_key_value",
            [part("query"), part("key"), part("value")],
            width,
            width,
            apart=(width, *heads),
            apart_bias=heads,
        )
        self.add_dense(
            f"{block}/attention/output_dense",
            [part("attention_output")],
            width,
            width,
            apart=(*heads, width),
        )
        self._add_norm(f"{block}/attention_norm", part("attention_norm"))
        self.add_dense(
            f"{block}/feed_forward/intermediate_dense",
            [part("intermediate")],
            width,
            inner,
        )
        self.add_dense(
            f"{block}/feed_forward/output_dense", [part("output")], inner, width
        )
        self._add_norm(f"{block}/output_norm", part("output_norm"))

    def add_dense(self, path, names, inputs, outputs, apart=None, apart_bias=None):
        """Adds kernel and bias; `apart` are the shapes where heads have an axis."""
        naming = self.naming
        ours = (inputs, outputs)
        theirs = (outputs, inputs) if naming.transposed else ours
        self.found[f"{path}/kernel"] = Origin(
            tuple(name + naming.kernel for name in names),
            apart if naming.heads_apart and apart else theirs,
            ours,
            naming.transposed,
        )
        self.found[f"{path}/bias"] = Origin(
            tuple(name + naming.bias for name in names),
            apart_bias if naming.heads_apart and apart_bias else (outputs,),
            (outputs,),
        )

    def _add_norm(self, path, name):
        shape = (self.width,)
        for ours, theirs in (("gamma", self.naming.gamma), ("beta", self.naming.beta)):
            self.found[f"{path}/{ours}"] = Origin((name + theirs,), shape, shape)


def guess_lowercase(vocabulary):
    """Whether a vocabulary is of lower-cased texts: no piece has a capital letter.

    Special tokens such as `[CLS]`, and Google's `<S>`, do not count. For formats that
    do not say it.
    """
    return not any(
        piece != piece.lower() and (piece[0], piece[-1]) not in (("[", "]"), ("<", ">"))
        for piece in vocabulary
    )
