"""Vocabulary files, and vocabularies learned from text."""

import random
import stat
import time

import pytest

from keras_recbert.text.vocabulary import (
    SPECIAL_TOKENS,
    count_words,
    learn_vocabulary,
    learn_vocabulary_from_files,
    load_vocabulary,
    save_vocabulary,
)

SPECIAL = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n"
VERSE = [
    "The wind mills turned, the windmills turned again.",
    "A miller milled; mills mill, the millers' wind turns.",
    "ÉTÉ été Ete: the turning wind of the été!",
] * 20


@pytest.fixture
def write(tmp_path):
    def write_bytes(content):
        path = tmp_path / "vocab.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_bytes


def test_a_piece_is_the_whole_line(write):
    # splitlines() would cut at U+2028 and U+0085, strip() would drop U+00A0.
    pieces = ["\u00a0", "\u2028", "a\u2028b", "\u0085", " ", "##\u3000x", "\x0c"]
    path = write(SPECIAL + "\n".join(pieces) + "\n")
    assert load_vocabulary(path)[4:] == pieces


@pytest.mark.parametrize(
    "content",
    [
        SPECIAL + "a\n##b\n",
        SPECIAL + "a\n##b",
        (SPECIAL + "a\n##b\n").replace("\n", "\r\n"),
        "\ufeff" + SPECIAL + "a\n##b\n",
    ],
    ids=["line feed", "no last line end", "carriage returns", "byte order mark"],
)
def test_line_ends_and_byte_order_mark_are_no_part_of_a_piece(write, content):
    expected = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b"]
    assert load_vocabulary(write(content)) == expected


def test_a_missing_file_is_named(tmp_path):
    path = tmp_path / "none.txt"
    with pytest.raises(FileNotFoundError, match=f"No vocabulary file at {path}"):
        load_vocabulary(path)


def test_a_directory_is_named(tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path} is a directory. Try .*vocab.txt"):
        load_vocabulary(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        (SPECIAL + "a\nb\na\n", r"line 7: 'a' is there already, at line 5"),
        (SPECIAL + "a\n\nb\n", "line 6: empty word piece"),
        (SPECIAL.encode() + b"a\n\xc3(\n", "line 6: not UTF-8 .*0xc3"),
        ("[PAD]\n[UNK]\na\n", r"lacks \[CLS\], \[SEP\]\. A vocabulary needs"),
        (SPECIAL + "a\0b\n", "line 5: a word piece must be .* without NUL"),
        (SPECIAL + "é" * 129 + "\n", "at most 256 bytes .* 129 characters"),
    ],
)
def test_unusable_files_are_named_with_the_line(write, content, message):
    path = write(content)
    with pytest.raises(ValueError, match=message) as error:
        load_vocabulary(path)
    assert str(path) in str(error.value)


def test_save_then_load_gives_the_same_list(tmp_path):
    vocabulary = [*SPECIAL_TOKENS, "a", "##\u2028", "\u00a0", "é"]
    path = tmp_path / "vocab.txt"
    path.write_text("old", encoding="utf-8")
    save_vocabulary(vocabulary, path)
    assert load_vocabulary(path) == vocabulary
    assert [entry.name for entry in tmp_path.iterdir()] == ["vocab.txt"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="index 5: 'a\\\\nb' holds a line end"):
        save_vocabulary([*SPECIAL_TOKENS, "a\nb"], path)
    with pytest.raises(ValueError, match="index 1: 'x' is there already, at index 0"):
        save_vocabulary(["x", "x"], path)
    assert path.read_text(encoding="utf-8") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["vocab.txt"]


def test_words_are_counted_as_the_tokenizer_splits_them():
    texts = ["It's ÉTÉ, it’s", b"x\xffy \xe4\xbd\xa0\xe5\xa5\xbd\0"]
    assert dict(count_words(texts)) == {
        **{"it": 2, "'": 1, "s": 2, "ete": 1, ",": 1, "’": 1},
        **{"xy": 1, "你": 1, "好": 1},
    }
    cased = count_words(["ÉTÉ Été"], lowercase=False)
    assert dict(cased) == {"ÉTÉ": 1, "Été": 1}


def test_learning_starts_with_special_tokens_and_characters():
    vocabulary = learn_vocabulary(VERSE, 80)
    assert vocabulary[:5] == list(SPECIAL_TOKENS)
    assert len(vocabulary) == len(set(vocabulary)) <= 80
    characters = {c for word in count_words(VERSE) for c in word}
    assert characters <= set(vocabulary)
    assert {"##" + c for c in characters} <= set(vocabulary)
    assert "the" in vocabulary and "wind" in vocabulary
    # What was learned is what is looked up: no accents, no capitals.
    assert "ete" in vocabulary and not any("é" in p or "T" in p for p in vocabulary[5:])


