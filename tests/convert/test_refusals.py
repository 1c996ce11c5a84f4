"""Tests of refused conversions: one line, exit code 2, nothing written."""

import json
import math
import re
import shutil

import numpy as np
import pytest
import safetensors.numpy
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from command_line.errors import UserError
from convert.__main__ import main
from convert.vocabularies import make_vocabulary, read_proto, replace_ids
from convert.weight_mapping import count_weights, weights_of
from keras_transformer import Transformer
from tests.helpers.error_capture import refusal
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.other_systems.converted_runs import (
    LANGUAGE_TOKEN,
    make_table,
    pieces_of,
    train_spm,
)
from tests.helpers.other_systems.marian_files import (
    OUR_ORDER,
    check_epsilon,
    make_tensors,
    write_model,
)

PROTO = train_spm(SENTENCES, 90)
TABLE = make_table(pieces_of(PROTO))
SIZE = len(TABLE)
CONFIG = {
    **{"model_type": "marian", "activation_function": "swish", "d_model": 8},
    **{"encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 12},
    **{"decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 12},
    **{"vocab_size": SIZE, "decoder_vocab_size": None, "scale_embedding": True},
    **{"pad_token_id": SIZE - 1, "decoder_start_token_id": SIZE - 1},
    **{"eos_token_id": 0, "bad_words_ids": [[SIZE - 1]], "num_beams": 6},
}


def make_opus_tensors():
    random = np.random.default_rng(1)
    shapes = {"model.shared.weight": (SIZE, 8), "final_logits_bias": (1, SIZE)}
    for stack in ("encoder", "decoder"):
        prefix = f"model.{stack}.layers.0"
        attentions = ["self_attn"] + ["encoder_attn"] * (stack == "decoder")
        parts = {"fc1": (12, 8), "fc2": (8, 12), "final_layer_norm": (8,)}
        for part in attentions:
            parts[f"{part}_layer_norm"] = (8,)
            for letter in ("q", "k", "v", "out"):
                parts[f"{part}.{letter}_proj"] = (8, 8)
        for part, shape in parts.items():
            shapes[f"{prefix}.{part}.weight"] = shape
            shapes[f"{prefix}.{part}.bias"] = shape[:1]
    return {
        name: random.normal(size=shape).astype("float32")
        for name, shape in shapes.items()
    }


TENSORS = make_opus_tensors()


def write_opus(folder, tensors=TENSORS, table=TABLE, **changes):
    folder.mkdir()
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    (folder / "vocab.json").write_text(json.dumps(table))
    (folder / "source.spm").write_bytes(PROTO)
    (folder / "target.spm").write_bytes(PROTO)
    return folder


def test_the_plain_folder_is_taken(tmp_path):
    folder = write_opus(tmp_path / "opus")
    (folder / "README.md").write_text("license: none")
    run_dir = tmp_path / "run"

    main(["hugging-face", "--model-dir", str(folder), "--run-dir", str(run_dir)])

    assert (run_dir / "README.md").read_text() == "license: none"
    arguments = json.loads((run_dir / "arguments.json").read_text())
    assert arguments["decoding"]["beam_size"] == 6
    assert arguments["origin"]["format"] == "hugging-face"


def without(name):
    return {n: tensor for n, tensor in TENSORS.items() if n != name}


FC1 = "model.encoder.layers.0.fc1.weight"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "bart"}, "model_type.*'bart'"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings.*False"),
        ({"activation_function": ["relu"]}, r"activation_function.*\['relu"),
        ({"activation_function": "gelu_new"}, "one of.*'gelu_new'"),
        ({"decoder_ffn_dim": 16}, "decoder_ffn_dim.*16"),
        ({"d_model": 9}, "d_model.*9"),
        ({"d_model": "8"}, "d_model.*'8'"),
        ({"d_model": 16}, rf"\({SIZE}, 16\).*\({SIZE}, 8\)"),
        ({"encoder_layers": 0}, "encoder_layers.*0"),
        ({"encoder_layers": 2**40}, "must hold the model.*weights"),
        ({"encoder_ffn_dim": 2**40, "decoder_ffn_dim": 2**40}, "weights"),
        ({"decoder_layers": 2}, "decoder.layers.1"),
        ({"eos_token_id": SIZE}, f"eos_token_id.*{SIZE}"),
        ({"eos_token_id": 1}, "of its own"),
        ({"decoder_start_token_id": -1}, "decoder_start_token_id.*-1"),
        ({"decoder_vocab_size": 3}, "decoder_vocab_size.*3"),
        ({"forced_eos_token_id": 7}, "forced_eos_token_id.*7"),
        ({"forced_bos_token_id": 7}, "forced_bos_token_id.*7"),
        ({"no_repeat_ngram_size": 3}, "no_repeat_ngram_size.*3"),
        ({"bad_words_ids": [[1, 2]]}, r"bad_words_ids.*\[\[1, 2\]\]"),
        ({"num_beams": "four"}, "num_beams.*'four'"),
        ({"scale_embedding": 3}, "scale_embedding.*3"),
        ({"dropout": "much"}, "dropout.*much"),
        ({"share_encoder_decoder_embeddings": False}, "embed_tokens"),
        ({"table": {**TABLE, "more": SIZE}}, "an id below"),
        ({"table": {**TABLE, "more": 5}}, "of its own"),
        ({"table": {**TABLE, "more": "5"}}, "an id below"),
        ({"table": {p: i for p, i in TABLE.items() if p != "<unk>"}}, "piece <unk>"),
        ({"tensors": {**TENSORS, "extra.weight": np.ones(2)}}, "extra.weight"),
        ({"tensors": without(FC1)}, FC1),
        ({"tensors": {**TENSORS, FC1: TENSORS[FC1].T.copy()}}, r"\(12, 8\)"),
        ({"tensors": {**TENSORS, FC1: TENSORS[FC1] * np.nan}}, "finite"),
    ],
)
def test_a_model_of_hugging_face(changes, words, tmp_path, refused):
    folder = write_opus(tmp_path / "opus", **changes)

    assert re.search(words, refused("hugging-face", "--model-dir", folder))


