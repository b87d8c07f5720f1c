"""Embeddings, attention, block and pooler of BERT, in float64 loops.

Devlin et al. 2018, section 3; the sub-layers as Lei et al. 2022 write them in
appendix A. The relative attention bias is T5's (Raffel et al. 2020, section 2.1).
"""

import numpy as np
from reference.numbers import gelu, layer_norm, softmax


def relative_bucket(offset, num_buckets=32, max_distance=128):
    """Bucket of "key position minus query position", in whole numbers.

    Keys to the right have the upper half of the buckets. Of a half of n buckets,
    n / 2 hold one distance each; the n / 2 after them grow logarithmically up to
    `max_distance`, and the last one holds all that is farther. Bucket number
    `n / 2 + s` starts where `distance >= n / 2 * (max_distance / (n / 2)) ** (s / (n
    / 2))`; both sides to the power of `n / 2` make that a comparison of integers,
    which no rounding can spoil.
    """
    half = num_buckets // 2
    exact = half // 2
    first = half if offset > 0 else 0
    distance = abs(offset)
    if distance < exact:
        return first + distance
    steps = 0
    while steps < exact - 1 and (
        distance**exact * exact ** (steps + 1)
        >= exact**exact * max_distance ** (steps + 1)
    ):
        steps += 1
    return first + exact + steps


def attention(x, weights, num_heads, padding_mask, causal=False):
    """`softmax(Q K^T / sqrt(d) + bias) V` head by head, query by query.

    `weights["relative"]`, if given, is `(num_buckets, num_heads)`. A query that may
    attend to nothing but padding is left out: its output is NaN.
    """
    batch_size, length, width = x.shape
    head_dim = width // num_heads
    query, key, value = (
        x @ weights[f"w_{part}"] + weights[f"b_{part}"]
        for part in ("query", "key", "value")
    )
    context = np.full_like(x, np.nan)
    for row in range(batch_size):
        for head in range(num_heads):
            columns = slice(head * head_dim, (head + 1) * head_dim)
            for i in range(length):
                scores = np.full(length, -np.inf)
                for j in range(length):
                    if not padding_mask[row, j] or (causal and j > i):
                        continue
                    product = query[row, i, columns] @ key[row, j, columns]
                    scores[j] = product / np.sqrt(head_dim)
                    if "relative" in weights:
                        scores[j] += weights["relative"][relative_bucket(j - i), head]
                if np.any(np.isfinite(scores)):
                    context[row, i, columns] = softmax(scores) @ value[row, :, columns]
    return context @ weights["w_output"] + weights["b_output"]


def feed_forward(x, weights):
    hidden = gelu(x @ weights["w_1"] + weights["b_1"])
    return hidden @ weights["w_2"] + weights["b_2"]


def transformer_block(x, weights, num_heads, padding_mask, causal=False):
    """Equation 1 of Lei et al.: add and norm after each sub-layer."""
    attended = attention(x, weights["attention"], num_heads, padding_mask, causal)
    hidden = layer_norm(x + attended, *weights["attention_norm"])
    update = feed_forward(hidden, weights["feed_forward"])
    return layer_norm(hidden + update, *weights["output_norm"])


def embeddings(token_ids, segment_ids, weights):
    """Figure 2: the sum of three embeddings; LayerNorm as in the release."""
    batch_size, length = token_ids.shape
    total = np.zeros((batch_size, length, weights["token"].shape[1]))
    for row in range(batch_size):
        for i in range(length):
            total[row, i] = (
                weights["token"][token_ids[row, i]]
                + weights["segment"][segment_ids[row, i]]
                + weights["position"][i]
            )
    return layer_norm(total, *weights["norm"])


def pooler(x, kernel, bias):
    """Final hidden vector of the first token, through a dense layer and tanh."""
    return np.tanh(x[:, 0] @ kernel + bias)
