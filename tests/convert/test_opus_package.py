"""Original OPUS-MT downloads: equal to Marian's formulas."""

import json
import pathlib
import shutil
import zipfile

import pytest
import sentencepiece

from convert.__main__ import main
from convert.run_folder_writer import read_licenses
from keras_transformer import SubwordTokenizer, Transformer
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.other_systems.converted_runs import pieces_of, train_spm
from tests.helpers.other_systems.marian_files import translate_greedily, write_download

BACKWARDS = [sentence[::-1] for sentence in SENTENCES]
PROTOS = [train_spm(SENTENCES, 90), train_spm(BACKWARDS, 80)]
TEXTS = [*SENTENCES, ">>fra<< Two cats sleep.", "Zwei — 7", "no"]
LIMIT = 12


def make_table(pieces):
    """Returns the ids of pieces; the unknown one is in the middle."""
    names = dict.fromkeys([*pieces[:9], "</s>", ">>fra<<", "<unk>", *pieces])
    return {name: id_ for id_, name in enumerate(names)}


SOURCES, TARGETS = map(pieces_of, PROTOS)
# Words of YAML are strings here, and some source pieces are not in the table.
SHARED = make_table([*SOURCES[:-3], "no", "null", "1", *TARGETS])
SEPARATE = [make_table(SOURCES[:-3]), make_table(["7", *TARGETS])]


def to_ids(text, proto, table):
    """Returns Marian's ids of a source: the pieces, then their ids."""
    ids = []
    if text.startswith(">>fra<<"):
        ids, text = [table[">>fra<<"]], text.removeprefix(">>fra<<")
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    pieces = model.encode(text, out_type=str)
    return [*ids, *(table.get(p, table["<unk>"]) for p in pieces), table["</s>"]]


def convert(model, run_dir):
    main(["marian", "--model", str(model), "--run-dir", str(run_dir)])
    classes = (Transformer, SubwordTokenizer)
    return [cls.from_pretrained(run_dir) for cls in classes]


@pytest.mark.parametrize(
    ("tables", "recurrent", "activation", "zipped", "seed"),
    [  # With most seeds all translations are one piece over and over.
        ([SHARED], False, "relu", True, 3),
        (SEPARATE, False, "swish", False, 9),
        (SEPARATE, True, "swish", True, 7),
    ],
)
def test_translations_are_those_of_the_formulas(
    tables, recurrent, activation, zipped, seed, tmp_path
):
    folder = tmp_path / "opus-2020-02-26"
    folder.mkdir()
    options = {"transformer-ffn-activation": activation}
    tensors = write_download(folder, PROTOS, tables, recurrent, seed, **options)
    download = folder
    if zipped:
        download = shutil.make_archive(folder, "zip", folder)
        shutil.rmtree(folder)

    model, tokenizer = convert(download, tmp_path / "run")

    ids = tokenizer.tokenize(TEXTS).to_tensor()
    found = model.generate(ids, beam_size=1, max_extra_length=LIMIT)
    names = {id_: piece for piece, id_ in tables[-1].items()}
    expected = []
    for text in TEXTS:
        source = to_ids(text, PROTOS[0], tables[0])
        specials = tables[-1]["</s>"], tables[-1]["<unk>"]
        limit = ids.shape[1] + LIMIT
        said = translate_greedily(
            tensors, source, *specials, limit, activation=activation
        )
        expected.append([names[id_] for id_ in said])
    assert len(set(map(tuple, expected))) > 3
    for row, text, pieces in zip(found.numpy(), TEXTS, expected, strict=True):
        row = row[: len(tokenizer.tokenize([text])[0]) + LIMIT]
        row = row[: [*row, 1].index(1)]
        said = tokenizer.id_to_piece(row).numpy().tolist()
        assert said == [piece.encode() for piece in pieces[: len(row)]]
        assert len(row) == len(pieces) or len(row) > LIMIT


