"""The Transformer of "Attention Is All You Need" (2017) for Keras."""

import importlib
from typing import TYPE_CHECKING

from keras_transformer.language_model import LanguageModel
from keras_transformer.layers.attention import (
    MultiHeadAttention,
    copy_attention_weights,
)
from keras_transformer.layers.decoder import Decoder, DecoderLayer
from keras_transformer.layers.embedding import (
    PositionEmbedding,
    SinePositionEncoding,
    TokenEmbedding,
)
from keras_transformer.layers.encoder import Encoder, EncoderLayer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.restricted_attention import RestrictedSelfAttention
from keras_transformer.layers.ssru import SSRU
from keras_transformer.losses import SmoothedCrossentropy
from keras_transformer.masks import causal_mask, padding_mask
from keras_transformer.metrics import Perplexity, TokenAccuracy
from keras_transformer.presets import PRESETS, Architecture, Preset, Recipe
from keras_transformer.schedules import TransformerSchedule, WarmupDecay
from keras_transformer.search.beam_search import beam_search
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.sampling import Sampling, sample
from keras_transformer.search.transformer_search import search_translations
from keras_transformer.transformer import Transformer

__version__ = "0.3.0"

__all__ = [
    "PRESETS",
    "SSRU",
    "Architecture",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LanguageModel",
    "MultiHeadAttention",
    "Perplexity",
    "PositionEmbedding",
    "Preset",
    "Recipe",
    "RestrictedSelfAttention",
    "Sampling",
    "SearchOptions",
    "SinePositionEncoding",
    "SmoothedCrossentropy",
    "SubwordTokenizer",
    "TokenAccuracy",
    "TokenEmbedding",
    "Transformer",
    "TransformerSchedule",
    "WarmupDecay",
    "beam_search",
    "causal_mask",
    "copy_attention_weights",
    "padding_mask",
    "sample",
    "search_translations",
]


if TYPE_CHECKING:
    from keras_transformer.tokenizer import SubwordTokenizer
else:

    def __getattr__(name):
        if name == "SubwordTokenizer":  # Needs TensorFlow; the layers do not.
            module = importlib.import_module("keras_transformer.tokenizer")
            return module.SubwordTokenizer
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
