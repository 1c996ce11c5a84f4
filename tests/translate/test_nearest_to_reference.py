import numpy as np
import pytest

from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.signature_requests import ask
from translate import __main__ as translate

LINES = [SENTENCES[i % 3] for i in range(12)]
CONTENT = "\n".join(LINES).encode()


def test_finds_the_reference_among_the_best(
    export_dir, servable, translate_file, tmp_path
):
    """Whether an export or a server answers, and in whatever batches."""
    best = servable.predict("translate_nbest", ask([line.encode() for line in LINES]))
    rows = [
        [b" ".join(text.splitlines()) for text in row[valid]]
        for row, valid in zip(best["translation"], best["valid"], strict=True)
    ]
    wanted = [row[place % len(row)] for place, row in enumerate(rows)]
    assert len({*map(len, rows)}) == 1
    assert sum(row[0] != text for row, text in zip(rows, wanted, strict=True))
    references = tmp_path / "references"
    expected = b"".join(text + b"\n" for text in wanted)
    references.write_bytes(expected)
    nearest = f"--nearest-to={references}"

    assert translate_file(CONTENT, "--export-dir", export_dir, nearest) == expected
    with serve_grpc(servable) as address:
        server = ["--server", address, "--model-name", servable.name, nearest]
        assert translate_file(CONTENT, *server, "--batch-tokens=40") == expected


@pytest.fixture
def choose(translate_file, tmp_path, monkeypatch):
    def run(translations, reference, name="references.en"):
        path = tmp_path / name
        path.write_text(f"{reference}\n")
        outputs = {
            "translation": np.array([[*translations, ""]], object),
            "truncated": np.array([[False] * len(translations) + [True]]),
            "valid": np.array([[True] * len(translations) + [False]]),
        }
        outputs["translation"] = np.vectorize(str.encode, otypes=[object])(
            outputs["translation"]
        )
        runtime = FunctionRuntime(lambda texts: outputs, ["translate_nbest"])
        monkeypatch.setattr(translate, "load", lambda _: runtime)
        written = translate_file(b"a line", "--export-dir=x", f"--nearest-to={path}")
        return written.decode()[:-1]

    return run


def test_words_count_and_then_the_order_of_the_search(choose):
    assert choose(["a dog", "the cat sat", "the cat ran"], "the cat sat") == (
        "the cat sat"
    )
    # The reference's words in twos, not merely one by one.
    assert choose(["cat the x sat", "the cat x"], "the cat sat") == "the cat x"
    # Equal in BLEU: as the search ordered them.
    assert choose(["the dog", "the fox"], "the cat") == "the dog"
    assert choose(["", "a"], "") == ""
    assert choose([], "the cat") == ""


def test_characters_count_where_no_blanks_part_words(choose):
    translations = ["猫和狗", "我爱小猫"]

    assert choose(translations, "我爱小狗", "references.zh") == "我爱小猫"


@pytest.mark.parametrize(
    ("count", "expected"),
    [(11, "at least 12. Received: 11 in"), (13, "the input, 12. Received: 13 in")],
)
def test_refuses_another_number_of_references(
    export_dir, tmp_path, refused, count, expected
):
    references = tmp_path / "references"
    references.write_text("a reference\n" * count)
    (tmp_path / "in").write_bytes(CONTENT)
    options = [f"--input={tmp_path / 'in'}", f"--output={tmp_path / 'out'}"]

    line = refused(
        translate, f"--export-dir={export_dir}", f"--nearest-to={references}", *options
    )

    assert "--nearest-to must have a line for each line" in line
    assert expected in line
    assert not (tmp_path / "out").exists()
