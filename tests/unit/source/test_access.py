"""Whose token is sent where: the keyring's, the login's, or one that was typed."""

from __future__ import annotations

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

from engine.cancel import CancelToken
from engine.errors import HubGatedError
from engine.source.access import DEFAULT_ENDPOINT, Access, Origin
from tests.helpers import fake_hub
from tests.helpers.fake_hub import GOOD_TOKEN, UNGRANTED_TOKEN
from tests.helpers.hub_models import client


class Chest(KeyringBackend):
    """A keyring in memory."""

    priority = 1

    def __init__(self):
        super().__init__()
        self.held = {}

    def get_password(self, service, username):
        return self.held.get((service, username))

    def set_password(self, service, username, password):
        self.held[service, username] = password

    def delete_password(self, service, username):
        if self.held.pop((service, username), None) is None:
            raise PasswordDeleteError


class Locked(Chest):
    def get_password(self, service, username):
        raise KeyringLocked

    set_password = delete_password = lambda self, *_: self.get_password("", "")


@pytest.fixture
def chest():
    before = keyring.get_keyring()
    made = Chest()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


@pytest.fixture
def locked():
    before = keyring.get_keyring()
    keyring.set_keyring(Locked())
    yield
    keyring.set_keyring(before)


def test_that_a_kept_token_is_there_the_next_time(chest):
    assert Access("https://hub.example").keep(" hf_mine\n") is Origin.KEYRING
    later = Access("https://hub.example")
    assert (later.token, later.origin) == ("hf_mine", Origin.KEYRING)
    assert Access("https://other.example").token is None
    later.forget()
    assert later.token is None
    assert Access("https://hub.example").token is None
    assert chest.held == {}


def test_that_without_a_keyring_it_lasts_until_the_program_ends(locked):
    access = Access("https://hub.example")
    assert access.keep("hf_mine") is Origin.SESSION
    assert access.token == "hf_mine"
    assert Access("https://hub.example").token is None


def test_that_the_login_of_the_hubs_tools_is_read_for_their_hub_alone(chest, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_login")
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    login = Access(DEFAULT_ENDPOINT)
    assert (login.token, login.origin) == ("hf_login", Origin.LOGIN)
    assert Access("https://mirror.example").token is None
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert Access("https://mirror.example").token == "hf_login"
    assert Access(DEFAULT_ENDPOINT).token is None
    login.forget()
    assert chest.held == {}


@pytest.mark.parametrize("text", ["", "  ", "two\nlines", "héf", "x" * 513])
def test_that_what_cannot_be_a_token_is_refused(chest, text):
    with pytest.raises(HubGatedError, match="no token"):
        Access("https://hub.example").keep(text)
    assert chest.held == {}


def test_that_the_hub_says_whose_token_it_is():
    with fake_hub.serving() as hub:
        assert client(hub, access_token=GOOD_TOKEN).whoami(CancelToken()) == ("tester", True)
        assert client(hub, access_token=UNGRANTED_TOKEN).whoami(CancelToken()) == ("tester", False)
        with pytest.raises(HubGatedError, match="does not know this token"):
            client(hub, access_token="hf_wrong").whoami(CancelToken())
