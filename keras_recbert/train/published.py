"""Published scores of the cards of the zoo, by the names of tasks and metrics."""

from keras_recbert.models.registry import get_card, list_models

TITLES = {
    "cola": "CoLA",
    "sst2": "SST-2",
    "mrpc": "MRPC",
    "qqp": "QQP",
    "stsb": "STS-B",
    "mnli": "MNLI",
    "qnli": "QNLI",
    "rte": "RTE",
    "wnli": "WNLI",
    "boolq": "BoolQ",
    "cb": "CommitmentBank",
    "multirc": "MultiRC",
    "wsc": "WSC",
    "copa": "COPA",
    "swag": "SWAG",
    "arc_challenge": "ARC-Challenge",
    "squad1": "SQuAD 1.1",
    "squad2": "SQuAD 2.0",
    "conll2003": "CoNLL-2003",
    "wnut17": "WNUT-17",
    "ud_ewt_pos": "UD English EWT, parts of speech",
}
METRICS = {
    "f1": "F1",
    "entity_f1": "F1",
    "exact_match": "exact match",
    "matthews": "Matthews correlation",
    "pearson": "Pearson correlation",
    "spearman": "Spearman correlation",
    "matched_accuracy": "accuracy",
}
SPLITS = ("validation", "test")


def published_score(model, task, metric):
    """The published score of an encoder, beside ours.

    Args:
        model: name of the encoder.
        task: name of the task.
        metric: name of the score without "validation_", such as `"f1"`.

    Returns:
        Tuple of the score in percent and the split it is of, `"validation"` or, where
        there is no such score, `"test"`; None where the card has neither.
    """
    if model not in list_models() or task not in TITLES:
        return None
    targets = get_card(model).targets
    title = "MNLI-m" if metric == "matched_accuracy" else TITLES[task]
    for split in SPLITS:
        name = f"{title} {split} {METRICS.get(metric, metric)}"
        if name in targets:
            return targets[name], split
    return None


def source_of(model):
    """Where the scores of a card were published: paper and table."""
    card = get_card(model)
    return f"{card.paper}, {card.table}"
