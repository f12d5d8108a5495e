"""What the packaged program says of itself to Windows and macOS."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

VERSION = version("plimsoll")
IDENTIFIER = "org.plimsoll.Plimsoll"
_TITLE = "Will this model fit on this machine?"


def windows_version(target: Path) -> Path:
    """Write the version resource as PyInstaller reads it."""
    numbers = ", ".join([*VERSION.split(".")[:3], "0"])
    strings = {
        "CompanyName": "The Plimsoll authors",
        "FileDescription": f"Plimsoll: {_TITLE}",
        "FileVersion": VERSION,
        "InternalName": "plimsoll",
        "LegalCopyright": "Copyright 2026 The Plimsoll authors. Apache License 2.0",
        "OriginalFilename": "plimsoll.exe",
        "ProductName": "Plimsoll",
        "ProductVersion": VERSION,
    }
    rows = ", ".join(f"StringStruct({key!r}, {value!r})" for key, value in strings.items())
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(
        f"VSVersionInfo(ffi=FixedFileInfo(filevers=({numbers}), prodvers=({numbers})), "
        f"kids=[StringFileInfo([StringTable('040904B0', [{rows}])]), "
        "VarFileInfo([VarStruct('Translation', [1033, 1200])])])\n",
        encoding="utf-8",
    )
    return target


def info_plist() -> dict[str, Any]:
    """Keys of the macOS bundle: how it is drawn, from which system on, and what it opens."""
    return {
        "CFBundleDisplayName": "Plimsoll",
        "CFBundleShortVersionString": VERSION,
        "LSApplicationCategoryType": "public.app-category.developer-tools",
        "LSMinimumSystemVersion": "13.0",
        "NSHighResolutionCapable": True,
        "NSRequiresAquaSystemAppearance": False,
        "NSHumanReadableCopyright": "Copyright 2026 The Plimsoll authors",
        "UTExportedTypeDeclarations": [
            {
                "UTTypeIdentifier": f"{IDENTIFIER}.workspace",
                "UTTypeDescription": "Plimsoll workspace",
                "UTTypeConformsTo": ["public.json"],
                "UTTypeTagSpecification": {"public.filename-extension": ["plimsoll"]},
            }
        ],
        "CFBundleDocumentTypes": [
            {
                "CFBundleTypeName": "Plimsoll workspace",
                "CFBundleTypeRole": "Editor",
                "LSItemContentTypes": [f"{IDENTIFIER}.workspace"],
            }
        ],
    }
