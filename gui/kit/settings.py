"""What the window remembers between two starts: typed, versioned, never trusted.

A JSON file in the platform's settings folder. Anything in it that is not of the expected
shape is dropped in silence and its default used, since a person cannot act on a sentence
about it, and a window must never fail to open because of yesterday's file.
"""

from __future__ import annotations

import base64
import binascii
import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from PySide6.QtCore import QLockFile

from engine.devices import corrected
from engine.devices.corrected import Correction
from engine.errors import UsageError
from engine.source.reach import ProxyChoice, Reach
from engine.units import UnitSystem
from gui.kit.whole_file import set_aside, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION: Final = 1
FILE_NAME: Final = "settings.json"
_MOST_SHORTCUTS = 200
_LOCK_WITHIN_MS = 5000
_SIZE_LIMIT_BYTES = 256 * 1024
_BLOB_LIMIT = 16_384
_TEXT_LIMIT = 500
_MOST_TEXTS = {
    "turned_orders": 20,
    "favourites": 500,
    "recents": 20,
    "folders": 500,
    "addresses": 50,
    "watched": 8,
}

_SWITCHES = (
    "simple", "welcome_closed", "tabs_folded", "offline", "patterns", "still", "emptied", "alert",
    "compact",
)  # fmt: skip

SCHEMES: Final = ("system", "light", "dark", "contrast-light", "contrast-dark")
PAGES: Final = ("A4", "Letter")
_KEPT_IN_SAFETY = (
    "scheme",
    "patterns",
    "text_percent",
    "still",
    "language",
    "unit",
    "offline",
    "reach",
)
ALERT_PERCENTS: Final = range(50, 101)
ALERT_SECONDS: Final = range(1, 601)
ALERT_LEFT_GIB: Final = range(65)
_NUMBERS: Final = (
    ("alert_percent", ALERT_PERCENTS),
    ("alert_seconds", ALERT_SECONDS),
    ("alert_left_gib", ALERT_LEFT_GIB),
)
TEXT_PERCENTS: Final = (100, 125, 150, 175, 200, 250, 300)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything remembered. ``geometry`` and ``splitters`` are Qt's own bytes."""

    scheme: str = "system"
    patterns: bool = False
    """Whether every region is hatched in the plain schemes too."""
    text_percent: int = 100
    still: bool = False
    """Whether nothing moves, even where the system would let it."""
    language: str = ""
    """Code of the window's language; empty for the system's."""
    shortcuts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys of the commands whose shortcut was changed; empty for none."""
    emptied: bool = False
    """Whether a plan begins as if nothing else ran."""
    unit: UnitSystem = UnitSystem.BINARY
    page: str = ""
    """Paper of reports; empty for the one that is usual here."""
    simple: bool = False
    """Whether only model, machine, context and users are to be seen."""
    welcome_closed: bool = False
    tabs_folded: bool | None = None
    """None: folded where the window is small, open elsewhere."""
    geometry: bytes = b""
    splitters: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    last_folder: str = ""
    order: str = ""
    """Order of the browser's list; empty for the first."""
    turned_orders: tuple[str, ...] = ()
    """Orders whose direction was turned round."""
    favourites: tuple[str, ...] = ()
    recents: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Searched for models."""
    addresses: tuple[str, ...] = ()
    """Where runtimes answer beside those that are found by themselves."""
    watched: tuple[str, ...] = ()
    """Where machines elsewhere were watched, the last one first; none is asked by itself."""
    corrections: tuple[Correction, ...] = ()
    """What this computer's hardware is where detection is wrong."""
    offline: bool = False
    """Whether the Hub is never asked."""
    reach: Reach = field(default_factory=Reach)
    """How the Hub is reached."""
    alert: bool = False
    """Whether to tell when a device's use nears its ceiling."""
    alert_percent: int = 95
    """Of the ceiling, from which it is told."""
    alert_left_gib: int = 0
    """Left below the ceiling, from which it is told too; 0 for the percentage alone."""
    alert_seconds: int = 10
    """How long it must hold."""
    compact: bool = False
    """Whether the small window that stays in front is open."""
    compact_geometry: bytes = b""
    python: str = ""
    """The Python chosen to build models with; empty to look for one."""

    def with_(self, **changes: Any) -> Settings:
        """A copy with ``changes``."""
        return replace(self, **changes)

    def for_safe_start(self) -> Settings:
        """As at the first start, but for what one needs to read it and what is forbidden."""
        kept = {name: getattr(self, name) for name in _KEPT_IN_SAFETY}
        return Settings(welcome_closed=True, **kept)


def default_folder() -> Path:
    """The platform's folder for settings of this app."""
    import platformdirs  # noqa: PLC0415 - only where settings are really kept

    return Path(platformdirs.user_config_dir("plimsoll", appauthor=False))


