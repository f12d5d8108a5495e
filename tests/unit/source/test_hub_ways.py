import os
import shutil
import subprocess
import sys
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
