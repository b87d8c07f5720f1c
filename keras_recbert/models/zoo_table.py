"""The zoo as a Markdown table. Imports no TensorFlow."""

from keras_recbert.models.registry import get_card

HEADER = "name, parameters, in the paper, source, published scores, measured scores"


def make_zoo_table(names):
    """A Markdown table of cards.

    Args:
        names: list of str.

    Returns:
        str.
    """
    rows = [HEADER.split(", "), ["---"] * 6]
    for name in names:
        card = get_card(name)
        count = "–" if card.num_parameters is None else f"{card.num_parameters:,}"
        rows.append(
            [
                f"`{name}`",
                count,
                card.published_parameters or "–",
                f"{card.paper.partition(',')[0]}: {card.table}",
                _scores(card.targets),
                _scores(card.measured),
            ]
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _scores(scores):
    return "; ".join(f"{name} {score:g}" for name, score in scores.items()) or "–"
