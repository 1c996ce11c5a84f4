"""No client makes the service refuse or delay another one."""

import asyncio
import contextlib
import string
import threading
import time

import pytest

from serve.fair_executor import ALL_CLIENTS, limit_calls
from serve.fair_queue import CLIENT
from serve.options import HttpOptions
from tests.helpers import service_client, word_documents
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.service_client import ReversingModel, ServiceClient

PAIR = {"source": "en", "target": "es"}
SECONDS = 0.02  # Of a batch.
TEXTS = [f"short {number}" for number in range(4)]  # Of the other client.


class SlowModel(ReversingModel):
    def __call__(self, texts):
        time.sleep(SECONDS)
        return super().__call__(texts)


def make_bomb(tags):
    """Returns a .docx file of a few kilobytes with empty elements."""
    content = word_documents.run("ab") + tags * "<w:a/>"
    return word_documents.wrap(content)


def send_text(client, text):
    return client.post("/translate", q=text, **PAIR)


def send_html(client, text):
    return client.post("/translate", q=text, format="html", **PAIR)


def send_file(client, content):
    return client.post_file("/translate_file", "a.docx", content, **PAIR)


HEAVY = {
    # Function, its argument, how often at a time, and the expected statuses.
    "a long text": (send_text, "a\n" * 10_000, 4, {400}),
    "the longest text": (send_text, "a\n" * 2000, 4, {200, 429}),
    "a long list": (send_text, ["ab\n" * 2500] * 100, 4, {400}),
    "HTML": (send_html, "<p>ab</p>\n" * 2000, 4, {200, 429}),
    "many HTML documents": (send_html, ["<p>a" * 5000] * 10, 4, {400}),
    "the largest Word document": (send_file, make_bomb(90_000), 1, {200}),
    "a Word document of empty elements": (send_file, make_bomb(1_200_000), 2, {400}),
    "many requests": (send_text, "a b c", 100, {200}),
}


@contextlib.contextmanager
def repeating(act, times):
    """Repeats something in so many threads; yields the list of its results."""
    done, results = threading.Event(), []

    def repeat():
        while not done.is_set():
            results.append(act())

    threads = [threading.Thread(target=repeat) for _ in range(times)]
    for thread in threads:
        thread.start()
    try:
        yield results
    finally:
        done.set()
        for thread in threads:
            thread.join()


@pytest.fixture(scope="module")
def clients():
    """Two clients of a service, which see it through a proxy."""
    model = FunctionRuntime(SlowModel(), signatures=("serving_default", "align"))
    http = HttpOptions(port=0, trusted_proxies=("127.0.0.1",))
    with service_client.serve({("en", "es"): model}, http) as service:
        addresses = ({"X-Forwarded-For": f"192.0.2.{number}"} for number in (1, 2))
        yield [ServiceClient(service.port, **address) for address in addresses]


@pytest.mark.parametrize("name", HEAVY)
def test_a_client_is_answered_whatever_another_one_sends(clients, name):
    """At least until the other one has an answer."""
    heavy, light = clients
    send, content, times, statuses = HEAVY[name]
    answers = []

    with repeating(lambda: send(heavy, content).status, times) as results:
        while not (results and answers):
            answers += [send_text(light, text) for text in TEXTS]

    expected = [{"translatedText": text[::-1]} for text in TEXTS]
    assert {answer.status for answer in answers} == {200}
    assert [answer.json() for answer in answers[:4]] == expected
    assert set(results) <= statuses


@pytest.mark.parametrize(
    ("clients", "expected"), [("aaaaab", "aab"), (string.ascii_letters, None)]
)
def test_a_client_has_few_documents_at_a_time_and_all_have_a_total(clients, expected):
    running, most, gate = [], [], asyncio.Event()

    @limit_calls(2)
    async def work(client):
        running.append(client)
        most.append(running.count(client))
        await gate.wait()
        running.remove(client)
        return client

    async def work_as(client):
        CLIENT.set(client)
        return await work(client)

    async def main():
        tasks = [asyncio.create_task(work_as(client)) for client in clients]
        for _ in range(10):
            await asyncio.sleep(0)
        begun = sorted(running)
        gate.set()
        return begun, await asyncio.gather(*tasks)

    begun, done = asyncio.run(main())

    # Without a total, all clients together would fill the memory.
    assert begun == list(expected or clients[: 2 * ALL_CLIENTS])
    assert done == list(clients)
    assert max(most) <= 2
