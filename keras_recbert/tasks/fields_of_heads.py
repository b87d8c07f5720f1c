"""Texts of a model whose heads read different fields of their examples."""

import tensorflow as tf

from keras_recbert.tasks.model_inputs import need_preprocessor
from keras_recbert.tasks.text_batches import columns, is_packed
from keras_recbert.tasks.text_streams import is_stream


def differ_in(model, x):
    """Whether the heads of a model read different fields of these texts.

    Args:
        model: `TextModel`.
        x: as `TextModel.fit` takes it. Packed ids are the same for all heads, and so
            are batches of a stream.
    """
    of_heads = model.fields_by_head.values()
    return len(set(of_heads)) > 1 and not (is_stream(x) or is_packed(x))


def check_alike(model, x):
    """Raises `ValueError` for texts that heads read different fields of."""
    if not differ_in(model, x):
        return
    heads = (f"{n} reads {' and '.join(f)}" for n, f in model.fields_by_head.items())
    raise ValueError(
        "Examples of `fit`, `evaluate` and of a dataset have the same fields for all "
        f"heads. Received: a model whose head {'; '.join(heads)}. Train it by "
        "`recbert finetune --task A B`; give `predict` lists of texts."
    )


def predict_by_fields(model, x, predict):
    """Logits of each head from the fields that it reads: a dict.

    A head that reads pairs has none where examples are single texts.

    Args:
        model: `TextModel` whose heads differ in their fields.
        x: texts as `TextModel.predict` takes them, no dataset.
        predict: function of texts; gives a dict of logits of all heads.
    """
    if isinstance(x, tf.data.Dataset):
        check_alike(model, x)
    need_preprocessor(model.preprocessor)
    texts, of_heads, logits = columns(model.preprocessor, x), model.fields_by_head, {}
    for fields in set(of_heads.values()):
        if len(fields) <= len(texts):
            found = predict(texts[: len(fields)] if len(fields) > 1 else texts[0])
            logits |= {name: found[name] for name in found if of_heads[name] == fields}
    return {name: logits[name] for name in of_heads if name in logits}
