"""Public layers, loaded on first use: importing this package costs nothing."""

import lazy_loader

from keras_recbert.keras_backend import require_tensorflow

require_tensorflow()
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "add_norm": ["AddNorm"],
        "bert_embeddings": ["BertEmbeddings"],
        "bi_attentive_student": ["BiAttentiveStudent"],
        "bidirectional_lstm": ["BidirectionalLSTM"],
        "blstm_block": ["BLSTMBlock"],
        "concatenate_sentence": ["ConcatenateSentence"],
        "dense": ["Dense"],
        "dropout": ["Dropout"],
        "feed_forward": ["FeedForward"],
        "final_states": ["FinalStates"],
        "masked_lm_head": ["MaskedLMHead"],
        "max_pooling": ["MaxPooling"],
        "mean_pooling": ["MeanPooling"],
        "scalar_mix": ["ScalarMix"],
        "self_attention": ["SelfAttention"],
        "swish_rnn": ["SwishRNN"],
        "swish_rnn_block": ["SwishRNNBlock"],
        "swish_rnn_only_block": ["SwishRNNOnlyBlock"],
        "trans_blstm_block": ["TransBLSTMBlock"],
        "transformer_block": ["TransformerBlock"],
        "word_embeddings": ["WordEmbeddings"],
    },
)
