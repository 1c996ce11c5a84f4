"""Reads models of Hugging Face's `MarianMTModel`, such as OPUS-MT's."""

import pathlib

import numpy as np

from command_line.errors import UserError
from convert.hugging_face_config import Configuration, read_configuration, read_decoding
from convert.run_folder_writer import Converted, make_model
from convert.tensor_files import Tensors, open_safetensors, read_json
from convert.vocabularies import (
    Vocabulary,
    check_ids,
    make_tokenizers,
    make_vocabulary,
    pieces_of,
    read_proto,
)
from convert.weight_mapping import Weight, copy_bias, copy_layers, copy_table
from keras_transformer.masks import BOS_ID, EOS_ID, PADDING_ID
from keras_transformer.tokenizer import UNKNOWN_ID

SOURCE_EMBEDDING_TENSOR = "model.encoder.embed_tokens.weight"
PARTS = {
    ("encoder", "self"): "self_attn",
    ("decoder", "self"): "self_attn",
    ("decoder", "memory"): "encoder_attn",
}
MAPS = {
    **{name: f"{name[0]}_proj" for name in ("query", "key", "value")},
    "output": "out_proj",
    "expand": "fc1",
    "contract": "fc2",
}
ENDS = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}


def open_weights(folder: pathlib.Path) -> Tensors:
    """Opens the weights of a model's folder."""
    path = folder / "model.safetensors"
    if path.exists():
        return open_safetensors(path)
    if (folder / "pytorch_model.bin").exists():
        raise UserError(
            f"--model-dir must hold {path.name}; pytorch_model.bin is a "
            "pickle, which may run anything. Where you trust it: python -c "
            '"import transformers as t; t.MarianMTModel.from_pretrained('
            f"'{folder}').save_pretrained('{folder}')\""
        )
    raise UserError(f"--model-dir must hold {path.name}. Received: {folder}")


def read_vocabularies(
    folder: pathlib.Path, configuration: Configuration
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Returns the vocabularies of sources and targets, and their tokenizers."""
    source = read_proto(folder / "source.spm")
    target = read_proto(folder / "target.spm")
    path = folder / "vocab.json"
    size = configuration.source_vocabulary_size
    table = check_ids(read_json(path), size, path)
    if configuration.shares_matrix:
        used = [*pieces_of(source), *pieces_of(target)]
        ours = arrange_vocabulary(table, used, configuration, path)
        if has_separate_vocabularies(folder, default=False):
            raise UserError(
                f"separate_vocabs of {folder / 'tokenizer_config.json'} must "
                "be false for one matrix. Received: true"
            )
        vocabularies = ours, ours
    else:
        other = folder / "target_vocab.json"
        if not has_separate_vocabularies(folder, default=other.exists()):
            other = path
        targets = check_ids(read_json(other), configuration.vocabulary_size, other)
        vocabularies = (
            arrange_vocabulary(table, pieces_of(source), configuration, path, False),
            arrange_vocabulary(targets, pieces_of(target), configuration, other),
        )
    tokenizers = make_tokenizers((source, target), vocabularies)
    return *vocabularies, *tokenizers


def arrange_vocabulary(
    table: dict[str, int],
    used: list[str],
    configuration: Configuration,
    path: pathlib.Path,
    begins: bool = True,
) -> Vocabulary:
    """Reorders a table of pieces for our ids.

    Sources have BOS only if their table has it.
    """
    if "<unk>" not in table:
        raise UserError(f"{path} must hold the piece <unk>")
    specials = {EOS_ID: configuration.eos_id, UNKNOWN_ID: table["<unk>"]}
    bos_id = configuration.bos_id
    if begins or table.get("<s>") == bos_id:
        specials[BOS_ID] = bos_id
    if not begins or configuration.padding_id != bos_id:
        specials[PADDING_ID] = configuration.padding_id
    return make_vocabulary(table, specials, used)


def has_separate_vocabularies(folder: pathlib.Path, default: bool) -> bool:
    """Returns whether the tokenizer has a vocabulary for each side."""
    path = folder / "tokenizer_config.json"
    found = read_json(path) if path.exists() else {}
    return bool(found.get("separate_vocabs", default))


def tensor_name_of(weight: Weight) -> str:
    """Returns the name of the tensor that a weight of a layer is."""
    prefix = f"model.{weight.stack}.layers.{weight.layer}."
    what, end = weight.name.split(".")
    attention = PARTS.get((weight.stack, weight.part))
    if what == "norm":
        what = f"{attention}_layer_norm" if attention else "final_layer_norm"
    else:
        what = MAPS[what]
        what = f"{attention}.{what}" if attention else what
    return f"{prefix}{what}.{ENDS[end]}"


def read(folder: pathlib.Path) -> Converted:
    """Reads a model's folder.

    Raises:
        UserError: If it is not such a folder, is damaged, or has an
            architecture that is not supported.
    """
    configuration = read_configuration(folder / "config.json")
    tensors = open_weights(folder)
    sources, targets, *tokenizers = read_vocabularies(folder, configuration)
    shares = configuration.shares_matrix
    decoding, forbidden, renormalizes = read_decoding(folder)
    if renormalizes:
        forbidden = [*forbidden, configuration.bos_id]
    else:  # Their softmax includes the begin token, which is never generated.
        forbidden = [id_ for id_ in forbidden if id_ != configuration.bos_id]
    targets.can_be_generated[np.isin(targets.rows, forbidden)] = False
    table = check_tables(tensors, configuration)
    model = make_model(
        configuration.architecture,
        tensors,
        len(targets),
        configuration.sequence_length,
        None if shares else len(sources),
    )

    def take(weight: Weight) -> np.ndarray:
        shape = tuple(weight.variable.shape)
        return tensors.take(tensor_name_of(weight), shape[::-1]).T

    size = configuration.vocabulary_size
    bias = tensors.take("final_logits_bias", (1, size))[0]
    copy_table(model.embedding, tensors, table, targets.rows)
    copy_bias(model.embedding, bias, targets)
    if not shares:
        copy_table(
            model.source_embedding, tensors, SOURCE_EMBEDDING_TENSOR, sources.rows
        )
    copy_layers(model, take)
    tensors.check_all_taken()
    return Converted(model, *tokenizers, decoding)


def check_tables(tensors: Tensors, configuration: Configuration) -> str:
    """Checks the embedding matrices; returns the name of the targets'."""
    names = (
        "model.shared.weight",
        "model.decoder.embed_tokens.weight",
        "lm_head.weight",
    )
    # Copies of the embedding matrix, and the computed position encodings.
    tensors.ignore(
        *(*names, SOURCE_EMBEDDING_TENSOR),
        "model.encoder.embed_positions.weight",
        "model.decoder.embed_positions.weight",
    )
    width = configuration.architecture.hidden_dim
    if not configuration.shares_matrix:
        shape = (configuration.source_vocabulary_size, width)
        tensors.check(SOURCE_EMBEDDING_TENSOR, shape)
        names = names[1:]
    found = [name for name in names if name in tensors]
    name = (found or names)[0]
    tensors.check(name, (configuration.vocabulary_size, width))
    return name
