"""What a task needs of an encoder, and which kinds of encoder there are."""

import inspect
import types

import keras

from keras_recbert.core.registry import Registry


class FreezableModel(keras.Model):
    """A functional model that no gradient enters while none of its weights is trained.

    TensorFlow's tape watches weights that Keras does not train, too: `trainable =
    False` alone leaves the gradients of all layers to be computed for nothing. What is
    trained is looked at whenever the model is called, or traced.
    """

    def call(self, inputs, training=None, mask=None, **kwargs):
        outputs = super().call(inputs, training=training, mask=mask, **kwargs)
        if self.trainable_weights:
            return outputs
        return keras.tree.map_structure(keras.ops.stop_gradient, outputs)


class Encoder(FreezableModel):
    """From packed ids to a row for each text and each token.

    Subclass it as a functional model, and decorate the subclass with
    `register_encoder` and `keras.saving.register_keras_serializable`. A `ModelCard`
    with `encoder="..."` gives it a name; tasks, files, presets and SavedModels follow.

    Inputs, a dict of int32 `(batch_size, sequence_length)`: `token_ids`,
    `segment_ids`, `padding_mask` (1 = token).

    Outputs, a dict: `pooled_output`, float `(batch_size, dim)`, and
    `sequence_output`, float `(batch_size, sequence_length, dim)`.

    A subclass sets, once `super().__init__` has run:
        config: dict. Arguments of its constructor, but for `name` and `dtype`; with
            `vocabulary_size`, `max_sequence_length` and `dropout` in it.
        policy: `keras.DTypePolicy`.
        embeddings: layer at the bottom.
        blocks: list of layers above it, from the bottom up: for `freeze`,
            `layerwise_decay` and LoRA.

    With `encoder_outputs` among the outputs, a list of one for each block, heads may
    read lower blocks.

    Attributes:
        weights_report: what `build(weights=...)` loaded, or None.
        started_from: None (random weights), `"preset"`, `"bert"`, or `"first_layers"`
            of a deeper BERT.
        next_sentence_head: layer from `pooled_output` to two logits, where tokens are
            read beside them; else None.

    A subclass may set, as attributes of the class:
        tokenizer: str. Name of the tokenizer that `build` makes of a vocabulary, see
            `keras_recbert.text.word_tokenizer.get_tokenizer`.
        reads_words: bool. Whether `build` takes `texts` and `vectors`, and gives the
            layer `embeddings` the vectors by its `set_vectors`.
        takes_vectors: bool. Whether it takes, as one that reads words does, the folder
            of a BERT as `vectors`, for its word pieces.
        packs_rows: bool. Whether a SavedModel of it computes next to nothing for
            padding, so that the rows of a batch stay together.
        fine_tuning: dict. Fields of
            `keras_recbert.tasks.fine_tuning_defaults.FineTuningDefaults` that suit it.
        test_sizes: dict. Arguments of the small encoder of the contract tests.
    """

    tokenizer = "WordPieceTokenizer"
    takes_vectors = False
    reads_words = False
    packs_rows = False
    fine_tuning = types.MappingProxyType({})
    test_sizes = types.MappingProxyType({})

    weights_report = None
    started_from = None
    next_sentence_head = None

    @classmethod
    def arguments(cls, sizes=None):
        """Names of the arguments of the constructor, but for `name` and `dtype`.

        Args:
            sizes: dict, some of the arguments, where others depend on them; None for
                all that any encoder of this class takes.

        Returns:
            tuple of str.
        """
        names = inspect.signature(cls).parameters
        return tuple(name for name in names if name not in ("name", "dtype"))

    @property
    def preprocessor(self):
        """`TextPreprocessor` of the encoder's vocabulary, or None."""
        return getattr(self, "_preprocessor", None)

    @preprocessor.setter
    def preprocessor(self, preprocessor):
        # Past Keras, which would take it for a layer of the graph.
        object.__setattr__(self, "_preprocessor", preprocessor)

    def save_preset(self, directory, metrics=None, overwrite=False, **card):
        """Writes the encoder into a folder for `keras_recbert.load`.

        See `keras_recbert.convert.preset.write_preset`.
        """
        from keras_recbert.convert.preset import write_preset

        write_preset(self, directory, metrics, overwrite=overwrite, **card)

    def encode(
        self,
        texts,
        layer=None,
        pooling=None,
        combine="concatenate",
        normalize=True,
        batch_size=32,
        verbose="auto",
    ):
        """A vector for each text: by default a sentence embedding.

        The defaults, the mean of the last block's tokens at length 1, are those of
        `sentence-transformers` for MiniLM. Dropout does not act.

        Args:
            texts: a str, a list or array of str, or for pairs a tuple of two of these.
            layer: int: 0, the embeddings; 1, the first block; -1, the last block. Or a
                sequence of them, such as `[-4, -3, -2, -1]`. Default: the last block.
            pooling: `"mean"` (the default), `"max"` or `"cls"`, the first token.
            combine: of several layers, `"concatenate"`, `"sum"` or `"stack"`.
            normalize: bool. Whether vectors have length 1.
            batch_size: int. Texts at a time; those of similar length are together.
            verbose: False for no progress bar.

        Returns:
            float32 NumPy array `(num_texts, dim)`, in the order of the texts; with
            `combine="stack"` `(num_texts, num_layers, dim)`.

        Raises:
            ValueError, TypeError: without a vocabulary, for a layer that there is not,
                for what is no text; see
                `keras_recbert.tasks.sentence_encoder.SentenceEncoder`.
        """
        from keras_recbert.tasks.sentence_encoder import encode

        reading = {"layer": layer, "pooling": pooling, "combine": combine}
        reading["normalize"] = normalize
        return encode(self, self.preprocessor, texts, reading, batch_size, verbose)

    def export_savedmodel(
        self,
        path,
        fields=("text",),
        overwrite=False,
        layer=None,
        pooling=None,
        combine="concatenate",
        normalize=True,
    ):
        """Writes a SavedModel from raw strings to `embeddings`, what `encode` gives.

        See `keras_recbert.serving.savedmodel.write_savedmodel`.

        Args:
            path: str or path. A folder that does not exist yet.
            fields: sequence of str, `("text",)` or `("text", "text_pair")`.
            overwrite: bool. Replaces `path` if it exists.
            layer, pooling, combine, normalize: as for `encode`.
        """
        from keras_recbert.serving.savedmodel import write_savedmodel
        from keras_recbert.tasks.model_inputs import need_preprocessor
        from keras_recbert.tasks.sentence_encoder import sentence_encoder

        need_preprocessor(self.preprocessor)
        reading = {"layer": layer, "pooling": pooling, "combine": combine}
        reading["normalize"] = normalize
        model = sentence_encoder(self, self.preprocessor, **reading)
        write_savedmodel(model, path, fields, overwrite)

    @property
    def pretrained_heads(self):
        """Where the heads of its pre-training read, by objective: `layer` (None, the
        last block) and `concatenate`. Heads of tasks read there, too."""
        return self.config.get("pretrained_heads") or {}

    def is_last(self, layer):
        """Whether a block, counted from 1, is the last one; None is."""
        return layer is None or layer == len(self.blocks)

    def activations_at_least(self, num_tokens, num_pairs):
        """A lower bound of the numbers that a training step keeps for its gradients.

        Args:
            num_tokens: float. Tokens of the batch, padding included.
            num_pairs: float. Sum of the squared lengths of its rows.

        Returns:
            int.
        """
        return int(num_tokens * self.sequence_dim * len(self.blocks))

    @property
    def sequence_dim(self):
        """Width of `sequence_output`."""
        return self.output["sequence_output"].shape[-1]

    @property
    def max_sequence_length(self):
        return self.config["max_sequence_length"]

    def get_config(self):
        return {
            **self.config,
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.policy),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config)


_ENCODERS = Registry("encoder")


def register_encoder(cls):
    """Class decorator: adds a kind of encoder under the name of its class.

    Raises:
        ValueError: if the name is taken.
    """
    _ENCODERS.add(cls.__name__, cls)
    return cls


def list_encoders():
    """Names of the classes of encoders."""
    return _ENCODERS.names()


def get_encoder(name):
    """The class of encoder of a name.

    Raises:
        UnknownNameError: if there is none.
    """
    return _ENCODERS[name]
