import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine.cancel import CancelToken
from engine.errors import (
    HubError,
)
from engine.source.hub import HubClient
from tests.helpers import fake_hub
from tests.helpers.hub_models import CONFIG, plain

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        yield running


def test_that_the_proxy_of_the_environment_is_used_and_this_computer_is_not_sent_through_it(
    hub, monkeypatch
):
    plain(hub)
    monkeypatch.setenv("http_proxy", hub.url)
    monkeypatch.delenv("no_proxy", raising=False)
    raw = HubClient("http://hub.invalid").fetch("org/model", CancelToken())
    assert raw.config == CONFIG
    hosts = {headers["Host"].split(":")[0] for _, _, headers in hub.requests}
    assert hosts == {"hub.invalid", "localhost"}


def test_that_a_proxy_of_another_kind_is_named(monkeypatch):
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
    with pytest.raises(HubError, match="socks5"):
        HubClient("http://hub.invalid").fetch("org/model", CancelToken())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_that_a_server_is_asked_by_tls_and_only_with_a_certificate_that_is_trusted(tmp_path):
    pem = tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", pem, "-out", tmp_path / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    pem.write_bytes(pem.read_bytes() + (tmp_path / "cert.pem").read_bytes())
    program = (
        "import sys; from engine.cancel import CancelToken; from engine.errors import HubError;"
        "from engine.source.hub import HubClient\n"
        "try: print(len(HubClient(sys.argv[1]).fetch('org/model', CancelToken()).tensors))\n"
        "except HubError as error: print(error.code, error.message)"
    )
    said = []
    with fake_hub.serving(pem) as secure:
        plain(secure)
        for trusted in (str(tmp_path / "cert.pem"), ""):
            done = subprocess.run(
                [sys.executable, "-c", program, secure.url],
                check=True, capture_output=True, text=True, cwd=ROOT,
                env={**os.environ, "SSL_CERT_FILE": trusted},
            )  # fmt: skip
            said.append(done.stdout.strip())
    assert said[0] == "2"
    assert "certificate" in said[1]


@contextmanager
def closing_server(answers: list[int]) -> Iterator[tuple[str, list[int]]]:
    """A server that answers ``answers[n]`` questions of its nth connection and closes the next."""
    questions: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.number = len(questions)
            questions.append(0)

        def do_GET(self) -> None:
            questions[self.number] += 1
            if questions[self.number] > answers[min(self.number, len(answers) - 1)]:
                self.close_connection = True
                return
            body = b'{"name": "somebody"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", questions
        server.shutdown()
        thread.join(5)


def test_that_a_question_is_asked_again_where_a_kept_connection_was_closed():
    with closing_server([1, 5]) as (url, questions):
        client = HubClient(url)
        assert client.whoami(CancelToken())[0] == "somebody"
        assert client.whoami(CancelToken())[0] == "somebody"
    # The second question was read and dropped on the first connection, answered on the next.
    assert questions == [2, 1]


def test_that_a_server_that_never_answers_is_not_asked_for_ever():
    with closing_server([0]) as (url, questions), pytest.raises(HubError, match="broke off"):
        HubClient(url).whoami(CancelToken())
    assert questions == [1, 1]