def write(name, text):
    return lambda folder: (folder / name).write_text(text)


def remove(name):
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (shutil.rmtree, "config.json. Received: .*opus"),
        (remove("config.json"), "config.json"),
        (remove("vocab.json"), "vocab.json"),
        (remove("source.spm"), "source.spm"),
        (write("target.spm", "x"), "target.spm"),
        (write("config.json", "["), "JSON object"),
        (write("model.safetensors", "x"), "whole, and safetensors"),
        (remove("model.safetensors"), "model.safetensors"),
        (
            lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
            r"pickle.*save_pretrained\(",
        ),
        (
            write("tokenizer_config.json", '{"separate_vocabs": true}'),
            "separate_v.*true",
        ),
    ],
)
def test_a_folder(change, words, tmp_path, refused):
    folder = write_opus(tmp_path / "opus")
    change(folder)

    assert re.search(words, refused("hugging-face", "--model-dir", folder))


def test_a_run_folder_that_holds_something(tmp_path, capsys):
    folder = write_opus(tmp_path / "opus")
    arguments = ["hugging-face", "--model-dir", folder, "--run-dir", folder]

    assert "--run-dir must be a new folder" in refusal(capsys, main, arguments)


@pytest.fixture(scope="module")
def spm(tmp_path_factory):
    path = tmp_path_factory.mktemp("spm") / "vocab.spm"
    path.write_bytes(train_spm(SENTENCES, 90, eos_id=0, unk_id=1, bos_id=-1))
    return path


