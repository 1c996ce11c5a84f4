"""The command `python -m serve`: refusals, and how it ends."""

import signal
import socket
import subprocess
import sys

import pytest

from serve import __main__ as serve
from tests.helpers import service_client
from tests.helpers.example_sentences import SENTENCES


def test_a_port_that_is_taken_is_told(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(serve, "--pair=en:es=a:1", f"--port={port}")

    assert "Address already in use" in line


def test_several_proxies_may_be_trusted():
    proxies = ["127.0.0.1", "10.0.0.0/8"]

    options = serve.parse_options(["--pair=en:es=a:1", "--trusted-proxies", *proxies])

    assert list(options.http.trusted_proxies) == proxies


def test_glossaries_are_of_pairs_and_read_anew(export_dir, tmp_path, refused):
    terms = tmp_path / "terms"
    pairs = [f"--pair=en:{code}={export_dir}" for code in ("es", "pt")]
    arguments = [*pairs, f"--glossary=en:pt={terms}", "--match-case"]
    load = serve.make_loader(serve.parse_options(arguments))

    found = []
    for target in ("um", "uno"):
        terms.write_text(f"One\t{target}\tEN:PT\nOne\teine\ten:de\n")
        spanish, portuguese = load().values()
        assert not spanish.glossary
        assert portuguese.original is spanish
        found += portuguese.glossary.find("One one")

    assert [match.target for match in found] == ["um", "uno"]
    for wrong in (f"en:de={terms}", terms, f"en:pt={terms}"):
        line = refused(serve, *arguments, f"--glossary={wrong}", "--port=0")
        assert "--glossary must name a pair of --pair, once" in line


def start(location):
    """Starts the command."""
    command = [sys.executable, "-m", "serve", "--port=0", f"--pair=en:es={location}"]
    pipes = dict.fromkeys(["stdout", "stderr"], subprocess.PIPE)
    return subprocess.Popen(command, **pipes, text=True)


@pytest.mark.slow
def test_sigterm_ends_it_when_all_is_answered(export_dir):
    with start(export_dir) as process:
        assert process.stdout.readline() == "en to es\n"
        port = int(process.stdout.readline().rpartition(":")[2].strip("/\n"))
        service = service_client.ServiceClient(port)
        text = {"q": "\n".join(SENTENCES * 30), "source": "en", "target": "es"}
        thread, answers = service_client.in_thread(service.post, "/translate", **text)
        batches = 'translate_batch_rows_count{model="en:es"}'
        service_client.wait_until(lambda: service.measured(batches) > 0)
        process.send_signal(signal.SIGTERM)
        thread.join()
        complaints = process.stderr.read()
        status = process.wait(30)

    assert answers[0].json()["translatedText"].count("\n") == 179
    assert status == -signal.SIGTERM
    assert "Traceback" not in complaints


@pytest.mark.slow
def test_sigterm_ends_it_while_a_model_loads():
    # A model server that accepts a connection and never answers.
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        start(f"127.0.0.1:{silent.getsockname()[1]}") as process,
    ):
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGTERM)
            output, complaints = process.communicate(timeout=25)

    assert process.returncode == -signal.SIGTERM
    assert output == ""
    assert "Traceback" not in complaints
