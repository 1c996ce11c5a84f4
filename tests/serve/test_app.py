"""Tests of the service's responses to HTTP clients."""

import json

import numpy as np
import pytest

from command_line.errors import UserError
from serve.options import HttpOptions
from serve.translation_service import TranslationService
from tests.helpers import service_client, word_documents
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.service_client import ReversingModel

PAIR = {"source": "en", "target": "es"}
MODELS = {("en", "es"): FunctionRuntime(ReversingModel())}
TEXT = f"{SENTENCES[0]}\n\n  {SENTENCES[1]}\t\n12\r\n"


@pytest.fixture(scope="module")
def reversing():
    with service_client.serve_function(ReversingModel()) as service:
        yield service


@pytest.fixture
def said(translate):
    """Function from texts to the model's own translations."""

    def ask(texts):
        outputs = translate(texts)["translation"]
        return [text.decode() for text in outputs]

    return ask


def test_a_text_keeps_its_lines_and_a_list_its_order(service, said):
    first, second = said(SENTENCES[:2])

    one = service.post("/translate", q=TEXT, **PAIR)
    many = service.post("/translate", q=[*SENTENCES, TEXT], **PAIR)

    expected = TEXT.replace(SENTENCES[0], first).replace(SENTENCES[1], second)
    assert one.status == 200
    assert one.json()["translatedText"] == expected
    assert many.json()["translatedText"] == [*said(SENTENCES), expected]


def test_alternatives_are_others_of_the_same_search(service, said, servable):
    (best,) = said(SENTENCES[:1])
    outputs = servable.predict(
        "translate_nbest",
        {"text": np.array([SENTENCES[0].encode()]), "beam_size": np.int32(4)},
    )
    found = [text.decode() for text in outputs["translation"][0]]

    answer = service.post("/translate", q=SENTENCES[0], alternatives=3, **PAIR).json()

    assert answer["translatedText"] == best
    others = list(dict.fromkeys(text for text in found if text != best))
    assert answer["alternatives"] == others[:3]
    assert others
    lists = service.post(
        "/translate", q=[SENTENCES[0], "12"], alternatives=3, **PAIR
    ).json()
    assert lists["alternatives"] == [others[:3], []]
    html = {"q": f"<p>{SENTENCES[0]}</p>", "format": "html", "alternatives": 3}
    assert service.post("/translate", **html, **PAIR).json()["alternatives"] == []


def test_what_was_cut_is_told(service, translate):
    (was_cut,) = translate(SENTENCES[:1])["truncated"]

    answer = service.post("/translate", q=["12", SENTENCES[0]], **PAIR).json()

    assert was_cut
    assert answer["truncated"] == [False, True]


def test_it_says_what_it_has(service):
    languages = service.get("/languages").json()
    settings = service.get("/frontend/settings").json()

    assert languages == [
        {"code": "en", "name": "English", "targets": ["es"]},
        {"code": "es", "name": "Spanish", "targets": []},
    ]
    assert settings["language"]["target"] == {"code": "es", "name": "Spanish"}
    assert settings["charLimit"] == 20_000
    assert settings["keyRequired"] is False
    formats = [".txt", ".html", ".htm", ".xml", ".md", ".srt", ".vtt", ".docx"]
    assert settings["supportedFilesFormat"] == formats
    features = ["markup", "alternatives", "words"]
    assert settings["pairs"] == [{**PAIR, "features": features}]
    assert service.get("/health").json() == {"status": "ok"}
    paths = service.get("/spec").json()["paths"]
    body = paths["/translate"]["post"]["requestBody"]["content"]
    schema = body["application/json"]["schema"]
    assert {"q", "source", "target", "alternatives"} < {*schema["properties"]}


def test_a_file_is_translated_and_fetched(service):
    answer = service.post_file(
        "/translate_file", "my “file”.txt", b"\xef\xbb\xbf" + TEXT.encode(), **PAIR
    )

    url = answer.json()["translatedFileUrl"]
    assert url.startswith(f"{service.url}/download_file/")
    file = service.get(url.removeprefix(service.url))
    text = service.post("/translate", q=TEXT, **PAIR).json()["translatedText"]
    assert file.data == b"\xef\xbb\xbf" + text.encode()
    assert 'filename="my_file__es.txt"' in file.headers["content-disposition"]
    guessed = service.get("/download_file/guessed")
    assert guessed.status == 404
    assert guessed.json()["error"] == "no such file, or it has expired"


