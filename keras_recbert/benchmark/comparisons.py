"""What is compared with what, at which shapes, and which ratio is the goal."""

import dataclasses
import re

from keras_recbert.core.names import nearest
from keras_recbert.models import zoo  # noqa: F401  registers the names
from keras_recbert.models.registry import get_card

# bfloat16 has the weights in bfloat16 too, mixed_bfloat16 has them in float32: a
# mixed policy in Keras, autocast in torch.
PRECISIONS = ("float32", "mixed_bfloat16", "bfloat16")
PASSES = ("forward", "train")
# Left out of a run of two minutes that names nothing.
SLOW = ("bilstm_256", "savedmodel", "tasks", "teacher", "scaling")


@dataclasses.dataclass(frozen=True, order=True)
class Shape:
    """Rows of a batch, and tokens of a row; 0 where texts decide it."""

    batch_size: int
    sequence_length: int

    def __str__(self):
        if not self.sequence_length:
            return f"batches of {self.batch_size}"
        return f"{self.batch_size}x{self.sequence_length}"


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Something to time.

    Attributes:
        label: str. Name in every table.
        worker: str. Which of `environments.PEERS` runs it.
        job: dict. What the worker is asked to build.
    """

    label: str
    worker: str
    job: dict


@dataclasses.dataclass(frozen=True)
class Goal:
    """The time of the subject, divided by that of a reference, is to be low.

    Attributes:
        reference: str. Label of the reference.
        at_most: float.
        passes, precisions: where the goal holds.
        shapes: tuple of `Shape` where it holds; those of the comparison by default.
    """

    reference: str
    at_most: float
    passes: tuple = PASSES
    precisions: tuple = PRECISIONS
    shapes: tuple | None = None


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A subject, the references its time is divided by, and where it is timed.

    Attributes:
        name: str. What `recbert benchmark NAME` calls it.
        title: str.
        subject: `Candidate`.
        references: tuple of `Candidate`.
        goals: tuple of `Goal`.
        shapes: tuple of `Shape`.
        passes: tuple of `PASSES`.
        precisions: tuple of `PRECISIONS`.
        unit: str. What is counted a second.
        growth: bool. Whether the growth over the shapes is the point.
        reads: str. What the subject answers: `"texts"`, `"questions"`, `"examples"` of
            a task; empty for ids that are made up.
        task: str. Task of the model that answers.
    """

    name: str
    title: str
    subject: Candidate
    references: tuple
    goals: tuple = ()
    shapes: tuple = (Shape(8, 128), Shape(8, 512))
    passes: tuple = PASSES
    precisions: tuple = PRECISIONS
    unit: str = "tokens"
    growth: bool = False
    reads: str = ""
    task: str = ""

    def goal(self, reference, shape, pass_, precision):
        """The ratio that is the goal for a reference label there, or None."""
        for goal in self.goals:
            if (
                goal.reference == reference
                and shape in (goal.shapes or self.shapes)
                and pass_ in goal.passes
                and precision in goal.precisions
            ):
                return goal.at_most
        return None


def comparisons(quick=False):
    """All comparisons, by name.

    Args:
        quick: bool. Small models and one shape, for a run of two minutes.
    """
    make = [
        _swish_rnn(quick),
        _bilstm(768, Shape(8, 128), quick),
        _bilstm(256, Shape(32, 128), quick),
        _swish_model(quick),
        _trans_blstm_model(quick),
        _bert_model(quick),
        _savedmodel(quick),
        _tasks(quick),
        _teacher(quick),
        _scaling(quick),
    ]
    return {comparison.name: comparison for comparison in make}


def choose(names, quick=False):
    """The comparisons of these names, or all; all that are quick, if `quick`.

    Raises:
        ValueError: for a name that is none; names the nearest.
    """
    known = comparisons(quick)
    for name in names:
        if name not in known:
            raise ValueError(
                f"No comparison is called {name!r}. {nearest(name, known)}"
                f"Valid: {', '.join(known)}."
            )
    if not names:
        names = [name for name in known if not quick or name not in SLOW]
    return [known[name] for name in dict.fromkeys(names)]


