"""What models that read raw texts have in common."""

import keras

from keras_recbert.heads import Head
from keras_recbert.heads.named_heads import NamedHeads, as_head
from keras_recbert.heads.reading import READING_ARGUMENTS, reading_arguments
from keras_recbert.models import encoders as _  # noqa: F401  registers their classes
from keras_recbert.models.encoder import Encoder
from keras_recbert.models.encoder_outputs import EncoderOutputs, unread_layers
from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.tasks.fields_of_heads import (
    check_alike,
    differ_in,
    predict_by_fields,
)
from keras_recbert.tasks.fine_tuned_model import FineTunedModel
from keras_recbert.tasks.fine_tuning_defaults import fine_tuning_defaults
from keras_recbert.tasks.fine_tuning_optimizer import check_learning_rate
from keras_recbert.tasks.head_view import HeadView
from keras_recbert.tasks.length_groups import call_by_length
from keras_recbert.tasks.long_texts import check_long_texts, read_windows
from keras_recbert.tasks.lora_adapters import LoraAdapters, merge_adapters
from keras_recbert.tasks.model_inputs import need_preprocessor
from keras_recbert.tasks.partial_training import check_partial_training, freeze_part
from keras_recbert.tasks.sentence_encoder import encode
from keras_recbert.tasks.set_readings import set_readings
from keras_recbert.tasks.text_arguments import check_preprocessor


