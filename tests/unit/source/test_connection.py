"""Each step of the way to the Hub, as it fails in companies and hotels."""

from __future__ import annotations

import threading

import pytest

from engine.cancel import CancelToken, JobCancelledError
from engine.errors import HubError
from engine.source.access import Access
from engine.source.connection import attempt
from engine.source.hub import HubClient
from engine.source.reach import ProxyChoice, Reach
from engine.source.trail import Step, Trail
from tests.helpers import fake_hub
from tests.helpers.certificates import Authority
from tests.helpers.fake_hub import GOOD_TOKEN
from tests.helpers.forward_proxy import proxying
from tests.helpers.hub_models import client, plain

NAMES = ("hub.example", "127.0.0.1", "localhost")


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        plain(running)
        yield running


@pytest.fixture
def authority():
    return Authority()


@pytest.fixture
def secure(tmp_path, authority):
    """A Hub by TLS, whose certificate only ``authority`` vouches for."""
    with fake_hub.serving(authority.server(tmp_path / "server.pem", *NAMES)) as running:
        plain(running)
        yield running


@pytest.fixture
def ca_file(tmp_path, authority):
    (tmp_path / "company.pem").write_bytes(authority.pem)
    return str(tmp_path / "company.pem")


def by_hand(proxy, **more):
    return Reach(ProxyChoice.MANUAL, proxy.address, **more).checked()


def asked(endpoint, reach=None, **more):
    """Where it ends (None: nowhere), the sentence, and what is said of each step passed."""
    trail, sentence = Trail(), ""
    made = HubClient(endpoint, timeout_s=2, reach=reach, **more)
    try:
        attempt(made, CancelToken(), trail)
    except HubError as error:
        sentence = error.message
        assert sentence.endswith(".")
    return trail.next_step, sentence, {passed.step: passed for passed in trail.passed}


def test_that_a_way_without_trouble_is_walked_to_its_end(hub):
    step, sentence, passed = asked(hub.url)
    assert (step, sentence) == (None, "")
    assert list(passed) == list(Step)
    assert passed[Step.NAME].words == "127.0.0.1 is an address itself"
    assert {s for s, p in passed.items() if not p.is_needed} == {Step.PROXY, Step.TLS}
    assert "200" in passed[Step.ANSWER].words
    assert hub.paths() == ["GET /api/models?limit=1"]


@pytest.mark.parametrize("choice", list(ProxyChoice))
def test_that_a_name_that_leads_nowhere_is_the_first_step(choice):
    # A part of a name has 63 letters at most, so that nobody need be asked.
    host = "a" * 64 + ".example"
    reach = Reach(choice, f"{host}:3128")
    if choice is ProxyChoice.MANUAL:
        step, sentence, _ = asked("http://hub.example", reach)
        assert sentence == f"No proxy of the name {host} was found: check its address."
    else:
        step, sentence, _ = asked(f"http://{host}", reach)
        assert f"No server of the name {host} was found" in sentence
    assert step is Step.NAME


def test_that_a_port_where_nobody_listens_is_said(hub):
    step, sentence, _ = asked("http://127.0.0.1:1")
    assert step is Step.CONNECT
    assert sentence.startswith(
        "127.0.0.1 cannot be reached (Connection refused): check the address"
    )


