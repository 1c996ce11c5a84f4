"""Writes a run as a folder that `MarianMTModel.from_pretrained` loads."""

import pathlib

import keras
import numpy as np

from command_line.errors import UserError, refuse_damage
from command_line.recorded_search_options import check_decoding
from command_line.text_files import write_json
from convert.from_hugging_face import tensor_name_of
from convert.hugging_face_config import ACTIVATIONS, MUST_BE
from convert.run_folder_writer import check_new, copy_licenses, new_folder
from convert.tensor_files import read_json
from convert.vocabularies import is_language_code, read_proto
from convert.weight_mapping import to_their_order, weights_of
from keras_transformer import Transformer
from keras_transformer.masks import BOS_ID, EOS_ID, PADDING_ID
from train.data.tokenizer_file import PIECE

MAX_NORM_EPSILON = 1e-3  # Keras's default.


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
    for name, wanted in {
        "norm": "post",
        "positions": "sine",
        "decoder_mixer": "attention",
        "max_wavelength": 10_000,
        "key_dim": width,
        "value_dim": width,
        "hidden_dim": width * architecture.num_heads,
        "tied_output": True,
        "position_offset": 0,
    }.items():
        value = getattr(architecture, name)
        if value != wanted:
            raise UserError(
                f"{name} must be {wanted} in a model of --run-dir for Marian. "
                f"Received: {value}"
            )
    if architecture.activation not in ACTIVATIONS:
        raise UserError(
            f"activation must be one of {', '.join(ACTIVATIONS)} in a model of "
            f"--run-dir for Marian. Received: {architecture.activation}"
        )
    # Marian's is 1e-5. Beside a variance of about 1, smaller ones are the same.
    if architecture.norm_epsilon > MAX_NORM_EPSILON:
        raise UserError(
            f"norm_epsilon must be at most {MAX_NORM_EPSILON:g} in a model of "
            f"--run-dir for Marian. Received: {architecture.norm_epsilon:g}"
        )


def make_config(model: Transformer, decoding: dict) -> dict:
    """Returns the `config.json` of a model."""
    architecture = model.architecture
    shares = model.source_vocabulary_size is None
    config = {
        "architectures": ["MarianMTModel"],
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
        config[f"{stack}_layerdrop"] = architecture.layer_dropout
        config[f"{stack}_attention_heads"] = architecture.num_heads
        config[f"{stack}_ffn_dim"] = architecture.intermediate_dim
    return config


def tensors_of(model: Transformer) -> dict[str, np.ndarray]:
    """Returns the tensors of a model by Hugging Face's names."""
    tensors = {}
    for weight in weights_of(model):
        array = to_their_order(np.array(weight.variable), weight.feature_axes)
        name = tensor_name_of(weight)
        tensors[name] = np.ascontiguousarray(array.T, np.float32)
        if weight.name.endswith(".kernel") and weight.part != "feed_forward":
            # Hugging Face's attention has a bias for every kernel.
            empty = np.zeros(array.shape[1], np.float32)
            tensors.setdefault(name.removesuffix("weight") + "bias", empty)
    embedding = model.embedding
    bias = np.zeros(model.vocabulary_size, np.float32)
    if embedding.bias is not None:
        bias = np.array(embedding.bias, np.float32)
    tensors["final_logits_bias"] = bias[None]
    table = to_their_order(np.array(embedding.embeddings, np.float32), (1,))
    if model.source_embedding is None:
        tensors["model.shared.weight"] = table
        return tensors
    tensors["model.decoder.embed_tokens.weight"] = table
    tensors["lm_head.weight"] = table.copy()
    table = np.array(model.source_embedding.embeddings, np.float32)
    tensors["model.encoder.embed_tokens.weight"] = to_their_order(table, (1,))
    return tensors


def write_model(run_dir: pathlib.Path, model_dir: pathlib.Path) -> None:
    """Writes a complete folder, or none after an error.

    Raises:
        UserError: If the run is not finished, or its model not supported.
    """
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
    tables = {"vocab.json": piece_ids_of(source)}
    if model.source_vocabulary_size is not None:
        tables["target_vocab.json"] = piece_ids_of(target)
    for table, size in zip(
        tables.values(),
        (config["vocab_size"], config["decoder_vocab_size"]),
        strict=False,
    ):
        if len(table) != size:
            raise UserError(
                f"the tokenizers in {run_dir} must be the model's, which has "
                f"{size} pieces. Received: {len(table)}"
            )
    with new_folder(model_dir) as part:
        safetensors.numpy.save_file(
            tensors_of(model), part / "model.safetensors", {"format": "pt"}
        )
        (part / "source.spm").write_bytes(source.SerializeToString())
        (part / "target.spm").write_bytes(target.SerializeToString())
        for name, content in {
            "config.json": config,
            "generation_config.json": make_generation_config(config),
            "tokenizer_config.json": {
                "tokenizer_class": "MarianTokenizer",
                "separate_vocabs": len(tables) > 1,
                "model_max_length": model.sequence_length,
                "source_lang": "source",
                "target_lang": "target",
            },
            **tables,
        }.items():
            write_json(part / name, content)
        copy_licenses(run_dir, part)


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


def piece_ids_of(proto) -> dict[str, int]:
    """Returns the id of each piece of a SentencePiece model."""
    return {piece.piece: id_ for id_, piece in enumerate(proto.pieces)}


def make_generation_config(config: dict) -> dict:
    """Returns the `generation_config.json`."""
    names = (
        *("bad_words_ids", "bos_token_id", "decoder_start_token_id"),
        *("eos_token_id", "forced_eos_token_id", "length_penalty"),
        *("max_length", "num_beams", "pad_token_id"),
    )
    return {name: config[name] for name in names}