@pytest.mark.parametrize(
    ("path", "changes", "message"),
    [
        ("/translate", {"q": ""}, "missing q parameter"),
        ("/translate", {"source": None}, "missing source parameter"),
        ("/translate", {"q": {"a": 1}}, "string. Received: {'a': 1}"),
        ("/translate", {"alternatives": "two"}, "alternatives parameter is not a n"),
        ("/translate", {"format": "pdf"}, "pdf format is not supported"),
        ("/translate", {"format": "html"}, "html format is not supported: "),
        ("/translate", {"source": "xx"}, "xx is not supp"),
        ("/translate", {"source": "es"}, "is not available as a target language"),
        ("/translate", {"q": ["a"] * 101}, "(101) exceeds text limit (100) of"),
        ("/translate", {"q": "a" * 20_001}, "(20001) exceeds text limit (2000"),
        ("/translate", {"q": "a\n" * 2001}, "2000 sentences (--queue-limit). Rec"),
        ("/sentences", {"q": "a\n" * 2001}, "Received: at least 2001"),
        ("/translate", {"q": ["a\n" * 201] * 30}, "Received: at least 2010"),
        ("/words", {"q": ["a"], "translations": ["b", "c"]}, "as many texts each"),
        ("/words", {"q": ["a"], "translations": ["b"]}, "lacks words"),
        ("/translate", {"glossary": [["a", "b"]]}, "a glossary is not supported: "),
        ("/detect", {"q": None}, "missing q parameter"),
        ("/detect", {"q": "a" * 20_001}, "(20001) exceeds text limit (20000)"),
    ],
)
def test_mistakes_are_told_in_one_line(reversing, service, path, changes, message):
    fields = {**PAIR, "q": "a", **changes}
    asked = service if "as many" in message else reversing

    answer = asked.post(path, **{k: v for k, v in fields.items() if v is not None})

    assert answer.status == 400
    assert list(answer.json()) == ["error"]
    assert message in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pdf", b"a", "Invalid request: file format not supported"),
        ("a.txt", b"\xff", "the document must be in utf-8"),
        ("a.docx", b"\xff", "a .docx file must be a zip archive"),
        ("a.html", b"", ".html files are not supported: the model has no al"),
    ],
)
def test_files_that_are_no_text_are_refused(reversing, name, content, message):
    answer = reversing.post_file("/translate_file", name, content, **PAIR)

    assert answer.status == 400
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ('<div translate="no"><div translate="yes">', "nest at most 200 elements"),
        ('<b translate="no"><b translate="yes">', "nest at most 200 elements"),
        ("<b>", "must nest fewer than 200 tags in a sentence"),
    ],
)
def test_tags_that_nest_too_deep_are_refused(service, start, message):
    fields, deep = {"format": "html", **PAIR}, f"{300 * start}a"

    shallow = service.post("/translate", q=f"{90 * start}a", **fields)
    text = service.post("/translate", q=deep, **fields)
    file = service.post_file("/translate_file", "a.html", deep.encode(), **PAIR)

    assert (shallow.status, text.status, file.status) == (200, 400, 400)
    assert message in text.json()["error"]
    assert text.json() == file.json()


def test_word_documents_come_back_whole(service):
    content = word_documents.make_document()

    answer = service.post_file("/translate_file", "a.docx", content, **PAIR)
    url = answer.json()["translatedFileUrl"].removeprefix(service.url)
    file = service.get(url)

    assert file.headers["content-type"] == "application/octet-stream"
    assert file.headers["content-disposition"].endswith('"a_es.docx"')
    found, expected = map(word_documents.elements, (file.data, content))
    assert found == expected
    before, after = map(word_documents.paragraphs, (content, file.data))
    changed = [b for a, b in zip(after, before, strict=True) if a != b]
    assert len(changed) > 5