def test_that_a_proxy_that_is_not_there_is_not_taken_for_the_hub():
    step, sentence, _ = asked("http://hub.example", Reach(ProxyChoice.MANUAL, "127.0.0.1:1"))
    assert step is Step.PROXY
    assert "The proxy 127.0.0.1:1 cannot be reached (Connection refused): check" in sentence


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("refuses", "where", "words"),
    [
        ("403 Forbidden", Step.PROXY, "refused the way to hub.example (403"),
        ("407 Who are you", Step.PROXY, "wants a name and password: put the address with both"),
        ("502 Bad Gateway", Step.CONNECT, "cannot reach hub.example (502"),
    ],
)
def test_that_what_a_proxy_refuses_is_said_of_the_proxy(hub, scheme, refuses, where, words):
    with proxying(hub.url, refuses=refuses) as proxy:
        step, sentence, _ = asked(f"{scheme}://hub.example", by_hand(proxy))
    assert proxy.asked == [
        ("CONNECT", "hub.example:443")
        if scheme == "https"
        else ("GET", "http://hub.example/api/models?limit=1")
    ]
    if scheme == "https" or "407" in refuses:
        assert step is where
        assert f"The proxy {proxy.address} {words}" in sentence
    else:
        # Of an open request nobody can say whether the proxy or the server refused it.
        assert step in {Step.ANSWER, Step.HUB}


def test_that_the_way_leads_through_the_proxy_and_its_password_is_told_to_it_alone(
    secure, hub, ca_file, monkeypatch
):
    monkeypatch.delenv("no_proxy", raising=False)
    for url, server in (("https://hub.example", secure), ("http://hub.example", hub)):
        with proxying(server.url, password="name:geheim:/ö") as proxy:
            monkeypatch.setenv(
                f"{server.scheme}_proxy", f"http://name:geheim%3A%2F%C3%B6@{proxy.address}"
            )
            step, sentence, passed = asked(url, Reach(ca_file=ca_file))
        assert (step, sentence) == (None, "")
        assert len(proxy.asked) == 1
        told = " ".join(p.words for p in passed.values())
        assert passed[Step.PROXY].words == f"Through {proxy.address}, as the environment says"
        assert "geheim" not in told
        assert not [h for _, _, h in server.requests if "Proxy-Authorization" in h]


def test_that_a_wrong_password_is_not_repeated(hub, monkeypatch):
    monkeypatch.delenv("no_proxy", raising=False)
    with proxying(hub.url, password="name:right") as proxy:
        monkeypatch.setenv("http_proxy", f"http://name:wrong@{proxy.address}")
        step, sentence, _ = asked("http://hub.example")
    assert step is Step.PROXY
    assert (
        sentence == f"The proxy {proxy.address} does not take the name and password in https_proxy."
    )


def test_that_this_computer_is_never_asked_through_a_proxy(hub):
    with proxying(hub.url) as proxy:
        assert asked(hub.url, by_hand(proxy))[0] is None
        assert asked(hub.other_host, by_hand(proxy))[0] is None
    assert proxy.asked == []


def test_that_a_certificate_of_an_unknown_authority_is_not_trusted_until_it_is_added(
    secure, ca_file, tmp_path, authority
):
    step, sentence, _ = asked(secure.url)
    assert step is Step.TLS
    assert sentence == (
        "The certificate of 127.0.0.1 is not trusted here: add your company’s certificates under "
        "Network, or by SSL_CERT_FILE."
    )
    binary = tmp_path / "company.cer"
    binary.write_bytes(authority.der)
    for file in (ca_file, str(binary)):
        step, sentence, passed = asked(secure.url, Reach(ca_file=file))
        assert (step, sentence) == (None, "")
        assert passed[Step.TLS].words == "TLS 1.3, with a certificate of Example Works"


def test_that_certificates_written_anew_are_read_anew(secure, tmp_path, authority):
    file = tmp_path / "company.pem"
    file.write_bytes(Authority().pem)
    reach = Reach(ca_file=str(file))
    assert asked(secure.url, reach)[0] is Step.TLS
    file.write_bytes(b"# K\xc3\xb6nig\n" + authority.pem)
    assert asked(secure.url, reach)[0] is None


@pytest.mark.parametrize("content", [b"", b"hello", b"-----BEGIN CERTIFICATE-----\nAAAA\n", None])
def test_that_a_file_without_certificates_is_named(secure, tmp_path, content):
    file = tmp_path / "company.pem"
    if content is not None:
        file.write_bytes(content)
    _, sentence, _ = asked(secure.url, Reach(ca_file=str(file)))
    assert "company.pem" in sentence
    assert "choose" in sentence
    assert secure.requests == []


