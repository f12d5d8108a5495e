"""The language of the window: its own words, Qt's, and the side a line begins at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLibraryInfo, QLocale, QTranslator

from engine import words

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication


def wanted(code: str, system: QLocale) -> str:
    """The language to speak: ``code``, or without one the first of the system's that we have."""
    known = {language.code for language in words.LANGUAGES}
    wishes = [code] if code else [name.partition("-")[0] for name in system.uiLanguages()]
    return next((wish for wish in wishes if wish in known), words.LANGUAGES[0].code)


def speak(application: QApplication, code: str) -> None:
    """Speak the language ``code`` from the first widget on.

    Args:
        application: gets Qt's own words, and the side at which lines begin.
        code: one of ``engine.words.LANGUAGES``; empty for the system's.
    """
    language = words.choose(wanted(code, QLocale.system()))
    # English as the separators of our figures have it, and not as the system's country does.
    locale = QLocale("en_US" if language.code == "en" else language.code)
    QLocale.setDefault(locale)
    translator = QTranslator(application)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if translator.load(locale, "qtbase", "_", folder):
        application.installTranslator(translator)
    application.setLayoutDirection(locale.textDirection())