@pytest.fixture
def refused_marian(spm, tmp_path, refused):
    def run(tensors, name="model.npz", **changes):
        path = tmp_path / name
        write_model(path, tensors, **changes)
        return refused("marian", "--model", path, "--vocabulary", spm)

    return run


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"type": "s2s"}, "type of .*'s2s'"),
        ({"transformer-preprocess": "n"}, "transformer-preprocess of .*'n'"),
        ({"transformer-postprocess-emb": "n"}, "postprocess-emb of .*'n'"),
        ({"transformer-ffn-activation": "gelu"}, "activation of .*'gelu'"),
        ({"transformer-ffn-activation": [1]}, r"activation of .*\[1\]"),
        ({"transformer-ffn-depth": 3}, "transformer-ffn-depth of .*3"),
        ({"transformer-tied-layers": [1, 1]}, r"tied-layers of .*\[1, 1\]"),
        ({"transformer-decoder-autoreg": "average-attention"}, "average"),
        ({"dec-cell": "gru"}, "dec-cell of .*'gru'"),
        ({"layer-normalization": True}, "layer-normalization of .*True"),
        ({"lemma-dim-emb": 4}, "lemma-dim-emb of .*4"),
        ({"transformer-disable-position-embeddings": True}, "must be False.*True"),
        ({"transformer-attention-mask": "alibi"}, "mask of .*'alibi'"),
        ({"alibi": True}, "alibi of .*must be False. Received: True"),
        ({"factors-combine": "concat"}, "factors-combine of .*'concat'"),
        ({"ulr-trainable-transformation": True}, "must be False.*True"),
        ({"transformer-new": False}, "transformer-new of .*absent.*False"),
        ({"a\nb": 1}, r"'a\\nb' of the configuration.*absent"),
        ({"enc-depth": 3}, "encoder_l3_self_Wq"),
        ({"enc-depth": 2**40}, "weights"),
        ({"dim-emb": 2**20}, r"\(61, 1048576\)"),
        ({"enc-depth": 1}, "encoder_l2_ffn_W1"),
    ],
)
def test_a_model_of_marian(changes, words, spm, refused_marian):
    line = refused_marian(make_tensors([len(read_proto(spm).pieces)]), **changes)

    assert re.search(words, line)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("beam-size: 0", "decoder.yml must be an int from 1 on.* Received: 0"),
        ("normalize: .inf", "normalize of .*a number from 0 on. Received: inf"),
        ("normalize: -0.5", "normalize of .*Received: -0.5"),
        ("word-penalty: 0.5", "word-penalty of .*must be 0. Received: 0.5"),
        ("output-sampling: [full]", r"output-sampling of .*\['full'\]"),
        ("force-decode: true", "force-decode of .*must be False. Received: True"),
        ("models: [a.npz, b.npz]", r"one model.*\['a.npz', 'b.npz'\]"),
        ("- 6", "decoder.yml must be a YAML mapping"),
        ("beam-size: [", "decoder.yml must be YAML. Received: "),
    ],
)
def test_search_options_of_marian(text, words, spm, tmp_path, refused_marian):
    (tmp_path / "decoder.yml").write_text(text)

    line = refused_marian(make_tensors([len(read_proto(spm).pieces)]))

    assert re.search(words, line)


def test_a_vocabulary_or_an_output_matrix_of_another_model(spm, refused_marian):
    line = refused_marian(make_tensors([70]), "model.bin")
    assert "--vocabulary must be that of the model" in line

    tensors = make_tensors([len(read_proto(spm).pieces)])
    tensors["decoder_ff_logit_out_W"] = tensors["Wemb"]
    assert "decoder_ff_logit_out_W of " in refused_marian(tensors)


@pytest.mark.parametrize("mixer", ["attention", "ssru"])
def test_counts_the_weights_of_the_matrices_of_layers(mixer):
    """By which a model is refused that no file can hold."""
    sizes = {"num_layers": 3, "decoder_layers": 2, "hidden_dim": 10, "num_heads": 2}
    sizes |= {"intermediate_dim": 14, "key_dim": 3, "value_dim": 4}
    model = Transformer.from_preset("base", 9, **sizes, decoder_mixer=mixer)

    shapes = [weight.shape for weight in weights_of(model).values()]
    expected = sum(math.prod(shape) for shape in shapes if len(shape) == 2)
    assert count_weights(model.architecture) == expected


