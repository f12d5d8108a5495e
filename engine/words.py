"""What a person reads, in the language the window was started in.

English is what the code says; a language is one gettext catalogue under ``resources/locale``.
The terminal and the machine contract never choose one, so that scripts read the same words
everywhere. The window chooses once, before it makes its first widget.

A text that is made at use goes through ``tr``; one that is kept in a table goes in through
``tr_later`` and out through ``tr``. Figures are filled in after, by name::

    tr("{size} to spare").format(size=size)

so that a language may put them in its own order.
"""

from __future__ import annotations

import gettext
from dataclasses import dataclass
from typing import Final

import resources


@dataclass(frozen=True, slots=True)
class Language:
    """One language of the window. ``separators`` are those of numbers: decimals, thousands."""

    code: str
    name: str
    """In the language itself."""
    separators: tuple[str, str] = (".", ",")
    nouns_are_small: bool = True
    """Whether a note that becomes a part of a sentence may begin with a small letter."""


LANGUAGES: Final = (
    Language("en", "English"),
    Language("de", "Deutsch", (",", "."), nouns_are_small=False),
)

_SWAPPED: Final = str.maketrans(".,", ",.")


class _Chosen:
    """The one language in force."""

    language = LANGUAGES[0]
    catalogue: gettext.NullTranslations = gettext.NullTranslations()


def choose(code: str) -> Language:
    """Speak the language ``code`` (``de``, ``de_AT``) from now on; English where it isn't there."""
    short = code.replace("-", "_").partition("_")[0].lower()
    _Chosen.language = next((one for one in LANGUAGES if one.code == short), LANGUAGES[0])
    _Chosen.catalogue = gettext.translation(
        "plimsoll", resources.path("locale"), [_Chosen.language.code], fallback=True
    )
    return _Chosen.language


def chosen() -> Language:
    """The language in force."""
    return _Chosen.language


def tr_later(text: str) -> str:
    """``text`` itself: it is translated where it is used, with ``tr``."""
    return text


def tr(text: str) -> str:
    """``text`` in the language in force, its ``{fields}`` not yet filled in."""
    return _Chosen.catalogue.gettext(text) if text else ""


def tr_count(one: str, many: str, number: int) -> str:
    """``one`` or ``many``, whichever the language says of ``number``; not yet filled in."""
    return _Chosen.catalogue.ngettext(one, many, number)


def grouped(number: int) -> str:
    """``8,192``: a whole number with the thousands of the language in force."""
    return figures(f"{number:,}")


def begun_small(note: str) -> str:
    """``note`` as part of a sentence; names, abbreviations and German nouns keep their capitals."""
    head = note.partition(" ")[0]
    is_word = head[1:].islower() or len(head) == 1
    return note[:1].lower() + note[1:] if is_word and _Chosen.language.nouns_are_small else note


def figures(text: str) -> str:
    """A number written as in English, with the separators of the language in force."""
    return text.translate(_SWAPPED) if _Chosen.language.separators[0] == "," else text
