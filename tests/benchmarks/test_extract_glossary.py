"""`benchmarks.extract_glossary` against a glossary found by hand."""

from benchmarks import extract_glossary

# In three sentences each: `house` with `Haus`, `garden` with `Garten`, `Berlin`
# with itself, and the short `old` with `alt`. `tower` is in two, and so rare.
PAIRS = [
    ("The house is old.", "Das Haus ist alt."),
    ("A house in Berlin", "Ein Haus in Berlin"),
    ("My garden, my house!", "Mein Garten, mein haus!"),
    ("A garden in Berlin is old.", "Ein Garten in Berlin ist alt."),
    ("Berlin: a tower and a garden", "Berlin: ein Turm und ein Garten"),
    ("This tower is old.", "Dieser Turm ist alt."),
]


def test_a_glossary_has_the_words_that_occur_together(tmp_path, capsys):
    paths = [tmp_path / name for name in ("en", "de", "other.de", "terms")]
    english, german = ("\n".join(lines) for lines in zip(*PAIRS, strict=True))
    # Another translation, with `Gebäude` for two of the three houses.
    other = german.replace("Haus", "Gebäude").replace("haus", "Haus")
    for path, text in zip(paths, (english, german, other), strict=False):
        path.write_text(text, encoding="utf-8")

    names = "source", "reference", "translations", "output"
    extract_glossary.main([f"--{n}={p}" for n, p in zip(names, paths, strict=True)])

    terms = dict(line.split("\t") for line in paths[3].read_text().splitlines())
    assert terms == {"house": "Haus", "garden": "Garten"}
    assert capsys.readouterr().out == f"{paths[2]}: 4 of 6 terms\n"
