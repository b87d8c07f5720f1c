"""Words and their tags in columns: CoNLL, a word a line, and CoNLL-U."""

import re

from keras_recbert.core.folders import new_file
from keras_recbert.core.lines import decode_line
from keras_recbert.core.names import nearest
from keras_recbert.data.examples import Examples
from keras_recbert.data.gzip_files import read_bytes
from keras_recbert.metrics.tagging import stray_tags

DOCUMENT = "-DOCSTART-"
CONLLU_COLUMNS = 10
FORM, UPOS = 1, 3  # columns of CoNLL-U, from 0
WORD_ID, OTHER_ID = re.compile(r"[0-9]+"), re.compile(r"[0-9]+[-.][0-9]+")
RENAMED = {
    "L-": "L- is of BILOU: rename L- to E-, U- to S-.",
    "U-": "U- is of BILOU: rename L- to E-, U- to S-.",
    "M-": "M- is of BMES: rename M- to I-.",
}


def read_conll(path, split, label_names=None, word_column=0, tag_column=-1) -> Examples:
    """Reads columns as the CoNLL shared tasks have them.

    A word a line, a blank line between sentences; lines of `-DOCSTART-` are skipped.
    Columns are separated by tabs, or where a line has none by spaces.

    Args:
        path: a file, or one that gzip compressed, `.gz`; UTF-8.
        split: str. A test split may have words alone.
        label_names: optional sequence of str. The tags that there may be.
        word_column, tag_column: int. Their places, from 0; -1 is the last.

    Returns:
        `Examples` of the field `words` and the target `tags`, lists of lists of str.

    Raises:
        ValueError: where the file is not UTF-8 or empty, a column is missing, a tag is
            not among `label_names`, or without these none of entities where most are;
            names file and line.
    """
    sentences = _Sentences(path, label_names)
    num_columns = None
    for number, line in _lines(path):
        if not line.strip():
            sentences.end()
            continue
        columns = line.split("\t") if "\t" in line else line.split()
        if columns[0] == DOCUMENT:
            continue
        if num_columns is None:
            num_columns, first = len(columns), number
        if len(columns) != num_columns:
            raise ValueError(
                f"{path}:{number}: expected {num_columns} columns, as on line {first}. "
                f"Received: {len(columns)}, {line!r}."
            )
        if split.startswith("test") and num_columns == 1:
            sentences.add(number, columns[0])
            continue
        needed = max(2, word_column + 1, tag_column + 1)
        if num_columns < needed:
            raise ValueError(
                f"{path}:{number}: expected {needed} columns or more, with a word and "
                f"its tag, separated by tabs or spaces. Received: {num_columns}, "
                f"{line!r}."
            )
        sentences.add(number, columns[word_column], columns[tag_column])
    return sentences.examples()


def read_conllu(path, split, label_names=None, tag_column=UPOS) -> Examples:
    """Reads the words of CoNLL-U and a column of tags, by default UPOS.

    Comments are skipped, and so are multiword tokens (`1-2`), whose words follow, and
    empty nodes (`1.1`), as https://universaldependencies.org/format.html says.

    Args:
        path, split, label_names: as for `read_conll`.
        tag_column: int. From 0: 3 is UPOS, 4 is XPOS.

    Returns:
        `Examples` as `read_conll`.

    Raises:
        ValueError: as `read_conll`; for lines without ten columns, and ids of other
            forms.
    """
    sentences = _Sentences(path, label_names)
    for number, line in _lines(path):
        if not line.strip():
            sentences.end()
            continue
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != CONLLU_COLUMNS:
            raise ValueError(
                f"{path}:{number}: expected {CONLLU_COLUMNS} columns, separated by "
                f"tabs. Received: {len(columns)}, {line!r}."
            )
        if WORD_ID.fullmatch(columns[0]):
            sentences.add(number, columns[FORM], columns[tag_column])
        elif not OTHER_ID.fullmatch(columns[0]):
            raise ValueError(
                f"{path}:{number}: expected an id such as 1, 1-2 or 1.1 in the first "
                f"column. Received: {columns[0]!r}."
            )
    return sentences.examples()


def write_conll(folder, examples, predictions):
    """Writes `predictions.conll`: word, tag and predicted tag, separated by spaces.

    The script `conlleval` of the CoNLL shared tasks reads it as it is.

    Args:
        folder: path.
        examples: `Examples` with the target `tags`.
        predictions: dict of arrays, as `TokenClassifierHead.answer_rows` has them.
    """
    lines = []
    for words, tags, found in zip(
        examples.fields["words"],
        examples.targets["tags"],
        predictions["tags"],
        strict=True,
    ):
        # Behind the last word of a sentence there is padding.
        for word, tag, one in zip(words, tags, found, strict=False):
            lines.append(f"{word} {tag} {one.decode('utf-8')}\n")
        lines.append("\n")
    with new_file(folder / "predictions.conll") as path:
        path.write_bytes("".join(lines).encode("utf-8"))


class _Sentences:
    """Collects the words and tags of a file.

    Args:
        path: path of the file, for errors.
        label_names: optional sequence of str. The tags that there may be.
    """

    def __init__(self, path, label_names):
        self.path = path
        self.label_names = label_names
        self.words, self.tags = [[]], [[]]
        self.lines = {}  # where a tag is first

    def add(self, number, word, tag=None):
        """Adds a word of a line; `tag` None where the file has none."""
        if not word:
            raise ValueError(f"{self.path}:{number}: expected a word. Received: ''.")
        self.words[-1].append(word)
        if tag is None:
            return
        if not tag or (self.label_names is not None and tag not in self.label_names):
            valid = self.label_names or ()
            listed = f"Valid: {', '.join(valid)}." if valid else ""
            raise ValueError(
                f"{self.path}:{number}: {tag!r} is not a valid tag. "
                f"{nearest(tag, valid)}{listed}".rstrip()
            )
        self.tags[-1].append(tag)
        self.lines.setdefault(tag, number)

    def end(self):
        """Ends a sentence, if there is one."""
        if self.words[-1]:
            self.words.append([])
            self.tags.append([])

    def examples(self):
        self.end()
        words, tags = self.words[:-1], self.tags[:-1]
        if not words:
            raise ValueError(f"{self.path} has no sentences.")
        if self.label_names is None:
            self._check_scheme([tag for sentence in tags for tag in sentence])
        return Examples({"words": words}, {"tags": tags} if any(tags) else None)

    def _check_scheme(self, tags):
        stray = stray_tags(tags)
        if stray:
            tag, valid = stray[0], self.lines.keys() - set(stray)
            tip = RENAMED.get(tag[:2]) or nearest(tag, sorted(valid))
            raise ValueError(
                f"{self.path}:{self.lines[tag]}: expected a tag of an entity, as most "
                "are: O, or such as B-person, I-person (BIO, IOB1), E-person, S-person "
                f"(BIOES). Received: {tag!r}. {tip}".rstrip()
            )


def _lines(path):
    """Numbers, from 1, and texts of the lines of a file."""
    for number, line in enumerate(read_bytes(path).split(b"\n"), 1):
        yield number, decode_line(line, path, number)
