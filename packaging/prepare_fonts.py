"""Make the bundled faces from the published ones (Debian: fonts-inter, fonts-jetbrains-mono).

Two changes, both for PDFs, whose text is what the font says each glyph means:

* Qt takes the glyph of the space for the tabulator too, and then writes every space of a PDF
  as a tabulator. The faces get an entry for the tabulator that leads elsewhere.
* Figures of one width are glyphs of their own without a meaning; in a PDF they could neither
  be found nor copied. ``Inter Tabular`` holds them under the figures' own numbers.

Usage: python packaging/prepare_fonts.py FOLDER (with Inter-*.otf and JetBrainsMono-*.ttf);
needs fontTools, which the project itself does not.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

TARGET = Path(__file__).resolve().parents[1] / "resources" / "fonts"
FACES = (
    "Inter-Regular.otf",
    "Inter-Medium.otf",
    "Inter-SemiBold.otf",
    "Inter-Bold.otf",
    "JetBrainsMono-Regular.ttf",
)
TABULAR = ("Inter-Regular.otf", "Inter-Medium.otf", "Inter-SemiBold.otf")
TAB, NO_BREAK_SPACE = 0x09, 0xA0
BESIDE_LATIN = (0xA0, 0xB5, 0xB7, 0xD7, 0x2013, 0x2019, 0x2026, 0x2212, 0x2264, 0x2265)


def mend(font: TTFont) -> None:
    """Give the tabulator a glyph other than that of the space."""
    for table in font["cmap"].tables:
        if table.isUnicode() and NO_BREAK_SPACE in table.cmap:
            table.cmap[TAB] = table.cmap[NO_BREAK_SPACE]


def tabular(font: TTFont) -> None:
    """Put the figures of one width in the place of the figures, keep Latin, and rename."""
    swaps = _tabular_figures(font)
    for table in font["cmap"].tables:
        if table.isUnicode():
            table.cmap = {
                code: swaps.get(glyph, glyph)
                for code, glyph in table.cmap.items()
                if glyph not in swaps.values()
            }
    options = Options(layout_features=[], notdef_outline=True, name_IDs=["*"])
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=[TAB, *range(0x20, 0x7F), *BESIDE_LATIN])
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in {1, 3, 4, 6, 16}:
            joint = "" if record.nameID == 6 else " "
            text = record.toUnicode().replace("Inter", f"Inter{joint}Tabular", 1)
            record.string = text
    cff = font["CFF "].cff
    cff.fontNames = [name.replace("Inter", "InterTabular", 1) for name in cff.fontNames]
    for top in cff.topDictIndex:
        top.FullName = top.FullName.replace("Inter", "Inter Tabular", 1)
        top.FamilyName = top.FamilyName.replace("Inter", "Inter Tabular", 1)


def _tabular_figures(font: TTFont) -> dict[str, str]:
    substitutions = font["GSUB"].table
    feature = next(
        record.Feature
        for record in substitutions.FeatureList.FeatureRecord
        if record.FeatureTag == "tnum"
    )
    swaps: dict[str, str] = {}
    for index in feature.LookupListIndex:
        for subtable in substitutions.LookupList.Lookup[index].SubTable:
            swaps |= getattr(subtable, "ExtSubTable", subtable).mapping
    return swaps


def main() -> None:
    """Write all faces."""
    source = Path(sys.argv[1])
    for face in FACES:
        font = TTFont(source / face)
        mend(font)
        font.save(TARGET / face)
    for face in TABULAR:
        font = TTFont(source / face)
        mend(font)
        tabular(font)
        font.save(TARGET / face.replace("Inter", "InterTabular"))


if __name__ == "__main__":
    main()
