"""`prepare` beside tf-models-official's `create_pretraining_data`.

Both read one file, one sentence a line, with one vocabulary, in one run. What is
compared is word pieces of the text per second of processor time, reading and writing
included, without the start of the process. The other tool also makes rows of 128 word
pieces and masks them, once (`dupe_factor=1`; its default makes ten copies); we do that
while training, anew in every epoch.
"""

import gzip
import json
import os
import subprocess
import sys

import pytest

from keras_recbert.data.prepare import prepare

TIMES_FASTER = 10

THEIRS = """
import json, random, sys, time
from official.nlp.data import create_pretraining_data as tool
from official.nlp.tools import tokenization

text, vocabulary, output = sys.argv[1:]
start = time.process_time()
tokenizer = tokenization.FullTokenizer(vocab_file=vocabulary, do_lower_case=True)
rows = tool.create_training_instances(
    [text], tokenizer, tokenization.convert_to_unicode, max_seq_length=128,
    dupe_factor=1, short_seq_prob=0.1, masked_lm_prob=0.15,
    max_predictions_per_seq=20, rng=random.Random(1))
tool.write_instance_to_example_files(rows, tokenizer, 128, 20, [output], False, False)
print(json.dumps(time.process_time() - start))
"""

OURS = """
import json, sys, time
from keras_recbert.data import prepare_pipeline  # its imports are not its work
from keras_recbert.data.prepare import prepare

text, vocabulary, output, sentences = sys.argv[1:]
start = time.process_time()
prepare(text, output, vocabulary, sentences=sentences)
print(json.dumps(time.process_time() - start))
"""


def seconds(python, script, *arguments):
    """Processor seconds that a script printed last."""
    arguments = [os.fspath(argument) for argument in arguments]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    run = subprocess.run(
        [python, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.benchmark
def test_ten_times_the_tokens_per_second_of_create_pretraining_data(data_dir, tmp_path):
    pytest.importorskip("apache_beam")
    nupunkt = pytest.importorskip("nupunkt")
    other = os.environ.get("RECBERT_OFFICIAL_PYTHON")
    if not other:
        pytest.skip(
            "set RECBERT_OFFICIAL_PYTHON to an interpreter that has tf-models-official"
        )
    squad = data_dir / "squad/train-v1.1.reconstructed.json.gz"
    with gzip.open(squad) as file:
        articles = json.load(file)["data"]
    text = tmp_path / "squad.txt"
    with text.open("w", encoding="utf-8") as file:
        for article in articles:
            for paragraph in article["paragraphs"]:
                lines = paragraph["context"].split("\n")
                for line in filter(str.strip, lines):
                    file.writelines(s + "\n" for s in nupunkt.sent_tokenize(line))
            file.write("\n")
    vocabulary = data_dir / "vocab/bert-base-uncased-vocab.txt"
    corpus = prepare(text, tmp_path / "corpus", vocabulary, sentences="lines")
    tokens = corpus["counts"]["tokens"]
    rates = {}
    theirs = tokens / seconds(other, THEIRS, text, vocabulary, tmp_path / "theirs")
    for sentences in ("lines", "split"):
        output = tmp_path / sentences
        used = seconds(sys.executable, OURS, text, vocabulary, output, sentences)
        rates[sentences] = tokens / used
    print(
        f"\n{tokens:,} word pieces; a second and core: create_pretraining_data "
        f"{theirs:,.0f}; prepare {rates['lines']:,.0f} "
        f"({rates['lines'] / theirs:.1f} times), and {rates['split']:,.0f} "
        f"({rates['split'] / theirs:.1f} times) when it splits lines into sentences"
    )
    assert rates["lines"] >= TIMES_FASTER * theirs