def test_the_text_of_word_documents_has_the_limit_of_texts(service):
    paragraph = word_documents.run("a") + "</w:p><w:p>"

    contents = 1500 * paragraph, word_documents.run("a" * 20_001)
    fits, over = (
        service.post_file("/translate_file", "a.docx", file, **PAIR)
        for file in map(word_documents.wrap, contents)
    )

    assert fits.status == 200
    assert over.status == 400
    assert "exceeds text limit (20000) of char" in over.json()["error"]


def test_sentences_come_one_by_one():
    reversing = ReversingModel()
    with service_client.serve_function(reversing, batch_tokens=8) as service:
        answer = service.post("/sentences", q="ab\n\ncd\n", **PAIR)

    first, *lines = [json.loads(line) for line in answer.data.splitlines()]
    assert "".join(first["parts"]) == "ab\n\ncd\n"
    assert [first["parts"][n] for n in first["places"]] == ["ab", "cd"]
    assert lines == [
        {"sentence": 0, "text": "ba", "truncated": False},
        {"sentence": 1, "text": "dc", "truncated": False},
    ]
    assert len(reversing.batches) == 2


def test_words_are_those_of_the_model(service, model):
    asked = {"q": SENTENCES[:2], "translations": SENTENCES[1:3]}

    found = service.post("/words", **asked, **PAIR).json()

    assert found == model.find_words(list(zip(*asked.values(), strict=True)))


def test_too_much_at_a_time_is_told_to_come_back():
    reversing = ReversingModel()
    reversing.gate.clear()
    with service_client.serve_function(reversing, queue_limit=6) as service:
        text = "\n".join("abcdef")
        started = []
        # One is at work, and one waits.
        for ready in (
            lambda: reversing.batches,
            lambda: service.measured('translate_waiting{model="en:es"}') == 6,
        ):
            started.append(
                service_client.in_thread(service.post, "/translate", q=text, **PAIR)
            )
            service_client.wait_until(ready)
        refused = service.post("/translate", q="x", **PAIR)
        reversing.gate.set()
        for thread, _ in started:
            thread.join()

    assert refused.status == 429
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"].startswith("Slowdown: ")
    assert [answer.status for _, (answer,) in started] == [200, 200]


def test_prometheus_is_told_what_happens():
    with service_client.serve_function(ReversingModel()) as service:
        service.post("/translate", q="a b\nc", **PAIR)
        service.post("/translate", q="", **PAIR)
        service.get("/nowhere")
        metrics = service.get("/metrics").data.decode().splitlines()

    for line in (
        'translate_sentences_total{pair="en:es"} 2.0',
        'translate_characters_total{pair="en:es"} 4.0',
        'translate_requests_total{path="/translate",status="200"} 1.0',
        'translate_requests_total{path="/translate",status="400"} 1.0',
        'translate_requests_total{path="other",status="404"} 1.0',
        'translate_request_seconds_count{path="/translate"} 2.0',
        'translate_batch_rows_sum{model="en:es"} 2.0',
        'translate_waiting{model="en:es"} 0.0',
    ):
        assert line in metrics


def test_a_key_is_needed_where_there_are_some(tmp_path):
    (tmp_path / "keys").write_text("first-key\nschlüssel\n")
    http = HttpOptions(port=0, api_keys=tmp_path / "keys")
    with service_client.serve(MODELS, http) as service:
        sent = {**PAIR, "q": "ab", "format": "text"}
        paths = ("/translate", "/sentences", "/detect")
        without = [
            *(service.post(path, **sent) for path in paths),
            service.post("/words", q=["a"], translations=["b"], **PAIR),
            service.post_file("/translate_file", "a.txt", b"a", **PAIR),
        ]
        wrong = service.post("/translate", **sent, api_key="first-ke")
        right = service.post("/translate", **sent, api_key="schlüssel")
        asked = service.post_form("/translate", **sent, api_key="first-key")
        settings = service.get("/frontend/settings").json()

    message = "Please contact the server operator to get an API key"
    for answer in without:
        assert (answer.status, answer.json()) == (400, {"error": message})
    assert wrong.status == 403
    assert wrong.json() == {"error": "Invalid API key"}
    assert right.json() == asked.json() == {"translatedText": "ba"}
    assert settings["keyRequired"] is settings["apiKeys"] is True


