"""Text that is awkward to tokenize, and its words."""

import tensorflow as tf

from keras_recbert.text.split_words import split_words

LINE = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the wind ##mill ##s turn ##ed . , ! ? ' "
    "[ ] sep e ete strasse σ ##σ ας 你 好 ~ i ##i é É"
)
PIECES = LINE.split()

# Awkward text, and the words of its uncased and its cased form.
AWKWARD = [
    ("", [], []),
    (" \t\r\n\u00a0\u2003\u3000\u2028\u2029", [], []),
    ("\0\x0b\x0c\x85\u200b\ufeff\ufffd", [], []),
    ("a\0b\x1fc\u00add", ["abcd"], ["abcd"]),
    ("a\u2028b\u00a0c\td", ["a", "b", "c", "d"], ["a", "b", "c", "d"]),
    ("It's $5.", ["it", "'", "s", "$", "5", "."], ["It", "'", "s", "$", "5", "."]),
    ("ÉTÉ e\u0301te\u0301", ["ete", "ete"], ["ÉTÉ", "e\u0301te\u0301"]),
    # One character at a time: no final sigma, and a dotted I loses its dot as a mark.
    ("ΟΔΟΣ Σ İI", ["οδοσ", "σ", "ii"], ["ΟΔΟΣ", "Σ", "İI"]),
    ("Straße ﬁn Ⅳ", ["straße", "ﬁn", "ⅳ"], ["Straße", "ﬁn", "Ⅳ"]),
    # Compatibility forms stay: full-width tilde, non-breaking hyphen, ligatures.
    ("a～b Ａ", ["a～b", "ａ"], ["a～b", "Ａ"]),
    ("a\u2011b", ["a", "\u2011", "b"], ["a", "\u2011", "b"]),
    ("你好 世", ["你", "好", "世"], ["你", "好", "世"]),
    ("ab你c", ["ab", "你", "c"], ["ab", "你", "c"]),
    ("\uf900", ["\u8c48"], ["\uf900"]),
    ("한국", ["\u1112\u1161\u11ab\u1100\u116e\u11a8"], ["한국"]),
    ("שָׁלוֹם، مَرحبا", ["שלום", "،", "مرحبا"], ["שָׁלוֹם", "،", "مَرحبا"]),
    ("🙂👩‍👩‍👧é", ["🙂👩👩👧e"], ["🙂👩👩👧é"]),
    ("🇫🇷 ❤️", ["🇫🇷", "❤"], ["🇫🇷", "❤️"]),
    ("[SEP] <s>", ["[", "sep", "]", "<", "s", ">"], ["[", "SEP", "]", "<", "s", ">"]),
    # Punctuation of Unicode 9 and later is not punctuation for BERT's tokenizers.
    ("a\u2e43b", ["a\u2e43b"], ["a\u2e43b"]),
]

INVALID_UTF8 = [
    (b"caf\xc3 au\xff\xfelait", ["caf", "aulait"]),
    (b"\xed\xa0\x80ab\xc3", ["ab"]),
    (b"\x80\xc0\xaf\xf4\x90\x80\x80", []),
    (b"a\xf0\x9f\x98 b", ["a", "b"]),
]


def words_of(texts, **kwargs):
    rows = split_words(tf.constant(texts), **kwargs).to_list()
    return [[word.decode("utf-8") for word in row] for row in rows]