def parse_shape(text, needs_tokens=True):
    """`Shape(8, 128)` of `"8x128"`; `Shape(32, 0)` of `"32"`, where that will do.

    Raises:
        ValueError: if the text is no shape.
    """
    match = re.fullmatch(r"([1-9]\d*)(?:x([1-9]\d*))?", text)
    if not match or (needs_tokens and not match[2]):
        rows = "" if needs_tokens else ", or rows, such as 32, where texts are read"
        raise ValueError(
            f"A shape is rows x tokens, such as 8x128, both at least 1{rows}. "
            f"Received: {text!r}."
        )
    return Shape(*map(int, match.groups(default=0)))


def sizes_of(name, **overrides):
    """Sizes of a plain BERT of the zoo, with those that its card leaves open."""
    card = {
        "vocabulary_size": 30522,
        "max_sequence_length": 512,
        "num_segments": 2,
        "dropout": 0.1,
        **get_card(name).sizes,
        **overrides,
    }
    return {"intermediate_dim": 4 * card["hidden_dim"], **card}


def _quick_or(quick, comparison, passes=PASSES):
    if not quick:
        return comparison
    return dataclasses.replace(
        comparison,
        shapes=comparison.shapes[:1],
        precisions=("float32",),
        passes=tuple(one for one in comparison.passes if one in passes),
    )


def _layer(label, worker, name, hidden_dim, **arguments):
    job = {"kind": "layer", "name": name, "hidden_dim": hidden_dim}
    return Candidate(label, worker, {**job, "arguments": arguments})


def _model(name, **overrides):
    job = {"kind": "model", "name": name, "overrides": overrides}
    return Candidate(name, "recbert", job)


def _peer(label, worker, name, **overrides):
    job = {"kind": "model", "name": name, "sizes": sizes_of(name, **overrides)}
    return Candidate(label, worker, job)


def _swish_rnn(quick):
    comparison = Comparison(
        "swish_rnn",
        "SwishRNN (state 2048, step 1) and the feed-forward it replaces (3072), "
        "768 wide",
        _layer("SwishRNN", "recbert", "SwishRNN", 768, recurrent_dim=2048),
        (
            _layer("FeedForward", "recbert", "FeedForward", 768, intermediate_dim=3072),
            _layer(
                "Keras Dense gelu, Dense",
                "keras",
                "feed_forward",
                768,
                intermediate_dim=3072,
            ),
        ),
        (Goal("FeedForward", 0.80),),
    )
    return _quick_or(quick, comparison)


def _bilstm(units, shape, quick):
    comparison = Comparison(
        f"bilstm_{units}",
        f"Bidirectional LSTM, {units} units a direction on inputs {units} wide",
        _layer("BidirectionalLSTM", "recbert", "BidirectionalLSTM", units, units=units),
        (
            _layer(
                "Keras Bidirectional(LSTM)",
                "keras",
                "bidirectional_lstm",
                units,
                units=units,
            ),
            _layer("torch.nn.LSTM", "torch", "lstm", units, units=units),
        ),
        (
            Goal("Keras Bidirectional(LSTM)", 0.25, passes=("train",)),
            Goal("torch.nn.LSTM", 0.85, shapes=(shape,)),
        )
        if units == 768
        else (Goal("torch.nn.LSTM", 1.0),),
        shapes=(shape, Shape(8, 512)) if units == 768 else (shape,),
    )
    return _quick_or(quick, comparison)


def _swish_model(quick):
    size = "tiny" if quick else "base"
    rab = f"bert_rab_{size}"
    comparison = Comparison(
        "swish_model",
        f"swish_{size} and the BERT it replaces",
        _model(f"swish_{size}"),
        (_model(rab),),
        () if quick else (Goal(rab, 0.95, passes=("train",)),),
    )
    return _quick_or(quick, comparison, passes=("train",))


