"""Corpora in one file, each written by a library that is not the reader's."""

import csv
import gzip
import json
import sys
import tempfile
import zipfile
from pathlib import Path
from xml.sax import saxutils

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import csv as arrow_csv, parquet

from command_line.errors import UserError
from tests.helpers.python_subprocess import run_python
from train.data.corpus import FilePairs, Pairs
from train.data.corpus_loading import open_corpus, read_mixture
from train.data.formats.pair_file import open_pair_file

PAIRS = [
    ("A cat, a dog.", "Eine Katze, ein Hund."),
    ('He said "yes".', '"Ja", sagte er.'),
    ('"All of it."', '"Alles."'),
    ("5 < 6 & <b>7</b>", "5 < 6 & <b>7</b>"),
    ("  blanks  ", "one\u2028still one"),
    ("nothing", ""),
    ("😀 naïve", "süß ⦅0⦆ 漢字"),
]
SOURCES, TARGETS = (list(side) for side in zip(*PAIRS, strict=True))
ROWS = [{"translation": {"de": d, "en": e}} for e, d in PAIRS]
FLAT = [{"id": 3, "de": d, "en": e} for e, d in PAIRS]
TOOLKIT = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header creationtool="Translate Toolkit" creationtoolversion="3.20.4" \
segtype="sentence" o-tmf="UTF-8" adminlang="en" srclang="en" datatype="PlainText"/>
  <body>{}
  </body>