def test_what_a_server_says_stays_here(capsys):
    batches = []

    def fail(texts):
        batches.append(texts)
        raise UserError("secret:8500 says no")

    with service_client.serve_function(fail) as service:
        answer = service.post("/translate", q="a\nb", **PAIR)
        lines = service.post("/sentences", q="a", **PAIR).data.splitlines()

    assert answer.status == 502
    assert "model's server" in answer.json()["error"]
    assert "secret" not in answer.json()["error"]
    assert json.loads(lines[1]) == {"error": "Cannot translate text"}
    assert "secret:8500 says no" in capsys.readouterr().err
    assert batches == [[b"a", b"b"], [b"a"]]  # It is asked once.


def test_an_error_of_ours_is_logged(capfd):
    def fail(texts):
        raise MemoryError("of many details")

    with service_client.serve_function(fail) as service:
        answer = service.post("/translate", q="a", **PAIR)

    assert answer.status == 500
    assert list(answer.json()) == ["error"]
    assert "details" not in answer.json()["error"]
    assert "MemoryError" in capfd.readouterr().err


def test_the_page_gets_nothing_from_elsewhere(reversing):
    for path in ("/", "/page.css", "/page.js"):
        answer = reversing.get(path)
        assert answer.status == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert b"//" not in answer.data.replace(b"// ", b"")


def test_a_process_without_workers_is_not_alive(monkeypatch):
    with service_client.serve_function(ReversingModel()) as service:
        monkeypatch.setattr(TranslationService, "is_alive", lambda _: False)
        for path in ("/livez", "/health"):
            answer = service.get(path)
            assert answer.status == 503
            assert answer.json() == {"error": "a worker has ended"}


TERMS = [["dog", "cão <b>"], ["two cats", "zwei Katzen"]]
LINES = "dog\tcão <b>\ntwo cats\tzwei Katzen\n"


def test_a_request_may_have_a_glossary(service):
    text = "The dog sees two cats. Two cats!"

    plain = service.post("/translate", q=text, **PAIR).json()["translatedText"]
    found = service.post("/translate", q=text, glossary=TERMS, **PAIR).json()
    form = service.post_form("/translate", q=text, glossary=LINES, **PAIR).json()
    html = service.post(
        "/translate", q="<b>The</b> dog.", format="html", glossary=TERMS, **PAIR
    ).json()["translatedText"]
    more = service.post(
        "/translate", q=[text], glossary=TERMS, alternatives=2, **PAIR
    ).json()
    again = service.post("/translate", q=text, **PAIR).json()["translatedText"]

    assert plain.count("cão") == 0
    assert again == plain
    assert form == found
    assert more["translatedText"] == [found["translatedText"]]
    for text in (found["translatedText"], *more["alternatives"][0]):
        assert text.count("cão <b>") == 1
        assert text.lower().count("zwei katzen") == 2
    assert html.lower().count("cão &lt;b&gt;") == 1


@pytest.mark.parametrize("name", ["a.txt", "a.html"])
def test_a_file_may_have_a_glossary(service, name):
    url = service.post_file(
        "/translate_file", name, b"<p>The dog.</p>", glossary="dog\tgato", **PAIR
    ).json()["translatedFileUrl"]

    assert b"gato" in service.get(url.removeprefix(service.url)).data


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([["a", "b"]] * 1001, "glossary: List should have at most 1000 items"),
        ([["a", "b" * 101]], "glossary: String should have at most 100 characters"),
        ([["a"]], "glossary: Field required"),
        ("# a\ncat gato", "glossary: a line must be a term, a tab and its target"),
        ([["a", "b"], ["A", "c"]], "glossary: a term must have one target term"),
        ([["a", "{b}"]], "glossary: a target term may not have a variable"),
    ],
)
def test_a_wrong_glossary_is_refused(service, terms, message):
    answer = service.post("/translate", q="a", glossary=terms, **PAIR)

    assert answer.status == 400
    assert answer.json()["error"].startswith(f"Invalid request: {message}")
