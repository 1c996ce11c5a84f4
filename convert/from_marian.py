"""Reads models of Marian, such as those of Firefox and OPUS-MT."""

import pathlib

import numpy as np

from command_line.errors import UserError
from convert.marian_config import (
    find_search_options,
    read_architecture,
    read_configuration,
    read_search_options,
)
from convert.marian_vocabularies import (
    embedding_names,
    read_download_vocabularies,
    read_sentencepiece,
)
from convert.opus_download import find_download
from convert.run_folder_writer import Converted, make_model
from convert.tensor_files import Tensors, open_marian
from convert.vocabularies import Vocabulary
from convert.weight_mapping import Weight, copy_bias, copy_layers, copy_rows, copy_table

SEQUENCE_LENGTH = 512
# The matrix of the logits, where it is not that of the embeddings: `(D, V)`,
# or, in newer models, `(V, D)`.
OUTPUTS = ("decoder_ff_logit_out_W", "decoder_ff_logit_out_Wt")
PARTS = {
    "self": ("self_", "self_Wo"),
    "memory": ("context_", "context_Wo"),
    "feed_forward": ("ffn_", "ffn_ffn"),
    "recurrence": ("rnn_", "rnn_ffn"),
}
MAPS = {
    **{"query": "q", "key": "k", "value": "v", "output": "o"},
    **{"expand": "1", "contract": "2", "forget": "f", "update": ""},
}


def tensor_name_of(weight: Weight) -> str:
    """Returns the name of the tensor that a weight of a layer is."""
    prefix = f"{weight.stack}_l{weight.layer + 1}_"
    maps, norm = PARTS[weight.part]
    what, end = weight.name.split(".")
    if what == "norm":
        end = {"gamma": "scale", "beta": "bias"}[end]
        return f"{prefix}{norm}_ln_{end}"
    letter = {"kernel": "W", "bias": "b"}[end]
    return f"{prefix}{maps}{letter}{MAPS[what]}"


def read(
    model_path: pathlib.Path, vocabulary_paths: list[pathlib.Path] | None
) -> Converted:
    """Reads a model, its vocabularies and its search options.

    Args:
        model_path: A file of Marian, or the folder of an OPUS-MT download.
        vocabulary_paths: SentencePiece models, one for both sides or one
            each; none for a folder.

    Raises:
        UserError: If a file is damaged, or the architecture not supported.
    """
    files = find_download(model_path) if model_path.is_dir() else None
    if (files is None) == (vocabulary_paths is None):
        raise UserError(
            "--vocabulary must be given for a file of Marian, and not for a "
            "download. Received: "
            f"{'neither' if vocabulary_paths is None else 'both'}"
        )
    if files is not None:
        model_path = files.model
    tensors, text = open_marian(model_path)
    configuration = read_configuration(text, model_path)
    architecture = read_architecture(
        configuration,
        model_path,
        tied_output=not any(name in tensors for name in OUTPUTS),
    )
    width = architecture.hidden_dim
    if files is None:
        vocabularies = read_sentencepiece(vocabulary_paths, tensors, width)
    else:
        vocabularies = read_download_vocabularies(files, tensors, width)
    sources, targets, *protos = vocabularies
    model = make_model(
        architecture,
        tensors,
        len(targets),
        SEQUENCE_LENGTH,
        None if "Wemb" in tensors else len(sources),
    )

    def take(weight: Weight) -> np.ndarray:
        shape = tuple(weight.variable.shape)
        name = tensor_name_of(weight)
        # Marian stores a vector as a matrix of one row.
        stored = shape if len(shape) == 2 else (1, *shape)
        return tensors.take(name, stored).reshape(shape)

    copy_tables(model, tensors, sources, targets)
    copy_layers(model, take)
    # Scales of activations, for products of bytes.
    tensors.ignore(*(n for n in tensors.shapes if n.endswith("QuantMultA")))
    tensors.check_all_taken()
    decoding = read_search_options(find_search_options(model_path))
    return Converted(model, *protos, decoding)


def copy_tables(
    model, tensors: Tensors, sources: Vocabulary, targets: Vocabulary
) -> None:
    source_name, name = embedding_names(tensors)
    copy_table(model.embedding, tensors, name, targets.rows)
    shape = (1, tensors.shapes[name][0])
    bias = tensors.take("decoder_ff_logit_out_b", shape)[0]
    copy_bias(model.embedding_of_logits, bias, targets)
    if model.output_embedding is not None:
        copy_output(model.output_embedding, tensors, targets)
    if source_name != name:
        copy_table(model.source_embedding, tensors, source_name, sources.rows)


def copy_output(embedding, tensors: Tensors, targets: Vocabulary) -> None:
    """Sets the matrix of the logits."""
    name = next(name for name in OUTPUTS if name in tensors)
    size = tensors.shapes["decoder_ff_logit_out_b"][1]
    shape = (size, embedding.hidden_dim)
    if name == OUTPUTS[0]:
        table = tensors.take(name, shape[::-1]).T
    else:
        table = tensors.take(name, shape)
    copy_rows(embedding, table, targets.rows)