@pytest.mark.parametrize(
    ("names", "days", "words"),
    [
        (NAMES, -1, "is not valid today: check this computer’s clock"),
        (("other.example",), 20, "is another server’s: check the address"),
    ],
)
def test_that_dates_and_names_of_certificates_are_told_apart(
    tmp_path, authority, ca_file, names, days, words
):
    pem = authority.server(tmp_path / "server.pem", *names, days=days)
    with fake_hub.serving(pem) as server:
        step, sentence, _ = asked(server.url, Reach(ca_file=ca_file))
    assert step is Step.TLS
    assert words in sentence


def test_that_a_server_without_tls_is_said_to_have_none(hub):
    step, sentence, _ = asked(hub.url.replace("http://", "https://"))
    assert step is Step.TLS
    assert "127.0.0.1 speaks no TLS there" in sentence


@pytest.mark.parametrize(
    ("trouble", "where", "words"),
    [
        ("stall", Step.ANSWER, "did not answer in time"),
        ("no_http", Step.ANSWER, "broke off its answer"),
        ("503", Step.ANSWER, "has trouble of its own (503)"),
        ("limited", Step.ANSWER, "asks for a pause; try again in 55 s"),
        ("html", Step.HUB, "does not answer as the Hub does (its list of models is none)"),
        ("404", Step.HUB, "does not answer as the Hub does (it says 404 to the list of models)"),
        ("401", Step.HUB, "lets nobody in without a token"),
        ("truncated", Step.HUB, "broke off its answer"),
    ],
)
def test_that_a_server_that_is_no_hub_is_found_out_at_the_end(hub, trouble, where, words):
    hub.trouble = trouble
    step, sentence, passed = asked(hub.url)
    assert step is where
    assert words in sentence
    assert Step.CONNECT in passed


def test_that_off_line_nothing_is_tried(hub):
    step, sentence, _ = asked(hub.url, offline=True)
    assert step is Step.NAME
    assert sentence == "Offline mode is on, so the Hub was not asked."
    assert hub.requests == []


def test_that_a_trial_can_be_stopped(hub):
    hub.trouble = "stall"
    token, ended = CancelToken(), []

    def ask():
        try:
            attempt(HubClient(hub.url, timeout_s=60), token, Trail())
        except JobCancelledError:
            ended.append("stopped")

    thread = threading.Thread(target=ask)
    thread.start()
    while not hub.requests:
        threading.Event().wait(0.01)
    token.cancel()
    thread.join(10)
    assert ended == ["stopped"]


def test_that_a_dead_address_does_not_keep_the_others_from_being_tried(hub):
    # localhost is ::1 too where there is IPv6, and there nobody listens.
    assert asked(hub.other_host)[0] is None


def test_that_a_token_goes_to_its_own_hub_and_not_to_the_mirror_chosen_after(hub):
    with fake_hub.serving() as mirror:
        made = client(hub, access_token=GOOD_TOKEN)
        attempt(made, CancelToken(), Trail())
        assert hub.requests[-1][2]["Authorization"] == f"Bearer {GOOD_TOKEN}"
        made.go_by(Reach(mirror=mirror.url), mirror.url, Access(mirror.url))
        attempt(made, CancelToken(), Trail())
        assert "Authorization" not in mirror.requests[-1][2]


def test_that_the_mirror_gives_way_to_the_address_at_the_start_and_goes_before_the_environment(
    monkeypatch,
):
    monkeypatch.setenv("HF_ENDPOINT", "https://environment.example/")
    mirror = Reach(mirror="https://mirror.example/")
    assert HubClient().endpoint == "https://environment.example"
    assert HubClient(reach=mirror).endpoint == "https://mirror.example"
    assert HubClient("https://start.example", reach=mirror).endpoint == "https://start.example"
