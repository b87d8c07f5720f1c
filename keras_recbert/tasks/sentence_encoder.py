"""A vector for each text, from any layers of an encoder."""

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_recbert.core.checks import check_positive
from keras_recbert.heads.reading import check_widths, read_layers
from keras_recbert.layers.max_pooling import MaxPooling
from keras_recbert.layers.mean_pooling import MeanPooling
from keras_recbert.models.encoder_outputs import EncoderOutputs
from keras_recbert.models.recbert_encoder import PoolToken
from keras_recbert.ops.implementation import compiling
from keras_recbert.tasks.example_rows import ExampleRows
from keras_recbert.tasks.length_groups import call_by_length
from keras_recbert.tasks.model_inputs import DEFAULT_BATCH_SIZE, need_preprocessor
from keras_recbert.tasks.text_batches import columns
from keras_recbert.text.window_preprocessor import WindowPreprocessor

POOLINGS = ("cls", "mean", "max")
COMBINATIONS = ("concatenate", "sum", "stack")


class SentenceEncoder(keras.Model):
    """Packed ids to a vector for each row; texts to NumPy arrays.

    It shares the weights of the encoder, and its dropout never acts.

    Args:
        encoder: `keras_recbert.models.encoder.Encoder`.
        preprocessor: `Packer` whose examples are one row each; None for a model of
            packed ids only.
        layer: what is read: an int, 0 for the embeddings, 1 for the first block, -1
            for the last one; a sequence of them; or `"all"`, all blocks. None, the
            last block.
        pooling: `"mean"` (None means it), `"max"`: of the tokens, padding left out; or
            `"cls"`, the first token as the layer gives it, without BERT's pooler (of a
            left-to-right encoder the last token).
        combine: of several layers, `"concatenate"` or `"sum"` (of the tokens, before
            pooling), as Devlin et al. 2018, section 5.4, table 7; or `"stack"`, a row
            a layer.
        normalize: bool. Whether vectors have length 1.

    Returns:
        float32, `(batch_size, dim)`; with `"stack"` `(batch_size, num_layers, dim)`.

    Raises:
        ValueError: for an unknown `layer`, `pooling` or `combine`; for layers of
            different widths that are to be added or stacked; for a packer whose
            examples are not one row each.
    """

    def __init__(
        self,
        encoder,
        preprocessor=None,
        layer=None,
        pooling=None,
        combine="concatenate",
        normalize=True,
        name="sentence_encoder",
    ):
        for argument, value, valid in (
            ("pooling", pooling, (None, *POOLINGS)),
            ("combine", combine, COMBINATIONS),
        ):
            if value not in valid:
                raise ValueError(
                    f"`{argument}` must be one of {', '.join(map(repr, valid))}. "
                    f"Received: {argument}={value!r}."
                )
        if preprocessor is not None:
            check_one_row(preprocessor)
        layers = read_layers(encoder, layer)
        check_widths(encoder, layers, combine)
        outputs = EncoderOutputs(encoder)
        tokens = [outputs.tokens(number) for number in layers]
        if combine == "sum" and len(tokens) > 1:
            tokens = [keras.layers.Add(dtype="float32")(tokens)]
        pool = _pooling_layer(encoder, pooling or "mean")
        rows = [pool(one, encoder.input["padding_mask"]) for one in tokens]
        if combine == "stack":
            vectors = keras.ops.stack(rows, axis=1)
        elif len(rows) > 1:
            vectors = keras.layers.Concatenate(dtype="float32")(rows)
        else:
            (vectors,) = rows
        if normalize:
            vectors = keras.layers.UnitNormalization(dtype="float32")(vectors)
        super().__init__(inputs=encoder.input, outputs=vectors, name=name)
        self.preprocessor = preprocessor
        self._limits = encoder.max_sequence_length, encoder.packs_rows
        spec = {key: tf.TensorSpec([None, None], tf.int32) for key in encoder.input}
        # Past Keras, which would track it.
        object.__setattr__(
            self,
            "_vectors",
            tf.function(
                lambda features: self(features, training=False),
                input_signature=[spec],
                autograph=False,
            ),
        )

    def encode(
        self, texts, batch_size=DEFAULT_BATCH_SIZE, verbose="auto", out=None, desc=None
    ):
        """Vectors of texts, in their order; computed in batches of similar length.

        Args:
            texts: as the preprocessor takes them: a str, a list or array of str, a
                tuple of two of these (pairs), or a dict of them by field.
            batch_size: int. Texts at a time.
            verbose: `"auto"`, a progress bar where there is more than one batch;
                False or 0, none.
            out: optional array to write into, such as an `np.memmap`.
            desc: optional str. What stands before the progress bar.

        Returns:
            float32 NumPy array, `(num_texts, dim)` or `(num_texts, num_layers, dim)`;
            `out` if it was given. One str is a list of one.

        Raises:
            TypeError, ValueError: for what is no text, or no text at all.
        """
        need_preprocessor(self.preprocessor)
        check_positive(batch_size=batch_size)
        rows = ExampleRows(
            self.preprocessor, columns(self.preprocessor, texts), keep_features=False
        )
        order = rows.longest_first
        if out is None:
            out = np.empty((rows.num_rows, *self.output.shape[1:]), np.float32)
        bar = tqdm(
            total=rows.num_rows,
            desc=desc,
            unit=" texts",
            disable=not verbose or rows.num_rows <= batch_size,
        )
        batches = rows.batches(batch_size, order=order)
        with bar, compiling(False):
            for start, features in zip(
                range(0, len(order), batch_size), batches, strict=True
            ):
                indices = order[start : start + batch_size]
                out[indices] = self._vectors(features).numpy()
                bar.update(len(indices))
        return out

    def answer(self, vectors):
        """What the SavedModel gives for vectors.

        Returns:
            dict of `embeddings`, float32 `(batch_size, dim)`.
        """
        return {"embeddings": vectors}

    def answer_texts(self, columns, answer=None):
        """What the SavedModel gives for texts; to be called in a graph.

        Args:
            columns: tuple of string tensors, a field each.
            answer: as for `TextModel.answer_texts`.
        """
        packed = self.preprocessor(self.preprocessor.columns(columns))
        vectors = call_by_length(self, packed, *self._limits)
        return (answer or self.answer)(vectors)

    def answers_by_head(self):
        """None: there is no head."""
        return {}


