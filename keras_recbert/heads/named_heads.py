"""Several heads of one model, each with a name."""

import functools

from keras_recbert.core.names import nearest
from keras_recbert.heads.head import Head, make_head
from keras_recbert.heads.reading import READING_ARGUMENTS, reading_arguments

# Names of signatures, of the key that makes a dict one head, and what Keras puts
# before the metrics of a validation.
RESERVED = (
    "serving_default",
    "ids",
    "tokenize",
    "input_x_gradient",
    "task",
    "val",
)


class NamedHeads:
    """Several heads that read one encoder; stands where a model has one `Head`.

    What a `Head` takes and gives is a dict by the names of the heads here, as Keras
    has it of a model with several outputs: logits, losses, metrics, labels, weights
    of examples.

    Attributes:
        heads: dict of name to `Head`.
        task: dict of name to the task of the head.
        packer: str. Class of the preprocessor, the same for all.

    Args:
        heads: dict of name to a `Head`, the name of a task, or a dict of `task`,
            arguments of the head, `fields`, those of its examples where heads differ
            in them, such as `["text"]`, and where this head reads: `pooling`, `layer`,
            `combine`, `concatenate`, see `TextModel`.

    Raises:
        ValueError: if a name cannot be one of an output, a task is unknown, or heads
            need different packers.
    """

    def __init__(self, heads):
        if not heads:
            raise ValueError("A model needs a head. Received: an empty dict of heads.")
        for name in heads:
            check_head_name(name)
        self.heads = {name: _named_head(name, head) for name, head in heads.items()}
        if len(set(map(id, self.heads.values()))) < len(self.heads):
            raise ValueError(
                "Each name must have a head of its own. Received: one Head under "
                f"several of the names {', '.join(self.heads)}."
            )
        self.task = {name: head.task for name, head in self.heads.items()}
        self.packer = _shared_packer(self.heads)

    def inputs(self, encoder):
        return encoder.input, encoder.input

    def connect(self, outputs, dropout=None):
        return {n: head.connect(outputs, dropout) for n, head in self.heads.items()}

    row_targets = None  # each example is one row
    checks_batches = False
    dataset_elements = f"{Head.dataset_elements}, in a dict by the names of the heads"

    def loss(self):
        return {name: head.loss() for name, head in self.heads.items()}

    def metrics(self):
        return {name: head.metrics() for name, head in self.heads.items()}

    def as_targets(self, labels, own_loss=False):
        return self.read_labels({}, labels, own_loss)

    def read_labels(self, fields, labels, own_loss=False):
        self._check_names("y", labels)
        targets = {}
        for name, head in self.heads.items():
            try:
                targets[name] = head.read_labels(fields, labels[name], own_loss)
            except ValueError as error:
                raise ValueError(f"Labels of the head {name!r}: {error}") from error
        if len({len(target) for target in targets.values()}) > 1:
            lengths = (f"{name}: {len(target)}" for name, target in targets.items())
            raise ValueError(
                "`y` must hold the same number of labels for each head. Received: "
                f"{', '.join(lengths)}. An example that lacks a label of a head takes "
                "any valid one, and the weight 0 in `sample_weight` of that head."
            )
        return targets

    def as_weights(self, sample_weight):
        if sample_weight is None:
            return None
        if not isinstance(sample_weight, dict):
            return dict.fromkeys(self.heads, sample_weight)
        self._check_names("sample_weight", sample_weight)
        return sample_weight

    def check_elements(self, spec):
        targets = dict(zip(("y", "sample_weight"), spec[1:], strict=False))
        for argument, target in targets.items():
            if argument == "y" or isinstance(target, dict):
                self._check_names(argument, target)

    def answer(self, logits):
        """Answers of all heads, `HEAD_answer` such as `sentiment_label`."""
        answers = {}
        for name, of_head in self.answers_by_head().items():
            for key, value in of_head(logits).items():
                if f"{name}_{key}" in answers:
                    raise ValueError(
                        "Answers of a SavedModel are called HEAD_answer, and two of "
                        f"the heads {', '.join(self.heads)} give {name}_{key}. Name "
                        "one of these heads otherwise."
                    )
                answers[f"{name}_{key}"] = value
        return answers

    def answer_rows(self, logits, rows, columns):
        return self.answer(logits)

    def answers_by_head(self):
        def answer_of(name, logits):
            return self.heads[name].answer(logits[name])

        return {name: functools.partial(answer_of, name) for name in self.heads}

    def describe(self, encoder):
        return {
            name: {
                **head.describe(encoder),
                **reading_arguments(head.reading, encoder),
                **({} if head.own_fields is None else {"fields": [*head.own_fields]}),
            }
            for name, head in self.heads.items()
        }

    def _check_names(self, argument, given):
        """Raises `ValueError` if `given` is not a dict with an entry for each head."""
        if not isinstance(given, dict):
            raise ValueError(
                f"`{argument}` must be a dict by the names of the heads, "
                f"{', '.join(self.heads)}. Received: a {type(given).__name__}."
            )
        for name in given:
            if name not in self.heads:
                raise ValueError(
                    f"`{argument}` names no head of this model: {name!r}. "
                    f"{nearest(name, self.heads)}Valid: {', '.join(self.heads)}."
                )
        missing = [name for name in self.heads if given.get(name) is None]
        if missing:
            advice = (
                "Give 1 for each example that counts."
                if argument == "sample_weight"
                else "Examples that lack a label of a head take any valid one, and the "
                "weight 0 in `sample_weight` of that head."
            )
            raise ValueError(
                f"`{argument}` must have an entry for each head. Missing: "
                f"{', '.join(missing)}. {advice}"
            )


