"""MRPC learned here and by transformers on torch, from the same weights.

`pytest -m benchmark tests/train/test_huggingface_scores.py -s` prints both scores.
"""

import numpy as np
import pytest
import torch
import transformers
from foreign_berts import minilm_folder

import keras_recbert
from keras_recbert.data.task_files import load_splits

EPOCHS = 4
BATCH_SIZE = 32
LEARNING_RATE = 1e-4
MAX_LENGTH = 128
# Two standard errors of the difference of two scores on the 408 pairs.
TOLERANCE = 5.4


def pairs_and_labels(examples):
    return list(zip(*examples.fields.values(), strict=True)), examples.targets["label"]


def their_accuracy(folder, train, validation, seed):
    """Percent after `EPOCHS`; optimizer and schedule are those of BERT."""
    transformers.set_seed(seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)

    def logits(pairs):
        first, second = zip(*pairs, strict=True)
        batch = tokenizer(
            list(first),
            list(second),
            truncation=True,
            max_length=MAX_LENGTH,
            padding=True,
            return_tensors="pt",
        )
        return model(**batch).logits

    pairs, labels = train
    steps = EPOCHS * -(-len(pairs) // BATCH_SIZE)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, weight_decay=0.01
    )
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, steps // 10, steps
    )
    rng = np.random.default_rng(seed)
    model.train()
    for _ in range(EPOCHS):
        order = rng.permutation(len(pairs))
        for start in range(0, len(order), BATCH_SIZE):
            rows = order[start : start + BATCH_SIZE]
            loss = torch.nn.functional.cross_entropy(
                logits([pairs[row] for row in rows]), torch.tensor(labels[rows]).long()
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    model.eval()
    pairs, labels = validation
    with torch.no_grad():
        found = [
            logits(pairs[start : start + BATCH_SIZE]).argmax(-1).numpy()
            for start in range(0, len(pairs), BATCH_SIZE)
        ]
    return 100 * float(np.mean(np.concatenate(found) == labels))


def our_accuracy(folder, data_dir, seed, output_dir):
    _, results = keras_recbert.finetune(
        task="mrpc",
        data_dir=str(data_dir / "glue"),
        model="bert_minilm",
        weights=str(folder),
        pooling="first",
        epochs=EPOCHS,
        batch_size=BATCH_SIZE,
        learning_rate=LEARNING_RATE,
        keep_epoch="last",
        seed=seed,
        export=False,
        output_dir=str(output_dir),
    )
    return 100 * results["scores"]["validation_accuracy"]


@pytest.mark.slow
@pytest.mark.benchmark
@pytest.mark.parametrize("seed", range(3))
def test_mrpc_is_learned_as_well_as_by_transformers(data_dir, tmp_path, seed):
    folder = minilm_folder()
    train, validation, _ = load_splits("mrpc", data_dir / "glue")
    splits = map(pairs_and_labels, (train, validation["validation"]))
    theirs = their_accuracy(folder, *splits, seed)
    ours = our_accuracy(folder, data_dir, seed, tmp_path / "run")
    print(f"MRPC, seed {seed}: {ours:.1f} here, {theirs:.1f} by transformers")
    assert ours > theirs - TOLERANCE
