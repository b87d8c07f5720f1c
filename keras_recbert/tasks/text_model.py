"""What models that read raw texts have in common."""

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.convert.preset import write_preset
from keras_recbert.layers.mean_pooling import MeanPooling
from keras_recbert.models.backbone import (
    BLOCK_ARGUMENTS,
    SHARED_ARGUMENTS,
    RecBertBackbone,
    check_arguments,
)
from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.serving.savedmodel import write_savedmodel
from keras_recbert.tasks.fine_tuning_optimizer import (
    LayerwiseAdamW,
    fine_tuning_optimizer,
)
from keras_recbert.tasks.lora_adapters import LoraAdapters
from keras_recbert.tasks.partial_training import (
    check_partial_training,
    freeze_part,
    learning_rate_factors,
)
from keras_recbert.tasks.text_batches import (
    bucketed_batches,
    check_labelled,
    is_packed,
    ordered_batches,
    packed_dataset,
)
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

DEFAULT_BATCH_SIZE = 32  # Devlin et al. 2018, section 4.1
POOLINGS = ("first", "mean")
TEXT_ARGUMENTS = (
    "vocabulary",
    "lowercase",
    "strip_accents",
    "sequence_length",
    "truncation",
)
# Arguments of any encoder; the encoder refuses those that its blocks do not take.
_SIZES = dict.fromkeys((*SHARED_ARGUMENTS, *sum(BLOCK_ARGUMENTS.values(), ())))


