"""Word pieces and embeddings of a checkpoint must fit each other."""

import numpy as np
import pytest
import transformers
from foreign_berts import PIECES, edit_json, edit_tensors, write_huggingface_folder

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.whole_vocabulary import check_whole


def test_more_word_pieces_than_embeddings(tmp_path):
    write_huggingface_folder(tmp_path)
    with open(tmp_path / "vocab.txt", "a") as file:
        file.write("g\n")
    with pytest.raises(CheckpointError, match="14 word pieces, and embeddings for 13"):
        keras_recbert.load(tmp_path)


def pad_embeddings(folder, rows):
    """Rows that no word piece has, as for tensor cores."""
    name = "embeddings.word_embeddings.weight"

    def pad(tensors):
        table = tensors[name]
        zeros = np.zeros((rows - len(table), table.shape[1]), "float32")
        tensors[name] = np.concatenate([table, zeros])

    edit_tensors(folder / "model.safetensors", pad)
    edit_json(folder / "config.json", vocab_size=rows)


def test_fewer_word_pieces_than_embeddings_and_few_positions(tmp_path):
    write_huggingface_folder(tmp_path)
    pad_embeddings(tmp_path, 16)
    sizes = {"hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20}
    model = keras_recbert.build(
        "bert_tiny", task="classifier", weights=tmp_path, vocabulary=None, **sizes
    )
    assert model.preprocessor.tokenizer.vocabulary_size == 13
    assert model.encoder.config["vocabulary_size"] == 16
    assert model.preprocessor.max_sequence_length == 24
    # Each row gets a name in a folder that is written, and the ids stay.
    model.encoder.preprocessor = model.preprocessor
    model.encoder.save_huggingface(tmp_path / "out")
    again = keras_recbert.load(tmp_path / "out").preprocessor.tokenizer
    assert again.vocabulary == (*PIECES, "[unused0]", "[unused1]", "[unused2]")


def test_a_vocabulary_that_was_cut_is_refused(tmp_path):
    write_huggingface_folder(tmp_path)
    file = tmp_path / "vocab.txt"
    file.write_text("\n".join(PIECES[:9]) + "\n")
    message = "vocab.txt holds 9 word pieces, and there are embeddings for 13 .*config"
    with pytest.raises(CheckpointError, match=message):
        keras_recbert.load(tmp_path)
    # Pieces that were added later stand in a file of their own.
    (tmp_path / "added_tokens.json").write_text('{"g": 9, "h": 10, "i": 11, "j": 12}')
    assert keras_recbert.load(tmp_path).preprocessor.tokenizer.vocabulary_size == 9
    # Two files that disagree.
    file.write_text("\n".join(PIECES) + "\n")
    tokenizer = transformers.BertTokenizer(vocab=str(file))
    tokenizer.save_pretrained(tmp_path)
    assert keras_recbert.load(tmp_path).preprocessor is not None
    file.write_text("\n".join(PIECES[:9]) + "\n")
    message = "tokenizer.json hold different .* 9 and 13, and number 9 is None .*'e'"
    with pytest.raises(CheckpointError, match=message):
        keras_recbert.load(tmp_path)
    file.unlink()
    assert keras_recbert.load(tmp_path).preprocessor.tokenizer.vocabulary_size == 13


@pytest.mark.parametrize(
    "pieces, rows, is_whole",
    [
        (30522, 30522, True),
        (30522, 30528, True),  # padded to 8
        (30522, 30592, True),  # to 128
        (30522, 30720, True),  # to 1024
        (119547, 119552, True),
        (5569, 30522, False),
        (30521, 30522, False),
        (29000, 30720, False),
        (5569, 30720, False),
    ],
)
def test_tables_are_padded_to_round_numbers(pieces, rows, is_whole):
    if is_whole:
        check_whole(range(pieces), rows, "vocab.txt", "config.json")
        return
    message = f"{pieces:,} word pieces.*{rows:,} .config.json.*{rows - pieces:,} others"
    with pytest.raises(CheckpointError, match=message):
        check_whole(range(pieces), rows, "vocab.txt", "config.json")


def test_case_is_kept_for_a_vocabulary_of_the_callers_own(tmp_path):
    write_huggingface_folder(tmp_path)
    (tmp_path / "vocab.txt").rename(tmp_path / "pieces")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    sizes = {"hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20}
    model = keras_recbert.build(
        "bert_tiny",
        task="classifier",
        weights=tmp_path,
        vocabulary=tmp_path / "pieces",
        **sizes,
    )
    assert not model.preprocessor.tokenizer.lowercase
