"""Makes every class of this package known to Keras, without importing any of them.

`keras.models.load_model` finds a saved class by the name it is registered under. A
class registers itself when its file is imported, which loads TensorFlow; so a stand-in
holds its place until then.
"""

import importlib
import importlib.util
import sys

PACKAGE = "keras_recbert"
# Every class that is decorated with `register_keras_serializable`, by file.
CLASSES = {
    "heads.regression": ("RowSquaredError", "MeanRowSquaredError"),
    "heads.word_accuracy": ("WordAccuracy",),
    "heads.token_loss": ("TokenLoss",),
    "layers.add_norm": ("AddNorm",),
    "layers.bert_embeddings": ("BertEmbeddings",),
    "layers.bi_attentive_student": ("BiAttentiveStudent",),
    "layers.bidirectional_lstm": ("BidirectionalLSTM",),
    "layers.blstm_block": ("BLSTMBlock",),
    "layers.concatenate_sentence": ("ConcatenateSentence",),
    "layers.dense": ("Dense",),
    "layers.dropout": ("Dropout",),
    "layers.feed_forward": ("FeedForward",),
    "layers.final_states": ("FinalStates",),
    "layers.masked_lm_head": ("MaskedLMHead",),
    "layers.max_pooling": ("MaxPooling",),
    "layers.mean_pooling": ("MeanPooling",),
    "layers.scalar_mix": ("ScalarMix",),
    "layers.self_attention": ("SelfAttention",),
    "layers.swish_rnn": ("SwishRNN",),
    "layers.swish_rnn_block": ("SwishRNNBlock",),
    "layers.swish_rnn_only_block": ("SwishRNNOnlyBlock",),
    "layers.trans_blstm_block": ("TransBLSTMBlock",),
    "layers.transformer_block": ("TransformerBlock",),
    "layers.token_embedding": ("TokenEmbedding",),
    "layers.word_embeddings": ("WordEmbeddings",),
    "losses.distillation": ("DistillationLoss", "TeacherAgreement"),
    "models.bi_attentive_encoder": ("BiAttentiveEncoder", "BiAttentiveWordEncoder"),
    "models.recbert_encoder": ("RecBertEncoder", "PoolToken"),
    "models.word_blstm_encoder": ("WordBiLSTMEncoder",),
    "tasks.fine_tuning_optimizer": ("WarmupLinearDecay", "LayerwiseAdamW"),
    "tasks.lora_adapters": ("LoraAdapters",),
    "tasks.optimizers": ("Adadelta", "AdamW"),
    "tasks.pretrainer": ("Pretrainer",),
    "heads.pretraining_losses": (
        "TokenCrossentropy",
        "CountedAccuracy",
        "CountedCrossentropy",
        "CountedAUC",
        "TokenAccuracy",
        "TokenBinaryCrossentropy",
    ),
    "tasks.text_classifier": ("TextClassifier",),
    "tasks.text_model": ("TextModel",),
    "tasks.text_regressor": ("TextRegressor",),
    "text.choice_preprocessor": ("ChoicePreprocessor",),
    "text.question_preprocessor": ("QuestionPreprocessor",),
    "text.text_preprocessor": ("TextPreprocessor",),
    "text.window_preprocessor": ("WindowPreprocessor",),
    "text.word_preprocessor": ("WordPreprocessor",),
    "text.word_tokenizer": ("WordTokenizer",),
    "text.wordpiece_tokenizer": ("WordPieceTokenizer",),
}


class LazyClass:
    """Stands for a class until somebody uses it, and then passes everything on.

    Args:
        module: str. Full name of the module that defines the class.
        name: str. Name of the class.
    """

    def __init__(self, module, name):
        self._module = module
        self._name = name

    def load(self):
        """The class; importing its module registers it in place of this object."""
        return getattr(importlib.import_module(self._module), self._name)

    def __getattr__(self, attribute):
        return getattr(self.load(), attribute)

    def __call__(self, *args, **kwargs):
        return self.load()(*args, **kwargs)

    def __repr__(self):
        return f"<class {self._module}.{self._name}, not imported yet>"


def register_classes(keras):
    """Puts a stand-in for each class that Keras does not know yet.

    Args:
        keras: the module.
    """
    known = keras.saving.get_custom_objects()
    for module, names in CLASSES.items():
        for name in names:
            lazy = LazyClass(f"{PACKAGE}.{module}", name)
            known.setdefault(f"{PACKAGE}>{name}", lazy)


class AfterImport:
    """Finder of `sys.meta_path` that calls a function once a module is imported.

    `wrapt.register_post_import_hook` does the same; importing wrapt would take twice
    as long as the rest of this package.

    Args:
        name: str. Name of the module.
        function: function of the module.
    """

    def __init__(self, name, function):
        self.name = name
        self.function = function
        self.searching = False

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.searching:
            return None
        self.searching = True  # the other finders are asked, this one is not
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.searching = False
        if spec is not None:
            self._watch(spec.loader)
        return spec

    def _watch(self, loader):
        execute = loader.exec_module

        def execute_and_call(module):
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.function(module)

        loader.exec_module = execute_and_call


def call_after_import(name, function):
    """Calls a function with a module: now if it is imported, or as soon as it is."""
    if name in sys.modules:
        function(sys.modules[name])
    else:
        sys.meta_path.insert(0, AfterImport(name, function))


def register_lazily():
    """Registers the classes of this package now, or when Keras is imported."""
    call_after_import("keras", register_classes)
