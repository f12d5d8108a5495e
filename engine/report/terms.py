"""Each term of the window in one line; the words are those of ``ARCHITECTURE.md``."""

from __future__ import annotations

from typing import Final

from engine.budget.model import Region
from engine.evidence import Basis
from engine.words import tr_later

REGIONS: Final = {
    Region.WEIGHTS: tr_later("The model’s parameters, in the format they are loaded in."),
    Region.KV_CACHE: tr_later(
        "Keys and values of every token still attended to, and what a runtime reserves for more."
    ),
    Region.RECURRENT_STATE: tr_later(
        "What layers without a KV cache keep for each sequence; it doesn’t grow with the context."
    ),
    Region.ACTIVATIONS: tr_later("What one step computes and drops again; largest at the prompt."),
    Region.CUDA_GRAPHS: tr_later(
        "Recorded steps that the runtime replays, with their own buffers."
    ),
    Region.RUNTIME: tr_later("The device’s context, workspaces of its libraries, fixed buffers."),
    Region.ALLOCATOR: tr_later("What the allocator holds but can’t use: rounding and fragments."),
    Region.HEADROOM: tr_later("What you or the runtime leave free on purpose."),
    Region.FOREIGN: tr_later("What other processes, the display and the driver hold."),
}

BASES: Final = {
    Basis.READ: tr_later("Summed from a file’s header, or read from the device."),
    Basis.EXACT: tr_later("Follows from whole numbers by the runtime’s own rule."),
    Basis.SETTING: tr_later("What you or a flag of the runtime ask for."),
    Basis.MEASURED: tr_later("Read from the device, or stated by the runtime, now."),
    Basis.LEARNED: tr_later("From runs on this machine with the same runtime, model and settings."),
    Basis.FITTED: tr_later("A formula fitted to measured runs; its range is what they left over."),
    Basis.ASSUMED: tr_later("A default without evidence for this case, hence a wide range."),
    Basis.BOUND: tr_later("The rule isn’t known: a limit, with the reason."),
}

PICTURE: Final = {
    tr_later("Load line"): tr_later("What a runtime can really allocate on the device."),
    tr_later("To spare"): tr_later("What is left under the load line, or unused in the pool."),
    tr_later("Over"): tr_later("What the plan needs beyond the load line."),
    tr_later("Pool"): tr_later("The KV memory that a runtime takes at its start."),
    tr_later("Measured"): tr_later("What the device says is used, now."),
    tr_later("Low – high"): tr_later("The range in which the figure lies; a point is exact."),
    tr_later("Least"): tr_later("What the architecture itself needs, before any runtime."),
    tr_later("Basis"): tr_later("Why the figure is believed: read, exact, fitted, assumed …"),
}

VERDICT: Final = {
    tr_later("Fits"): tr_later("Even the high estimate lies under the load line."),
    tr_later("Tight"): tr_later("The likely estimate lies under the load line, the high one not."),
    tr_later("Doesn’t fit"): tr_later(
        "The likely estimate lies over the load line; the second line says what the runtime does."
    ),
    tr_later("Unknown"): tr_later(
        "Something of the model isn’t understood: the figure is a bound."
    ),
    tr_later("Now"): tr_later("Beside what others hold at this moment."),
    tr_later("Emptied"): tr_later("As if nothing else ran on the device."),
}

PLAN: Final = {
    tr_later("Runtime"): tr_later("The program that runs the model, and its version."),
    tr_later("Weights"): tr_later("The format the parameters are loaded in."),
    tr_later("KV cache"): tr_later("The format in which keys and values are kept."),
    tr_later("Context"): tr_later("The most tokens of one request, prompt and answer together."),
    tr_later("At once"): tr_later("Requests that are worked on at the same time."),
    tr_later("TP × PP"): tr_later(
        "Devices that share each layer, times groups of layers on devices of their own."
    ),
    tr_later("Device"): tr_later("Where it is to run: this computer, or one of the catalogue."),
    tr_later("Rank"): tr_later("One device’s share of the model."),
}

UNITS: Final = {
    tr_later("GiB, MiB"): tr_later("Powers of 1,024: 1 GiB is 1,073,741,824 bytes."),
    tr_later("GB, MB"): tr_later("Powers of 1,000: 1 GB is 1,000,000,000 bytes."),
}