class TextModel(keras.Model):
    """An encoder, a head on its pooled output, and a text front.

    `fit`, `evaluate` and `predict` take as `x`: a list or array of strings, a tuple
    of two of these (pairs), a `tf.data.Dataset` of strings (with labels), or packed
    ids as the encoder takes them. Arrays of texts are tokenized once and trained on
    in shuffled batches of similar length.

    `fit` on a model that was never compiled uses BERT's fine-tuning recipe
    (`fine_tuning_optimizer`, one warm-up and decay over the whole call) and the
    task's loss and metrics; `compile` first for anything else.

    Args:
        backbone: `RecBertBackbone`.
        preprocessor: `TextPreprocessor`, or None for a model of packed ids only.
        num_outputs: int. Units of the head.
        pooling: `"first"`, the encoder's pooled output (BERT's way), or `"mean"`, the
            mean of the outputs at real positions.
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
        *TEXT_ARGUMENTS,
        "pooling",
        "freeze",
        "lora_rank",
        "layerwise_decay",
    )
    num_texts = 1  # texts an example has; noticed by `fit`, used by the export
    _recipe_optimizer = None  # of `compile_for_fine_tuning`
    _fit_optimizer = None  # of a `fit` that compiled by itself

    def __init__(
        self,
        backbone,
        preprocessor,
        num_outputs,
        pooling="first",
        dropout=None,
        freeze=None,
        lora_rank=None,
        layerwise_decay=None,
        name=None,
    ):
        if not isinstance(backbone, RecBertBackbone):
            raise ValueError(
                "`backbone` must be a RecBertBackbone, as `keras_recbert.build(name)` "
                f"returns it. Received: {type(backbone).__name__}."
            )
        if preprocessor is not None:
            check_front(preprocessor, backbone)
        if pooling not in POOLINGS:
            raise ValueError(
                f"`pooling` must be one of {POOLINGS}. Received: pooling={pooling!r}."
            )
        check_partial_training(backbone, freeze, lora_rank, layerwise_decay)
        rate = backbone.config["dropout"] if dropout is None else dropout
        head = keras.layers.Dense(
            num_outputs,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            dtype="float32",  # losses read float32 logits in every precision
            name="head",
        )
        inputs = backbone.input
        outputs = backbone(inputs)
        pooled, read = outputs["pooled_output"], "pooled_output"
        if pooling == "mean":
            read = "sequence_output"
            pool = MeanPooling(dtype=backbone.policy, name="mean_pooling")
            pooled = pool(outputs["sequence_output"], inputs["padding_mask"])
        pooled = keras.layers.Dropout(rate, dtype=backbone.policy)(pooled)
        super().__init__(
            inputs=inputs, outputs=self._shape_logits(head(pooled)), name=name
        )
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = head
        self.pooling = pooling
        self.head_dropout = rate
        self.freeze = freeze
        self.lora_rank = lora_rank
        self.layerwise_decay = layerwise_decay
        freeze_part(backbone, freeze)
        self.adapters = None
        if lora_rank is not None:
            self.adapters = LoraAdapters(backbone, lora_rank, name="adapters")
        # The pooler, or blocks above the one that is read: they get no gradient.
        for layer in backbone.layers_beside(backbone.output[read]):
            layer.trainable = False

    @classmethod
    def split_arguments(cls, arguments):
        """Splits keywords of `build` into those of the task and sizes.

        Raises:
            ValueError: for a keyword that is neither; names the nearest one.
        """
        return split_arguments(cls, arguments)

    @staticmethod
    def make_preprocessor(arguments, sizes):
        """Takes the text arguments out of `arguments` and makes the text front.

        Sets `vocabulary_size` in `sizes` to that of the vocabulary.
        """
        text = {key: arguments.pop(key) for key in TEXT_ARGUMENTS if key in arguments}
        vocabulary = text.pop("vocabulary", None)
        if vocabulary is None:
            if text:
                raise ValueError(
                    f"{', '.join(map(repr, text))} need a vocabulary. Pass "
                    "vocabulary='vocab.txt', or a list of word pieces."
                )
            return None
        tokenizer = WordPieceTokenizer(
            vocabulary,
            lowercase=text.pop("lowercase", True),
            strip_accents=text.pop("strip_accents", None),
        )
        sizes.setdefault("vocabulary_size", tokenizer.vocabulary_size)
        return TextPreprocessor(
            tokenizer, max_sequence_length=sizes.get("max_sequence_length", 512), **text
        )

    def _shape_logits(self, logits):
        return logits

    def _default_loss_and_metrics(self):
        """Loss and metrics of the task."""
        raise NotImplementedError

    def compile_for_fine_tuning(self, total_steps, **optimizer_arguments):
        """Compiles with BERT's recipe and the task's loss and metrics.

        The schedule is kept by each `fit` that follows: they share its steps.

        Args:
            total_steps: int. Optimizer steps of the whole run.
            **optimizer_arguments: `learning_rate`, `warmup_fraction`,
                `weight_decay` of `fine_tuning_optimizer`.
        """
        loss, metrics = self._default_loss_and_metrics()
        if self.layerwise_decay is not None:
            optimizer_arguments["rate_factors"] = learning_rate_factors(
                self, self.layerwise_decay
            )
        self.compile(
            fine_tuning_optimizer(total_steps, **optimizer_arguments),
            loss=loss,
            weighted_metrics=metrics,
        )
        self._recipe_optimizer = self.optimizer

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        validation_data=None,
        shuffle=True,
        sample_weight=None,
        steps_per_epoch=None,
        seed=None,
        **kwargs,
    ):
        """As `keras.Model.fit`, for texts too.

        Args:
            x: texts, pairs, a dataset of them, or packed ids.
            y: labels `(num_examples,)`; part of `x` when that is a dataset.
            validation_data: tuple `(x, y)` or `(x, y, sample_weight)`, or a dataset.
            seed: optional int. Seed of the order of the examples.
            Others: see `keras.Model.fit`.

        Raises:
            ValueError: if texts come without a vocabulary, are no strings, or do
                not match the labels in number; if the model was compiled with an
                optimizer that knows nothing of its `layerwise_decay`.
        """
        self._check_labels(x, y)
        self._check_optimizer()
        self._notice_texts(x)
        if not is_packed(x) and not isinstance(x, tf.data.Dataset):
            self._need_preprocessor()
            if kwargs.pop("validation_split", None):
                raise ValueError(
                    "`validation_split` needs packed ids. Split the texts, and pass "
                    "validation_data=(texts, labels)."
                )
            batch = batch_size or DEFAULT_BATCH_SIZE
            make = bucketed_batches if shuffle else ordered_batches
            extra = {"seed": seed} if shuffle else {}
            x = make(self.preprocessor, x, (y, sample_weight), batch, **extra)
            y = sample_weight = batch_size = None
        x = self._packed(x, batch_size)
        if isinstance(x, tf.data.Dataset):
            batch_size = None
        if validation_data is not None:
            validation_data = self._validation(validation_data, batch_size)
        if not self.compiled or self.optimizer is self._fit_optimizer:
            steps = steps_per_epoch or _num_steps(x, batch_size)
            self.compile_for_fine_tuning(steps * epochs)
            self._fit_optimizer = self.optimizer
        return super().fit(
            x,
            y,
            batch_size=batch_size,
            epochs=epochs,
            validation_data=validation_data,
            shuffle=shuffle and not isinstance(x, tf.data.Dataset),
            sample_weight=sample_weight,
            steps_per_epoch=steps_per_epoch,
            **kwargs,
        )

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """As `keras.Model.evaluate`, for texts too. Arguments as for `fit`."""
        if not self.compiled:
            self.compile_for_fine_tuning(1)
            self._fit_optimizer = self.optimizer
        self._check_labels(x, y)
        if not is_packed(x) and not isinstance(x, tf.data.Dataset):
            x = self._ordered(x, (y, sample_weight), batch_size)
            y = sample_weight = batch_size = None
        x = self._packed(x, batch_size)
        if isinstance(x, tf.data.Dataset):
            batch_size = None
        return super().evaluate(
            x, y, batch_size=batch_size, sample_weight=sample_weight, **kwargs
        )

    def predict(self, x, batch_size=None, **kwargs):
        """As `keras.Model.predict`, for texts too.

        Args:
            x: texts, pairs, a dataset of them, or packed ids.

        Returns:
            float32 array of logits, one row an example, in order.
        """
        if not is_packed(x) and not isinstance(x, tf.data.Dataset):
            x, batch_size = self._ordered(x, None, batch_size), None
        x = self._packed(x, batch_size)
        if isinstance(x, tf.data.Dataset):
            batch_size = None
        return super().predict(x, batch_size=batch_size, **kwargs)

    def export(self, filepath, **kwargs):
        """As `keras.Model.export`, of packed ids; nothing in it is left to XLA."""
        with portable_graphs():
            super().export(filepath, **kwargs)

    def export_savedmodel(self, path, num_texts=None, overwrite=False):
        """Writes a SavedModel that takes raw strings.

        See `keras_recbert.serving.savedmodel.write_savedmodel`.

        Args:
            path: str or path. A folder that does not exist yet.
            num_texts: 1 or 2, texts an example has; by default what `fit` saw.
            overwrite: bool. Replaces `path` if it exists.
        """
        self._need_preprocessor()
        write_savedmodel(
            self,
            path,
            preprocessor=self.preprocessor,
            answer=self.answer,
            num_texts=self.num_texts if num_texts is None else num_texts,
            overwrite=overwrite,
        )

    def save_preset(self, directory, metrics=None, overwrite=False, **card):
        """Writes encoder, head and text front into a folder for `keras_recbert.load`.

        See `keras_recbert.convert.preset.write_preset`.
        """
        write_preset(self, directory, metrics, overwrite=overwrite, **card)

    def answer(self, logits):
        """What the SavedModel gives for logits: a dict of tensors."""
        raise NotImplementedError

    def _uses_recipe(self):
        return self.compiled and self.optimizer is self._recipe_optimizer

    def get_compile_config(self):
        """Nothing for the recipe: its schedule has run out when a model is saved."""
        return None if self._uses_recipe() else super().get_compile_config()

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            "backbone": serialize(self.backbone),
            "preprocessor": serialize(self.preprocessor),
            "pooling": self.pooling,
            "dropout": self.head_dropout,
            "freeze": self.freeze,
            "lora_rank": self.lora_rank,
            "layerwise_decay": self.layerwise_decay,
            "name": self.name,
            "num_texts": self.num_texts,
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        num_texts = config.pop("num_texts")
        for key in ("backbone", "preprocessor"):
            config[key] = keras.saving.deserialize_keras_object(config[key])
        model = cls(**config)
        model.num_texts = num_texts
        return model

    def _check_optimizer(self):
        if self.layerwise_decay is None or not self.compiled:
            return
        # In float16 Keras puts another optimizer around it.
        optimizer = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        if not isinstance(optimizer, LayerwiseAdamW):
            raise ValueError(
                "This model was built with a `layerwise_decay`, which the optimizer "
                "that it was compiled with does not follow. Received: "
                f"layerwise_decay={self.layerwise_decay}, "
                f"optimizer={type(optimizer).__name__}. Use "
                "`compile_for_fine_tuning`, or build the model without."
            )

    def _check_labels(self, x, y):
        """Raises `ValueError` for labels that the default loss cannot read."""
        if isinstance(x, tf.data.Dataset):
            check_labelled(x)
            return
        if y is None:
            raise ValueError(
                "`y` must hold the labels, (num_examples,). Received: None. `predict` "
                "needs no labels."
            )
        labels = np.asarray(y)
        if labels.ndim == 1:  # others are for a loss of the user's own
            bad = np.flatnonzero([not self._is_label(label) for label in labels])
            if len(bad):
                raise ValueError(
                    f"`y` must hold {self._valid_labels()}. "
                    f"Received: {labels[bad[0]].item()!r} at index {bad[0]}."
                )

    def _is_label(self, label):
        """Whether a NumPy scalar can be a label."""
        raise NotImplementedError

    def _valid_labels(self):
        """What labels are, in words."""
        raise NotImplementedError

    def _notice_texts(self, x):
        if is_packed(x):
            return  # ids do not say it
        if isinstance(x, tf.data.Dataset):
            spec = x.element_spec
            x = spec[0] if isinstance(spec, tuple) else spec
        self.num_texts = len(x) if isinstance(x, tuple) else 1

    def _need_preprocessor(self):
        if self.preprocessor is None:
            raise ValueError(
                "This model was built without a vocabulary, so it takes packed ids "
                "only. Build it with vocabulary='vocab.txt' to give it texts."
            )

    def _ordered(self, x, targets, batch_size):
        self._need_preprocessor()
        batch_size = batch_size or DEFAULT_BATCH_SIZE
        return ordered_batches(self.preprocessor, x, targets, batch_size)

    def _packed(self, x, batch_size):
        if isinstance(x, tf.data.Dataset) and not is_packed(x):
            self._need_preprocessor()
            batch_size = batch_size or DEFAULT_BATCH_SIZE
            return packed_dataset(self.preprocessor, x, batch_size)
        return x

    def _validation(self, data, batch_size):
        if isinstance(data, tf.data.Dataset):
            self._check_labels(data, None)
            return self._packed(data, batch_size)
        x, *targets = data
        self._check_labels(x, *targets[:1])
        return data if is_packed(x) else self._ordered(x, targets, batch_size)


def split_arguments(cls, arguments):
    """Splits keywords of `build` into `TASK_ARGUMENTS` of a class and sizes.

    Raises:
        ValueError: for a keyword that is neither; names the nearest one.
    """
    check_arguments(cls.__name__, arguments, (*cls.TASK_ARGUMENTS, *_SIZES, "dtype"))
    own = {k: v for k, v in arguments.items() if k in cls.TASK_ARGUMENTS}
    return own, {k: v for k, v in arguments.items() if k not in own}


def _num_steps(x, batch_size):
    """Batches in an epoch."""
    if isinstance(x, tf.data.Dataset):
        steps = int(x.cardinality())
        if steps < 1:
            raise ValueError(
                "The learning rate decays over the whole run, but the number of "
                "batches of this dataset is unknown. Pass steps_per_epoch, or compile "
                "the model yourself."
            )
        return steps
    num_examples = len(next(iter(x.values())))
    return -(-num_examples // (batch_size or DEFAULT_BATCH_SIZE))


def check_front(preprocessor, backbone):
    """Raises `ValueError` for a text front that does not fit an encoder."""
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
            "The text front packs longer rows than the encoder has positions. "
            f"Received: {longest} word pieces, "
            f"max_sequence_length={backbone.max_sequence_length}."
        )