def _trans_blstm_model(quick):
    size = "tiny" if quick else "base"
    bert = f"bert_{size}"
    comparison = Comparison(
        "trans_blstm_model",
        f"trans_blstm_{size} and the BERT it extends",
        _model(f"trans_blstm_{size}"),
        (_model(bert),),
        () if quick else (Goal(bert, 2.3, passes=("train",)),),
    )
    return _quick_or(quick, comparison, passes=("train",))


def _bert_model(quick):
    name = "bert_tiny" if quick else "bert_base"
    reduced = ("mixed_bfloat16", "bfloat16")
    comparison = Comparison(
        "bert_model",
        f"{name} and the same BERT elsewhere",
        _model(name),
        (
            _peer("Hugging Face torch", "torch", name),
            _peer("KerasHub", "kerashub", name),
            _peer("Model Garden", "model_garden", name),
        ),
        ()
        if quick
        else (
            Goal("Hugging Face torch", 1.0, precisions=reduced),
            Goal("KerasHub", 0.6, precisions=reduced),
        ),
    )
    return _quick_or(quick, comparison)


def _savedmodel(quick):
    comparison = Comparison(
        "savedmodel",
        "Raw texts to scores: SavedModel, and tokenizer with model",
        Candidate("raw-string SavedModel", "savedmodel", {"kind": "serving"}),
        (
            Candidate(
                "Hugging Face tokenizer + torch model", "torch", {"kind": "serving"}
            ),
        ),
        # 1.5 times the texts a second.
        (Goal("Hugging Face tokenizer + torch model", 1 / 1.5),),
        shapes=(Shape(1, 0), Shape(32, 0)),
        passes=("forward",),
        precisions=("float32",),
        unit="texts",
        reads="texts",
        task="classifier",
    )
    return _quick_or(quick, comparison)


def _tasks(quick):
    peer = "Hugging Face tokenizer + torch model + Python"
    comparison = Comparison(
        "tasks",
        "Questions on passages to answers: SavedModel, and tokenizer with model and "
        "the search for the best spans",
        Candidate("raw-string SavedModel", "savedmodel", {"kind": "tasks"}),
        (Candidate(peer, "torch_questions", {"kind": "tasks"}),),
        # 1.5 times the questions a second.
        (Goal(peer, 1 / 1.5),),
        shapes=(Shape(1, 0), Shape(32, 0)),
        passes=("forward",),
        precisions=("float32", "bfloat16"),
        unit="questions",
        reads="questions",
        task="question_answering",
    )
    return _quick_or(quick, comparison)


def _teacher(quick):
    peer = "Hugging Face tokenizer + torch model"
    in_order, by_length = f"{peer}, order of the data", f"{peer}, sorted by length"
    comparison = Comparison(
        "teacher",
        "Raw texts to the logits of a transfer set: `recbert distill`, and tokenizer "
        "with model",
        Candidate("teacher of recbert distill", "recbert", {"kind": "teacher"}),
        (
            Candidate(in_order, "torch_teacher", {"sorted": False}),
            Candidate(by_length, "torch_teacher", {"sorted": True}),
        ),
        # 1.5 times the texts a second.
        (Goal(in_order, 1 / 1.5),),
        shapes=(Shape(128, 0),),
        passes=("forward",),
        precisions=("float32", "bfloat16"),
        unit="texts",
        reads="examples",
    )
    return _quick_or(quick, comparison)


def _scaling(quick):
    lengths = (64, 128, 256) if quick else (64, 128, 256, 512, 1024, 2048)
    batches = (1, 4) if quick else (1, 2, 4, 8, 16, 32, 64)
    small = {"num_layers": 2, "max_sequence_length": max(lengths)}
    return Comparison(
        "scaling",
        "Two layers of base width over lengths and batches",
        _model("bert_base", **small),
        (
            _model("swish_base", **small),
            _model("trans_blstm_base", **small),
            _peer("Hugging Face torch", "torch", "bert_base", **small),
        ),
        shapes=tuple(
            dict.fromkeys(
                [Shape(2, length) for length in lengths]
                + [Shape(batch, 128) for batch in batches]
            )
        ),
        precisions=("float32",),
        growth=True,
    )
