"""What is remembered comes back whole, and a hostile file costs nothing but its values."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.source.reach import ProxyChoice, Reach
from engine.units import UnitSystem
from gui.kit.settings import FILE_NAME, SCHEMA_VERSION, Settings, SettingsStore

ROOT = Path(__file__).resolve().parents[3]

KEPT = Settings(
    scheme="contrast-dark",
    patterns=True,
    text_percent=150,
    still=True,
    language="de",
    shortcuts={"report": "Ctrl+Shift+E", "halve": ""},
    emptied=True,
    unit=UnitSystem.DECIMAL,
    page="Letter",
    welcome_closed=True,
    tabs_folded=True,
    geometry=b"\x00\x01\xff",
    splitters={"a": b"\x02", "b": b""},
    last_folder="/models",
    order="Parameters",
    turned_orders=("Name", "Parameters"),
    favourites=("org/name", "/models/m.gguf"),
    recents=("org/other",),
    folders=("/models",),
    python="/opt/torch/bin/python",
    reach=Reach(
        ProxyChoice.MANUAL, "http://proxy.example:80", "a.example", "/ca.pem", "https://hub.example"
    ),
)


def test_that_settings_come_back_as_they_were(tmp_path):
    store = SettingsStore(tmp_path / "new" / "folder")
    assert store.save(KEPT)
    assert SettingsStore(tmp_path / "new" / "folder").load() == KEPT


def test_that_without_a_file_there_are_defaults(tmp_path):
    assert SettingsStore(tmp_path).load() == Settings()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"not json",
        b"[]",
        b"null",
        b"[" * 50_000,
        b'{"schema_version": 99, "scheme": "dark"}',
        b'{"schema_version": "1"}',
        b" " * 300_000,
    ],
)
def test_that_a_file_that_is_no_settings_is_dropped(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    assert SettingsStore(tmp_path).load() == Settings()


def test_that_each_bad_value_is_dropped_alone(tmp_path):
    values = {
        "schema_version": SCHEMA_VERSION,
        "scheme": "pink",
        "patterns": 1,
        "text_percent": 1000,
        "still": None,
        "language": 7,
        "shortcuts": {"report": ["Ctrl+E"], "halve": "x\u202ey", "double": "F7"},
        "emptied": "yes",
        "unit": 7,
        "page": "Letter",
        "welcome_closed": "yes",
        "tabs_folded": 1,
        "geometry": "***",
        "splitters": {"a": 5, "b": "Ag=="},
        "last_folder": "x\u202ey" * 300,
        "python": ["python"],
        "favourites": ["org/name", 7, "", "x\u202ey", ["org/other"]],
        "recents": "org/name",
    }
    (tmp_path / FILE_NAME).write_text(json.dumps(values))
    assert SettingsStore(tmp_path).load() == Settings(
        page="Letter",
        shortcuts={"double": "F7"},
        splitters={"a": b"", "b": b"\x02"},
        favourites=("org/name",),
    )


def test_that_a_folder_that_cannot_be_written_is_no_disaster(tmp_path):
    (tmp_path / "file").write_text("")
    assert not SettingsStore(tmp_path / "file").save(KEPT)


@given(
    st.dictionaries(
        st.sampled_from(["scheme", "unit", "geometry", "splitters", "last_folder", "tabs_folded"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
    )
)
def test_that_nothing_in_the_file_can_raise(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("settings")
    (folder / FILE_NAME).write_text(json.dumps({"schema_version": SCHEMA_VERSION} | values))
    assert isinstance(SettingsStore(folder).load(), Settings)


def test_that_a_file_that_cannot_be_understood_is_set_aside_whole(tmp_path):
    newer = b'{"schema_version": 99, "scheme": "dark"}'
    (tmp_path / FILE_NAME).write_bytes(newer)
    for name in ("settings.unread.json", "settings.unread-2.json"):
        (tmp_path / FILE_NAME).write_bytes(newer)
        store = SettingsStore(tmp_path)
        store.load()
        assert (tmp_path / FILE_NAME).read_bytes() == newer
        assert store.set_aside() == tmp_path / name
        assert store.save(KEPT)
        assert (tmp_path / name).read_bytes() == newer
        assert SettingsStore(tmp_path).load() == KEPT


def test_that_saving_never_overwrites_what_cannot_be_understood(tmp_path):
    store = SettingsStore(tmp_path)
    store.load()
    # Meanwhile a newer version wrote its own.
    newer = b'{"schema_version": 99, "scheme": "dark"}'
    (tmp_path / FILE_NAME).write_bytes(newer)
    assert store.save(KEPT)
    assert (tmp_path / "settings.unread.json").read_bytes() == newer
    assert SettingsStore(tmp_path).load() == KEPT


def test_that_settings_that_may_not_be_read_are_moved_and_not_lost(tmp_path):
    # A folder in the file's place can be read by nobody, not even by an administrator.
    (tmp_path / FILE_NAME).mkdir()
    (tmp_path / FILE_NAME / "inside").write_text("x")
    store = SettingsStore(tmp_path)
    assert store.load() == Settings()
    assert store.save(KEPT)
    assert SettingsStore(tmp_path).load() == KEPT
    assert (tmp_path / "settings.unread.json" / "inside").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_that_a_full_disk_leaves_the_settings_of_before_and_nothing_beside_them(tmp_path):
    SettingsStore(tmp_path).save(KEPT)
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import resource, signal, sys, pathlib\n"
        "from gui.kit.settings import Settings, SettingsStore\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "sys.exit(SettingsStore(pathlib.Path(sys.argv[1])).save(Settings()))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60, check=False)
    assert done.returncode == 0
    assert SettingsStore(tmp_path).load() == KEPT
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_that_two_windows_lose_nothing_of_each_other(tmp_path):
    begun = Settings(favourites=("a", "b", "c"), recents=("x", "y"), scheme="dark", page="A4")
    SettingsStore(tmp_path).save(begun)
    one, two = SettingsStore(tmp_path), SettingsStore(tmp_path)
    assert one.load() == two.load() == begun
    one.save(begun.with_(favourites=("new", "b", "c"), scheme="light", welcome_closed=True))
    two.save(begun.with_(favourites=("late", "a", "b"), recents=("y", "x"), page="Letter"))
    # The first added one and removed "a", the second added one and removed "c".
    assert SettingsStore(tmp_path).load() == Settings(
        favourites=("late", "b", "new"), recents=("y", "x"), scheme="light", page="Letter",
        welcome_closed=True,
    )  # fmt: skip


CLOSE = """
import pathlib, sys
sys.path.insert(0, {root!r})
from gui.kit.settings import SettingsStore
store = SettingsStore(pathlib.Path({folder!r}))
for number in range(4):
    kept = store.load()
    print("open", flush=True)
    sys.stdin.readline()
    store.save(kept.with_(favourites=(*kept.favourites, f"{name}/{{number}}")))
    print("closed", flush=True)
    sys.stdin.readline()
