"""Training, scoring and asking a model of texts by the methods of Keras."""

import contextlib
import functools

import keras
import tensorflow as tf

from keras_recbert.core.answering import check_may_train
from keras_recbert.ops.implementation import compiling
from keras_recbert.tasks.compiling import compiling_where_it_pays
from keras_recbert.tasks.fine_tuning_defaults import fine_tuning_defaults
from keras_recbert.tasks.fine_tuning_optimizer import (
    ADADELTA_RATE,
    LayerwiseAdamW,
    Recipe,
    WarmupLinearDecay,
    fine_tuning_optimizer,
)
from keras_recbert.tasks.model_inputs import (
    DEFAULT_BATCH_SIZE,
    model_inputs,
    need_preprocessor,
    split_examples,
)
from keras_recbert.tasks.partial_training import learning_rate_factors
from keras_recbert.tasks.row_answers import has_several_rows, predict_answers
from keras_recbert.tasks.text_batches import check_labelled, columns, is_packed, pack
from keras_recbert.tasks.text_streams import is_stream

UNKNOWN_WARMUP_STEPS = 100  # of a run whose number of steps nobody knows


class FineTunedModel(keras.Model):
    """`fit`, `evaluate` and `predict` for texts; `TextModel` says what they take.

    A subclass has `encoder`, `preprocessor`, `head`, `learning_rate`, `pooling` and
    `layerwise_decay`.
    """

    fields = ("text",)  # what an example has; noticed by `fit`, used by the export
    long_texts = "truncate"

    @property
    def _recipe(self):
        """`Recipe` of the optimizer; None of one that is the user's own."""
        return getattr(self._unwrapped_optimizer(), "recipe", None)

    def _unwrapped_optimizer(self):
        """The optimizer or None; in float16 Keras puts another one around it."""
        optimizer = getattr(self, "optimizer", None)
        return getattr(optimizer, "inner_optimizer", optimizer)

    def compile_for_fine_tuning(
        self, total_steps=None, loss=None, metrics=None, **optimizer_arguments
    ):
        """Compiles with BERT's recipe and the task's loss and metrics.

        Args:
            total_steps: int. Optimizer steps of the whole run: the schedule is kept by
                each `fit` that follows, and they share its steps. By default each
                `fit` counts its own steps and has a schedule of its own.
            loss: optional `keras.losses.Loss` in place of the task's, such as
                `keras_recbert.losses.DistillationLoss`.
            metrics: optional list of metrics in place of the task's.
            **optimizer_arguments: `learning_rate`, by default that of the model;
                `optimizer`, `warmup_fraction`, `weight_decay` of
                `fine_tuning_optimizer`.
        """
        recipe = Recipe(total_steps, optimizer_arguments, loss, metrics)
        self._compile(recipe, total_steps or 1)

    def _compile(self, recipe, total_steps, **arguments):
        is_adadelta = recipe.optimizer_arguments.get("optimizer") == "adadelta"
        arguments = {
            "learning_rate": ADADELTA_RATE if is_adadelta else self.learning_rate,
            **recipe.optimizer_arguments,
            **arguments,
        }
        if self.layerwise_decay is not None:
            factors = learning_rate_factors(self, self.layerwise_decay)
            arguments["rate_factors"] = factors
        optimizer = fine_tuning_optimizer(total_steps, **arguments)
        optimizer.recipe = recipe
        self.compile(
            optimizer,
            loss=self.head.loss() if recipe.loss is None else recipe.loss,
            weighted_metrics=(
                self.head.metrics() if recipe.metrics is None else recipe.metrics
            ),
            jit_compile=False,  # XLA would compile a step anew for each length of text
        )

    def save(self, *arguments, **keywords):
        """Keras's, without the state of an optimizer of ours.

        `get_compile_config` leaves that optimizer out of the file, as its schedule has
        run out, so nothing could read the state. `save_weights` keeps it: Keras's
        `BackupAndRestore` resumes from it.
        """
        optimizer = self._unwrapped_optimizer()
        if self._recipe is None:
            return super().save(*arguments, **keywords)
        optimizer.save_own_variables = _save_nothing
        try:
            return super().save(*arguments, **keywords)
        finally:
            del optimizer.save_own_variables

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        steps_per_epoch=None,
        *,
        learning_rate=None,
        seed=None,
        **kwargs,
    ):
        """As `keras.Model.fit`, for texts too.

        Args:
            x: texts, pairs, packed ids, or batches of them: a `tf.data.Dataset`, a
                generator or a `keras.utils.PyDataset`.
            y: labels `(num_examples,)`; part of `x` when that gives batches. Of a
                classifier class ids, names of classes, or one-hot rows. Of several
                heads a dict of these by head.
            sample_weight: weights `(num_examples,)`; of several heads also a dict of
                them by head: 0 where an example lacks a label of a head.
            validation_split: float. Part of the examples, the last ones, to validate
                on.
            validation_data: tuple `(x, y)` or `(x, y, sample_weight)`, or batches.
            learning_rate: float. Highest learning rate; by default the model's. For
                a model that was not compiled with something else.
            seed: optional int. Seed of the order of the examples.
            Others: see `keras.Model.fit`.

        Raises:
            ValueError: if texts come without a vocabulary, are no strings, or do
                not match the labels in number; if the model was compiled with an
                optimizer that knows nothing of its `layerwise_decay`, or of
                `learning_rate`; or if this process only answers, see
                `core.answering.check_may_train`.
        """
        check_may_train()
        self._check_optimizer(learning_rate)
        is_array = not isinstance(x, tf.data.Dataset) and not is_stream(x)
        if validation_split and is_array and not is_packed(x):
            need_preprocessor(self.preprocessor)
            y, sample_weight = self._read_targets(x, y, sample_weight)
            (x, y, sample_weight), validation_data = split_examples(
                self.preprocessor, x, y, sample_weight, validation_split
            )
            validation_split = 0.0
        inputs = self._model_inputs(x, y, sample_weight, batch_size, shuffle, seed)
        if inputs.fields is not None:
            self.fields = inputs.fields
        if validation_data is not None:
            validation_data = self._validation(validation_data, batch_size)
        steps = steps_per_epoch or inputs.num_batches
        if not self.compiled or self._recipe is not None:
            self._use_recipe(steps and steps * (epochs - initial_epoch), learning_rate)
            if verbose:
                self._print_recipe()
        if not self.optimizer.built:  # else the first step would, and be traced twice
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)
        with self._compiling(inputs, batch_size, epochs - initial_epoch, verbose):
            return super().fit(
                inputs.x,
                inputs.y,
                batch_size=inputs.batch_size,
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_split=validation_split,
                validation_data=validation_data,
                shuffle=shuffle and is_array and is_packed(x),
                class_weight=class_weight,
                sample_weight=inputs.sample_weight,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                **kwargs,
            )

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        **kwargs,
    ):
        """As `keras.Model.evaluate`, for texts too. Arguments as for `fit`."""
        if not self.compiled:
            self.compile_for_fine_tuning()
        inputs = self._model_inputs(x, y, sample_weight, batch_size)
        with compiling(False):
            return super().evaluate(
                inputs.x,
                inputs.y,
                batch_size=inputs.batch_size,
                verbose=verbose,
                sample_weight=inputs.sample_weight,
                **kwargs,
            )

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """As `keras.Model.predict`, for texts too.

        Texts that make one batch are answered at once, without a progress bar.

        Args:
            x: texts, pairs, batches of them as for `fit`, or packed ids.

        Returns:
            float32 array of logits, one row an example, in order; of several heads a
            dict of them by head. Where an example may have several rows, a dict of
            arrays: what its head answers, see `QuestionAnsweringHead.answer_rows`.
        """
        with compiling(False):
            if not is_packed(x) and has_several_rows(self.preprocessor):
                if steps is not None:
                    raise ValueError(
                        "`steps` would leave out rows of examples that have several. "
                        f"Received: steps={steps}. Pass fewer examples."
                    )
                size = batch_size or DEFAULT_BATCH_SIZE
                options = {"verbose": verbose, "callbacks": callbacks}
                predict = functools.partial(super().predict, **options)
                return predict_answers(self, x, size, predict)
            if not (is_packed(x) or is_stream(x) or isinstance(x, tf.data.Dataset)):
                need_preprocessor(self.preprocessor)
                parts = columns(self.preprocessor, x)
                one_batch = len(parts[0]) <= (batch_size or DEFAULT_BATCH_SIZE)
                replicas = self.distribute_strategy.num_replicas_in_sync
                if one_batch and steps is None and not callbacks and replicas == 1:
                    return self.predict_on_batch(pack(self.preprocessor, parts))
            inputs = model_inputs(self.preprocessor, None, x, batch_size=batch_size)
            logits = super().predict(
                inputs.x, inputs.batch_size, verbose, steps, callbacks
            )
            if isinstance(logits, tf.RaggedTensor):  # of ragged choices
                logits = logits.to_tensor(self.head.padding_logit).numpy()
            return logits

    def make_predict_function(self, force=False):
        """As Keras's, but lengths of texts are traced without a warning."""
        super().make_predict_function(force)
        self.predict_function._omit_frequent_tracing_warning = True

    def predict_step(self, data):
        """As Keras's; logits of tokens that are put together later have one length."""
        if not (isinstance(data, dict) and "example" in data):
            return super().predict_step(data)
        logits = self({name: data[name] for name in self.input}, training=False)
        return self.head.padded_logits(logits, self.preprocessor.limit)

    def get_compile_config(self):
        """Nothing for the recipe: its schedule has run out when a model is saved."""
        return None if self._recipe is not None else super().get_compile_config()

    def _use_recipe(self, total_steps, learning_rate):
        """Compiles for a `fit`, unless the whole run was announced.

        Args:
            total_steps: int; None if nobody knows: the rate then rises and stays.
            learning_rate: float, or None for the model's.
        """
        recipe = self._recipe or Recipe(None, {})
        if recipe.total_steps is not None:
            return
        arguments = {} if learning_rate is None else {"learning_rate": learning_rate}
        if total_steps is None:
            arguments |= {"warmup_fraction": 1.0, "decay": False}
            total_steps = UNKNOWN_WARMUP_STEPS
        self._compile(recipe, total_steps, **arguments)

    def highest_learning_rate(self):
        """That of the recipe the model is compiled with, a float."""
        schedule = self._unwrapped_optimizer()._learning_rate
        if isinstance(schedule, WarmupLinearDecay):
            return schedule.learning_rate
        return float(schedule)

    def _print_recipe(self):
        schedule = self.optimizer._learning_rate
        rate, steps = self.highest_learning_rate(), "constant"
        if isinstance(schedule, WarmupLinearDecay):
            steps = f"{schedule.total_steps:,} steps"
            if schedule.decay:
                steps += ", rising and falling"
            else:
                steps = f"rising for {steps}, then constant"
        start = fine_tuning_defaults(self.encoder).start
        heads = self.head.heads.values()
        poolings = {head.reading.pooling: None for head in heads}
        ways = "fit(learning_rate=...)"
        if None not in poolings:
            steps += f"; {' and '.join(poolings)} pooling"
            ways += ", build(pooling=...)"
        print(
            f"{self.encoder.name} from {start}: learning rate {rate:g}, {steps}. "
            f"({ways})",
            flush=True,
        )

    def _compiling(self, inputs, batch_size, epochs, verbose):
        """A scope in which what pays is compiled; says so before it is."""
        if self.long_texts == "windows":
            return compiling(False)  # the number of rows is another in each batch
        if inputs.lengths is None:
            return contextlib.nullcontext()  # the caller may know better
        batch_size = batch_size or DEFAULT_BATCH_SIZE
        lengths = inputs.lengths * epochs
        return compiling_where_it_pays(self.encoder, batch_size, lengths, verbose)

    def _check_optimizer(self, learning_rate=None):
        if not self.compiled:
            return
        announced = self._recipe is None or self._recipe.total_steps is not None
        if learning_rate is not None and announced:
            raise ValueError(
                "`learning_rate` is of the recipe that `fit` compiles with, and this "
                f"model is compiled already. Received: learning_rate={learning_rate}. "
                "Pass it to `compile` or `compile_for_fine_tuning`."
            )
        if self.layerwise_decay is None:
            return
        optimizer = self._unwrapped_optimizer()
        if not isinstance(optimizer, LayerwiseAdamW):
            raise ValueError(
                "This model was built with a `layerwise_decay`, which the optimizer "
                "that it was compiled with does not follow. Received: "
                f"layerwise_decay={self.layerwise_decay}, "
                f"optimizer={type(optimizer).__name__}. Use "
                "`compile_for_fine_tuning`, or build the model without."
            )

    def _read_targets(self, x, y, sample_weight=None):
        """Labels of texts, and weights of examples or None, as the loss takes them.

        Raises:
            ValueError: if there are none, or the loss cannot read them.
        """
        if y is None:
            raise ValueError(
                "`y` must hold the labels, (num_examples,), or a dict of them by head. "
                "Received: None. `predict` needs no labels."
            )
        own_loss = self.compiled and self._recipe is None
        if is_packed(x) or self.preprocessor is None:
            targets = self.head.as_targets(y, own_loss)
        else:
            if self.preprocessor.list_fields or has_several_rows(self.preprocessor):
                columns(self.preprocessor, x)  # raises what labels cannot be about
            fields = x
            if not isinstance(x, dict):
                parts = x if isinstance(x, tuple) else (x,)
                fields = dict(zip(self.preprocessor.fields, parts, strict=False))
            targets = self.head.read_labels(fields, y, own_loss)
        return targets, self.head.as_weights(sample_weight)

    def _check_fields(self, x):
        """Raises `ValueError` for texts that the heads of a model cannot share."""

    def _model_inputs(self, x, y, sample_weight, batch_size, shuffle=False, seed=None):
        self._check_fields(x)
        if isinstance(x, tf.data.Dataset):
            check_labelled(x, self.head.dataset_elements)
            self.head.check_elements(x.element_spec)
        recipe = self._recipe
        own_loss = self.compiled and (recipe is None or recipe.loss is not None)
        checks = self.head.checks_batches and not own_loss
        return model_inputs(
            self.preprocessor,
            self._read_targets,
            x,
            y,
            sample_weight,
            batch_size,
            shuffle,
            seed,
            self.head.row_targets,
            self.head.read_labels if checks else None,
        )

    def _validation(self, data, batch_size):
        if isinstance(data, tf.data.Dataset) or is_stream(data):
            return self._model_inputs(data, None, None, batch_size).x
        x, y, *weights = data
        inputs = self._model_inputs(x, y, *(weights or [None]), batch_size)
        if is_packed(x):
            return inputs.x, inputs.y, inputs.sample_weight
        return inputs.x


def _save_nothing(store):
    """What `save` writes of an optimizer that no file restores."""