@keras.saving.register_keras_serializable("keras_recbert")
class TextModel(FineTunedModel):
    """An encoder, one or more heads on a row for each text, and a preprocessor.

    `TextClassifier` and `TextRegressor` are those with the heads of their names; any
    other registered head makes a `TextModel`.

    `fit`, `evaluate` and `predict` take as `x`: a list or array of strings, a tuple
    of two of these (pairs), a dict of them by field (`{"text": ..., "text_pair":
    ...}`), packed ids as the encoder takes them, or batches of
    strings (with labels) from a `tf.data.Dataset`, a generator or a
    `keras.utils.PyDataset`. Arrays of texts are tokenized once and trained on in
    shuffled batches of similar length.

    `fit` on a model that was never compiled uses BERT's fine-tuning recipe
    (`fine_tuning_optimizer`, one warm-up and decay over the whole call) and the
    task's loss and metrics; `compile` first for anything else. Learning rate and
    pooling follow from what the encoder starts from, see `fine_tuning_defaults`:

    - random weights: 3e-4, mean;
    - a preset of this package: 3e-4, mean;
    - a pretrained BERT: 5e-5 at a width of 768, 1e-4 at 384, with one over the width
      up to 3e-4; first (mean, if it came without a pooler).

    With `freeze="encoder"` the learning rate is 3e-3 for each of them.

    With several heads, labels, weights of examples, logits, losses and metrics are
    dicts by the names of the heads, as Keras has them of several outputs; the losses
    are added up.

    Attributes:
        heads: dict of name to `Head`.

    Args:
        encoder: `RecBertEncoder`.
        preprocessor: `TextPreprocessor` or another `keras_recbert.text.Packer`; None
            for a model of packed ids only.
        head: `keras_recbert.heads.Head`, the name of a task, or a dict of `task` and
            arguments of the head. For several heads a dict of these by name, where
            those with arguments may have a `pooling`, `layer`, `combine` and
            `concatenate` of their own, and `fields`, such as `["text"]`, where some
            read single texts and others pairs.
        pooling: `"first"`, the encoder's pooled output (BERT's way), or `"mean"`, the
            mean of the outputs at real positions. Default: see above; of several
            layers, or of one below the last block, `"mean"`.
        layer: int. Block that the head reads, from 1; 0, the embeddings; -1, the last
            block. Or a list of them, or `"all"`, for all blocks. Default: the last, or
            the one that was pre-trained to be read (Aksoy et al. 2020, section 3,
            figure 3): with pooling `"first"` that of the next sentence, with `"mean"`
            that of masked LM.
        combine: what is made of several layers (Devlin et al. 2018, section 5.4, table
            7), token by token: `"concatenate"`, the default; `"sum"`; or
            `"weighted_sum"`, with trained weights, see
            `keras_recbert.layers.ScalarMix`.
        concatenate: what the mean has behind each output: `"cls"`, the first token
            of the block of the next sentence head; `"next_sentence"`, the logits of
            that head; `"none"`. Default: as the encoder was pre-trained.
        learning_rate: float. Highest learning rate of a `fit` that compiles by
            itself. Default: see above.
        dropout: float. Dropout rate before the head; the encoder's by default.
        freeze: what is not trained: `"embeddings"`, `"encoder"` (everything but the
            head), or an int n, the embeddings and the lowest n blocks. Dropout acts
            there all the same. Of `"encoder"` no gradient is computed.
        lora_rank: int. Trains the head and adapters of this rank on the kernels of
            the blocks, and nothing else: see `LoraAdapters`. What an LSTM or
            SwishRNN has beside its Dense layers is not trained, so a recurrence
            that is new, not loaded, stays as it was drawn. `merge_adapters` gives
            a plain encoder.
        layerwise_decay: float in (0, 1]. `compile_for_fine_tuning`, and a `fit` that
            compiles by itself, multiply the learning rate with it once for the
            highest block, once more for each below, and again for the embeddings.
        long_texts: `"truncate"`, or `"windows"`: a text that is longer than a row is
            read in windows that overlap, see `WindowPreprocessor`. What is read of them
            is joined before the head, which is trained with the encoder on whole texts
            (Sun et al. 2019, their hierarchical methods). Packed ids then are
            `(batch_size, num_windows, sequence_length)`.
        window_pooling: `"mean"`, the default, or `"max"` over the windows of a text.
        name: str.

    Raises:
        ValueError: if an argument is unknown or does not fit the encoder.
    """

    TASK_ARGUMENTS = (
        "pooling",
        "layer",
        "combine",
        "concatenate",
        "learning_rate",
        "freeze",
        "lora_rank",
        "layerwise_decay",
        "long_texts",
        "window_pooling",
    )

    def __init__(
        self,
        encoder,
        preprocessor=None,
        head=None,
        pooling=None,
        learning_rate=None,
        dropout=None,
        freeze=None,
        lora_rank=None,
        layerwise_decay=None,
        layer=None,
        combine=None,
        concatenate=None,
        long_texts="truncate",
        window_pooling=None,
        name="text_model",
    ):
        if not isinstance(encoder, Encoder):
            raise ValueError(
                "`encoder` must be an Encoder, as `keras_recbert.build(name)` returns "
                f"it. Received: {type(encoder).__name__}."
            )
        if preprocessor is not None:
            check_preprocessor(preprocessor, encoder)
        defaults = fine_tuning_defaults(encoder, freeze)
        rate = defaults.learning_rate if learning_rate is None else learning_rate
        check_learning_rate(rate)
        check_partial_training(encoder, freeze, lora_rank, layerwise_decay)
        dropout = encoder.config["dropout"] if dropout is None else dropout
        head = as_head(head)
        check_long_texts(head, preprocessor, long_texts, window_pooling)
        set_readings(
            encoder,
            head,
            pooling=pooling,
            layer=layer,
            combine=combine,
            concatenate=concatenate,
        )
        if long_texts == "windows":
            window_pooling = window_pooling or "mean"
        inputs, outputs = _connect(encoder, head, dropout, window_pooling)
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.encoder = encoder
        self.preprocessor = preprocessor
        if preprocessor is not None:
            self.fields = _fields(preprocessor, head)
        self.head = head
        self.pooling = defaults.pooling if pooling is None else pooling
        if isinstance(head, Head):
            self.pooling = head.reading.pooling
        self.learning_rate = rate
        self.head_dropout = dropout
        self.freeze = freeze
        self.lora_rank = lora_rank
        self.layerwise_decay = layerwise_decay
        self.long_texts, self.window_pooling = long_texts, window_pooling
        freeze_part(encoder, freeze)
        self.adapters = None
        if lora_rank is not None:
            self.adapters = LoraAdapters(encoder, lora_rank, name="adapters")
        readings = [one.reading for one in head.heads.values()]
        for resting in unread_layers(encoder, readings):
            resting.trainable = False  # they get no gradient

    @property
    def heads(self):
        """Heads by name; one alone is called as its task is."""
        return self.head.heads

    @property
    def fields_by_head(self):
        """Fields of the examples of each head: a dict of tuples of str."""
        return {
            name: tuple(self.fields) if head.own_fields is None else head.own_fields
            for name, head in self.heads.items()
        }

    def head_view(self, name):
        """One of several heads as a model that predicts, a `HeadView`."""
        return HeadView(self, name)

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """As `FineTunedModel.predict`; each head reads the fields of its examples.

        Of single texts there are no logits of a head that reads pairs.
        """
        options = (batch_size, verbose, steps, callbacks)
        if not differ_in(self, x):
            return super().predict(x, *options)
        ask = super().predict
        return predict_by_fields(self, x, lambda texts: ask(texts, *options))

    def _check_fields(self, x):
        check_alike(self, x)

    def export(self, filepath, format="tf_saved_model", **kwargs):
        """As `keras.Model.export`, of packed ids; nothing in it is left to XLA."""
        if format == "tf_saved_model":
            from keras_recbert.serving.savedmodel import write_packed_savedmodel

            write_packed_savedmodel(self, filepath, **kwargs)
            return
        with portable_graphs():
            super().export(filepath, format, **kwargs)

    def export_savedmodel(self, path, fields=None, overwrite=False, gradients=False):
        """Writes a SavedModel that takes raw strings.

        See `keras_recbert.serving.savedmodel.write_savedmodel`.

        Args:
            path: str or path. A folder that does not exist yet.
            fields: sequence of str, the fields an example has, such as `("text",
                "text_pair")`; by default what `fit` saw.
            overwrite: bool. Replaces `path` if it exists.
            gradients: bool. Adds a signature that tells what an answer owes to each
                token, `input_x_gradient`, by which `recbert play` colours words.
        """
        from keras_recbert.serving.savedmodel import write_savedmodel

        need_preprocessor(self.preprocessor)
        write_savedmodel(
            self,
            path,
            fields=self.fields if fields is None else fields,
            overwrite=overwrite,
            gradients=gradients,
        )

    def save_preset(self, directory, metrics=None, overwrite=False, **card):
        """Writes encoder, head and preprocessor into a folder for `keras_recbert.load`.

        See `keras_recbert.convert.preset.write_preset`.
        """
        from keras_recbert.convert.preset import write_preset

        write_preset(self, directory, metrics, overwrite=overwrite, **card)

    def save_huggingface(self, directory, overwrite=False):
        """Writes encoder and head into a folder that Hugging Face's pipeline loads.

        Adapters of `lora_rank` become part of the kernels. See
        `keras_recbert.convert.huggingface.write_huggingface`.

        Raises:
            ValueError: if the encoder is no plain BERT, or `pooling` is not "first".
        """
        from keras_recbert.convert.huggingface import write_huggingface

        encoder = self.encoder
        if self.lora_rank is not None:
            encoder = merge_adapters(encoder)
        write_huggingface(encoder, directory, self.preprocessor, overwrite, self)

    def encode(self, texts, **options):
        """A vector for each text from the encoder of the model, as it is trained now.

        Args:
            texts: as for `predict`, of a preprocessor whose examples are one row each.
            **options: as for `keras_recbert.models.encoder.Encoder.encode`, by default
                the mean of the last block's tokens at length 1.

        Returns:
            float32 NumPy array `(num_texts, dim)`.
        """
        names = ("layer", "pooling", "combine", "normalize")
        reading = {name: options.pop(name) for name in names if name in options}
        return encode(self.encoder, self.preprocessor, texts, reading, **options)

    def answers_by_head(self):
        """Functions from logits to answers, by the signatures of single heads."""
        return self.head.answers_by_head()

    def answer(self, logits):
        """What the SavedModel gives for logits, see `Head.answer`."""
        return self.head.answer(logits)

    def answer_texts(self, columns, answer=None):
        """What the SavedModel gives for texts; to be called in a graph.

        Args:
            columns: tuple of string tensors, a field each, see `Packer.columns`.
            answer: function from logits to a dict of tensors; by default that of the
                model.

        Returns:
            dict of tensors, an item an example: see `Head.answer_rows`.
        """
        columns = self.preprocessor.columns(columns)
        if answer is not None:
            return answer(self._rows(columns)[0])
        if len(set(self.fields_by_head.values())) == 1:
            return self.head.answer_rows(*self._rows(columns), columns)
        logits, of_fields = {}, {}
        for name, fields in self.fields_by_head.items():
            if fields not in of_fields:  # each encoded once
                of_fields[fields], _ = self._rows(columns[: len(fields)])
            logits[name] = of_fields[fields][name]
        return self.answer(logits)

    def _rows(self, columns):
        """Logits of columns, and what the packer gives of each row: a tuple."""
        packed = self.preprocessor(columns)
        names = self.preprocessor.row_features
        features = {name: packed[name] for name in packed if name not in names}
        encoder = self.encoder
        limits = encoder.max_sequence_length, encoder.packs_rows
        logits = call_by_length(self, features, *limits)
        return logits, {k: packed[k] for k in names}

    def answer_raw_texts(self, texts):
        """What the SavedModel gives for raw texts that the packer splits.

        To be called in a graph, where the packer has a `text_field`.

        Args:
            texts: string tensor `(batch_size,)`.

        Returns:
            dict of tensors, an item an example, see `Head.answer_text`.
        """
        words, *places = self.preprocessor.split_text(texts)
        answers = self.answer_texts((words,))
        return self.head.answer_text(answers, texts, words, *places)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            "encoder": serialize(self.encoder),
            "preprocessor": serialize(self.preprocessor),
            **self._reading_config(),
            "learning_rate": self.learning_rate,
            "dropout": self.head_dropout,
            "freeze": self.freeze,
            "lora_rank": self.lora_rank,
            "layerwise_decay": self.layerwise_decay,
            "long_texts": self.long_texts,
            "window_pooling": self.window_pooling,
            "name": self.name,
            "fields": list(self.fields),
            **self._head_config(),
        }

    def _reading_config(self):
        """Where all heads read; each of several describes its own reading, too."""
        if isinstance(self.head, NamedHeads):
            return {**dict.fromkeys(READING_ARGUMENTS), "pooling": self.pooling}
        return reading_arguments(self.head.reading, self.encoder)

    def _head_config(self):
        """What the constructor takes to make the head again."""
        return {"head": self.head.describe(self.encoder)}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        fields = tuple(config.pop("fields"))
        for key in ("encoder", "preprocessor"):
            config[key] = keras.saving.deserialize_keras_object(config[key])
        config["encoder"].started_from = "preset"  # a file holds what was trained
        model = cls(**config)
        model.fields = fields
        return model


def _connect(encoder, head, dropout, window_pooling):
    """Inputs and outputs of a model; of windows where these are pooled."""
    readings = [one.reading for one in head.heads.values()]
    if any(reading.concatenate == "next_sentence" for reading in readings):
        encoder.add_next_sentence_head()
    inputs, rows = head.inputs(encoder)
    drop = keras.layers.Dropout(dropout, dtype=encoder.policy)
    if window_pooling is not None:
        inputs, rows, drop = read_windows(encoder, drop, window_pooling)
    return inputs, head.connect(EncoderOutputs(encoder, rows), drop)


def _fields(preprocessor, head):
    """Fields of an example before `fit` sees any: what some head reads, and what no
    batch may lack."""
    own = [one.own_fields for one in head.heads.values() if one.own_fields is not None]
    for fields in own:
        preprocessor.check_fields(fields)
    number = len(preprocessor.fields) - preprocessor.num_optional
    return preprocessor.fields[: max([number, *map(len, own)])]
