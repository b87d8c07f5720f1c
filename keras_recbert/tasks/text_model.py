"""What models that read raw texts have in common."""

import keras

from keras_recbert.heads import Head, get_head
from keras_recbert.heads.reading import POOLINGS, choose_reading
from keras_recbert.models import backbone as _  # noqa: F401  registers its class
from keras_recbert.models.encoder import Encoder
from keras_recbert.models.encoder_outputs import EncoderOutputs, unread_layers
from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.tasks.fine_tuned_model import FineTunedModel
from keras_recbert.tasks.fine_tuning_defaults import fine_tuning_defaults
from keras_recbert.tasks.fine_tuning_optimizer import check_learning_rate
from keras_recbert.tasks.lora_adapters import LoraAdapters, merge_adapters
from keras_recbert.tasks.model_inputs import need_preprocessor
from keras_recbert.tasks.partial_training import check_partial_training, freeze_part
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

TOKENIZER_ARGUMENTS = ("vocabulary", "lowercase", "strip_accents")


@keras.saving.register_keras_serializable("keras_recbert")
class TextModel(FineTunedModel):
    """An encoder, a head on a row for each text, and a preprocessor.

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
    - a pretrained BERT: 5e-5, first (mean, if it came without a pooler).

    Args:
        backbone: `RecBertBackbone`.
        preprocessor: `TextPreprocessor` or another `keras_recbert.text.Packer`; None
            for a model of packed ids only.
        head: `keras_recbert.heads.Head`, or a dict of `task` and arguments of the head.
        pooling: `"first"`, the encoder's pooled output (BERT's way), or `"mean"`, the
            mean of the outputs at real positions. Default: see above.
        layer: int. Block that the head reads, from 1. Default: the one whose head was
            pre-trained for it (Aksoy et al. 2020, section 3, figure 3), else the last.
        concatenate: what the mean has behind each output: `"cls"`, the first token
            of the block of the next sentence head; `"next_sentence"`, the logits of
            that head; `"none"`. Default: as the encoder was pre-trained.
        learning_rate: float. Highest learning rate of a `fit` that compiles by
            itself. Default: see above.
        dropout: float. Dropout rate before the head; the encoder's by default.
        freeze: what is not trained: `"embeddings"`, `"encoder"` (everything but the
            head), or an int n, the embeddings and the lowest n blocks. Dropout acts
            there all the same.
        lora_rank: int. Trains the head and adapters of this rank on the kernels of
            the blocks, and nothing else: see `LoraAdapters`. What an LSTM or
            SwishRNN has beside its Dense layers is not trained, so a recurrence
            that is new, not loaded, stays as it was drawn. `merge_adapters` gives
            a plain encoder.
        layerwise_decay: float in (0, 1]. `compile_for_fine_tuning`, and a `fit` that
            compiles by itself, multiply the learning rate with it once for the
            highest block, once more for each below, and again for the embeddings.
        name: str.

    Raises:
        ValueError: if an argument is unknown or does not fit the encoder.
    """

    TASK_ARGUMENTS = (
        "pooling",
        "layer",
        "concatenate",
        "learning_rate",
        "freeze",
        "lora_rank",
        "layerwise_decay",
    )

    def __init__(
        self,
        backbone,
        preprocessor=None,
        head=None,
        pooling=None,
        learning_rate=None,
        dropout=None,
        freeze=None,
        lora_rank=None,
        layerwise_decay=None,
        layer=None,
        concatenate=None,
        name="text_model",
    ):
        if not isinstance(backbone, Encoder):
            raise ValueError(
                "`backbone` must be an Encoder, as `keras_recbert.build(name)` returns "
                f"it. Received: {type(backbone).__name__}."
            )
        if preprocessor is not None:
            check_preprocessor(preprocessor, backbone)
        defaults = fine_tuning_defaults(backbone)
        pooling = defaults.pooling if pooling is None else pooling
        rate = defaults.learning_rate if learning_rate is None else learning_rate
        check_learning_rate(rate)
        if pooling not in POOLINGS:
            raise ValueError(
                f"`pooling` must be one of {POOLINGS}. Received: pooling={pooling!r}."
            )
        check_partial_training(backbone, freeze, lora_rank, layerwise_decay)
        dropout = backbone.config["dropout"] if dropout is None else dropout
        head = as_head(head)
        head.reading = choose_reading(backbone, pooling, layer, concatenate)
        if head.reading.concatenate == "next_sentence":
            backbone.add_next_sentence_head()
        inputs = backbone.input
        outputs = EncoderOutputs(backbone, inputs)
        drop = keras.layers.Dropout(dropout, dtype=backbone.policy)
        super().__init__(inputs=inputs, outputs=head.connect(outputs, drop), name=name)
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = head
        self.pooling = pooling
        self.learning_rate = rate
        self.head_dropout = dropout
        self.freeze = freeze
        self.lora_rank = lora_rank
        self.layerwise_decay = layerwise_decay
        freeze_part(backbone, freeze)
        self.adapters = None
        if lora_rank is not None:
            self.adapters = LoraAdapters(backbone, lora_rank, name="adapters")
        for resting in unread_layers(backbone, [head.reading]):
            resting.trainable = False  # they get no gradient

    def export(self, filepath, format="tf_saved_model", **kwargs):
        """As `keras.Model.export`, of packed ids; nothing in it is left to XLA."""
        if format == "tf_saved_model":
            from keras_recbert.serving.savedmodel import write_packed_savedmodel

            write_packed_savedmodel(self, filepath, **kwargs)
            return
        with portable_graphs():
            super().export(filepath, format, **kwargs)

    def export_savedmodel(self, path, fields=None, overwrite=False):
        """Writes a SavedModel that takes raw strings.

        See `keras_recbert.serving.savedmodel.write_savedmodel`.

        Args:
            path: str or path. A folder that does not exist yet.
            fields: sequence of str, the fields an example has, such as `("text",
                "text_pair")`; by default what `fit` saw.
            overwrite: bool. Replaces `path` if it exists.
        """
        from keras_recbert.serving.savedmodel import write_savedmodel

        need_preprocessor(self.preprocessor)
        write_savedmodel(
            self,
            path,
            preprocessor=self.preprocessor,
            answer=self.answer,
            fields=self.fields if fields is None else fields,
            overwrite=overwrite,
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

        encoder = self.backbone
        if self.lora_rank is not None:
            encoder = merge_adapters(encoder)
        write_huggingface(encoder, directory, self.preprocessor, overwrite, self)

    def answer(self, logits):
        """What the SavedModel gives for logits, see `Head.answer`."""
        return self.head.answer(logits)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            "backbone": serialize(self.backbone),
            "preprocessor": serialize(self.preprocessor),
            "pooling": self.pooling,
            "layer": self.head.reading.layer or len(self.backbone.blocks),
            "concatenate": self._concatenate(),
            "learning_rate": self.learning_rate,
            "dropout": self.head_dropout,
            "freeze": self.freeze,
            "lora_rank": self.lora_rank,
            "layerwise_decay": self.layerwise_decay,
            "name": self.name,
            "fields": list(self.fields),
            **self._head_config(),
        }

    def _concatenate(self):
        if self.pooling == "first":
            return None
        return self.head.reading.concatenate or "none"

    def _head_config(self):
        """What the constructor takes to make the head again."""
        return {"head": {"task": self.head.task, **self.head.get_config()}}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        fields = tuple(config.pop("fields"))
        for key in ("backbone", "preprocessor"):
            config[key] = keras.saving.deserialize_keras_object(config[key])
        config["backbone"].started_from = "preset"  # a file holds what was trained
        model = cls(**config)
        model.fields = fields
        return model


