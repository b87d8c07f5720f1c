"""Writes checkpoints of the TensorFlow Model Garden, with the Model Garden itself.

Run where it is installed; the tests of this package do not need it:

    python -m venv official
    official/bin/pip install "tf-models-official==2.20.0" "tensorflow-text==2.20.1"
    official/bin/python tests/golden/model_garden/make_model_garden.py

All four hold the same invented BERT (2 layers, random weights off their initial
values) in layouts that users have:

    archive/   `Checkpoint(model=BertEncoder)`, bert_config.json, vocab.txt: as the
               downloads of the Model Garden.
    encoder/   `Checkpoint(encoder=BertEncoderV2)` and nothing else.
    trainer/   what a pre-training run leaves: ckpt-100 with optimizer and heads,
               params.yaml.
    tf_hub/    a SavedModel of export_tfhub, with the masked language model.
               saved_model.pb is packed: it is 1 MB, nearly all of it repetition.

expected.npz holds a batch of ids and the outputs of the official encoder for it,
under `tanh_` with the GELU the Model Garden always means by "gelu" (the tanh
approximation), under `exact_` with the exact one.
"""

import json
import lzma
import os
import pathlib
import re
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tf_keras  # noqa: E402
from official.common import registry_imports  # noqa: E402, F401  experiments
from official.core import base_trainer, exp_factory, task_factory  # noqa: E402
from official.core.train_utils import serialize_config  # noqa: E402
from official.legacy.bert.configs import BertConfig  # noqa: E402
from official.modeling import optimization  # noqa: E402
from official.nlp.modeling import networks  # noqa: E402
from official.nlp.tools import export_tfhub_lib  # noqa: E402

HERE = pathlib.Path(__file__).parent
# As google-research/bert writes it.
CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 12,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 24,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "type_vocab_size": 2,
    "vocab_size": 37,
}
SIZES = {  # of `BertEncoder`
    "hidden_size": 12,
    "inner_dim": 20,
    "max_sequence_length": 24,
    "num_attention_heads": 3,
    "num_layers": 2,
    "type_vocab_size": 2,
    "vocab_size": 37,
}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SYLLABLES = ["bo", "ka", "lu", "mi", "no", "pe", "ri", "sa", "tu", "ve", "wo", "za"]
VOCABULARY = [
    *SPECIAL,
    *".,!?'-",
    "the",
    *SYLLABLES,
    *("##" + syllable for syllable in SYLLABLES),
    "##s",
]
assert len(VOCABULARY) == CONFIG["vocab_size"]


def weights_of(encoder):
    """Weights by name, without the name of the encoder where that is part of it."""
    return {re.sub(r"^bert_encoder_v2\w*/", "", w.name): w for w in encoder.weights}


def randomize(encoder, seed=0):
    rng = np.random.default_rng(seed)
    for _, weight in sorted(weights_of(encoder).items()):
        weight.assign(weight + rng.normal(0.0, 0.3, weight.shape))


def copy(source, target):
    source, target = weights_of(source), weights_of(target)
    assert source.keys() == target.keys(), source.keys() ^ target.keys()
    for name, weight in source.items():
        target[name].assign(weight)


