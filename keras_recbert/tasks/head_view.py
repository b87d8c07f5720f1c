"""One head of a model that has several, seen as a model of its own."""

from keras_recbert.core.names import nearest
from keras_recbert.tasks.fine_tuned_model import FineTunedModel


class HeadView:
    """What scores and asks one head of a model with several, on the same weights.

    The model answers with all its heads, which costs next to nothing beside the
    encoder, so that its graph is traced once for all of them.

    Attributes:
        head: the `Head`.
        encoder, preprocessor: those of the model.
        fields: tuple of str. Fields of an example of the head.

    Args:
        model: `TextModel` with several heads.
        name: str. The head's.

    Raises:
        ValueError: if the model has no head of this name.
    """

    long_texts = "truncate"

    def __init__(self, model, name):
        if name not in model.heads:
            raise ValueError(
                f"The model has no head {name!r}. {nearest(name, model.heads)}"
                f"Valid: {', '.join(model.heads)}."
            )
        self._model, self._name = model, name
        self.head = model.heads[name]
        self.encoder, self.preprocessor = model.encoder, model.preprocessor
        self.fields = model.fields_by_head[name]

    def predict(self, x, **options):
        """Logits of the head; arguments as for `FineTunedModel.predict`."""
        return FineTunedModel.predict(self._model, x, **options)[self._name]

    def predict_on_batch(self, x):
        """Logits of the head; arguments as for `keras.Model.predict_on_batch`."""
        return self._model.predict_on_batch(x)[self._name]
