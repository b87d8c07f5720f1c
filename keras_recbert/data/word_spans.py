"""Words of a text, where they are, and texts with some of them replaced."""

import re

from keras_recbert.core.unicode_classes import CJK, PUNCTUATION, code_points

MASK = "[MASK]"


def _class(*tables):
    """Body of a character class of Python's `re`."""
    return "".join(
        f"\\U{first:08x}-\\U{last:08x}" for first, last in code_points(*tables)
    )


_LETTER = rf"[^\s{_class(PUNCTUATION, CJK)}]"
_CLITIC = rf"(?i:s|m|d|ll|re|ve)(?!{_LETTER})"
_NOT = rf"(?i:n['’]t)(?!{_LETTER})"
_WORD = re.compile(
    rf"""
    (?<!\S)[A-Za-z]+(?!\S)  # most words; the rest would find them, more slowly
    | \[MASK\] | (?i:-[lr][rcs]b-)  # as the Penn Treebank writes brackets
    | (?<!{_LETTER})(?:{_LETTER}\.){{2,}}(?!{_LETTER})  # U.S.
    | {_LETTER}+?(?={_NOT}) | {_NOT}  # do|n't
    | ['’]{_CLITIC}  # it|'s
    | {_LETTER}+(?:(?:-|(?<=\d)[.,:/](?=\d)|['’](?!{_CLITIC})){_LETTER}+)*
    | [{_class(CJK)}]
    | (\S)\1*  # punctuation: ..., --, ``
    """,
    re.VERBOSE,
)


def find_words(text):
    """Finds the words of a text.

    They are much like those of the Penn Treebank, which taggers of English know:
    white space separates them, `n't` and `'s` are words, and so is a run of one
    punctuation character; hyphens, and points and commas in numbers, are inside words.
    What BERT takes for punctuation and ideographs is so here. Every character but white
    space is in a word.

    Args:
        text: str.

    Returns:
        List of tuples of where each word begins and ends, in characters.
    """
    return [match.span() for match in _WORD.finditer(text)]


def words_of(text):
    """The words of a text, a list of str; see `find_words`."""
    return [match[0] for match in _WORD.finditer(text)]


def replace_words(text, spans, replacements):
    """Puts other words in the place of some, and leaves all between them as it is.

    Where a word stood against another without white space, as in "don't", a space is
    added if the two would become one word.

    Args:
        text: str.
        spans: as `find_words` gives them.
        replacements: dict of index in `spans`, rising, to a word, str that is not
            empty.

    Returns:
        str.
    """
    parts, end = [], 0
    for place, word in replacements.items():
        begin, stop = spans[place]
        if word == text[begin:stop]:  # as it was, without a space around it
            continue
        if end < begin:
            parts.append(text[end:begin])
        if parts and _would_join(parts[-1], word):
            parts.append(" ")
        parts.append(word)
        if _would_join(word, text[stop : stop + 1]):
            parts.append(" ")
        end = stop
    return "".join([*parts, text[end:]])


def _would_join(left, right):
    """Whether two texts that touch would be read as one word."""
    return _is_of_word(left, -1) and _is_of_word(right, 0)


def _is_of_word(text, place):
    return text == MASK or text[place : place + 1 or None].isalnum()