def make_archive(encoder):
    folder = HERE / "archive"
    folder.mkdir()
    tf.train.Checkpoint(model=encoder).write(str(folder / "bert_model.ckpt"))
    (folder / "bert_config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    write_vocabulary(folder / "vocab.txt")


def make_encoder(encoder):
    second = networks.BertEncoderV2(**SIZES)
    second(second.inputs)
    copy(encoder, second)
    prefix = HERE / "encoder" / "bert_encoder.ckpt"
    tf.train.Checkpoint(encoder=second).write(str(prefix))


def make_trainer(encoder):
    folder = HERE / "trainer"
    experiment = exp_factory.get_exp_config("bert/pretraining")
    experiment.runtime.enable_xla = False
    bert = experiment.task.model.encoder.bert
    for name in vars(bert):
        theirs = {"num_layers": "num_hidden_layers"}.get(name, name)
        if theirs in CONFIG:
            setattr(bert, name, CONFIG[theirs])
    experiment.task.model.cls_heads[0].inner_dim = 12
    data = experiment.task.train_data
    data.input_path, data.global_batch_size = "dummy", 4
    data.seq_length, data.max_predictions_per_seq = 8, 2
    schedule = experiment.trainer.optimizer_config
    schedule.learning_rate.polynomial.decay_steps = 100
    schedule.warmup.polynomial.warmup_steps = 10
    experiment.trainer.train_steps = 100
    serialize_config(experiment, str(folder))
    task = task_factory.get_task(experiment.task)
    model = task.build_model()
    model(model.inputs)
    factory = optimization.OptimizerFactory(schedule)
    optimizer = factory.build_optimizer(factory.build_learning_rate())
    trainer = base_trainer.Trainer(experiment, task, model, optimizer, evaluate=False)
    trainer.train(tf.constant(1))  # makes the slots of the optimizer
    copy(encoder, model.encoder_network)
    trainer.global_step.assign(100)
    manager = tf.train.CheckpointManager(
        trainer.checkpoint, str(folder), max_to_keep=1, step_counter=trainer.global_step
    )
    manager.save(checkpoint_number=100)
    # The times of saving would differ every time this runs.
    name = 'model_checkpoint_path: "ckpt-100"\n'
    (folder / "checkpoint").write_text(name + "all_" + name.replace("path", "paths"))


def make_tf_hub(encoder):
    folder = HERE / "tf_hub"
    config = BertConfig.from_dict(CONFIG)
    with tempfile.TemporaryDirectory() as temporary:
        vocabulary = pathlib.Path(temporary) / "vocab.txt"
        write_vocabulary(vocabulary)
        _, pretrainer = export_tfhub_lib._create_model(
            bert_config=config, with_mlm=True
        )
        copy(encoder, pretrainer.encoder_network)
        checkpoint = tf.train.Checkpoint(**pretrainer.checkpoint_items)
        saved = checkpoint.save(os.path.join(temporary, "ckpt"))
        export_tfhub_lib.export_model(
            str(folder),
            bert_config=config,
            model_checkpoint_path=saved,
            with_mlm=True,
            vocab_file=str(vocabulary),
            do_lower_case=False,  # other than the pieces let guess
        )
    graph = folder / "saved_model.pb"
    packed = lzma.compress(graph.read_bytes(), preset=9)
    graph.with_suffix(".pb.xz").write_bytes(packed)
    for file in (graph, folder / "keras_metadata.pb", folder / "fingerprint.pb"):
        file.unlink()


def write_vocabulary(path):
    path.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")


def make_batch():
    """Rows of 9, 6 and 1 real tokens; padding holds ids too, they must not matter."""
    rng = np.random.default_rng(1)
    lengths, shape = np.array([9, 6, 1]), (3, 9)
    return {
        "token_ids": rng.integers(0, 37, shape).astype("int32"),
        "segment_ids": rng.integers(0, 2, shape).astype("int32"),
        "padding_mask": (np.arange(9) < lengths[:, None]).astype("int32"),
    }


def outputs_of(encoder, batch):
    found = encoder(
        {
            "input_word_ids": batch["token_ids"],
            "input_type_ids": batch["segment_ids"],
            "input_mask": batch["padding_mask"],
        }
    )
    return {key: found[key].numpy() for key in ("sequence_output", "pooled_output")}


def main():
    tf_keras.utils.set_random_seed(0)
    for name in ("archive", "encoder", "trainer", "tf_hub"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    # Built from the JSON as the Model Garden does it: tanh.
    encoder = export_tfhub_lib.get_bert_encoder(BertConfig.from_dict(CONFIG))
    randomize(encoder)
    exact = networks.BertEncoder(
        **SIZES, inner_activation=tf.nn.gelu, dict_outputs=True
    )
    copy(encoder, exact)
    batch = make_batch()
    outputs = {
        f"{name}_{key}": value
        for name, model in (("tanh", encoder), ("exact", exact))
        for key, value in outputs_of(model, batch).items()
    }
    np.savez(HERE / "expected.npz", **batch, **outputs)
    make_archive(encoder)
    make_encoder(encoder)
    make_trainer(encoder)
    make_tf_hub(encoder)


if __name__ == "__main__":
    main()
