"""Texts to the ids that an exported .tflite or .onnx file takes, in plain Python.

Standard library only, so that it runs where the model does, and short enough to be
written anew in the language of a device. `recbert export` puts it beside the model.
"""

import json
import pathlib
import re
import unicodedata


class ReferenceTokenizer:
    """Packs one text as `[CLS] a [SEP]`, or a pair as `[CLS] a [SEP] b [SEP]`.

    It gives the ids of `keras_recbert.text.TextPreprocessor`, without padding, of texts
    of up to 16,384 words.

    Args:
        path: str or path of `NAME.json`, beside which `NAME.vocab.txt` is.

    Call arguments:
        *texts: one str, or two of a pair.

    Returns:
        dict of `token_ids`, `segment_ids` and `padding_mask`, lists of int.

    Raises:
        ValueError: if the model's texts become ids in another way; of a pair, if there
            is no room for it.
    """

    def __init__(self, path):
        path = pathlib.Path(path)
        self.card = card = json.loads(path.read_text(encoding="utf-8"))
        if card["format_version"] != 2:
            raise ValueError(
                f"{path} must have format_version 2. Received: "
                f"{card['format_version']}. Write it anew: recbert export --overwrite."
            )
        options = dict(card["tokenizer_options"])
        self.lowercase = options.pop("lowercase")
        marks = options.pop("strip_accents")
        self.strip_accents = self.lowercase if marks is None else marks
        known = ("TextPreprocessor", ("WordPieceTokenizer", "WordTokenizer"))
        if card["packer"] != known[0] or card["tokenizer"] not in known[1] or options:
            raise ValueError(
                f"{path} must be of a {known[0]} with a {' or '.join(known[1])} and no "
                f"other options than lowercase and strip_accents. Received: "
                f"{card['packer']}, {card['tokenizer']}, {options}. Run "
                "`recbert predict`, or write ids of your own."
            )
        vocabulary = path.with_suffix(".vocab.txt").read_bytes().decode("utf-8")
        self.ids = {piece: i for i, piece in enumerate(vocabulary.split("\n")[:-1])}
        # Ranges of code points such as "41-5A 5F": the body of a class of characters.
        drop, marks, space, alone = (
            re.sub(r"(\w+)-?(\w*) ?", _class_range, card["characters"][name])
            for name in ("dropped", "nonspacing_marks", "spaces", "words_of_their_own")
        )
        self.dropped = re.compile(f"[{drop}{marks if self.strip_accents else ''}]")
        self.word = re.compile(f"[{alone}]|[^{alone}{space}]+")
        self.truncation = card["packer_arguments"]["truncation"]
        lengths = card["packer_arguments"]
        self.limit = lengths["sequence_length"] or lengths["max_sequence_length"]

    def __call__(self, *texts):
        if len(texts) not in (1, 2):
            raise ValueError(f"Give one text, or two. Received: {len(texts)}.")
        parts = self.truncated(*map(self.tokenize, texts))
        token_ids, segment_ids = [self.ids["[CLS]"]], [0]
        for number, part in enumerate(parts):
            token_ids += [*part, self.ids["[SEP]"]]
            segment_ids += [number] * (len(part) + 1)
        return {
            "token_ids": token_ids,
            "segment_ids": segment_ids,
            "padding_mask": [1] * len(token_ids),
        }

    def tokenize(self, text):
        """Ids of the word pieces of a text, without special tokens."""
        return [i for word in self.words(text) for i in self.pieces(word)]

    def words(self, text):
        """Words of a text, cleaned and folded; each mark of punctuation is one."""
        if self.strip_accents:
            text = unicodedata.normalize("NFD", text)
        text = self.dropped.sub("", text)
        if self.lowercase:  # character by character: a sigma has no context
            text = "".join(map(str.lower, text))
        return self.word.findall(text)

    def pieces(self, word):
        """Ids of a word: from its begin, the longest piece that the vocabulary has."""
        found, start = [], 0
        while start < len(word) <= 100:
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    break
            else:
                return [self.ids["[UNK]"]]
            found.append(self.ids[piece])
            start = end
        return found or [self.ids["[UNK]"]]  # of a word over 100 characters

    def truncated(self, first, second=None):
        """The ids of one or two texts, cut to what the model has room for."""
        if second is None:
            return [first[: self.limit - 2]]
        room = self.limit - 3
        half = room // 2
        share = {
            "longest_first": room - half if len(first) > len(second) else half,
            "round_robin": room - half,
            "waterfall": room,
            "only_first": 0,
            "only_second": room,
        }[self.truncation]
        kept = min(len(first), max(share, room - len(second)))
        if self.truncation.startswith("only_"):
            is_first = self.truncation == "only_first"
            whole, other = (second, first) if is_first else (first, second)
            if room - len(whole) < min(1, len(other)):
                raise ValueError(
                    f"With truncation={self.truncation!r} a pair must fit into "
                    f"{self.limit} tokens. Received: {len(first)} and {len(second)} "
                    "word pieces. Give shorter texts."
                )
        return [first[:kept], second[: room - kept]]


def _class_range(found):
    """`\\U00000041-\\U0000005a` of the match of `41-5A`."""
    first, last = (int(end or found[1], 16) for end in found.groups())
    return f"\\U{first:08x}-\\U{last:08x}"