class SettingsStore:
    """Reads and writes one settings file."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = (folder or default_folder()) / FILE_NAME
        self._loaded: Settings | None = None

    def load(self) -> Settings:
        """What was saved; a value that makes no sense counts as absent.

        Where the file makes no sense, everything is as at the first start.
        """
        self._loaded = self._read()
        return self._loaded or Settings()

    def set_aside(self) -> Path | None:
        """Move a file that can't be understood out of the way; a newer version's, perhaps.

        Returns:
            Where it is now; None where there was none, or where it can't be moved.
        """
        return set_aside(self._file) if self._read() is None else None

    def _read(self) -> Settings | None:
        """What the file holds; None where that makes no sense."""
        try:
            is_huge = self._file.stat().st_size > _SIZE_LIMIT_BYTES
            kept: object = None if is_huge else json.loads(self._file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return Settings()
        except (OSError, ValueError, RecursionError):
            return None
        values = cast("dict[str, object]", kept) if isinstance(kept, dict) else {}
        return _settings(values) if values.get("schema_version") == SCHEMA_VERSION else None

    def save(self, settings: Settings) -> bool:
        """Replace the file as a whole. Returns whether that was possible.

        What another window wrote since ``load`` stays, but for what was changed here too; of two
        that close at once, the second waits for the first.
        """
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
        lock = QLockFile(str(self._file.with_suffix(".lock")))
        lock.tryLock(_LOCK_WITHIN_MS)
        try:
            return self._save(settings)
        finally:
            lock.unlock()

    def _save(self, settings: Settings) -> bool:
        theirs = self._read()
        if theirs is None and self.set_aside() is None:
            return False
        if self._loaded is not None and theirs is not None and self._file.exists():
            settings = _merged(self._loaded, settings, theirs)
        values: dict[str, object] = {"schema_version": SCHEMA_VERSION}
        for item in fields(settings):
            values[item.name] = _plain(getattr(settings, item.name))
        try:
            write_whole(self._file, json.dumps(values, indent=1))
        except OSError:
            return False
        return True


def _merged(before: Settings, mine: Settings, theirs: Settings) -> Settings:
    """``theirs`` with what ``mine`` changed since ``before``; of lists, entry by entry."""
    changes: dict[str, Any] = {}
    for item in fields(mine):
        was, now, there = (getattr(one, item.name) for one in (before, mine, theirs))
        if now == was:
            continue
        if item.name in _MOST_TEXTS and there != was:
            kept = (text for text in now if text not in was or text in there)
            added = (text for text in there if text not in was)
            now = tuple(dict.fromkeys((*kept, *added)))[: _MOST_TEXTS[item.name]]
        changes[item.name] = now
    return theirs.with_(**changes)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value)
        return {name: _plain(one) for name, one in pairs.items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in cast("tuple[object, ...]", value)]
    return asdict(value) if isinstance(value, (Correction, Reach)) else value


def _settings(values: Mapping[str, object]) -> Settings:
    found: dict[str, Any] = {}
    choices = (("scheme", SCHEMES), ("page", PAGES), ("text_percent", TEXT_PERCENTS))
    for name, offered in choices:
        if values.get(name) in offered:
            found[name] = values[name]
    with suppress(ValueError):
        found["unit"] = UnitSystem(str(values.get("unit")))
    for name in _SWITCHES:
        if isinstance(values.get(name), bool):
            found[name] = values[name]
    for name in ("last_folder", "python", "order", "language"):
        text = values.get(name)
        if _is_text(text):
            found[name] = text
    for name, most in _MOST_TEXTS.items():
        found[name] = _texts(values.get(name), most)
    found |= {name: values[name] for name, bounds in _NUMBERS if _is_number(values, name, bounds)}
    found["corrections"] = corrected.from_plain(values.get("corrections"))
    found |= {name: _blob(values.get(name)) for name in ("geometry", "compact_geometry")}
    blobs = values.get("splitters")
    if isinstance(blobs, dict):
        pairs = cast("dict[str, object]", blobs)
        found["splitters"] = {k: _blob(v) for k, v in list(pairs.items())[:20]}
    found["reach"] = _reach(values.get("reach"))
    keys = values.get("shortcuts")
    if isinstance(keys, dict):
        pairs = cast("dict[str, object]", keys)
        found["shortcuts"] = {k: v for k, v in list(pairs.items())[:_MOST_SHORTCUTS] if _is_text(v)}
    return Settings(**found)


def _reach(value: object) -> Reach:
    """The way to the Hub; the usual one where any part of it can't be meant."""
    parts = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    texts = {item.name: parts.get(item.name, item.default) for item in fields(Reach)}
    if not all(map(_is_text, texts.values())):
        return Reach()
    named = cast("dict[str, str]", texts)
    try:
        choice = ProxyChoice(named.pop("proxy"))
        return Reach(choice, **named).checked()
    except (ValueError, UsageError):
        return Reach()


def _texts(value: object, most: int) -> tuple[str, ...]:
    """The texts of a list, those left out that can't be meant."""
    items = cast("list[object]", value)[:most] if isinstance(value, list) else []
    return tuple(item for item in items if _is_text(item) and item)


def _is_number(values: Mapping[str, object], name: str, bounds: range) -> bool:
    number = values.get(name)
    return isinstance(number, int) and not isinstance(number, bool) and number in bounds


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _TEXT_LIMIT and value.isprintable()


def _blob(value: object) -> bytes:
    if not isinstance(value, str) or len(value) > _BLOB_LIMIT:
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""