"""


def test_that_windows_that_close_at_the_same_moment_lose_nothing_of_each_other(tmp_path):
    windows = [
        subprocess.Popen(
            [sys.executable, "-c", CLOSE.format(root=str(ROOT), folder=str(tmp_path), name=name)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in "abc"
    ]  # fmt: skip

    def all_say(word):
        assert [window.stdout.readline() for window in windows] == [f"{word}\n"] * 3
        for window in windows:
            window.stdin.write("\n")
            window.stdin.flush()

    for _ in range(4):
        all_say("open")
        all_say("closed")
    for window in windows:
        window.communicate()
    kept = SettingsStore(tmp_path).load().favourites
    assert sorted(kept) == [f"{name}/{number}" for name in "abc" for number in range(4)]


def test_that_what_was_put_back_to_its_default_is_put_back(tmp_path):
    SettingsStore(tmp_path).save(KEPT)
    store = SettingsStore(tmp_path)
    kept = store.load()
    store.save(kept.with_(scheme="system", favourites=()))
    assert SettingsStore(tmp_path).load() == KEPT.with_(scheme="system", favourites=())


def test_that_a_reset_keeps_nothing_of_before(tmp_path):
    SettingsStore(tmp_path).save(KEPT)
    SettingsStore(tmp_path).save(Settings())
    assert SettingsStore(tmp_path).load() == Settings()


def test_that_a_first_start_sets_nothing_aside(tmp_path):
    store = SettingsStore(tmp_path)
    store.load()
    assert store.set_aside() is None


@pytest.mark.parametrize(
    "reach",
    [
        7, [], "system", {"proxy": "magic"}, {"proxy": ["none"]}, {"mirror": 5}, {"ca_file": "x\n"},
        {"proxy": "manual"}, {"proxy": "manual", "address": "me:geheim@proxy.example:80"},
        {"mirror": "https://me:geheim@hub.example"}, {"no_proxy": "x" * 501},
    ],
)  # fmt: skip
def test_that_a_way_to_the_hub_that_is_none_is_the_usual_one(tmp_path, reach):
    values = {"schema_version": SCHEMA_VERSION, "reach": reach, "page": "A4"}
    (tmp_path / FILE_NAME).write_text(json.dumps(values))
    assert SettingsStore(tmp_path).load() == Settings(page="A4")


def test_that_a_part_of_a_way_is_kept(tmp_path):
    values = {"schema_version": SCHEMA_VERSION, "reach": {"proxy": "none", "colour": 5}}
    (tmp_path / FILE_NAME).write_text(json.dumps(values))
    assert SettingsStore(tmp_path).load().reach == Reach(ProxyChoice.NONE)
