"""Which proxy is used for whom, what a person may set, and what is kept of it."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from engine.errors import HubError, UsageError
from engine.source import desktop_proxy
from engine.source.reach import ProxyChoice, Reach, proxy_for

DESKTOP = """\
org.gnome.system.proxy autoconfig-url ''
org.gnome.system.proxy ignore-hosts ['localhost', '10.0.0.0/8', '*.inside.example']
org.gnome.system.proxy mode 'manual'
org.gnome.system.proxy use-same-proxy true
org.gnome.system.proxy.http host 'proxy.example'
org.gnome.system.proxy.http port 3128
org.gnome.system.proxy.https host ''
org.gnome.system.proxy.https port 0
"""


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(desktop_proxy, "settings", desktop_proxy.DesktopProxy)


def way(reach, url="https://hub.example:443"):
    scheme, rest = url.split("://")
    host, port = rest.rsplit(":", 1)
    return proxy_for(reach, scheme, host, int(port))


def by_hand(address, no_proxy=""):
    return Reach(ProxyChoice.MANUAL, address, no_proxy).checked()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("proxy.example:3128", "http://proxy.example:3128"),
        (" http://proxy.example ", "http://proxy.example:80"),
        ("https://proxy.example", "https://proxy.example:443"),
        ("10.1.2.3:8080", "http://10.1.2.3:8080"),
        ("[fe80::1]:8080", "http://[fe80::1]:8080"),
    ],
)
def test_that_an_address_may_be_typed_short(typed, meant):
    assert by_hand(typed).address == meant
    assert way(by_hand(typed)).url == meant


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "Type the proxy’s address"),
        ("socks5://proxy.example:1080", "of the kind socks5"),
        ("http://", "is none"),
        ("proxy.example:port", "is none"),
        ("proxy.example:99999", "is none"),
        ("pro xy:80", "is none"),
        ("http://[::1", "is none"),
        ("me:geheim@proxy.example:80", "No name or password is kept here"),
        ("http://me@proxy.example", "No name or password is kept here"),
    ],
)
def test_that_an_address_that_is_none_is_refused_and_no_password_repeated(typed, words):
    with pytest.raises(UsageError, match=words) as caught:
        by_hand(typed)
    assert caught.value.field == "address"
    assert "geheim" not in caught.value.message


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("", ""),
        ("hub.example/", "https://hub.example"),
        ("http://hub.example:8080/api/hub/", "http://hub.example:8080/api/hub"),
    ],
)
def test_that_a_mirror_may_be_typed_short(typed, kept):
    assert Reach(mirror=typed).checked().mirror == kept


@pytest.mark.parametrize(
    "typed",
    ["ftp://hub.example", "https://", "a b", "https://me:geheim@hub.example", "h.example?q", "h#x"],
)
def test_that_a_mirror_that_is_none_is_refused(typed):
    with pytest.raises(UsageError) as caught:
        Reach(mirror=typed).checked()
    assert caught.value.field == "mirror"


@pytest.mark.parametrize(
    ("no_proxy", "url", "is_spared"),
    [
        ("hub.example", "https://hub.example:443", True),
        ("example", "https://hub.example:443", True),
        (".example", "https://hub.example:443", True),
        ("*.example", "https://hub.example:443", True),
        ("a.example; HUB.example", "https://hub.example:443", True),
        ("*", "https://hub.example:443", True),
        ("hub.example:443", "https://hub.example:443", True),
        ("hub.example:8443", "https://hub.example:443", False),
        ("b.example", "https://hub.example:443", False),
        ("ub.example", "https://hub.example:443", False),
        ("10.0.0.0/8", "https://10.20.30.40:443", True),
        ("10.0.0.0/8", "https://11.20.30.40:443", False),
        ("10.0.0.0/8", "https://hub.example:443", False),
        ("", "https://hub.example:443", False),
    ],
)
def test_that_who_is_named_is_asked_without_proxy(no_proxy, url, is_spared, monkeypatch):
    assert (way(by_hand("proxy.example:80", no_proxy), url) is None) is is_spared
    monkeypatch.setenv("https_proxy", "http://proxy.example:80")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert (way(Reach(), url) is None) is is_spared


def test_that_the_environment_goes_before_the_desktop_and_none_is_none(monkeypatch):
    monkeypatch.setattr(desktop_proxy, "settings", lambda: desktop_proxy.parsed(DESKTOP))
    assert str(way(Reach())) == "proxy.example:3128"
    assert way(Reach()).said_by is ProxyChoice.SYSTEM
    assert way(Reach(ProxyChoice.ENVIRONMENT)) is None
    monkeypatch.setenv("ALL_PROXY", "http://environment.example:1")
    for reach in (Reach(), Reach(ProxyChoice.ENVIRONMENT)):
        assert str(way(reach)) == "environment.example:1"
        assert way(reach).said_by is ProxyChoice.ENVIRONMENT
    assert way(Reach(ProxyChoice.NONE)) is None


def test_that_no_text_of_a_proxy_holds_its_password(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://me:ge%40heim@proxy.example:80")
    found = way(Reach())
    assert found.credentials == ("me", "ge@heim")
    assert "heim" not in f"{found} {found!r} {found.url}"


def test_that_a_broken_address_of_the_environment_is_not_repeated(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://me:geheim@[proxy")
    with pytest.raises(HubError) as caught:
        way(Reach())
    assert "geheim" not in caught.value.message


def test_that_the_settings_of_the_desktop_are_read():
    found = desktop_proxy.parsed(DESKTOP)
    address = "http://proxy.example:3128"
    assert found.proxies == {"http": address, "https": address}
    assert found.spared == ["localhost", "10.0.0.0/8", "*.inside.example"]
    other = desktop_proxy.parsed(DESKTOP.replace("use-same-proxy true", "use-same-proxy false"))
    assert other.proxies == {"http": address}
    for mode in ("none", "auto", "strange"):
        quiet = desktop_proxy.parsed(DESKTOP.replace("'manual'", f"'{mode}'"))
        assert (quiet.proxies, quiet.by_script) == ({}, mode == "auto")
    for text in ("", "No such schema", "org.gnome.system.proxy mode [", DESKTOP[:-200]):
        assert desktop_proxy.parsed(text).proxies == {}
    socks = DESKTOP.replace("proxy.http host 'proxy.example'", "proxy.socks host 'proxy.example'")
    assert desktop_proxy.parsed(socks).proxies["all"].startswith("socks://proxy.example:")


@pytest.mark.skipif(shutil.which("gsettings") is None, reason="no desktop's tool here")
def test_that_the_desktops_own_tool_says_what_is_read(tmp_path):
    environment = {**os.environ, "GSETTINGS_BACKEND": "keyfile", "XDG_CONFIG_HOME": str(tmp_path)}
    place = tmp_path / "glib-2.0" / "settings"
    place.mkdir(parents=True)
    (place / "keyfile").write_text(
        "[system/proxy]\nmode='manual'\n[system/proxy/https]\nhost='proxy.example'\nport=3128\n"
    )
    said = subprocess.run(
        ["gsettings", "list-recursively", "org.gnome.system.proxy"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if said.returncode:
        pytest.skip("no such settings here")
    found = desktop_proxy.parsed(said.stdout)
    assert found.proxies == {"https": "http://proxy.example:3128"}
    assert "localhost" in found.spared