def convert_opus(folder, run_dir, **contents):
    write_opus(folder, **contents)
    main(["hugging-face", "--model-dir", str(folder), "--run-dir", str(run_dir)])
    library = sentencepiece.SentencePieceProcessor(
        model_file=str(run_dir / "tokenizer.model")
    )
    ids = {library.id_to_piece(i): i for i in range(len(library))}
    return Transformer.from_pretrained(run_dir), ids


def test_pieces_that_their_translations_never_have(tmp_path):
    missing = pieces_of(PROTO)[-3:]
    kept = [p for p in TABLE if p not in missing] + ["<1>", "<2>", "<3>"]
    table = {piece: id_ for id_, piece in enumerate(kept)}
    table |= {"<pad>": SIZE - 1, "<3>": table["<pad>"]}
    bad = [[SIZE - 1], [table["<1>"]]]

    model, ids = convert_opus(
        tmp_path / "opus", tmp_path / "run", table=table, bad_words_ids=bad
    )

    bias = np.array(model.embedding.bias)
    never = {*missing, "<pad>", "<1>"}
    assert all(bias[ids[piece]] <= -100 for piece in never)
    theirs = TENSORS["final_logits_bias"][0]
    embeddings = np.array(model.embedding.embeddings)
    rows = TENSORS["model.shared.weight"][:, OUR_ORDER]
    ids[LANGUAGE_TOKEN] = ids[f"▁{LANGUAGE_TOKEN}"]
    for piece, id_ in table.items():
        if piece not in never:
            assert bias[ids[piece]] == theirs[id_]
        if piece != "<pad>":
            np.testing.assert_array_equal(embeddings[ids[piece]], rows[id_])


def test_layers_are_normalized_with_the_epsilon_of_pytorch(tmp_path):
    model, _ = convert_opus(tmp_path / "opus", tmp_path / "run")

    layer = model.decoder.layers[0].memory_attention_residual
    name = "model.decoder.layers.0.encoder_attn_layer_norm"
    parts = TENSORS[f"{name}.weight"], TENSORS[f"{name}.bias"]
    check_epsilon(layer.normalization, *parts, 1e-5)


RANGES = {  # Of the scores of pieces: ß alone is often among the best.
    **dict.fromkeys(("▁", "a", "b"), (-20, -2)),
    **dict.fromkeys(("ab", "ba"), (-3, -1)),
    **dict.fromkeys(("aß", "ßb"), (-34, -30)),
}


@pytest.mark.parametrize("seed", range(12))
def test_a_character_that_only_the_table_has_costs_what_an_unknown_one_does(seed):
    """So a text is split at the same places."""
    random = np.random.default_rng(seed)
    proto = sentencepiece_model_pb2.ModelProto.FromString(PROTO)
    del proto.pieces[3:]  # The special ones stay.
    for piece, scores in RANGES.items():
        proto.pieces.add(piece=piece, score=random.uniform(*scores))
    names = ["</s>", "<unk>", *RANGES, "ß", "<pad>"]
    table = {piece: id_ for id_, piece in enumerate(names)}
    ours = make_vocabulary(table, {1: 0, 2: 1, 3: len(table) - 1}, [])
    texts = ["".join(random.choice(list("ab"), 7)) for _ in range(100)]
    # One each: unknown characters that adjoin are one piece.
    texts = [t[: n % 8] + "ß" + t[n % 8 :] for n, t in enumerate(texts)]

    found = sentencepiece.SentencePieceProcessor(
        model_proto=replace_ids(proto, ours.pieces)
    ).encode(texts, out_type=str)

    theirs = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    assert found == theirs.encode(texts, out_type=str)
    alone = sum("ß" in pieces for pieces in found)
    assert 10 < alone < 90


def test_a_vocabulary_with_another_meaning_for_a_special_piece():
    with pytest.raises(UserError, match="meaning for </s>.* Received: <s>$"):
        make_vocabulary({"</s>": 0, "<unk>": 1, "<s>": 2}, {1: 0, 2: 1}, [])
    with pytest.raises(UserError, match=r"of its own for end.*: \[0, 0\]$"):
        make_vocabulary({"</s>": 0}, {1: 0, 2: 0}, [])
