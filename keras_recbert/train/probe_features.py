"""Features of all layers of an encoder, computed in one pass and kept on disk."""

import hashlib

import numpy as np

from keras_recbert.core.folders import locked_folder, new_file
from keras_recbert.tasks.sentence_encoder import SentenceEncoder
from keras_recbert.text.text_preprocessor import TextPreprocessor


class LayerFeatures:
    """A row for each text from each layer of an encoder.

    A file holds those of one task. Its name has a checksum of all that they follow
    from: weights, vocabulary, pooling and texts. It is written under a temporary name.

    Args:
        encoder: `Encoder`.
        tokenizer: `WordPieceTokenizer`.
        pooling: as for `SentenceEncoder`.
        max_sequence_length: int. Word pieces of a row.
        folder: path of the files.
    """

    def __init__(self, encoder, tokenizer, pooling, max_sequence_length, folder):
        length = min(max_sequence_length, encoder.max_sequence_length)
        self._preprocessor = TextPreprocessor(tokenizer, max_sequence_length=length)
        self.num_layers = len(encoder.blocks) + 1
        self._model = SentenceEncoder(
            encoder,
            self._preprocessor,
            layer=range(self.num_layers),
            pooling=pooling,
            combine="stack",
            normalize=False,
        )
        self._folder = folder
        digest = hashlib.sha256()
        for weight in encoder.weights:
            array = np.ascontiguousarray(weight.numpy())
            digest.update(f"{weight.path} {array.dtype} {array.shape}\0".encode())
            digest.update(array.tobytes())
        read = tokenizer.vocabulary, *tokenizer.options().values()
        digest.update(repr((read, length, pooling, encoder.policy.name)).encode())
        self.checksum = digest.hexdigest()

    def of(self, name, texts):
        """Features of texts, read from their file, or computed and written.

        Args:
            name: str. What the file is called, beside its checksum.
            texts: list of str.

        Returns:
            float32 `np.memmap` `(num_layers, num_texts, dim)`, 0 the embeddings.

        Raises:
            ValueError: if the file is damaged.
            OSError: if it cannot be written.
            RuntimeError: if another process writes into the folder.
        """
        checksum = texts_checksum([self.checksum, *texts])
        path = self._folder / f"{name}-{checksum[:16]}.npy"
        dim = self._model.output.shape[-1]
        shape = (self.num_layers, len(texts), dim)
        if not path.is_file():
            with locked_folder(self._folder), new_file(path) as written:
                features = np.lib.format.open_memmap(written, "w+", "float32", shape)
                self._model.encode(texts, out=np.moveaxis(features, 0, 1), desc=name)
                features.flush()
                del features
        try:
            features = np.load(path, mmap_mode="r")
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} is damaged: {error}. Remove it.") from error
        if features.shape != shape:
            raise ValueError(
                f"{path} is damaged: expected shape {shape}, found {features.shape}. "
                "Remove it."
            )
        return features


def texts_checksum(texts):
    """sha256 checksum of strings, as hexadecimal digits."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
