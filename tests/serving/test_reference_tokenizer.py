"""The tokenizer in plain Python gives the ids of the packer, and needs nothing else."""

import csv
import importlib.util
import json
import unicodedata

import pytest
from foreign_berts import minilm_folder
from toy_texts import tiny_model

import keras_recbert
from keras_recbert.serving.litert import LITERT
from keras_recbert.serving.packed_file import TOKENIZER, write_packed_file
from keras_recbert.text.split_words import split_words
from keras_recbert.text.text_preprocessor import TRUNCATIONS

AWKWARD = [
    "",
    " \t\r\n\u3000\u2028",
    "Ça dépend: l’œuvre d'un Ĥéŕöş, naïve façade!",
    "ΟΔΥΣΣΕΥΣ καὶ ΣΑΣ. İstanbul'da IĞDIR; ẞtraße ǅ",
    "東京は晴れ。漢字かな交じり文 한국어 텍스트",
    "\x00nul\x07 \u200bzero\ufeff \ufffd \ue000soft\xadhyphen\ud800half",
    "e\u0301\u0323 a\u0300\u0316\u0345 \u0930\u094d\u0915 \u05e9\u05c1",
    "[CLS] [SEP] [UNK] ##ing a##b $5.00 <br /> :-) 👍🏽 ~`^|",
    "x" * 100 + " " + "x" * 101 + " " + "windmill" * 40,
    "½ ﬁne Ⅷ ＡＢＣ～ ①",
    "words and " * 30,
]


def write(model, path):
    """The files beside a model of ids."""
    write_packed_file(model, path, LITERT, lambda model: b"")
    return path.with_suffix(".json")


def load(file):
    """The tokenizer of a file as a device has it: without this package."""
    path = file.with_name(TOKENIZER.name)
    spec = importlib.util.spec_from_file_location("reference_tokenizer", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ReferenceTokenizer(file)


def rewrite(file, **changes):
    """Changes entries of a description."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def check_ids(pack, packer, *columns):
    """Of each text, or pair, alone. Op by op: to trace a packer takes seconds."""
    packed = packer.pack(*packer.columns(columns))
    packed = {name: rows.numpy() for name, rows in packed.items()}
    for index, texts in enumerate(zip(*columns, strict=True)):
        length = packed["padding_mask"][index].sum()
        expected = {name: rows[index, :length] for name, rows in packed.items()}
        found = pack(*texts)
        assert found.keys() == expected.keys()
        for name, ids in expected.items():
            assert found[name] == ids.tolist(), (name, texts)
    return packed


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """Files of a model whose vocabulary has each character of the texts."""
    folder = tmp_path_factory.mktemp("reference")
    text = "".join(AWKWARD)
    characters = sorted({*text, *unicodedata.normalize("NFD", text.lower())} - {"\n"})
    characters = [c for c in characters if c.isprintable() and c.strip()]
    pieces = [f"##{c}" for c in characters]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "words", "wind", "##mill"]
    vocabulary = [*special, *characters, *pieces]
    model = tiny_model(vocabulary=vocabulary)
    return model, write(model, folder / "model.tflite")


def test_ids_are_those_of_the_packer(described):
    model, file = described
    packed = check_ids(load(file), model.preprocessor, AWKWARD)
    known = packed["token_ids"] != model.preprocessor.tokenizer.unk_id
    assert known.mean() > 0.8  # else any words would do


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_pairs_are_cut_as_the_packer_cuts_them(described, truncation):
    model, file = described
    pairs = [AWKWARD[2:], AWKWARD[2:][::-1]]
    if truncation.startswith("only_"):
        pairs[truncation == "only_first"] = ["a words", "x"] * 4 + [""]
    lengths = {"sequence_length": 24, "max_sequence_length": 30}
    rewrite(file, packer_arguments={"truncation": truncation, **lengths})
    packer = type(model.preprocessor)(
        model.preprocessor.tokenizer, truncation=truncation, **lengths
    )
    pack = load(file)
    check_ids(pack, packer, *pairs)
    check_ids(pack, packer, AWKWARD)
    long = "words " * 40
    if truncation.startswith("only_"):
        with pytest.raises(ValueError, match="must fit into 24 tokens. Received: 40"):
            pack(long, long)
    with pytest.raises(ValueError, match="Give one text, or two. Received: 3"):
        pack("a", "b", "c")


@pytest.mark.parametrize("folding", [(True, None), (False, None), (False, True)])
def test_words_of_every_kind_of_character(described, folding):
    _, file = described
    options = dict(zip(("lowercase", "strip_accents"), folding, strict=True))
    rewrite(file, tokenizer_options=options)
    pack = load(file)
    # Of Unicode 3.2: the newest letters have a case in one version and not in another.
    assigned = unicodedata.ucd_3_2_0.category
    codes = [*range(0x3400), *range(0x3400, 0x110000, 7)]
    texts = [f"x{chr(code)}x" for code in codes if assigned(chr(code)) != "Cn"]
    assert len(texts) > 30_000
    words = split_words([t.encode("utf-8", "replace") for t in texts], *folding)
    for text, expected in zip(texts, words.to_list(), strict=True):
        if "\ud800" <= text[1] <= "\udfff":  # has no UTF-8
            expected = [b"xx"]
        assert [word.encode() for word in pack.words(text)] == expected, ascii(text)


def test_what_it_cannot_do_is_refused(described, tmp_path):
    model, _ = described
    file = write(model, tmp_path / "model.tflite")
    for change in (
        {"packer": "ChoicePreprocessor"},
        {"tokenizer": "MyTokenizer"},
        {"tokenizer_options": {"lowercase": True, "strip_accents": None, "n": 2}},
    ):
        before = file.read_text()
        rewrite(file, **change)
        with pytest.raises(ValueError, match="must be of a TextPreprocessor with a"):
            load(file)
        file.write_text(before)
    rewrite(file, format_version=1)
    with pytest.raises(ValueError, match="format_version 2. Received: 1. Write it an"):
        load(file)


def test_ids_of_a_model_of_words(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film", "."]
    sizes = {"recurrent_dim": 3, "vector_dim": 4, "vocabulary": words}
    model = keras_recbert.build("bilstm_student", task="classifier", **sizes)
    pack = load(write(model, tmp_path / "model.tflite"))
    check_ids(pack, model.preprocessor, ["A film.", "films, a film", *AWKWARD])


@pytest.mark.slow
def test_ids_of_real_text(data_dir, tmp_path):
    model = tiny_model(vocabulary=str(minilm_folder() / "vocab.txt"))
    with (data_dir / "glue/SST-2/dev.tsv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    texts = [text for text, _ in rows]
    assert len(texts) == 872
    pack = load(write(model, tmp_path / "model.tflite"))
    check_ids(pack, model.preprocessor, [*texts, *AWKWARD])
    check_ids(pack, model.preprocessor, texts, texts[::-1])
