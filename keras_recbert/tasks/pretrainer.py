"""An encoder with the heads of its pre-training objectives."""

import dataclasses

import keras

from keras_recbert.layers.common import bert_initializer
from keras_recbert.layers.masked_lm_head import MaskedLMHead
from keras_recbert.models.backbone import RecBertBackbone, make_next_sentence_head
from keras_recbert.objectives import MaskedLM, NextSentence, Objectives
from keras_recbert.tasks.pretraining_levels import (
    LANGUAGE_MODELS,
    as_objectives,
    check_encoder,
    check_freezable,
    levels_of,
)
from keras_recbert.tasks.pretraining_losses import loss_of, metrics_of
from keras_recbert.tasks.text_model import (
    TEXT_ARGUMENTS,
    check_front,
    split_arguments,
)

BERT_OBJECTIVES = Objectives(masked_lm=MaskedLM(), next_sentence=NextSentence())


@keras.saving.register_keras_serializable("keras_recbert")
class Pretrainer(keras.Model):
    """An encoder and a head for each objective, at any of its blocks.

    Devlin et al. 2018, section 3.3; with heads at lower blocks, Aksoy et al. 2020,
    section 3. The encoder is built with the levels of the heads
    (`backbone_arguments`), so that who fine-tunes it reads what was trained.

    Call arguments, a dict of int tensors:
        token_ids, segment_ids, padding_mask: `(batch_size, sequence_length)`, as the
            encoder takes them.
        mask_positions: `(batch_size, num_positions)`, where words are guessed; only
            with masked_lm or causal_lm.

    Returns, a dict of float32 logits, of the objectives that there are:
        masked_lm, causal_lm: `(batch_size, num_positions, vocabulary_size)`.
        next_sentence: `(batch_size, 2)`; 0, the second text follows the first.
        bigram_shift: `(batch_size, sequence_length)`; above 0, out of place.

    Args:
        backbone: `RecBertBackbone`, built with `backbone_arguments(objectives,
            num_layers)`.
        objectives: `Objectives`, or a dict that `read_objectives` takes; by default
            BERT's two.
        preprocessor: optional `TextPreprocessor` of the vocabulary; becomes that of
            the backbone too, whose preset then has the vocabulary.
        name: str.

    Raises:
        ValueError: if a head reads a block that the encoder does not have, or another
            than the encoder was built for; if no objective reads the highest blocks;
            if left-to-right prediction is to be learned by an encoder that reads both
            ways; if freezing next_sentence would leave no block to train.
    """

    TASK_ARGUMENTS = (*TEXT_ARGUMENTS, "objectives")

    def __init__(
        self,
        backbone,
        objectives=BERT_OBJECTIVES,
        preprocessor=None,
        name="pretrainer",
    ):
        if not isinstance(backbone, RecBertBackbone):
            raise ValueError(
                "`backbone` must be a RecBertBackbone, as `keras_recbert.build(name)` "
                f"returns it. Received: {type(backbone).__name__}."
            )
        objectives = as_objectives(objectives)
        check_encoder(backbone, objectives)
        if preprocessor is not None:
            check_front(preprocessor, backbone)
            backbone.preprocessor = preprocessor
        inputs = dict(backbone.input)
        outputs = backbone(inputs)
        heads = {name: _make_head(name, backbone) for name in objectives.names()}
        logits, read = {}, []
        for key in objectives.names():
            if key in LANGUAGE_MODELS:
                inputs["mask_positions"] = keras.Input(
                    (None,), dtype="int32", name="mask_positions"
                )
                hidden = outputs["sequence_output"]
                logits[key] = heads[key](hidden, inputs["mask_positions"])
                read.append(backbone.output["sequence_output"])
            elif key == "next_sentence":
                if backbone.next_sentence_head is None:
                    logits[key] = heads[key](outputs["pooled_output"])
                else:
                    rename = keras.layers.Identity(dtype="float32", name=key)
                    logits[key] = rename(outputs["next_sentence"])
                read.append(backbone.output["pooled_output"])
            else:
                level = objectives.layer_of(key, len(backbone.blocks)) - 1
                hidden = outputs["encoder_outputs"][level]
                logits[key] = keras.layers.Reshape((-1,), dtype="float32", name=key)(
                    heads[key](hidden)
                )
                read.append(backbone.output["encoder_outputs"][level])
        super().__init__(inputs=inputs, outputs=logits, name=name)
        for layer in backbone.layers_beside(*read):
            layer.trainable = False  # such as the pooler without next_sentence
        self.backbone = backbone
        self.objectives = objectives
        self.heads = heads
        self.preprocessor = preprocessor
        self.next_sentence_frozen = False

    @classmethod
    def split_arguments(cls, arguments):
        """As `TextModel.split_arguments`."""
        return split_arguments(cls.__name__, cls.TASK_ARGUMENTS, arguments)

    @staticmethod
    def backbone_arguments(objectives, num_layers):
        """What the encoder must be built with, as heads read it.

        Sentences are read where next_sentence is trained, tokens where masked_lm or
        causal_lm is, or else bigram_shift; None is the last block.

        Args:
            objectives: `Objectives`, or a dict that `read_objectives` takes.
            num_layers: int. Number of blocks of the encoder.

        Returns:
            dict of `sentence_layer`, `token_layer` and `concatenate`.

        Raises:
            ValueError: if a head reads a block above `num_layers`.
        """
        return levels_of(as_objectives(objectives), num_layers)

    def compile_for_pretraining(self, optimizer, **kwargs):
        """Compiles with the losses, weights and metrics of the objectives.

        `fit` reports `loss`, `masked_lm_accuracy`, `masked_lm_cross_entropy`, ... and
        of several objectives `masked_lm_loss`, ... too; of one this is the loss.

        Args:
            optimizer: `keras.optimizers.Optimizer`.
            **kwargs: others of `keras.Model.compile`.
        """
        names = self.objectives.names()
        self.compile(
            optimizer,
            loss={name: loss_of(name) for name in names},
            loss_weights={n: getattr(self.objectives, n).loss_weight for n in names},
            # Keras puts the name of the output before these, of several outputs.
            weighted_metrics={
                name: metrics_of(name, "" if len(names) > 1 else f"{name}_")
                for name in names
            },
            **kwargs,
        )

    def freeze_next_sentence(self):
        """Stops the training of everything that feeds the next sentence head.

        Lower NSP-Freeze (Aksoy et al. 2020, section 3): embeddings, blocks up to the
        level of the head, pooler and head stay as they are; the product with the
        table of embeddings continues with the frozen table, bias and transform of that
        head continue to train. Dropout acts in frozen blocks all the same.

        May be called inside `fit`, by a callback: the next step is traced anew. The
        optimizer keeps what it knows of the weights that still train. A second
        call does nothing.

        Raises:
            ValueError: if there is no next_sentence objective, or no block above it.
        """
        check_freezable(self.objectives, len(self.backbone.blocks))
        if self.next_sentence_frozen:
            return
        if self.compiled and not self.optimizer.built:
            # For all weights: the same slots whether a run froze before or after.
            self.optimizer.build(self.trainable_variables)
        self._set_frozen(True)
        if self.train_function is not None:
            self.make_train_function(force=True)

    def compile_from_config(self, config):
        """As Keras's; a frozen model gets an optimizer that knows all weights."""
        frozen = self.next_sentence_frozen
        if frozen:
            self._set_frozen(False)
        super().compile_from_config(config)
        if frozen:
            self._set_frozen(True)

    def save_preset(self, directory, metrics=None, overwrite=False, **card):
        """Writes the encoder, without the heads, into a folder for `load`.

        See `keras_recbert.convert.preset.write_preset`.
        """
        self.backbone.save_preset(directory, metrics, overwrite=overwrite, **card)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        entries = {
            name: dataclasses.asdict(getattr(self.objectives, name))
            for name in self.objectives.names()
        }
        return {
            "backbone": serialize(self.backbone),
            "objectives": entries,
            "preprocessor": serialize(self.preprocessor),
            "name": self.name,
            "next_sentence_frozen": self.next_sentence_frozen,
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        frozen = config.pop("next_sentence_frozen")
        for key in ("backbone", "preprocessor"):
            config[key] = keras.saving.deserialize_keras_object(config[key])
        model = cls(**config)
        if frozen:
            model.freeze_next_sentence()
        return model

    def _set_frozen(self, frozen):
        level = self.objectives.layer_of("next_sentence", len(self.backbone.blocks))
        for layer in (
            self.backbone.embeddings,
            *self.backbone.blocks[:level],
            self.backbone.pooler,
            self.heads["next_sentence"],
        ):
            layer.trainable = not frozen
        self.next_sentence_frozen = frozen


def _make_head(name, backbone):
    if name in LANGUAGE_MODELS:
        return MaskedLMHead(
            backbone.config["vocabulary_size"],
            backbone.hidden_dim,
            backbone.embeddings.token_embedding,
            backbone.config["implementation"],
            dtype=backbone.policy,
            name=name,
        )
    if name == "next_sentence":
        return backbone.next_sentence_head or make_next_sentence_head(name)
    return keras.layers.Dense(
        1,
        kernel_initializer=bert_initializer(),
        dtype="float32",
        name=f"{name}_head",
    )
