"""Small random models of other systems, and run folders as `convert` writes them."""

import io
import json

import keras
import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from convert.run_folder_writer import Converted, write_run
from convert.vocabularies import replace_ids
from keras_transformer import Architecture, Transformer
from tests.helpers.example_sentences import SENTENCES

DECODING = {"beam_size": 3, "length_penalty": 0.9, "penalty_offset": 0}
# In nothing what the paper says.
NON_DEFAULT_ARCHITECTURE = {
    **{"num_layers": 3, "decoder_layers": 2, "hidden_dim": 16, "num_heads": 2},
    **{"intermediate_dim": 24, "key_dim": 8, "value_dim": 8, "use_bias": True},
    **{"activation": "swish", "scale_embedding": False, "logits_bias": True},
    **{"max_wavelength": 3_000.0, "norm_epsilon": 1e-3, "position_offset": 2},
    **{"decoder_mixer": "ssru", "tied_output": False},
}
REVERSED_SENTENCES = [sentence[::-1] for sentence in SENTENCES]


def write_converted_run(
    folder, texts=(SENTENCES, REVERSED_SENTENCES), shares=False, **numbers
):
    """Writes the folder of a model with two tokenizers, and returns the model.

    The pieces are learnt from `texts`; if it `shares`, both sides have the same ids
    and matrix; `numbers` are of the `Architecture`.
    """
    trained = [
        train_spm(lines, size) for lines, size in zip(texts, (90, 80), strict=True)
    ]
    protos = map(sentencepiece_model_pb2.ModelProto.FromString, trained)
    pieces = [pieces_of(proto) for proto in trained]
    if shares:
        pieces = 2 * [pieces[0] + pieces[1]]
    pieces = [
        ["<pad>", "</s>", "<unk>", "<s>", *dict.fromkeys(side)] for side in pieces
    ]
    protos = map(replace_ids, protos, pieces)
    sources, targets = map(len, pieces)
    architecture = Architecture(**{**NON_DEFAULT_ARCHITECTURE, **numbers})
    sources = None if shares else sources
    model = Transformer(targets, architecture, 48, sources, name="transformer")
    model.build()
    random = np.random.default_rng(4)
    for weight in model.weights:  # No gain of one and no bias of zero.
        noise = random.normal(size=weight.shape)
        if "embeddings" in weight.path:
            weight.assign(0.7 * noise)
        elif len(weight.shape) == 2:  # Else a source changes too little.
            weight.assign(4 * noise * weight.shape[0] ** -0.5)
        else:
            weight.assign(weight + 0.3 * noise)
    bias = np.array(model.embedding_of_logits.bias)
    bias[1] += 2  # Some translations end.
    model.embedding_of_logits.bias.assign(bias)
    converted = Converted(model, *protos, DECODING, licenses={})
    write_run(folder, converted, {"format": "nothing"})
    return model


LANGUAGE_TOKEN = ">>fra<<"
MAX_LENGTH = 24


def train_spm(lines, size, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 5),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def pieces_of(proto):
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    return [
        processor.id_to_piece(i)
        for i in range(processor.get_piece_size())
        if not processor.is_control(i) and not processor.is_unknown(i)
    ]


def make_table(pieces):
    table = {"</s>": 0, "<unk>": 1}
    for piece in [*pieces, LANGUAGE_TOKEN]:
        table.setdefault(piece, len(table))
    return {**table, "<pad>": len(table)}


def write_folder(folder, shares=True, **numbers):
    """Writes the folder of a random model as the library does; returns the model."""
    import torch
    import transformers

    protos = train_spm(SENTENCES, 90), train_spm(REVERSED_SENTENCES, 80)
    for side, proto in zip(("source", "target"), protos, strict=True):
        (folder / f"{side}.spm").write_bytes(proto)
    sources, targets = map(pieces_of, protos)
    if shares:
        # Some pieces of the source are not in the table.
        tables = {"vocab.json": make_table(sources[:-3] + targets)}
    else:
        # That library wants <pad> to be the same id in both.
        filling = [f"<{i}>" for i in range(len(targets) + 3 - len(sources))]
        tables = {
            "vocab.json": make_table(sources[:-3] + filling),
            "target_vocab.json": make_table(targets),
        }
    for name, table in tables.items():
        (folder / name).write_text(json.dumps(table))
    tokenizer = json.dumps({"separate_vocabs": not shares})
    (folder / "tokenizer_config.json").write_text(tokenizer)
    *_, last = tables.values()
    # The two sides have the same end; only one of them begins.
    size = len(tables["vocab.json"])
    config = transformers.MarianConfig(
        vocab_size=size,
        decoder_vocab_size=len(last),
        share_encoder_decoder_embeddings=shares,
        pad_token_id=len(last) - 1,
        decoder_start_token_id=len(last) - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        bad_words_ids=[[len(last) - 1]],
        max_position_embeddings=MAX_LENGTH,
        max_length=MAX_LENGTH,
        num_beams=4,
        **numbers,
    )
    model = transformers.MarianMTModel(config).eval()
    random = set_random_weights(model)
    with torch.no_grad():
        model.get_decoder().embed_tokens.weight[len(last) - 1] = 0
        bias = 0.2 * random.normal(size=(1, len(last)))
        bias[0, 0] += 2.0  # Some translations end.
        model.final_logits_bias.copy_(torch.tensor(bias))
    model.save_pretrained(folder)
    return model


def set_random_weights(model):
    """Sets all weights but positions of a model of torch; returns the generator."""
    import torch

    random = np.random.default_rng(7)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" in name:
                continue
            values = random.normal(size=tuple(weight.shape))
            if weight.dim() == 1:
                weight += torch.tensor(0.3 * values, dtype=weight.dtype)
            else:
                values *= weight.shape[-1] ** -0.5
                weight.copy_(torch.tensor(values, dtype=weight.dtype))
    return random


class CustomOutputModel(Transformer):
    """Computes the logits by a `Dense` layer."""

    def __init__(self, vocabulary_size, *args, **kwargs):
        super().__init__(vocabulary_size, *args, **kwargs)
        self.head = keras.layers.Dense(vocabulary_size, name="head")

    def build(self, input_shape=None):
        self.head.build((None, self.architecture.hidden_dim))
        super().build(input_shape)

    def compute_logits(self, states):
        return self.head(states)
