"""Writes a run as a folder that `MarianMTModel.from_pretrained` loads."""

import dataclasses
import pathlib

import keras
import numpy as np

from command_line.errors import UserError, refuse_damage
from command_line.recorded_search_options import check_decoding
from command_line.text_files import write_json
from convert.checked_options import CheckedOptions, read_json
from convert.from_hugging_face import BIAS, SOURCE_TABLE, TABLES, tensor_name_of
from convert.hugging_face_config import ACTIVATIONS, MUST_BE
from convert.run_folder_writer import check_new, new_folder, read_licenses
from convert.vocabularies import is_language_code, read_proto
from convert.weight_mapping import to_their_order, weights_of, width_axes
from keras_transformer import Transformer
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID
from train.data.given_tokenizer import PIECE

MAX_NORM_EPSILON = 1e-3  # Keras's default.
# Entries of `config.json` that `generation_config.json` repeats.
GENERATION = (
    *("bad_words_ids", "bos_token_id", "decoder_start_token_id"),
    *("eos_token_id", "forced_eos_token_id", "length_penalty"),
    *("max_length", "num_beams", "pad_token_id"),
)


def check_architecture(model: Transformer) -> None:
    """Refuses architectures that `MarianMTModel` cannot compute."""
    if parts := model.custom_parts():
        raise UserError(
            "the model of --run-dir must not replace parts of Transformer. "
            f"Received: {', '.join(parts)} of {type(model).__name__}"
        )
    if model.get_config().get("quantized"):
        raise UserError(
            "the model of --run-dir must not be quantized. "
            f"Received: {model.name}, which `quantize` has changed"
        )
    architecture = model.architecture
    width = architecture.hidden_dim // architecture.num_heads
    options = CheckedOptions(
        dataclasses.asdict(architecture), "a model of --run-dir for Marian"
    )
    options.choice("activation", ACTIVATIONS, "relu")
    options.check(
        {
            "norm": "post",
            "positions": "sine",
            "decoder_mixer": "attention",
            "max_wavelength": 10_000,
            "key_dim": width,
            "value_dim": width,
            "hidden_dim": width * architecture.num_heads,
            "tied_output": True,
            "position_offset": 0,
        }
    )
    # Marian's is 1e-5. Beside a variance of about 1, smaller ones are the same.
    if architecture.norm_epsilon > MAX_NORM_EPSILON:
        wanted = f"at most {MAX_NORM_EPSILON:g}"
        raise options.error("norm_epsilon", wanted, architecture.norm_epsilon)


def make_config(model: Transformer, decoding: dict) -> dict:
    """Returns the `config.json` of a model."""
    architecture = model.architecture
    shares = model.source_vocabulary_size is None
    config = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        **MUST_BE,
        "activation_function": architecture.activation,
        "d_model": architecture.hidden_dim,
        "scale_embedding": architecture.scale_embedding,
        "share_encoder_decoder_embeddings": shares,
        "vocab_size": model.source_vocabulary_size or model.vocabulary_size,
        "decoder_vocab_size": model.vocabulary_size,
        "max_position_embeddings": model.sequence_length,
        "dropout": architecture.dropout,
        "attention_dropout": architecture.attention_dropout,
        "activation_dropout": architecture.feed_forward_dropout,
        "pad_token_id": PADDING_ID,
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
        "decoder_start_token_id": BOS_ID,
        "bos_token_id": BOS_ID,
        "bad_words_ids": [[PADDING_ID], [BOS_ID]],
        "num_beams": decoding.get("beam_size", 4),
        "length_penalty": decoding.get("length_penalty", 1.0),
        "max_length": model.sequence_length,
    }
    for stack, layers in (
        ("encoder", architecture.num_layers),
        ("decoder", architecture.num_decoder_layers),
    ):
        config[f"{stack}_layers"] = layers
        config[f"{stack}_attention_heads"] = architecture.num_heads
        config[f"{stack}_ffn_dim"] = architecture.intermediate_dim
    return config


