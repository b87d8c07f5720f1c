"""Packing of real pairs beside that of Hugging Face."""

import csv

import numpy as np
import pytest

from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


def real_pairs(data_dir):
    """Sentence pairs of the data folder, with very unequal ones among them."""
    pairs = []
    for task in ("MRPC", "RTE", "QNLI"):
        path = data_dir / "glue" / task / "dev.tsv"
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        columns = (3, 4) if task == "MRPC" else (1, 2)
        pairs += [tuple(row[column] for column in columns) for row in rows[1:]]
    pairs += [pair[::-1] for pair in pairs]
    return data_dir / "vocab" / "bert-base-uncased-vocab.txt", pairs


@pytest.mark.slow
@pytest.mark.parametrize("sequence_length", [16, 31, 32, 64])
@pytest.mark.parametrize("truncation", ["longest_first", "only_first", "only_second"])
def test_packing_of_real_pairs_equals_hugging_face(
    truncation, sequence_length, data_dir, capsys
):
    transformers = pytest.importorskip("transformers")
    path, pairs = real_pairs(data_dir)
    theirs = transformers.BertTokenizer(vocab=str(path), split_special_tokens=True)
    tokenizer = WordPieceTokenizer(path)
    if truncation != "longest_first":
        # Where the other text leaves no room both sides refuse (ours: tested above).
        index = 1 if truncation == "only_first" else 0
        lengths = tokenizer([pair[index] for pair in pairs]).row_lengths().numpy()
        pairs = [
            pair
            for pair, length in zip(pairs, lengths, strict=True)
            if length < sequence_length - 3
        ]
    first, second = (list(texts) for texts in zip(*pairs, strict=True))
    expected = theirs(
        first,
        second,
        truncation=truncation,
        max_length=sequence_length,
        padding="max_length",
        return_tensors="np",
    )
    preprocessor = TextPreprocessor(
        tokenizer, sequence_length=sequence_length, truncation=truncation
    )
    packed = preprocessor((first, second))
    for field, name in (
        ("token_ids", "input_ids"),
        ("segment_ids", "token_type_ids"),
        ("padding_mask", "attention_mask"),
    ):
        np.testing.assert_array_equal(packed[field].numpy(), expected[name])
    cut = (tokenizer(first).row_lengths() + tokenizer(second).row_lengths()).numpy()
    with capsys.disabled():
        print(
            f"\n{truncation}, {sequence_length}: {len(pairs)} pairs equal, "
            f"{(cut > sequence_length - 3).sum()} of them truncated"
        )
    assert (cut > sequence_length - 3).sum() > 100 or sequence_length == 64
