"""Writes run folders of small random models, as `convert` does."""

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from convert.run_folder_writer import Converted, write_run
from convert.vocabularies import pieces_of, replace_ids
from keras_transformer import Architecture, Transformer
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.hugging_face_models import train_spm

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
    protos = [
        sentencepiece_model_pb2.ModelProto.FromString(train_spm(lines, size))
        for lines, size in zip(texts, (90, 80), strict=True)
    ]
    pieces = [pieces_of(proto) for proto in protos]
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
