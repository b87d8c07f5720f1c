"""Names of models on hubs: `hf://user/name@revision`, `kaggle://owner/model/...`."""

import dataclasses
import os
import re

HUGGING_FACE, KAGGLE = "hf", "kaggle"
# `pathlib.Path` makes one slash of two.
_START = re.compile(rf"({HUGGING_FACE}|{KAGGLE}):/+")
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_FORMS = {
    HUGGING_FACE: re.compile(
        rf"(?P<model>{_PART}/{_PART})(?:@(?P<revision>[A-Za-z0-9._/-]+))?"
    ),
    KAGGLE: re.compile(
        rf"(?P<model>{_PART}/{_PART}/{_PART}/{_PART})(?:/(?P<revision>[1-9][0-9]*))?"
    ),
}
_SHOWN = {
    HUGGING_FACE: "hf://user/name, with a revision hf://user/name@revision",
    KAGGLE: (
        "kaggle://owner/model/keras/variation, with a version "
        "kaggle://owner/model/keras/variation/3"
    ),
}


@dataclasses.dataclass(frozen=True)
class HubName:
    """A model on a hub.

    Args:
        hub: str. `"hf"` or `"kaggle"`.
        model: str. `user/name`, or `owner/model/framework/variation`.
        revision: str. Branch, tag or commit, or number of a version; None for the
            newest.
    """

    hub: str
    model: str
    revision: str | None = None

    def __str__(self):
        between = "@" if self.hub == HUGGING_FACE else "/"
        end = "" if self.revision is None else f"{between}{self.revision}"
        return f"{self.hub}://{self.model}{end}"


def is_hub_name(path):
    """Whether a str or path is of a model on a hub, not of a folder or file."""
    is_path = isinstance(path, (str, os.PathLike))
    return is_path and _START.match(os.fspath(path)) is not None


def parse_hub_name(text):
    """The model that a name says.

    Args:
        text: str or path, for which `is_hub_name` is true.

    Returns:
        `HubName`.

    Raises:
        ValueError: if it is not of the form of its hub.
    """
    text = os.fspath(text)
    start = _START.match(text)
    hub = start[1]
    found = _FORMS[hub].fullmatch(text[start.end() :])
    if found is None or "--" in found["model"] or ".." in text:
        raise ValueError(
            f"A model on {hub}:// is named {_SHOWN[hub]}. Received: {text!r}."
        )
    return HubName(hub, found["model"], found["revision"])