def test_the_run_has_search_options_and_licence(tmp_path):
    folder = tmp_path / "download"
    folder.mkdir()
    write_download(folder, PROTOS, [SHARED])
    for path in list(folder.iterdir()):  # As a zip of macOS has them.
        (folder / f"._{path.name}").write_bytes(b"Mac OS X")
    archive = shutil.make_archive(folder, "zip", folder)

    convert(archive, tmp_path / "run")

    run_dir = tmp_path / "run"
    arguments = json.loads((run_dir / "arguments.json").read_text())
    expected = {"beam_size": 6, "length_penalty": 1.0, "penalty_offset": 0}
    assert arguments["decoding"] == expected
    assert arguments["origin"]["model"] == archive
    assert (run_dir / "LICENSE").read_text() == "CC-BY 4.0\n"
    assert not (run_dir / "preprocess.sh").exists()


@pytest.fixture
def refused_download(refused, tmp_path):
    def run(change, model="", more=(), tables=SEPARATE):
        folder = tmp_path / "download"
        folder.mkdir()
        write_download(folder, PROTOS, tables)
        change(folder)
        return refused("marian", "--model", folder / model, *more)

    return run


TABLE = "opus.spm32k-spm32k.trg.vocab.yml"


def write(name, text):
    return lambda folder: (folder / name).write_text(text, "utf-8")


def rename_end(folder):
    text = (folder / TABLE).read_text("utf-8")
    (folder / TABLE).write_text(text.replace("</s>", "</t>"), "utf-8")


def write_zip(folder, content, *names):
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ["a.yml"]:
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("model", "change", "words"),
    [
        ("", lambda f: (f / "source.spm").unlink(), "one source.spm. Received: none"),
        (
            "",
            lambda f: shutil.copy(next(f.glob("*.npz")), f / "other.npz"),
            "one *.npz. Received: opus",
        ),
        ("", lambda f: (f / TABLE).unlink(), "one *.trg.vocab.yml. Received: none"),
        ("", write(TABLE, "- a"), "a YAML mapping from pieces"),
        ("", write(TABLE, "a: b"), "mapping from pieces to ids"),
        ("", write(TABLE, "{}"), "one of 0 pieces"),
        ("", write(TABLE, "</s>: 0\n<unk>: 0"), "an id below 1"),
        ("", write(TABLE, "</s>: 0\n<unk>: 5"), "one of 6 pieces"),
        ("", rename_end, "must hold the pieces </s> and <unk>"),
        ("none.zip", lambda f: None, "no such file: "),
        ("half.zip", write("half.zip", "PK"), "whole, and a zip archive"),
        ("a.zip", lambda f: write_zip(f, bytes(10**6)), "more than eight times itself"),
        ("a.zip", lambda f: write_zip(f, "1"), "one *.npz. Received: none"),
        (
            "a.zip",
            lambda f: write_zip(f, "1", "a/m.npz", "b/m.npz"),
            "one file of each name. Received: a/m.npz and b/m.npz in ",
        ),
    ],
)
def test_refuses_a_download(model, change, words, refused_download):
    assert words in refused_download(change, model)


def test_refuses_two_vocabularies_for_one_matrix(refused_download):
    def change(folder):
        (table,) = folder.glob("*.vocab.yml")
        text = table.read_text("utf-8").replace("</s>", "</t>")
        (folder / "a.src.vocab.yml").write_text(text, "utf-8")
        table.rename(folder / "a.trg.vocab.yml")

    line = refused_download(change, tables=[SHARED])
    assert "there must be one vocabulary. Received: two" in line


@pytest.mark.parametrize(
    ("model", "more", "words"),
    [
        ("", ["--vocabulary", "a.spm"], "not for a download. Received: both"),
        ("model.npz", [], "--vocabulary must be given for a file"),
    ],
)
def test_a_file_needs_a_vocabulary_and_a_download_has_its_own(
    model, more, words, refused_download
):
    assert words in refused_download(lambda folder: None, model, more)


def test_the_licence_of_the_program_is_none_of_a_model(tmp_path, monkeypatch):
    (tmp_path / "LICENSE").write_text("free\n")

    assert read_licenses(tmp_path) == {"LICENSE": b"free\n"}
    monkeypatch.chdir(tmp_path)
    assert not read_licenses(pathlib.Path())
