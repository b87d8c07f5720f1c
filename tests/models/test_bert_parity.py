"""BERT against Hugging Face's, on torch, with the same weights."""

import numpy as np
import pytest
from harness import assert_close, ragged_mask

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def make_pair(**sizes):
    """Their randomly filled model, and ours with its weights."""
    import keras_recbert

    torch.manual_seed(0)
    theirs = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=sizes["vocabulary_size"],
            hidden_size=sizes["hidden_dim"],
            num_hidden_layers=sizes["num_layers"],
            num_attention_heads=sizes["num_heads"],
            intermediate_size=sizes["intermediate_dim"],
            max_position_embeddings=sizes["max_sequence_length"],
            type_vocab_size=sizes["num_segments"],
            hidden_act="gelu",
            layer_norm_eps=1e-12,
            attn_implementation="eager",
        )
    ).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():  # biases and norms start at 0 and 1: move them
        for parameter in theirs.parameters():
            if parameter.ndim > 1:
                continue
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    ours = keras_recbert.build("bert_base", **sizes)
    copy_weights(theirs.state_dict(), ours)
    return ours, theirs


def copy_weights(state, encoder):
    """Torch's Linear keeps its matrix as (out, in); ours holds Q, K and V as one."""
    state = {name: tensor.numpy() for name, tensor in state.items()}

    def dense(layer, *names):
        kernels = [state.pop(f"{name}.weight").T for name in names]
        layer.kernel.assign(np.concatenate(kernels, axis=1))
        biases = [state.pop(f"{name}.bias") for name in names]
        layer.bias.assign(np.concatenate(biases))

    def norm(layer, name):
        layer.gamma.assign(state.pop(f"{name}.weight"))
        layer.beta.assign(state.pop(f"{name}.bias"))

    embeddings = encoder.embeddings
    for table, name in (
        (embeddings.token_embedding, "word_embeddings"),
        (embeddings.segment_embedding, "token_type_embeddings"),
        (embeddings.position_embedding, "position_embeddings"),
    ):
        table.embeddings.assign(state.pop(f"embeddings.{name}.weight"))
    norm(embeddings.norm, "embeddings.LayerNorm")
    for index, block in enumerate(encoder.blocks):
        layer = f"encoder.layer.{index}"
        parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        dense(block.attention.query_key_value, *parts)
        dense(block.attention.output_dense, f"{layer}.attention.output.dense")
        norm(block.attention_norm, f"{layer}.attention.output.LayerNorm")
        dense(block.feed_forward.intermediate_dense, f"{layer}.intermediate.dense")
        dense(block.feed_forward.output_dense, f"{layer}.output.dense")
        norm(block.output_norm, f"{layer}.output.LayerNorm")
    dense(encoder.pooler, "pooler.dense")
    assert not state, f"not copied: {list(state)}"


def compare(ours, theirs, lengths, sequence_length, vocabulary_size):
    rng = np.random.default_rng(2)
    shape = (len(lengths), sequence_length)
    token_ids = rng.integers(0, vocabulary_size, shape)
    segment_ids = rng.integers(0, 2, shape)
    mask = ragged_mask(lengths, sequence_length)
    outputs = ours(
        {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask}
    )
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.tensor(token_ids),
            token_type_ids=torch.tensor(segment_ids),
            attention_mask=torch.tensor(mask),
            output_hidden_states=True,
        )
    real = mask == 1
    hidden = [*outputs["encoder_outputs"], outputs["sequence_output"]]
    wanted = [*expected.hidden_states[1:], expected.last_hidden_state]
    for index, (one, other) in enumerate(zip(hidden, wanted, strict=True)):
        assert_close(
            one.numpy()[real], other.numpy()[real], 1e-5, f"outputs of block {index}"
        )
    assert_close(
        outputs["pooled_output"], expected.pooler_output, 1e-5, "pooled_output"
    )


def test_small_bert_equals_that_of_transformers():
    sizes = {
        "num_layers": 3,
        "hidden_dim": 24,
        "num_heads": 3,
        "intermediate_dim": 40,
        "vocabulary_size": 97,
        "max_sequence_length": 31,
        "num_segments": 2,
    }
    ours, theirs = make_pair(**sizes)
    compare(ours, theirs, (29, 13, 2, 1), 29, 97)


@pytest.mark.slow
def test_bert_base_at_full_size_equals_that_of_transformers():
    sizes = {
        "num_layers": 12,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
        "vocabulary_size": 30522,
        "max_sequence_length": 512,
        "num_segments": 2,
    }
    ours, theirs = make_pair(**sizes)
    assert ours.count_params() == sum(p.numel() for p in theirs.parameters())
    compare(ours, theirs, (128, 71, 5), 128, 30522)
