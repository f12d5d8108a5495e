"""Bring the languages of the window up to date: ``python packaging/languages.py [--check]``.

Collects every text that goes through ``tr``, ``tr_count`` or ``tr_later``, merges it into
``resources/locale/<language>/LC_MESSAGES/plimsoll.po`` (what is translated stays; what is gone
goes) and compiles that. ``--check`` writes nothing and says what is missing or stale.
"""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "resources" / "locale"
KEYWORDS = {"tr": None, "tr_later": None, "tr_count": (1, 2)}
FOLDERS = ("engine", "gui")
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def texts() -> Catalog:
    """Every text of the program that a language can say."""
    found = Catalog(project="plimsoll", fuzzy=False)
    for folder in FOLDERS:
        for name, _, message, comments, _ in extract_from_dir(
            ROOT / folder, [("**.py", "python")], keywords=KEYWORDS, comment_tags=("tr:",)
        ):
            found.add(message, locations=[(f"{folder}/{name}", 0)], auto_comments=comments)
    return found


def _empty(code: str) -> Catalog:
    # Babel stamps the time of making; a file that says nothing new must not change.
    return Catalog(
        locale=code,
        header_comment="# The texts of the window; packaging/languages.py collects them.",
        project="plimsoll",
        version="1",
        msgid_bugs_address="plimsoll",
        last_translator="plimsoll",
        language_team="plimsoll",
        creation_date=_EPOCH,
        revision_date=_EPOCH,
        fuzzy=False,
    )


def catalogue(code: str) -> Catalog:
    """The catalogue of ``code`` as it lies there, or an empty one."""
    file = LOCALE / code / "LC_MESSAGES" / "plimsoll.po"
    if not file.exists():
        return _empty(code)
    with file.open("rb") as stream:
        return read_po(stream, locale=code)


def merged(code: str) -> Catalog:
    """The catalogue of ``code`` with exactly the program's texts."""
    had, wanted = catalogue(code), _empty(code)
    for message in texts():
        if message.id:
            old = had.get(message.id)
            wanted.add(
                message.id,
                old.string if old else None,
                locations=message.locations,
                auto_comments=message.auto_comments,
            )
    return wanted


def written(found: Catalog) -> tuple[bytes, bytes]:
    """The ``.po`` and the ``.mo`` file of a catalogue."""
    po, mo = io.BytesIO(), io.BytesIO()
    write_po(po, found, width=100, sort_output=True, omit_header=False, include_lineno=False)
    write_mo(mo, found)
    return po.getvalue(), mo.getvalue()


def missing(found: Catalog) -> list[str]:
    """The texts that the catalogue leaves in English."""
    return [
        str(message.id)
        for message in found
        if message.id
        and not (all(message.string) if isinstance(message.string, tuple) else message.string)
    ]


def main(arguments: list[str]) -> int:
    """Write, or check, each language's two files."""
    status = 0
    for folder in sorted(LOCALE.iterdir()):
        found = merged(folder.name)
        po, mo = written(found)
        here = folder / "LC_MESSAGES"
        files = {here / "plimsoll.po": po, here / "plimsoll.mo": mo}
        if "--check" in arguments:
            stale = [p.name for p, text in files.items() if p.read_bytes() != text]
            status |= bool(stale or missing(found))
            print(f"{folder.name}: {len(missing(found))} untranslated, stale: {stale or 'none'}")
            continue
        for path, text in files.items():
            path.write_bytes(text)
        print(f"{folder.name}: {len(found)} texts, {len(missing(found))} untranslated")
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