</tmx>
"""
TOOLKIT_UNIT = """
    <tu srclang="en">
      <tuv xml:lang="en">
        <seg>{}</seg>
      </tuv>
      <tuv xml:lang="de">
        <seg>{}</seg>
      </tuv>
    </tu>"""
UNIT = "<tu>{}</tu>"
VARIANT = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'


def read(path, source="en", target="de"):
    return list(open_pair_file(path, (source, target)))


def write_zip(path, **texts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("README", "about")
        both = "-".join(sorted(texts))
        file.writestr(f"Books.{both}.xml", "<links/>")
        for code, text in texts.items():
            file.writestr(f"Books.{both}.{code}", text)


def write_opus_zip(path):
    texts = {"en": SOURCES, "de": TARGETS}
    write_zip(path, **{code: "\n".join(text) + "\n" for code, text in texts.items()})


def write_csv(path):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("en", "id", "de"), *((e, 3, d) for e, d in PAIRS)])


def write_arrow_csv(path):
    arrow_csv.write_csv(pyarrow.Table.from_pylist(FLAT), path)


def write_tsv(path):
    text = "\ufeff" + "".join(f"{e}\t{d}\r\n" for e, d in PAIRS)
    path.write_bytes(gzip.compress(text.encode()))


def write_json(path):
    lines = [
        json.dumps(row, ensure_ascii=len(line) % 2)
        for line, row in zip(SOURCES, ROWS, strict=True)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")


def write_parquet(path):
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path, row_group_size=3)


def write_flat_parquet(path):
    parquet.write_table(pyarrow.Table.from_pylist(FLAT), path)


def write_toolkit_tmx(path):
    """Writes what translate-toolkit 3.20.4 wrote of these pairs.

    It cannot be installed beside this project, whose package `translate` it has.
    """
    units = "".join(TOOLKIT_UNIT.format(*map(saxutils.escape, pair)) for pair in PAIRS)
    path.write_text(TOOLKIT.format(units), encoding="utf-8")


def write_xml_zip(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("de/a.xml", "<text/>")


def write_zipped_tmx(path):
    write_toolkit_tmx(path)
    path.write_bytes(gzip.compress(path.read_bytes()))


def write_with_pandas(method, **options):
    def write(path):
        import pandas

        getattr(pandas.DataFrame(FLAT), method)(path, **options)

    return write


def write_with_datasets(method):
    def write(path):
        import datasets

        features = {"translation": datasets.Translation(languages=["de", "en"])}
        data = datasets.Dataset.from_list(ROWS, datasets.Features(features))
        getattr(data, method)(path)

    return write


def by_peer(name, *arguments):
    return pytest.param(*arguments, marks=pytest.mark.peers(name))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("opus.zip", write_opus_zip),
        ("python.csv", write_csv),
        ("pyarrow.csv", write_arrow_csv),
        ("moses.tsv.gz", write_tsv),
        ("python.jsonl", write_json),
        ("pyarrow.parquet", write_parquet),
        ("pyarrow.PARQUET", write_flat_parquet),
        ("toolkit.tmx", write_toolkit_tmx),
        ("toolkit.tmx.gz", write_zipped_tmx),
        by_peer("pandas", "pandas.csv.gz", write_with_pandas("to_csv", index=False)),
        by_peer("pandas", "pandas.tsv", write_with_pandas("to_csv", sep="\t")),
        by_peer(
            "pandas",
            "pandas.jsonl",
            write_with_pandas("to_json", orient="records", lines=True),
        ),
        by_peer("pandas", "pandas.parquet", write_with_pandas("to_parquet")),
        by_peer("datasets", "datasets.json", write_with_datasets("to_json")),
        by_peer("datasets", "datasets.parquet", write_with_datasets("to_parquet")),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_reads_the_pairs_that_others_wrote(tmp_path, name, write):
    path = tmp_path / name
    write(path)

    pairs = open_pair_file(path, ("en", "de"))

    assert list(pairs) == list(pairs) == PAIRS
    # So the run is that of text files, and its encoded text, too.
    assert isinstance(pairs, FilePairs) == (name == "opus.zip")
    assert pairs.digest() == Pairs(SOURCES, TARGETS).digest()
    assert pairs.languages() == ("en", "de")


def write_tmx(path, *units, header=""):
    units = [UNIT.format("".join(VARIANT.format(*v) for v in unit)) for unit in units]
    text = f"<tmx{header}><header/><body>{''.join(units)}</body></tmx>"
    path.write_text(text, encoding="utf-8")
    return path


TEXT = st.text("a \"',;<&]>\\\té", max_size=9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1))
def test_any_line_comes_back(pairs):
    rows = [{"en": source, "de": target} for source, target in pairs]
    escaped = [tuple(map(saxutils.escape, pair)) for pair in pairs]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "x.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("en", "de"), *pairs])
        (folder / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
        parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "x.parquet")
        write_tmx(folder / "x.tmx", *([("en", e), ("de", d)] for e, d in escaped))

        for name in ("x.jsonl", "x.parquet", "x.tmx"):
            assert read(folder / name) == pairs, name
        assert read(folder / "x.csv") == [pair for pair in pairs if any(pair)]


def test_what_a_unit_of_tmx_has_beside_its_text(tmp_path):
    """Codes of other programs are no text, what they enclose is."""
    text = 'A <bpt i="1">&lt;b&gt;</bpt><hi>bold</hi><ept i="1">!</ept> cat<!--c-->.'
    path = write_tmx(
        tmp_path / "x.tmx",
        [("EN-US", text), ("fr", "x"), ("de", "Eine Katze.")],
        [("EN-US", "only this"), ("fr", "y")],
        [("de_AT", "Zwei."), ("en_us", "Two.")],
        header=' version="1.4" xmlns="http://www.lisa.org/tmx14"',
    )
    old = tmp_path / "old.tmx"
    old.write_bytes(path.read_text().replace("xml:lang", "lang").encode("utf-16"))

    for file in (path, old):
        assert read(file) == [("A bold cat.", "Eine Katze.")]
        assert read(file, "en", "de-AT") == [("Two.", "Zwei.")]


TWO = [("One.", "Eins."), ("Two.", "Zwei.")]


@pytest.mark.parametrize(
    ("name", "content", "pairs"),
    [
        # A line break in a text becomes a blank, and null is an empty text.
        ("x.jsonl", '{"en": "\\nA \\n\\n cat.\\n", "de": "b"}', [("A cat.", "b")]),
        ("x.csv", 'en,de\n"\nA \n\n cat.\n",b', [("A cat.", "b")]),
        ("x.jsonl", '{"en": "a\\r\\nb", "de": "c", "translation": 1}', [("a b", "c")]),
        ("x.json", '{"translation": {"en": "a", "de": null}}\n\n', [("a", "")]),
        ("x.json", '\n{"en": "a", "de": "b"}', [("a", "b")]),
        # Columns without names are the only two.
        ("x.tsv", "One.\tEins.\n\nTwo.\tZwei.\n", TWO),
        ("x.csv", "One.,Eins.\nTwo.,Zwei.\n", TWO),
        ("x.csv", "de_DE,en-GB\nEins.,One.\nZwei.,Two.\n", TWO),
        ("x.tsv", "\nen\tde\na\tb\n", [("a", "b")]),
    ],
)
def test_reads_other_forms_of_rows(tmp_path, name, content, pairs):
    (tmp_path / name).write_text(content)

    assert read(tmp_path / name) == pairs


def test_columns_may_have_numbers(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("1\tEins.\t2\tOne.\n3\tZwei.\t4\tTwo.")

    pairs = open_pair_file(path, ("4", "2"))

    assert list(pairs) == TWO
    assert pairs.languages() == ("", "")


THREE = [("en", "a"), ("de", "b"), ("fr", "c")]


def write_unit_in_the_middle(path):
    write_tmx(path, THREE, THREE)
    path.write_text(path.read_text()[:-60])


def write_half(path):
    write_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + content[-40:])


def write_damaged_zip(path):
    write_zip(path, en="one\n" * 99, es="uno\n" * 99)
    content = bytearray(path.read_bytes())
    content[content.index(b"Books.en-es.en") + len("Books.en-es.en") + 3] ^= 255
    path.write_bytes(content)


def text(content):
    return lambda path: path.write_bytes(content)


def zipped(**texts):
    return lambda path: write_zip(path, **texts)


def units(*codes):
    """Writes a unit for each string of codes."""
    return lambda path: write_tmx(
        path, *([(code, "a") for code in of_unit.split()] for of_unit in codes)
    )


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("x.tmx", units("en de fr"), "x.tmx has en, de, fr; not 'es'"),
        ("x.tmx", write_unit_in_the_middle, "must be TMX. Received: unit 2: .*line 1"),
        ("x.tmx", text(b"en\tes"), "must be TMX. Received: unit 1"),
        ("x.tmx", units("en", "es"), "has no unit with both en and es"),
        ("x.tmx", units("en-GB es", "en-US"), "en-gb and en-us: .* not 'en'"),
        ("x.tmx", units("en-US es", "en"), "has en-us and en: name en-us"),
        ("x.zip", write_opus_zip, "x.zip has en, de; not 'es'"),
        ("x.zip", write_xml_zip, "as NAME.en-es.en. Received: de/a.xml"),
        ("x.zip", text(b"PK"), "must be a whole zip file"),
        ("x.zip", zipped(en=b"a\n\xff", es=b"b\nc"), "en-es.en, line 2, byte 0xff"),
        ("x.zip", zipped(en="a\nb", es="c"), "2 lines in .*es.en, 1 lines in .*es.es"),
        ("x.zip", write_damaged_zip, "not a whole gzip or zip file: .*es.en"),
        ("x.csv", write_csv, "x.csv has en, id, de; not 'es'"),
        ("x.csv", text(b'en,es\na,b\n"c"d,e'), "line 3, must be CSV"),
        ("x.tsv", text(b"a\tb\n\xff\tb"), "tsv, line 2, byte 0xff"),
        ("x.tsv", text(b"a\tb\nc"), r"row 2, must have 2.* 1, \['c'\]"),
        ("x.tsv", text(b"a\tb\tc"), "by number.*3 columns"),
        ("x.jsonl", write_json, "line 1, has de, en; not 'es'"),
        ("x.jsonl", text(b'{"en": "a", "es": "b"}\n{"en": "c"}'), "line 2, has en; no"),
        ("x.json", text(b"[\n{}]"), "line 1, must be JSON"),
        ("x.json", text(b"[1]"), r"must be an object.*\[1\]"),
        ("x.json", text(b'{"en": "c", "es": 4}'), r"1, must be text .*: \('c', 4\)"),
        ("x.json", text(b'{"en": "\\ud83d", "es": ""}'), "pair 1, must be text in U"),
        ("x.json", text(b'{"en": "\\u0000", "es": ""}'), "pair 1, .* NUL bytes. Rec"),
        ("x.json", text(b"[" * 100_000), "line 1, must be JSON"),
        ("x.parquet.gz", text(b"a"), "but for .zip and .parquet, .gz"),
        ("x.parquet", write_parquet, "x.parquet has de, en; not 'es'"),
        ("x.parquet", write_flat_parquet, "x.parquet has id, de, en; not 'es'"),
        ("x.parquet", text(b"PAR"), "must be whole.*after row 0"),
        ("x.parquet", write_half, "must be whole.*after row 0"),
        ("x.txt", text(b"a"), "must end in .zip, .csv.*x.txt"),
        ("x.tmx", lambda p: None, "no such file: .*x.tmx"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, name, write, message):
    write(tmp_path / name)
    with pytest.raises(UserError, match=message) as error:
        read(tmp_path / name, "en", "es")

    assert "\n" not in str(error.value)


def test_a_file_of_pairs_needs_both_languages(tmp_path):
    with pytest.raises(UserError, match="x.tmx needs --source-language and --target"):
        open_pair_file(tmp_path / "x.tmx", ("en", None))
    with pytest.raises(UserError, match="hf:a/b needs --source-language and --target"):
        open_corpus("hf:a/b", "train", tmp_path, ("en", None))
    with pytest.raises(UserError, match="x.tmx needs two languages.*: EN twice"):
        open_pair_file(tmp_path / "x.tmx", ("EN", "en"))


def test_a_mixture_has_files_of_pairs(tmp_path):
    write_json(tmp_path / "a.jsonl")
    write_tmx(tmp_path / "b.tmx", THREE)
    path = tmp_path / "mixture.json"
    french = {"pairs": "b.tmx", "target_language": "fr"}
    path.write_text(json.dumps([{"pairs": "a.jsonl"}, french]))

    sources, has_tags = read_mixture(path, tmp_path, ("en", "de"))

    assert [[*source.corpus] for source in sources] == [list(PAIRS), [("a", "c")]]
    assert [source.corpus.languages()[1] for source in sources] == ["de", "fr"]
    assert has_tags


@pytest.mark.peers("datasets")
def test_reads_sets_of_hugging_face(tmp_path, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "data")
    data = datasets.Dataset.from_list(ROWS)
    splits = datasets.DatasetDict(train=data, validation=data.select([1, 2]))
    splits.save_to_disk(tmp_path / "saved")
    data.save_to_disk(tmp_path / "one")
    (tmp_path / "files").mkdir()
    data.to_parquet(tmp_path / "files" / "train.parquet")

    def load(name, split="train", target="de", root=f"{tmp_path}/"):
        cache, codes = tmp_path / "cache", ("en", target)
        return open_corpus(f"hf:{root}{name}", split, cache, codes)

    digest = Pairs(SOURCES, TARGETS).digest()
    for name in ("saved", "one", "files"):
        assert list(load(name)) == PAIRS
        assert load(name).digest() == digest
    assert list(load("saved", "validation")) == PAIRS[1:3]
    assert list(load("files", "train[:2]")) == PAIRS[:2]
    for arguments, message in (
        (("saved", "test"), "its splits are train, validation"),
        (("files", "test"), 'Unknown split "test"'),
        (("saved", "train", "es"), "saved has de, en; not 'es'"),
    ):
        with pytest.raises(UserError, match=message) as error:
            load(*arguments)
        assert "\n" not in str(error.value)

    asked = []
    build = datasets.load_dataset_builder

    def find_in_the_hub(path, config, revision, **options):
        if path == "a/no":
            raise datasets.exceptions.DatasetNotFoundError("'a/no' is not on the Hub")
        asked.append((path, config, revision))
        builder = build(str(tmp_path / "files"), **options)
        builder.hash = "c0ffee"
        return builder

    monkeypatch.setattr(datasets, "load_dataset_builder", find_in_the_hub)
    for name in ("a/b", "a/b/de-en", "a/b@main", "b/c/d@v1"):
        corpus = load(name, root="")
        assert (list(corpus), corpus.revision()) == (PAIRS, "c0ffee")
    assert asked == [
        *(("a/b", None, None), ("a/b", "de-en", None)),
        *(("a/b", None, "main"), ("b/c", "d", "v1")),
    ]
    with pytest.raises(UserError, match="Received: hf:a/no: 'a/no' is not on the Hub"):
        load("a/no", root="")


def test_the_extra_of_hugging_face_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match="hf:NAME needs the extra `datasets`: pip"):
        open_corpus("hf:a/b", "train", tmp_path, ("en", "de"))


GROWTH = """
import os, pathlib, re, sys
from train.data.formats.pair_file import open_pair_file

