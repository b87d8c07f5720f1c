"""Plain English out of docstrings: paragraphs and sentences without markup."""

import re

# Words of one text. Longer ones would be cut at about 48 word pieces anyway.
_MIN_WORDS, _MAX_WORDS = 4, 40
# Of one docstring: what comes later is examples and references more often than not.
_MAX_PARAGRAPHS = 6
_BOILERPLATE = re.compile(
    r"copyright|licen[sc]ed?\b|permission is hereby|all rights reserved|"
    r"auto-?(matically )?generated|^generated|do not edit|"
    r"\bauthors?:|created on|public api for|wrapper module for|vim:|coding:|"
    r"^(changed|new|added|deprecated) (in|since)|^todo\b",
    re.IGNORECASE,
)
_ASCII = str.maketrans(
    {"‘": "'", "’": "'", "–": "-", "—": "-", "…": "...", "\u00a0": " "}
)


def paragraphs_of(text):
    """Splits cleaned text into paragraphs of plain prose, without markup."""
    paragraphs = []
    for block in re.split(r"\n\s*\n", text)[:_MAX_PARAGRAPHS]:
        lines = block.splitlines()
        # Over- and underlined lines are headings; what follows them may be prose.
        rules = [
            i for i, line in enumerate(lines) if re.fullmatch(r"[^\w\s]{3,}\s*", line)
        ]
        if rules:
            lines = lines[rules[-1] + 1 :]
        # From the first line of code, of a list, a field or a section on.
        for i, line in enumerate(lines):
            if re.match(
                r"\s*(>>>|\.\. |:\w|@\w|[-*+•] |\(?(\d{1,2}|[a-z])[.)] |\||#|```|"
                r"[A-Z][\w ]{1,30}:\s*$)",
                line,
            ):
                lines = lines[:i]
                break
        paragraph = _plain("\n".join(lines))
        if paragraph:
            paragraphs.append(paragraph)
    return paragraphs


def _plain(text):
    """Removes reST and Markdown markup; returns "" for what is no English prose."""
    text = text.translate(_ASCII)
    text = re.sub(r"(?<=\w-)\n\s*(?=\w)", "", text)  # a word cut at the line's end
    text = re.sub(r"`([^`<]+?)\s*<[^`>]*>`_*", r"\1", text)  # `text <target>`_
    text = re.sub(r"(?<![\w:]):[a-z:+-]+:`[~!.]?([^`]*)`", r"\1", text)  # :role:`text`
    text = re.sub(r"!?\[([^\]]+)\]\([^)]*\)", r"\1", text)  # [text](target)
    text = re.sub(r"\s?\[[\w#*]+\]_+", "", text)  # [1]_
    text = re.sub(r"\b(https?|ftp)://\S+", "", text)
    text = re.sub(r"(?<=[\w)]`)_+", "", text)  # `text`_
    text = re.sub(r"[`\"“”]+|(?<!\w)\*+(?=\w)|(?<=[\w.,)])\*+(?!\w)", "", text)
    text = re.sub(r"(?<!\S)[~!]?\.?(?=[A-Za-z])", "", text)  # ~.Class
    text = text.replace("::", ":").replace("()", "")
    text = " ".join(text.split())
    if len(text.encode("ascii", "ignore")) < 0.98 * len(text):
        return ""
    others = len(re.findall(r"[^A-Za-z ]", text))
    if len(text.split()) < _MIN_WORDS or others > 0.15 * len(text):
        return ""
    return "" if _BOILERPLATE.search(text) else text


_NEVER_LAST = frozenset(["a", "an", "and", "or", "the"])
# A full stop between sentences, not after an abbreviation or an initial.
SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)(?<!\bal)(?<!\b[A-Z])"
    r"[.!?]\s+(?=[A-Z(])"
)


def sentence_of(text):
    """Returns `text` without its final stop, "" if it is no usable sentence."""
    text = text.strip().rstrip(".!? ")
    if re.search(r"[\\$={}<>|]|->", text):
        return ""
    words = text.split()
    if not _MIN_WORDS <= len(words) <= _MAX_WORDS:
        return ""
    # Torn off in the middle, by a list or by code.
    if text[-1] in ":,;-(" or words[-1].lower() in _NEVER_LAST:
        return ""
    if text.count("(") != text.count(")"):
        return ""
    # Most words are plain ones: no signatures, no lists of names.
    plain = sum(bool(re.fullmatch(r"\(?[A-Za-z]?[a-z'-]*[,.;)]*", w)) for w in words)
    return text if plain >= 0.7 * len(words) else ""
