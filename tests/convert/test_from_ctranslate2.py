"""CTranslate2 directories: equal to what that library computes."""

import functools
import json

import ctranslate2
import numpy as np
import pytest
import sentencepiece
from ctranslate2.converters import MarianConverter

from command_line.errors import UserError
from convert.__main__ import main
from convert.checked_options import CheckedOptions
from keras_transformer import SubwordTokenizer, Transformer
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.oracles.numpy_oracles import pad, target_log_probabilities
from tests.helpers.other_systems.converted_runs import pieces_of, train_spm
from tests.helpers.other_systems.ctranslate2_models import write_directory
from tests.helpers.other_systems.marian_files import write_download

BACKWARDS = [sentence[::-1] for sentence in SENTENCES]
PROTOS = [train_spm(SENTENCES, 90), train_spm(BACKWARDS, 80)]
SOURCES, TARGETS = map(pieces_of, PROTOS)
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]  # Their ids are not ours.
VOCABULARIES = [[*SPECIALS, *SOURCES], [*SPECIALS, *TARGETS]]
TEXTS = [SENTENCES[0], SENTENCES[3], "Two cats @ 7"]
TRANSLATIONS = [BACKWARDS[1], *BACKWARDS[4:]]


def convert(folder, run_dir, *vocabulary):
    options = ["--model-dir", folder, "--run-dir", run_dir]
    main(["ctranslate2", *map(str, [*options, "--vocabulary", *vocabulary])])
    return Transformer.from_pretrained(run_dir)


@pytest.mark.parametrize(
    "precision",
    [
        *("int8", "int16", "float16"),
        # CTranslate2 converts to it by PyTorch.
        pytest.param("bfloat16", marks=pytest.mark.peers("torch")),
    ],
)
def test_other_precisions_are_near(precision, tmp_path):
    paths = write_protos(tmp_path)
    models = []
    for given in (None, precision):
        folder = tmp_path / f"ct2-{given}"
        folder.mkdir()
        write_directory(folder, VOCABULARIES, tied=False, precision=given)
        models.append(convert(folder, tmp_path / f"run-{given}", *paths))

    relative = {"int8": 1 / 127, "int16": 1e-3, "float16": 1e-3}
    for expected, weight in zip(*(model.weights for model in models), strict=True):
        expected = np.array(expected)
        error = np.abs(weight - expected).max() / np.abs(expected).max()
        assert error <= relative.get(precision, 2**-8), weight.path
    assert models[1].architecture == models[0].architecture
    assert models[1].architecture.position_offset == 2


def write_protos(folder):
    paths = [folder / "source.spm", folder / "target.spm"]
    for path, proto in zip(paths, PROTOS, strict=True):
        path.write_bytes(proto)
    return paths


def check_scores(folder, run_dir, paths):
    model = convert(folder, run_dir, *paths)
    tokenizer = SubwordTokenizer.from_pretrained(run_dir)
    sources = tokenizer.tokenize(TEXTS).to_tensor().numpy()
    targets = tokenizer.tokenize_targets(TRANSLATIONS).to_tensor().numpy()
    found = target_log_probabilities(model, sources, targets)

    pieces = [
        sentencepiece.SentencePieceProcessor(model_proto=proto).encode(
            texts, out_type=str
        )
        for proto, texts in zip(PROTOS, (TEXTS, TRANSLATIONS), strict=True)
    ]
    config = json.loads((folder / "config.json").read_text())
    ends = [] if config["add_source_eos"] else [config["eos_token"]]
    expected = ctranslate2.Translator(str(folder)).score_batch(
        [[*source, *ends] for source in pieces[0]], pieces[1]
    )
    expected = pad([result.log_probs for result in expected])
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert expected.min() < -3


@pytest.mark.parametrize("shares", [True, False])
def test_a_directory_of_their_marian_converter(shares, tmp_path):
    names = ["</s>", "<unk>", *SOURCES[:-3]]
    tables = [[*names, *TARGETS]] if shares else [names, [*names[:2], *TARGETS]]
    tables = [
        {piece: id_ for id_, piece in enumerate(dict.fromkeys(table))}
        for table in tables
    ]
    more = {"transformer-no-projection": False}
    more["transformer-guided-alignment-layer"] = "last"
    write_download(tmp_path, PROTOS, tables, unknown=0.0, **more)
    vocabularies = sorted(map(str, tmp_path.glob("*.vocab.yml")))
    (model,) = tmp_path.glob("*.npz")
    folder = tmp_path / "ct2"
    MarianConverter(str(model), vocabularies).convert(str(folder))

    check_scores(folder, tmp_path / "run", write_protos(tmp_path))