def check_head_name(name):
    """Raises `ValueError` for what cannot name a head among several."""
    valid = (
        isinstance(name, str)
        and name.isidentifier()
        and name.isascii()
        and not name.startswith(("_", "val_"))
    )
    if not valid or name in RESERVED:
        raise ValueError(
            "The name of a head must be an identifier of ASCII letters, digits and _, "
            "starting with a letter and not with val_, which Keras puts before scores "
            f"of a validation; and none of {', '.join(RESERVED)}. Received: {name!r}."
        )


def as_head(head):
    """A `Head`, or `NamedHeads`, of what describes it.

    Args:
        head: `Head`, `NamedHeads`, the name of a task, a dict of `task` and the
            arguments of its head, or a dict of several of these by name.

    Raises:
        ValueError: if it is something else, or there is no head for a task.
    """
    if isinstance(head, (Head, NamedHeads)):
        return head
    if isinstance(head, str):
        return make_head(head, {})
    if not isinstance(head, dict):
        raise ValueError(
            "`head` must be a keras_recbert.heads.Head, the name of a task, a dict of "
            "`task` and the arguments of its head, or a dict of these by name. "
            f"Received: {head!r}."
        )
    if "task" not in head:
        return NamedHeads(head)
    return make_head(head["task"], {k: v for k, v in head.items() if k != "task"})


def _named_head(name, head):
    """A `Head` that says what and where it reads, if that is its own, with weights of
    its name."""
    reading, fields = {}, None
    if isinstance(head, dict):
        given = {key: head[key] for key in READING_ARGUMENTS if key in head}
        reading = {key: value for key, value in given.items() if value is not None}
        fields = head.get("fields")
        given = {*given, "fields"}
        head = {key: value for key, value in head.items() if key not in given}
    if not isinstance(head, (str, Head)) and not (
        isinstance(head, dict) and "task" in head
    ):
        raise ValueError(
            f"Head {name!r} must be the name of a task, a dict of `task` and its "
            f"arguments, or a keras_recbert.heads.Head. Received: {head!r}."
        )
    head = as_head(head)
    head.own_reading = reading
    head.own_fields = None if fields is None else tuple(fields)
    # Each layer of a model needs another name.
    head.dense.name = f"head_{name}"
    if head.relu is not None:
        head.relu.name = f"head_{name}_relu"
    return head


def _shared_packer(heads):
    packers = {name: head.packer for name, head in heads.items()}
    if len(set(packers.values())) > 1:
        listed = ", ".join(f"{name}: {packer}" for name, packer in packers.items())
        raise ValueError(
            "Heads of one model read the same rows, so they must share one packer. "
            f"Received: {listed}."
        )
    (packer,) = set(packers.values())
    joins_rows = (
        type(one).answer_rows is not Head.answer_rows for one in heads.values()
    )
    if any(joins_rows):
        raise ValueError(
            "A head that joins the rows of an example is the only one of its model, "
            "and has no name, such as in task='question_answering'. Received: "
            f"{', '.join(f'{name} ({one.task})' for name, one in heads.items())}."
        )
    return packer