def as_head(head):
    """A `Head`, or what a dict of its task and its arguments makes.

    Raises:
        ValueError: if it is something else, or there is no head for the task.
    """
    if isinstance(head, Head):
        return head
    if not isinstance(head, dict) or "task" not in head:
        raise ValueError(
            "`head` must be a keras_recbert.heads.Head, or a dict of its `task` and "
            f"its arguments. Received: {head!r}."
        )
    arguments = {key: value for key, value in head.items() if key != "task"}
    return get_head(head["task"])(**arguments)


def check_preprocessor(preprocessor, backbone):
    """Raises `ValueError` for a preprocessor that does not fit an encoder."""
    size = backbone.config["vocabulary_size"]
    if preprocessor.tokenizer.vocabulary_size > size:
        raise ValueError(
            "The vocabulary has more word pieces than the encoder has embeddings. "
            f"Received: {preprocessor.tokenizer.vocabulary_size} word pieces, "
            f"vocabulary_size={size}."
        )
    longest = preprocessor.sequence_length or preprocessor.max_sequence_length
    if longest > backbone.max_sequence_length:
        raise ValueError(
            "The preprocessor packs longer rows than the encoder has positions. "
            f"Received: {longest} word pieces, "
            f"max_sequence_length={backbone.max_sequence_length}."
        )


def text_arguments(packer):
    """Names of the arguments of a task that are about its text.

    Args:
        packer: class of the preprocessor; its `max_sequence_length` follows from the
            encoder.
    """
    names = (*TOKENIZER_ARGUMENTS, *packer.argument_names())
    return tuple(name for name in names if name != "max_sequence_length")


def take_text_arguments(arguments, packer):
    """Takes the arguments of the text out of those of a task.

    Args:
        arguments: dict, changed in place.
        packer: class of the preprocessor.

    Returns:
        Tuple of `WordPieceTokenizer` and a dict, other arguments of the preprocessor;
        or of None and an empty dict without a vocabulary.

    Raises:
        ValueError: if there are other arguments than a vocabulary that need one.
    """
    names = text_arguments(packer)
    text = {key: arguments.pop(key) for key in names if key in arguments}
    vocabulary = text.pop("vocabulary", None)
    if vocabulary is not None:
        lowercase = text.pop("lowercase", True)
        strip_accents = text.pop("strip_accents", None)
        return WordPieceTokenizer(vocabulary, lowercase, strip_accents), text
    if text:
        raise ValueError(
            f"{', '.join(map(repr, text))} need a vocabulary. Pass "
            "vocabulary='vocab.txt', or a list of word pieces."
        )
    return None, {}
