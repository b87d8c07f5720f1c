"""From the fields of examples to the features that an encoder takes."""

import collections
import hashlib
import inspect
import threading
import types

import keras
import tensorflow as tf

from keras_recbert.core.checks import check_integer
from keras_recbert.core.registry import Registry
from keras_recbert.text.segments import join_segments
from keras_recbert.text.string_lists import to_string_lists
from keras_recbert.text.string_tensor import to_string_tensor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


class Packer(keras.layers.Layer):
    """Packs the fields of examples, strings, into rows of ids.

    Subclass it, and decorate the subclass with `register_packer` and
    `keras.saving.register_keras_serializable`; then it goes through `fit`, files,
    presets and SavedModels, whose inputs have the names of the fields. A subclass sets
    `fields` and defines `pack`. What its constructor takes beside these arguments is
    plain Python, kept as an attribute of its name.

    Attributes:
        fields: tuple of str. Names of the fields of an example, in order.
        num_optional: int. How many of the last fields a batch may lack.
        list_fields: tuple of str. Fields whose values are lists of strings. Their
            columns are string tensors `(batch_size, most)`, padded with "".
        text_field: str or None. Where a served model takes raw text for the fields,
            which `split_text` makes of it, the name of this input.
        row_features: dict. Empty where an example is one row. Else what `pack` gives of
            each row beside its ids, for the head: names of features of its tokens with
            what these are padded with, and `example` with None.

    Args:
        tokenizer: `WordPieceTokenizer` or `WordTokenizer`.
        sequence_length: int or None. Length of every row. None: the length of the
            longest row of the batch.
        max_sequence_length: int. The most tokens a row may have, special tokens
            included; the limit where `sequence_length` is None.

    Call arguments:
        x: a batch: a dict of a column for each field, a tuple of columns in the order
            of `fields`, or the column of the first field. A column is a string tensor
            `(batch_size,)`, a NumPy array or a list of str; one str is a batch of one.
            That of one of `list_fields` is as `to_string_lists` takes it.

    Returns:
        dict of int32 tensors, `(batch_size, sequence_length)`: `token_ids`,
        `segment_ids`, and `padding_mask`, 1 on tokens, 0 on padding.

    Raises:
        ValueError: if a length is not valid, if there are other fields than these, or
            if the columns differ in size.
        TypeError: if `tokenizer` is none, or a text is not a string.
    """

    fields = ("text",)
    num_optional = 0
    list_fields = ()
    text_field = None
    row_features = types.MappingProxyType({})
    _equal_to = None

    def __init__(
        self, tokenizer, sequence_length=None, max_sequence_length=512, **kwargs
    ):
        super().__init__(**kwargs)
        # The arguments are strings: Keras must not cast them to the layer's dtype.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.supports_jit = False

        if not isinstance(tokenizer, WordPieceTokenizer):
            raise TypeError(
                "`tokenizer` must be a WordPieceTokenizer. Received: "
                f"{tokenizer!r}. Try WordPieceTokenizer('vocab.txt')."
            )
        # [CLS], one token, [SEP]
        check_integer(3, max_sequence_length=max_sequence_length)
        if sequence_length is not None:
            check_integer(3, sequence_length=sequence_length)
            if sequence_length > max_sequence_length:
                raise ValueError(
                    "`sequence_length` must not exceed `max_sequence_length`. "
                    f"Received: sequence_length={sequence_length}, "
                    f"max_sequence_length={max_sequence_length}."
                )
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.max_sequence_length = max_sequence_length
        self.built = True

    @property
    def limit(self):
        """The most tokens of a row."""
        return self.sequence_length or self.max_sequence_length

    def pack(self, *columns):
        """Packs a batch; traced as a graph.

        Args:
            *columns: string tensors `(batch_size,)`, a field each, in order; of
                `list_fields` `(batch_size, most)`, padded with "".

        Returns:
            dict of int32 tensors, see `Packer`. Where an example may have several
            rows, those of one stand behind each other; with them come `example`,
            `(num_rows,)`, its position in the batch, and the other `row_features`.
        """
        raise NotImplementedError

    def joined(self, segments, **features):
        """What `pack` returns, of rows `[CLS] segment [SEP]`.

        Args:
            segments: list of `Segment`, whose rows fit.
            **features: as for `join_segments`.
        """
        token = self.tokenizer
        return join_segments(
            segments,
            token.cls_id,
            token.sep_id,
            token.pad_id,
            self.sequence_length,
            features,
        )

    def call(self, x):
        columns = self.columns(x)
        return _traced(self, len(columns))(*columns)

    def column_spec(self, field):
        """`tf.TensorSpec` of the column of a field, with its name."""
        shape = [None, None] if field in self.list_fields else [None]
        return tf.TensorSpec(shape, tf.string, field)

    def columns(self, x):
        """The columns of a batch as string tensors.

        Args:
            x: as for a call.

        Returns:
            Tuple of string tensors `(batch_size,)`, in the order of `fields`; of
            `list_fields` `(batch_size, most)`, padded with "".
        """
        if isinstance(x, dict):
            names = [*filter(x.__contains__, self.fields), *(set(x) - set(self.fields))]
            self.check_fields(names)
            x = tuple(x[name] for name in names)
        parts = x if isinstance(x, tuple) else (x,)
        required = len(self.fields) - self.num_optional
        if not required <= len(parts) <= len(self.fields):
            what = f"a tuple of {len(parts)}. A batch of single texts is a list"
            if not isinstance(x, tuple):
                fields = ", ".join(f"{name!r}: [...]" for name in self.fields)
                what = f"a {type(x).__name__}. Give columns: {{{fields}}}"
            raise ValueError(f"An example has {self._described()}. Received: {what}.")
        single = len(parts) == 1
        columns = []
        for index, (field, part) in enumerate(zip(self.fields, parts, strict=False)):
            if field in self.list_fields:
                columns.append(to_string_lists(part, field))
            else:
                argument = "texts" if single else f"texts[{index}]"
                columns.append(to_string_tensor(part, argument))
        sizes = [column.shape[0] for column in columns]
        if None not in sizes and len(set(sizes)) > 1:
            raise ValueError(
                "Every column needs the same number of texts. Received: "
                f"{' and '.join(map(str, sizes))} texts."
            )
        if None in sizes:
            for column in columns[1:]:
                tf.debugging.assert_equal(
                    tf.shape(columns[0])[0],
                    tf.shape(column)[0],
                    "Every column needs the same number of texts.",
                )
        return tuple(columns)

    def check_fields(self, names):
        """Raises `ValueError` unless `names`, in order, are fields of an example."""
        required = len(self.fields) - self.num_optional
        if len(names) < required or tuple(names) != self.fields[: len(names)]:
            raise ValueError(
                f"An example has {self._described()}. Received: "
                f"{', '.join(map(repr, names)) or 'none'}."
            )

    def _described(self):
        names = [repr(name) for name in self.fields]
        for index in range(len(names) - self.num_optional, len(names)):
            names[index] += " (which may be left out)"
        return (
            f"the fields {', '.join(names)}" if names[1:] else f"one field, {names[0]}"
        )

    @classmethod
    def argument_names(cls):
        """Names of the arguments of the constructor, but for the tokenizer.

        Those of one that takes `**kwargs` are of the classes above it, too.
        """
        names = {}
        for one in cls.__mro__[: cls.__mro__.index(Packer) + 1]:
            own = inspect.signature(one.__init__).parameters
            names |= own
            if not any(p.kind is p.VAR_KEYWORD for p in own.values()):
                break
        return tuple(n for n in names if n not in ("self", "tokenizer", "kwargs"))

    def arguments(self):
        """Arguments that make an equal packer, but for the tokenizer: plain Python."""
        return {name: getattr(self, name) for name in self.argument_names()}

    def reading_masks(self):
        """A packer like this one that reads "[MASK]" in a text as that piece."""
        config = {**self.tokenizer.get_config(), "read_masks": True}
        tokenizer = type(self.tokenizer).from_config(config)
        return type(self)(tokenizer, **self.arguments())

    def get_config(self):
        return {
            **super().get_config(),
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            **self.arguments(),
        }

    @classmethod
    def from_config(cls, config):
        tokenizer = keras.saving.deserialize_keras_object(config["tokenizer"])
        return super().from_config({**config, "tokenizer": tokenizer})


