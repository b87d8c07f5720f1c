"""What a page needs to know of a model: fields, kinds of answer, labels, an example."""

from keras_recbert.server.models import DEFAULT
from keras_recbert.serving.answers import in_order, keys_by_head

# A kind of answer is known by an output that no other has; the first that fits.
_KINDS = {
    "answer": "question_answering",
    "tags": "tagger",
    "has_label": "multilabel",
    "index": "multiple_choice",
    "label_names": "classifier",
    "scores": "regressor",
    "embeddings": "vectors",
}
# By the fields that a model reads; of taggers by their kind, whose field is `text`.
_EXAMPLES = {
    ("text",): {"text": "A small film with a warm heart, and never a dull minute."},
    ("text", "text_pair"): {
        "text": "A man is playing the guitar on a stage.",
        "text_pair": "Someone makes music.",
    },
    ("question", "context"): {
        "question": "Who wrote the first program?",
        "context": "Charles Babbage designed the Analytical Engine in London. Ada "
        "Lovelace wrote the first program for it, and published it in 1843.",
    },
    ("text", "choices"): {
        "text": "She opened her umbrella, because",
        "choices": ["it began to rain.", "the soup was cold.", "he had lost his key."],
    },
    "tagger": {
        "text": "Ada Lovelace met Charles Babbage in London in June 1833, and wrote to "
        "the Royal Society."
    },
}


def model_card(model):
    """Describes a served model, in plain values of JSON.

    Args:
        model: `keras_recbert.server.models.Model`.

    Returns:
        dict of `name`; `version`, int; `fields`, in their order: dicts of `name` and
        `is_list`; `heads`: dicts of `name` ("" where there is one), `kind` (one of
        question_answering, tagger, multilabel, multiple_choice, classifier, regressor,
        vectors and other) and `labels`, which may be empty; `can_mask`, whether words
        can be masked, by the signatures `tokenize` and `ids`; `has_gradients`, whether
        there is the signature `input_x_gradient`; and `example`, a value for each
        field.
    """
    version = model.version
    signature = version.signatures[DEFAULT]
    outputs = {name: own.outputs for name, own in version.signatures.items()}
    by_head = keys_by_head(outputs) or {"": tuple(signature.outputs)}
    heads = [
        {
            "name": name,
            "kind": _kind(keys),
            "labels": _labels(version.first_answer, name),
        }
        for name, keys in by_head.items()
    ]
    fields = in_order(signature.inputs)
    return {
        "name": model.name,
        "version": version.number,
        "fields": [
            {"name": name, "is_list": signature.inputs[name].shape.rank == 2}
            for name in fields
        ],
        "heads": heads,
        "can_mask": {"tokenize", "ids"} <= set(version.signatures)
        and [head["kind"] for head in heads] == ["classifier"],
        "has_gradients": "input_x_gradient" in version.signatures,
        "example": _example(fields, heads[0]["kind"]),
    }


def _kind(outputs):
    return next((kind for key, kind in _KINDS.items() if key in outputs), "other")


def _labels(answer, head):
    names = answer.get(f"{head}_label_names" if head else "label_names")
    if names is None:
        return []
    return [name.decode("utf-8", "replace") for name in names[0]]


def _example(fields, kind):
    known = _EXAMPLES.get(kind) or _EXAMPLES.get(fields) or {}
    return {name: known.get(name, "") for name in fields}