def sentence_encoder(encoder, preprocessor, **reading):
    """The `SentenceEncoder` of an encoder that reads so; made once, and kept there.

    Args:
        encoder, preprocessor, **reading: as for `SentenceEncoder`.
    """
    made = getattr(encoder, "_sentence_encoders", None)
    if made is None:
        made = {}
        object.__setattr__(encoder, "_sentence_encoders", made)  # past Keras
    reading["layer"] = read_layers(encoder, reading.get("layer"))
    key = preprocessor, *sorted(reading.items())
    if key not in made:
        made[key] = SentenceEncoder(encoder, preprocessor, **reading)
    return made[key]


def encode(
    encoder,
    preprocessor,
    texts,
    reading,
    batch_size=DEFAULT_BATCH_SIZE,
    verbose="auto",
):
    """What `Encoder.encode` gives, with any preprocessor."""
    need_preprocessor(preprocessor)
    model = sentence_encoder(encoder, preprocessor, **reading)
    return model.encode(texts, batch_size, verbose)


def check_one_row(preprocessor):
    """Raises `ValueError` for a packer whose examples are not one row each."""
    windows = isinstance(preprocessor, WindowPreprocessor)
    if windows or preprocessor.row_features or preprocessor.list_fields:
        raise ValueError(
            f"A vector is of one row, and an example of {type(preprocessor).__name__} "
            "may have several. Encode texts with the encoder: `model.encoder."
            "preprocessor = keras_recbert.text.TextPreprocessor(model.preprocessor."
            "tokenizer)`, then `model.encoder.encode(texts)`."
        )


def _pooling_layer(encoder, pooling):
    """The layer from tokens and padding mask to a row; float32 in every precision."""
    if pooling == "cls":
        last = getattr(getattr(encoder, "pool_token", None), "last", False)
        return PoolToken(last=last, dtype="float32", name="cls")
    cls = {"mean": MeanPooling, "max": MaxPooling}[pooling]
    return cls(dtype="float32", name=pooling)
