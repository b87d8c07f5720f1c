"""Raw text to ids: vocabulary, tokenizer, packer. Loaded on first use."""

import lazy_loader

from keras_recbert.keras_backend import require_tensorflow

require_tensorflow()
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "choice_preprocessor": ["ChoicePreprocessor"],
        "packer": ["Packer", "register_packer"],
        "packers": ["get_packer", "list_packers"],
        "question_preprocessor": ["QuestionPreprocessor"],
        "segments": ["Segment"],
        "text_preprocessor": ["TextPreprocessor"],
        "window_preprocessor": ["WindowPreprocessor"],
        "word_preprocessor": ["WordPreprocessor"],
        "vocabulary": [
            "learn_vocabulary",
            "learn_vocabulary_from_files",
            "load_vocabulary",
            "save_vocabulary",
        ],
        "word_tokenizer": ["WordTokenizer"],
        "word_vectors": ["WordVectors", "read_word_vectors"],
        "learned_vectors": ["learn_vectors"],
        "word_vocabulary": ["learn_words"],
        "wordpiece_tokenizer": ["WordPieceTokenizer"],
    },
)
