"""The commands of the menu Live: what can be done with what is measured."""

from __future__ import annotations

from engine.words import tr_later
from gui.kit.command import Command

LIVE = (
    Command(
        "elsewhere",
        "&Live",
        tr_later("&Watch a machine elsewhere…"),
        "",
        tr_later("The devices of another machine, by the address of an exporter or of Prometheus"),
    ),
    Command(
        "simulated",
        "&Live",
        tr_later("&Simulated machine"),
        "",
        tr_later("Eight GPUs that aren’t there, with a model that is loaded and serves"),
        checkable=True,
    ),
    Command(
        "back here",
        "&Live",
        tr_later("Back to &this computer"),
        "",
        tr_later("Watch this computer and plan for it again"),
    ),
    Command(
        "zoom in",
        "&Live",
        tr_later("Zoom &in"),
        "Ctrl++",
        tr_later("Show less time"),
        also="Ctrl+=",
        section=True,
    ),
    Command("zoom out", "&Live", tr_later("Zoom o&ut"), "Ctrl+-", tr_later("Show more time")),
    Command("earlier", "&Live", tr_later("&Earlier"), "Alt+Left", tr_later("Look further back")),
    Command("later", "&Live", tr_later("&Later"), "Alt+Right", tr_later("Look further on")),
    Command("newest", "&Live", tr_later("To the &newest"), "Alt+End", tr_later("Follow again")),
    Command(
        "compact",
        "&Live",
        tr_later("&Compact view"),
        "Ctrl+Shift+M",
        tr_later("A small window that stays in front of all others"),
        checkable=True,
        section=True,
    ),
    Command(
        "mark",
        "&Live",
        tr_later("Set a &marker…"),
        "M",
        tr_later("Note what happens now, in the chart and in the recording"),
        section=True,
    ),
    Command(
        "reset extent",
        "&Live",
        tr_later("&Reset least and most"),
        "",
        tr_later("Count least, average and most from now on"),
    ),
    Command(
        "export picture",
        "&Live",
        tr_later("Export the &picture…"),
        "",
        tr_later("What the picture shows, as PNG or SVG"),
        section=True,
    ),
    Command(
        "export figures",
        "&Live",
        tr_later("Export the &figures…"),
        "",
        tr_later("The samples of the time shown, as CSV"),
    ),
)
