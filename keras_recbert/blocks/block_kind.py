"""What the zoo knows of a kind of encoder block, and which kinds there are."""

from keras_recbert.core.checks import check_positive
from keras_recbert.core.names import check_arguments
from keras_recbert.core.registry import Registry


class BlockKind:
    """Everything the zoo knows of one kind of encoder block.

    Subclass it, and decorate the subclass with `register_block`. Then
    `RecBertEncoder(block=name)` builds encoders of it, and the contract tests,
    `explain`, warm starts, memory checks and the benchmark know it.

    Attributes:
        name: str. Value of the encoder's argument `block`.
        layer: class of the layer of one block, a `keras.layers.Layer` that is called
            as `layer(hidden, padding_mask=padding_mask)` with `(batch_size,
            sequence_length, hidden_dim)` and int `(batch_size, sequence_length)`,
            and returns the shape of `hidden`.
        shares_bert_paths: bool. A weight that has the path of one in BERT's block
            means the same, so a BERT's value is copied.
        test_sizes: dict. Arguments that shrink an encoder for the contract tests.
    """

    name = None
    layer = None
    shares_bert_paths = True
    test_sizes = {"num_layers": 2, "hidden_dim": 12}

    def defaults(self, hidden_dim):
        """Arguments that an encoder of this kind takes, with their defaults.

        Args:
            hidden_dim: int. Width of the encoder.

        Returns:
            dict. With `num_heads` in it the encoder counts attention.
        """
        return {}

    def check(self, config):
        """Checks the arguments of an encoder, and may write them in one form.

        Args:
            config: dict of `hidden_dim` and what `defaults` names; changed in place.

        Raises:
            ValueError: for what no encoder of this kind can have.
        """

    def make_layer(self, config, index, **shared):
        """The layer of one block.

        Args:
            config: dict, as for `check`.
            index: int. Number of the block, from 0.
            **shared: `dropout`, `implementation`, `dtype` and `name`.

        Returns:
            `keras.layers.Layer`; by default `layer` of all of these.
        """
        own = {key: config[key] for key in self.arguments}
        return self.layer(**own, **shared)

    def count_weights(self, config):
        """Weights in the matrices of one block, each of which multiplies every token.

        Twice as many are the operations of these products for a token.

        Args:
            config: dict, as for `check`; 0 stands for a size that is wrong.

        Returns:
            int; 0 for a kind that does not say.
        """
        return 0

    def count_kept(self, config, sequence_length):
        """Numbers that a block must keep of a token for its gradient, at least.

        Args:
            config: dict, as for `count_weights`.
            sequence_length: float. Tokens of a row.

        Returns:
            float; by default the output of the block.
        """
        return config["hidden_dim"]

    def start_from_bert(self, layer, name, checkpoint):
        """Fills what the block of a plain BERT has not, or has in another form.

        Args:
            layer: the layer of one block, built; what a BERT has by the same path is
                copied already.
            name: str. Its name, `"block_0"`.
            checkpoint: `keras_recbert.convert.checkpoint.Checkpoint` of a BERT.

        Returns:
            dict of weight path to a tuple: names of the tensors that it was made of,
            and how, in words. What is not named stays as in a new encoder.
        """
        return {}

    @property
    def arguments(self):
        """Names of the arguments, a tuple."""
        return tuple(self.defaults(64))

    def complete(self, hidden_dim, arguments):
        """Arguments of an encoder, checked, with their defaults.

        Args:
            hidden_dim: int.
            arguments: dict of those that were given.

        Returns:
            dict.

        Raises:
            ValueError: for an argument that is unknown, or does not fit.
        """
        check_positive(hidden_dim=hidden_dim)
        what = f"an encoder of {self.name!r} blocks"
        check_arguments(what, arguments, self.arguments)
        config = {
            "hidden_dim": hidden_dim,
            **self.defaults(hidden_dim),
            **arguments,
        }
        self.check(config)
        return {key: config[key] for key in self.arguments}


_KINDS = Registry("kind of block")


def register_block(cls):
    """Class decorator: adds a kind of block under its `name`.

    Args:
        cls: subclass of `BlockKind`.

    Returns:
        `cls`.

    Raises:
        ValueError: if the name is taken, or there is none.
    """
    _KINDS.add(cls.name, cls())
    return cls


def list_blocks():
    """Names of all kinds of block, in the order of their registration."""
    return _KINDS.names()


def get_block(name):
    """The `BlockKind` of a name.

    Raises:
        UnknownNameError: if none has it.
    """
    return _KINDS[name]


def complete_config(arguments):
    """Arguments of an encoder with the defaults of its kind of block.

    Args:
        arguments: dict with `block` and `hidden_dim`.

    Returns:
        dict.

    Raises:
        ValueError: if an argument does not fit the kind of block.
    """
    kind = get_block(arguments["block"])
    own = {k: v for k, v in arguments.items() if k in kind.arguments}
    return {**arguments, **kind.complete(arguments["hidden_dim"], own)}
