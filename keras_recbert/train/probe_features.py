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
        folder: path of the files.
    """

    def __init__(self, encoder, tokenizer, pooling, folder):
        self._encoder, self._tokenizer = encoder, tokenizer
        self._pooling, self._folder = pooling, folder
        self._models = {}
        self.num_layers = len(encoder.blocks) + 1
        digest = hashlib.sha256()
        for weight in encoder.weights:
            array = np.ascontiguousarray(weight.numpy())
            digest.update(f"{weight.path} {array.dtype} {array.shape}\0".encode())
            digest.update(array.tobytes())
        read = tokenizer.vocabulary, *tokenizer.options().values()
        digest.update(f"({read!r}, ".encode())
        self._digest = digest

    def length(self, max_sequence_length):
        """Word pieces of a row, as many as the encoder takes at the most."""
        return min(max_sequence_length, self._encoder.max_sequence_length)

    def checksum(self, max_sequence_length):
        """Of what features follow from beside the texts, as hexadecimal digits."""
        length, digest = self.length(max_sequence_length), self._digest.copy()
        more = f"{length}, {self._pooling!r}, {self._encoder.policy.name!r})"
        digest.update(more.encode())
        return digest.hexdigest()

    def length_of(self, checksum):
        """The length of the rows of a checksum; None if it is of another encoder."""
        lengths = range(1, self._encoder.max_sequence_length + 1)
        return next((one for one in lengths if self.checksum(one) == checksum), None)

    def of(self, name, texts, max_sequence_length):
        """Features of texts, read from their file, or computed and written.

        Args:
            name: str. What the file is called, beside its checksum.
            texts: list of str.
            max_sequence_length: int. Word pieces of a row.

        Returns:
            float32 `np.memmap` `(num_layers, num_texts, dim)`, 0 the embeddings.

        Raises:
            ValueError: if the file is damaged.
            OSError: if it cannot be written.
            RuntimeError: if another process writes into the folder.
        """
        checksum = texts_checksum([self.checksum(max_sequence_length), *texts])
        path = self._folder / f"{name}-{checksum[:16]}.npy"
        model = self._model(self.length(max_sequence_length))
        dim = model.output.shape[-1]
        shape = (self.num_layers, len(texts), dim)
        if not path.is_file():
            with locked_folder(self._folder), new_file(path) as written:
                features = np.lib.format.open_memmap(written, "w+", "float32", shape)
                model.encode(texts, out=np.moveaxis(features, 0, 1), desc=name)
                features.flush()
                del features
        try:
            features = np.lib.format.open_memmap(path, "r")
        except (ValueError, EOFError) as error:
            raise ValueError(
                f"{path} is damaged: NumPy reads no array from it. Remove it."
            ) from error
        if features.shape != shape:
            raise ValueError(
                f"{path} is damaged: expected shape {shape}, found {features.shape}. "
                "Remove it."
            )
        return features

    def _model(self, length):
        """The encoder behind rows of a length."""
        if length not in self._models:
            self._models[length] = SentenceEncoder(
                self._encoder,
                TextPreprocessor(self._tokenizer, max_sequence_length=length),
                layer=range(self.num_layers),
                pooling=self._pooling,
                combine="stack",
                normalize=False,
            )
        return self._models[length]


def texts_checksum(texts):
    """sha256 checksum of strings, as hexadecimal digits."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