# As other converters write them: without a table of positions, with the
# beginning of targets that is also their end, embeddings that are not scaled.
DIRECTORIES = [
    {"positions": None, "tied": False},
    {"positions": "halves", "pre_norm": True, "start": "</s>"},
    {"positions": "learned", "scale": False, "tied": False, "pre_norm": True},
    {"positions": "halves", "scale": 16**0.5, "bias": False},
]


@pytest.mark.parametrize("options", DIRECTORIES)
def test_a_directory_of_other_converters(options, tmp_path, capsys):
    folder = tmp_path / "ct2"
    folder.mkdir()
    write_directory(folder, VOCABULARIES, **options)

    check_scores(folder, tmp_path / "run", write_protos(tmp_path))
    assert "note: sources end in </s> here" in capsys.readouterr().out


@pytest.fixture
def refused_directory(refused, tmp_path):
    """Returns a function to the line that refuses a changed directory."""

    def run(change_folder=None, vocabulary=(), **options):
        folder = tmp_path / "ct2"
        folder.mkdir()
        write_directory(folder, VOCABULARIES, **options)
        if change_folder is not None:
            change_folder(folder)
        paths = [*write_protos(tmp_path), *vocabulary]
        return refused("ctranslate2", "--model-dir", folder, "--vocabulary", *paths)

    return run


def set_value(value, *paths):
    """Returns a change of a specification: a new value, or a function of the old."""

    def change(spec):
        for path in paths:
            *parents, name = path.split(".")
            part = functools.reduce(getattr, parents, spec)
            new = value(getattr(part, name)) if callable(value) else value
            setattr(part, name, new)

    return change


def both(name):
    return f"encoder.{name}", f"decoder.{name}"


def set_scale(spec):
    spec.encoder.layer[0].self_attention.queries_scale = 0.5


def cut(table):
    return table[:, :3].copy()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_value(True, "decoder.alibi"), "decoder/alibi of"),
        (set_value(2.0, "decoder.scale_outputs"), "scale_outputs of"),
        (set_value(np.int16(4), "decoder.num_heads"), "must be 2, as in the enc"),
        (set_value(np.int8(4), "encoder.activation"), "must be 4, as in the enc"),
        (set_value(True, "decoder.pre_norm"), "decoder/pre_norm"),
        (set_value(2.0, "encoder.scale_embeddings"), "as in the encoder"),
        (set_value(np.int8(4), *both("activation")), "activation of"),
        (set_value(3.0, *both("scale_embeddings")), "must be 1 or the root of 16"),
        (
            set_value(lambda table: table + 1, "decoder.position_encodings.encodings"),
            "must be that of the encoder",
        ),
        (
            set_value(cut, *both("position_encodings.encodings")),
            "must be of shape (64, 16). Received: (64, 3)",
        ),
        (set_value(cut, "decoder.embeddings.weight"), "an even number of features"),
        (set_scale, "queries_scale of"),
        (set_value(np.int16(17), *both("num_heads")), "must be a divisor of 16. Rec"),
    ],
)
def test_refuses_a_specification(change, words, refused_directory):
    assert words in refused_directory(change=change)


def test_refuses_a_model_without_an_option_of_both_stacks():
    with pytest.raises(UserError, match="encoder/pre_norm of model.bin must"):
        CheckedOptions({}, "model.bin").both("/pre_norm")


def edit(name, old, new):
    def change(folder):
        content = (folder / name).read_bytes()
        assert old in content
        (folder / name).write_bytes(content.replace(old, new, 1))

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: (f / "model.bin").unlink(), "No such file"),
        (edit("model.bin", b"\6\0\0\0", b"\5\0\0\0"), "version 5; version 6"),
        (edit("model.bin", b"projection/weight", b"projection/weighs"), "hold"),
        (edit("model.bin", b"TransformerS", b"TransformerX"), "TransformerXpec"),
        (edit("config.json", b'"</s>"', b'"</t>"'), "eos_token of"),
        (edit("config.json", b'"</s>"', b'["</s>"]'), "eos_token of"),
        (edit("config.json", b'bos": false', b'bos": true'), "add_source_bos of"),
        (lambda f: (f / "config.json").unlink(), "must hold config.json"),
        (lambda f: (f / "source_vocabulary.json").unlink(), "hold source_vocabulary"),
        (edit("source_vocabulary.json", b"[", b"{"), "JSON array"),
        (edit("source_vocabulary.json", b'"<s>"', b'"</s>"'), "each piece once"),
        (edit("source_vocabulary.json", b'"<s>",', b""), "rows. Received: "),
    ],
)
def test_refuses_a_directory(change, words, refused_directory):
    assert words in refused_directory(change)


def test_refuses_three_vocabularies(refused_directory):
    words = "--vocabulary must be one file, or those of sources and targets"
    assert words in refused_directory(vocabulary=["x"])