def test_learning_does_not_depend_on_order_or_on_the_kind_of_input(tmp_path):
    import tensorflow as tf

    expected = learn_vocabulary(VERSE, 80)
    shuffled = random.Random(0).sample(VERSE, len(VERSE))
    path = tmp_path / "verse.txt"
    path.write_text("\n".join(VERSE), encoding="utf-8")
    dataset = tf.data.Dataset.from_tensor_slices(VERSE)
    assert learn_vocabulary(shuffled, 80) == expected
    assert learn_vocabulary((text for text in VERSE), 80) == expected
    assert learn_vocabulary(dataset, 80) == expected
    assert learn_vocabulary(dataset.batch(7), 80) == expected
    assert learn_vocabulary_from_files([path], 80) == expected
    assert learn_vocabulary_from_files(path, 80) == expected


@pytest.mark.parametrize("vocabulary_size", [65, 70, 76, 90, 200])
def test_the_size_asked_for_is_never_exceeded(vocabulary_size):
    vocabulary = learn_vocabulary(VERSE, vocabulary_size)
    assert len(vocabulary) <= vocabulary_size
    characters = {c for word in count_words(VERSE) for c in word}
    assert {"##" + c for c in characters} <= set(vocabulary)


@pytest.mark.parametrize(
    ("texts", "arguments", "error", "message"),
    [
        ([], {}, ValueError, "holds no word"),
        (["", " \n", "\0"], {}, ValueError, "holds no word"),
        (VERSE, {"vocabulary_size": 20}, ValueError, "must be at least .*=20. Raise"),
        (VERSE, {"vocabulary_size": "9"}, TypeError, "must be an integer.*='9'"),
        (["a bc"], {"vocabulary_size": 90}, ValueError, "No word .* occurs 2 times"),
        ("a text", {}, TypeError, "Received one string: pass"),
        (["a", None], {}, TypeError, "None of type NoneType at index 1"),
        (["a"] * 1030 + [3], {}, TypeError, r"`texts\[1024:\]` .* 3 .* at index 6"),
    ],
)
def test_what_cannot_be_learned_from_is_an_error(texts, arguments, error, message):
    with pytest.raises(error, match=message):
        learn_vocabulary(texts, **{"vocabulary_size": 80, **arguments})


def test_a_dataset_of_something_else_is_an_error(tmp_path):
    import tensorflow as tf

    pairs = tf.data.Dataset.from_tensor_slices((["a"], [1]))
    with pytest.raises(TypeError, match="must be a dataset of strings"):
        learn_vocabulary(pairs, 80)
    with pytest.raises(FileNotFoundError, match="No text file at .*none.txt"):
        learn_vocabulary_from_files([tmp_path / "none.txt"], 80)


@pytest.mark.parametrize(("name", "size"), [("uncased", 30522), ("cased", 28996)])
def test_the_published_vocabularies_load(name, size, tmp_path, data_dir):
    source = data_dir / "vocab" / f"bert-base-{name}-vocab.txt"
    vocabulary = load_vocabulary(source)
    assert len(vocabulary) == size
    assert [vocabulary.index(t) for t in SPECIAL_TOKENS] == [0, 100, 101, 102, 103]
    save_vocabulary(vocabulary, tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_bytes() == source.read_bytes()


@pytest.mark.slow
def test_five_megabytes_of_books_give_8000_useful_pieces(data_dir, tmp_path, capsys):
    from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

    paths = []
    for book in sorted((data_dir / "corpus" / "gutenberg").glob("*.txt")):
        paths.append(tmp_path / book.name)  # two hold a few letters of Latin-1
        paths[-1].write_bytes(book.read_bytes().decode("utf-8", "ignore").encode())
    start = time.perf_counter()
    vocabulary = learn_vocabulary_from_files(paths, 8000)
    seconds = time.perf_counter() - start
    assert 7600 <= len(vocabulary) <= 8000
    tokenizer = WordPieceTokenizer(vocabulary)
    lines = paths[0].read_text(encoding="utf-8", errors="replace").split("\n")
    ids = tokenizer(lines).flat_values.numpy()
    words = sum(count_words(lines).values())
    with capsys.disabled():
        print(
            f"\n{seconds:.1f} s, {len(vocabulary)} pieces, {len(ids) / words:.3f} "
            "pieces a word"
        )
    assert (ids == tokenizer.unk_id).sum() == 0
    assert len(ids) / words < 1.3
    assert seconds < 60  # 9 s on a quiet machine with 2 cores
