"""Low-rank adapters of an encoder."""

import keras

from keras_recbert.models.encoder import Encoder


@keras.saving.register_keras_serializable("keras_recbert")
class LoraAdapters(keras.layers.Layer):
    """Adds LoRA adapters to an encoder, freezes the rest, and saves them.

    Hu et al. 2022, section 4.1: every kernel W of the blocks is used as `W + A B`,
    where A has `rank` columns and B `rank` rows. A starts random, B at zero, so the
    encoder starts unchanged. There is no scale (`alpha = rank`).

    Keras has adapters for Dense layers: those of the attention, the feed-forward
    sub-layer and SwishRNN, and the projection behind an LSTM. The weights of an
    LSTM itself, and SwishRNN's vectors, have none and stay as they are, and so do
    embeddings, biases, norms and pooler.

    Files: Keras stores a kernel as `W + A B`, which a model without adapters can
    load, and then sets A and B to zero, where no gradient ever moves them again.
    This layer stores W, A and B beside, and puts them back after Keras. Weights of a
    model that had no adapters get new ones.

    Args:
        encoder: `RecBertEncoder`, changed in place.
        rank: int. At least 1, at most the highest that a kernel can have.

    Raises:
        ValueError: if there is nothing to adapt, or the rank is above that; on loading
            adapters of another rank.
    """

    def __init__(self, encoder, rank, **kwargs):
        super().__init__(**kwargs)
        self.rank = rank
        self.adapted = [
            layer
            for block in encoder.blocks
            for layer in block._flatten_layers()
            if isinstance(layer, keras.layers.Dense)
        ]
        if not self.adapted:
            raise ValueError(
                f"`lora_rank` adapts the Dense layers of blocks, and a "
                f"{type(encoder).__name__} has none. Received: lora_rank={rank}. Leave "
                "it out."
            )
        most = max(min(layer.kernel.shape) for layer in self.adapted)
        if rank > most:
            raise ValueError(
                f"`lora_rank` must be at most {most}, the highest rank that a kernel "
                f"of the blocks can have. Received: lora_rank={rank}."
            )
        for weight in encoder.weights:
            weight.trainable = False
        for layer in self.adapted:
            layer.enable_lora(rank)
        self.built = True

    def _stored(self):
        """Pairs of a key and a weight that Keras does not store as it is."""
        for index, layer in enumerate(self.adapted):
            for weight in layer.weights:
                if weight.name != "bias":
                    # No path: it starts with the name scopes that a model is built in.
                    yield f"{index}_{layer.name}_{weight.name}", weight

    def save_own_variables(self, store):
        for key, weight in self._stored():
            store[key] = weight

    # Called after the layers of the model have loaded: Keras visits the layers of a
    # functional model first, then what else it holds, such as this one.
    def load_own_variables(self, store):
        if not store.keys():
            start = keras.initializers.HeUniform()  # what `enable_lora` uses
            for layer in self.adapted:
                adapter = layer.lora_kernel_a
                adapter.assign(start(adapter.shape, adapter.dtype))
            return
        for key, weight in self._stored():
            shape = tuple(store[key].shape)
            if shape != tuple(weight.shape):
                raise ValueError(
                    f"The file holds LoRA adapters of another rank: {weight.path} has "
                    f"shape {shape} in it, {tuple(weight.shape)} in the model. "
                    f"Received: lora_rank={self.rank}."
                )
            weight.assign(store[key])


def merge_adapters(encoder):
    """A plain encoder with the same outputs: kernels `W + A B`, no adapters.

    For what reads kernels and knows nothing of adapters, such as a converter.

    Args:
        encoder: `RecBertEncoder`, left as it is.

    Returns:
        A new `RecBertEncoder`, all of it trainable.

    Raises:
        TypeError: if it is no encoder.
    """
    if not isinstance(encoder, Encoder):
        raise TypeError(
            "`merge_adapters` takes an encoder, such as model.encoder. Received: a "
            f"{type(encoder).__name__}."
        )
    values = {weight.path: weight.numpy() for weight in encoder.weights}
    merged = type(encoder).from_config(encoder.get_config())
    kept = [path for path in values if "lora_kernel" not in path]
    for path, weight in zip(kept, merged.weights, strict=True):
        value = values[path]
        adapter = path.removesuffix("kernel") + "lora_kernel_"
        if adapter + "a" in values:
            value = value + values[adapter + "a"] @ values[adapter + "b"]
        weight.assign(value)
    merged.preprocessor = encoder.preprocessor
    return merged