def tensors_of(model: Transformer) -> dict[str, np.ndarray]:
    """Returns the tensors of a model by Hugging Face's names."""
    tensors = {}
    for path, variable in weights_of(model).items():
        name = tensor_name_of(path)
        array = to_their_order(np.array(variable, np.float32), width_axes(path))
        tensors[name] = np.ascontiguousarray(array.T)
        if path[-1] == "kernel" and not model.architecture.use_bias:
            # Hugging Face's attention has a bias for every kernel.
            empty = np.zeros(array.shape[1], np.float32)
            tensors.setdefault(name.removesuffix("weight") + "bias", empty)
    bias = np.zeros(model.vocabulary_size, np.float32)
    if model.embedding.bias is not None:
        bias = np.array(model.embedding.bias, np.float32)
    tensors[BIAS] = bias[None]
    table = to_their_order(np.array(model.embedding.embeddings, np.float32), (1,))
    if model.source_embedding is None:
        tensors[TABLES[0]] = table
        return tensors
    tensors |= {TABLES[1]: table, TABLES[2]: table.copy()}
    table = np.array(model.source_embedding.embeddings, np.float32)
    tensors[SOURCE_TABLE] = to_their_order(table, (1,))
    return tensors


def write_model(run_dir: pathlib.Path, model_dir: pathlib.Path) -> None:
    """Writes a complete folder, or none after an error."""
    import safetensors.numpy

    check_new(model_dir, "--model-dir")
    path = run_dir / "model.keras"
    if not path.exists():
        raise UserError(
            "--run-dir must be the folder of a finished run. "
            f"Received: {run_dir}, which has no {path.name}"
        )
    with refuse_damage(path):
        model = keras.saving.load_model(path, compile=False)
    check_architecture(model)
    source = read_tokenizer_proto(run_dir / "tokenizer.model")
    target = run_dir / "target_tokenizer.model"
    target = read_tokenizer_proto(target) if target.exists() else source
    config = make_config(model, read_search_options(run_dir / "arguments.json"))
    files = {
        "config.json": config,
        "generation_config.json": {name: config[name] for name in GENERATION},
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": model.source_vocabulary_size is not None,
            "model_max_length": model.sequence_length,
            "source_lang": "source",
            "target_lang": "target",
        },
        "vocab.json": ids_of(source, config["vocab_size"], run_dir),
    }
    if model.source_vocabulary_size is not None:
        table = ids_of(target, model.vocabulary_size, run_dir)
        files["target_vocab.json"] = table
    with new_folder(model_dir) as part:
        safetensors.numpy.save_file(
            tensors_of(model), part / "model.safetensors", {"format": "pt"}
        )
        (part / "source.spm").write_bytes(source.SerializeToString())
        (part / "target.spm").write_bytes(target.SerializeToString())
        for name, content in files.items():
            write_json(part / name, content)
        for name, content in read_licenses(run_dir).items():
            (part / name).write_bytes(content)


def ids_of(proto, size: int, run_dir: pathlib.Path) -> dict[str, int]:
    """Returns the id of each piece of a SentencePiece model."""
    table = {piece.piece: id_ for id_, piece in enumerate(proto.pieces)}
    if len(table) != size:
        raise UserError(
            f"the tokenizers in {run_dir} must be the model's, which has "
            f"{size} pieces. Received: {len(table)}"
        )
    return table


def read_search_options(path: pathlib.Path) -> dict:
    """Returns the search options of a converted model.

    A model that was trained here has none: its length penalty has a formula
    that Hugging Face does not know.
    """
    if not path.exists():
        return {}
    decoding = check_decoding(read_json(path).get("decoding", {}), path)
    return decoding if decoding.get("penalty_offset") == 0 else {}


def read_tokenizer_proto(path: pathlib.Path):
    """Reads a SentencePiece model, without language codes as pieces of text.

    Hugging Face splits off a code such as `>>fra<<` before it tokenizes a text.
    """
    proto = read_proto(path)
    for piece in proto.pieces:
        if is_language_code(piece.piece.removeprefix("▁")):
            piece.piece = piece.piece.removeprefix("▁")
            piece.type = PIECE.UNUSED
    return proto
