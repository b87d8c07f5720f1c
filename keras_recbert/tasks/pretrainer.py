"""An encoder with the heads of its pre-training objectives."""

import dataclasses

import keras

from keras_recbert.heads.pretraining import OBJECTIVE_HEADS
from keras_recbert.models.encoder_outputs import EncoderOutputs, unread_layers
from keras_recbert.models.recbert_encoder import RecBertEncoder
from keras_recbert.objectives import MaskedLM, NextSentence, Objectives
from keras_recbert.tasks.pretraining_checks import (
    as_objectives,
    check_encoder,
    check_freezable,
    pretrained_heads,
    readings_of,
)
from keras_recbert.tasks.text_arguments import check_preprocessor

BERT_OBJECTIVES = Objectives(masked_lm=MaskedLM(), next_sentence=NextSentence())


@keras.saving.register_keras_serializable("keras_recbert")
class Pretrainer(keras.Model):
    """An encoder and a head for each objective, at any of its blocks.

    Devlin et al. 2018, section 3.3; with heads at lower blocks, Aksoy et al. 2020,
    section 3. The encoder notes where they read (`pretrained_heads`), so that heads
    of tasks read there, too.

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
        encoder: `RecBertEncoder`.
        objectives: `Objectives`, or a dict that `read_objectives` takes; by default
            BERT's two.
        preprocessor: optional `TextPreprocessor` of the vocabulary; becomes that of
            the encoder too, whose preset then has the vocabulary.
        name: str.

    Attributes:
        heads: dict of the name of an objective to its
            `keras_recbert.heads.pretraining.ObjectiveHead`.

    Raises:
        ValueError: if a head reads a block that the encoder does not have; if no
            objective reads the highest blocks; if left-to-right prediction is to be
            learned by an encoder that reads both ways, or tokens of one that reads
            from left to right are read beside the sentence; if freezing next_sentence
            would leave no block to train.
    """

    TASK_ARGUMENTS = ("objectives",)

    def __init__(
        self,
        encoder,
        objectives=BERT_OBJECTIVES,
        preprocessor=None,
        name="pretrainer",
    ):
        if not isinstance(encoder, RecBertEncoder):
            raise ValueError(
                "`encoder` must be a RecBertEncoder, as `keras_recbert.build(name)` "
                f"returns it. Received: {type(encoder).__name__}."
            )
        objectives = as_objectives(objectives)
        check_encoder(encoder, objectives)
        if preprocessor is not None:
            check_preprocessor(preprocessor, encoder)
            encoder.preprocessor = preprocessor
        noted = pretrained_heads(objectives, len(encoder.blocks))
        encoder.set_pretrained_heads(noted)
        readings = readings_of(noted)
        inputs, heads = dict(encoder.input), {}
        for key, reading in readings.items():
            heads[key] = OBJECTIVE_HEADS[key](key, encoder)
            heads[key].reading = reading
            for more in heads[key].inputs:
                inputs[more] = keras.Input((None,), dtype="int32", name=more)
        outputs = EncoderOutputs(encoder, inputs)
        logits = {key: head.connect(outputs) for key, head in heads.items()}
        super().__init__(inputs=inputs, outputs=logits, name=name)
        for layer in unread_layers(encoder, readings.values()):
            layer.trainable = False  # such as the pooler without next_sentence
        self.encoder = encoder
        self.objectives = objectives
        self.heads = heads
        self.preprocessor = preprocessor
        self.next_sentence_frozen = False

    def compile_for_pretraining(self, optimizer, **kwargs):
        """Compiles with the losses, weights and metrics of the objectives.

        `fit` reports `loss`, `masked_lm_accuracy`, `masked_lm_cross_entropy`, ... and
        of several objectives `masked_lm_loss`, ... too; of one this is the loss.

        Args:
            optimizer: `keras.optimizers.Optimizer`.
            **kwargs: others of `keras.Model.compile`.
        """
        heads = self.heads.items()
        self.compile(
            optimizer,
            loss={name: head.loss() for name, head in heads},
            loss_weights={
                name: getattr(self.objectives, name).loss_weight for name, _ in heads
            },
            # Keras puts the name of the output before these, of several outputs.
            weighted_metrics={
                name: head.metrics("" if len(heads) > 1 else f"{name}_")
                for name, head in heads
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
        check_freezable(self.objectives, len(self.encoder.blocks))
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
        self.encoder.save_preset(directory, metrics, overwrite=overwrite, **card)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        entries = {
            name: dataclasses.asdict(getattr(self.objectives, name))
            for name in self.objectives.names()
        }
        return {
            "encoder": serialize(self.encoder),
            "objectives": entries,
            "preprocessor": serialize(self.preprocessor),
            "name": self.name,
            "next_sentence_frozen": self.next_sentence_frozen,
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        frozen = config.pop("next_sentence_frozen")
        for key in ("encoder", "preprocessor"):
            config[key] = keras.saving.deserialize_keras_object(config[key])
        model = cls(**config)
        if frozen:
            model.freeze_next_sentence()
        return model

    def _set_frozen(self, frozen):
        level = self.objectives.layer_of("next_sentence", len(self.encoder.blocks))
        for layer in (
            self.encoder.embeddings,
            *self.encoder.blocks[:level],
            self.encoder.pooler,
            self.heads["next_sentence"].layer,
        ):
            layer.trainable = not frozen
        self.next_sentence_frozen = frozen