def peak():  # That of `resource` begins with the parent's.
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search("VmHWM:(.*) kB", status)[1]) * 1024

for name in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    pairs = iter(open_pair_file(pathlib.Path(name), ("en", "de")))
    next(pairs)
    first = peak()
    print(sum(1 for _ in pairs), peak() - first, flush=True)
    break
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: /proc")
def test_a_file_is_not_kept_in_memory(tmp_path):
    random = np.random.default_rng(3)
    lines = [random.bytes(1_000).hex() for _ in range(1_000)]
    pairs = [pair for line in lines for pair in [(line, line[::-1])] * 10]
    rows = [{"en": source, "de": target} for source, target in pairs]
    paths = [tmp_path / f"x.{suffix}" for suffix in ["tmx", "jsonl", "parquet"]]
    write_tmx(paths[0], *([("en", e), ("de", d)] for e, d in pairs))
    paths[1].write_text("\n".join(map(json.dumps, rows)))
    # Without a dictionary and compression it is as large as the others.
    options = {"use_dictionary": False, "compression": "none", "row_group_size": 500}
    parquet.write_table(pyarrow.Table.from_pylist(rows), paths[2], **options)

    found = run_python("-c", GROWTH, *paths).splitlines()

    size = sum(len(a) + len(b) for a, b in pairs)
    for line in found:
        count, growth = map(int, line.split())
        assert count == len(pairs) - 1
        assert growth < 18e6 < size / 2
    assert len(found) == len(paths)
