"""Reads models of Hugging Face's `MarianMTModel`, such as OPUS-MT's."""

import pathlib

import numpy as np

from command_line.errors import UserError
from convert.checked_options import read_json
from convert.hugging_face_config import Configuration, read_configuration, read_decoding
from convert.run_folder_writer import Converted, read_licenses
from convert.tensor_files import Tensors, open_safetensors
from convert.vocabularies import Vocabulary, check_ids, make_vocabularies, read_protos
from convert.weight_mapping import make_model
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID, UNKNOWN_ID

BIAS = "final_logits_bias"
SOURCE_TABLE = "model.encoder.embed_tokens.weight"
# Copies of the matrix of targets; the first exists where both sides share it.
TABLES = (
    *("model.shared.weight", "model.decoder.embed_tokens.weight"),
    "lm_head.weight",
)
# Their names of the parts of a path; see `weight_mapping`.
NAMES = {
    **dict.fromkeys(("attention", "self_attention"), "self_attn."),
    "attention_residual": "self_attn_layer_norm.",
    "self_attention_residual": "self_attn_layer_norm.",
    "memory_attention": "encoder_attn.",
    "memory_attention_residual": "encoder_attn_layer_norm.",
    "feed_forward": "",
    "feed_forward_residual": "final_layer_norm.",
    **{"query": "q_proj.", "key": "k_proj.", "value": "v_proj."},
    **{"output": "out_proj.", "expand": "fc1.", "contract": "fc2."},
    **{"normalization": "", "gamma": "weight", "beta": "bias"},
    **{"kernel": "weight", "bias": "bias"},
}


def tensor_name_of(path: tuple[str, ...]) -> str:
    """Returns the name of the tensor that a weight of a layer is."""
    stack, layer, *rest = path
    number = layer.removeprefix("layer_")
    return f"model.{stack}.layers.{number}.{''.join(NAMES[name] for name in rest)}"


def read(folder: pathlib.Path) -> Converted:
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
    # Copies of a matrix that is read, and the computed position encodings.
    tensors.ignore(
        *(*TABLES, SOURCE_TABLE),
        "model.encoder.embed_positions.weight",
        "model.decoder.embed_positions.weight",
    )
    names = TABLES if shares else TABLES[1:]
    table = next((name for name in names if name in tensors), names[0])
    width = configuration.architecture.hidden_dim
    tensors.check(table, (configuration.vocabulary_size, width))
    if not shares:
        tensors.check(SOURCE_TABLE, (configuration.source_vocabulary_size, width))
    tensors.check(BIAS, (1, configuration.vocabulary_size))
    tables = {"source": SOURCE_TABLE, "target": table, "bias": BIAS}

    def take_weight(path: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray:
        return tensors.take(tensor_name_of(path), shape[::-1]).T

    model = make_model(
        configuration.architecture,
        tensors,
        (sources, targets),
        shares=shares,
        sequence_length=configuration.sequence_length,
        take_table=lambda which: tensors.take(tables[which]),
        take_weight=take_weight,
    )
    return Converted(model, *tokenizers, decoding, read_licenses(folder))


def open_weights(folder: pathlib.Path) -> Tensors:
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
    protos = read_protos([folder / "source.spm", folder / "target.spm"])
    sizes = (configuration.source_vocabulary_size, configuration.vocabulary_size)
    paths = [folder / "vocab.json", folder / "target_vocab.json"]
    path = folder / "tokenizer_config.json"
    shares = configuration.shares_matrix
    is_separate = not shares and paths[1].exists()
    if path.exists():
        is_separate = bool(read_json(path).get("separate_vocabs", is_separate))
    if shares and is_separate:
        raise UserError(
            f"separate_vocabs of {path} must be false for one matrix. Received: true"
        )
    if not is_separate:
        paths[1] = paths[0]
    tables = [
        check_ids(read_json(path), size, path)
        for path, size in zip(paths, sizes, strict=True)
    ]
    specials = [
        find_specials(table, configuration, path, begins)
        for table, path, begins in zip(tables, paths, (shares, True), strict=True)
    ]
    return make_vocabularies(protos, tables, specials, shares)


def find_specials(
    table: dict[str, int], configuration: Configuration, path: pathlib.Path, begins
) -> dict[int, int]:
    """Returns their ids of our special pieces.

    Sources have BOS only if their table has it, or is that of targets.
    """
    if "<unk>" not in table:
        raise UserError(f"{path} must hold the piece <unk>")
    specials = {EOS_ID: configuration.eos_id, UNKNOWN_ID: table["<unk>"]}
    bos_id = configuration.bos_id
    if begins or table.get("<s>") == bos_id:
        specials[BOS_ID] = bos_id
    if not begins or configuration.padding_id != bos_id:
        specials[PADDING_ID] = configuration.padding_id
    return specials