# Graphs of the packers that were used last. Op by op, or traced anew by each
# `Dataset.map`, packing takes longer than a small model. Tracing takes a second; equal
# packers, such as those of a model that was saved and loaded, need it once.
_TRACED = collections.OrderedDict()
_MOST_TRACED = 16
_LOCK = threading.Lock()


def _traced(packer, num_columns):
    """`pack` of a packer as a graph: that of an equal packer, if there is one."""
    if packer._equal_to is None:
        tokenizer = packer.tokenizer
        words = "\n".join(tokenizer.vocabulary).encode()  # a line each, as in files
        # Short: each call hashes it, which of 30,000 words takes a millisecond.
        told = repr((tokenizer.options(), packer.arguments()))
        key = type(packer), type(tokenizer), hashlib.sha256(words).digest(), told
        # Past Keras, which would track it.
        object.__setattr__(packer, "_equal_to", key)
    key = packer._equal_to, num_columns
    with _LOCK:
        if key not in _TRACED:
            strings = [packer.column_spec(name) for name in packer.fields[:num_columns]]
            pack = tf.function(packer.pack, input_signature=strings, autograph=False)
            with tf.init_scope():  # else it would keep the graph that asks for it
                pack.get_concrete_function()
            _TRACED[key] = pack
        _TRACED.move_to_end(key)
        while len(_TRACED) > _MOST_TRACED:
            _TRACED.popitem(last=False)
        return _TRACED[key]


PACKERS = Registry("packer")  # which `packers` reads


def register_packer(cls):
    """Class decorator: adds a packer under the name of its class.

    Raises:
        ValueError: if the name is taken.
    """
    PACKERS.add(cls.__name__, cls)
    return cls
