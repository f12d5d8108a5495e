"""A load log of llama.cpp, ik_llama.cpp or Ollama that nobody has read: settings from its buffers.

Which devices there are, how layers were dealt and whether experts lie on the host follows from the
buffers that a log prints; what does not is left out with its reason.
"""

from __future__ import annotations

import re
from typing import Any

from record_general import file_mix

_DEVICE = re.compile(r"(CUDA|ROCm|Vulkan|MTL)(\d+)")
_BACKENDS = {"ROCm": "rocm", "Vulkan": "vulkan"}
_ROOM_BYTES = 2**39
"""Of a card that is not named: buffers do not depend on it."""
_BUILD = re.compile(r"b\d{4,5}\b|\d+\.\d+\.\d+\b")
_MIXES = re.compile(r"(Q[2-8]_[01K]|IQ[1-4]_(XXS|XS|S|M|NL)|F16|BF16|MXFP4)(_[SML])?$")
_LATENT = re.compile(r"deepseek|kimi|glm-?[45]\.?\d*-flash", re.IGNORECASE)
_MODEL, _COMPUTE = "printed model buffers", "printed compute buffers"
_MIX, _BY_HAND = "the mix of its file is not stated", "tensors are placed by hand"
_BUILD_UNSTATED = "its build is not stated"
_OWN_RULES = "a rule of its own, which is not planned"


def settings(raw: dict[str, Any]) -> dict[str, Any]:
    """The keys that the buffers of a log tell; empty where it prints none."""
    buffers = raw["reported"].get("buffers_mib")
    if not buffers:
        return {}
    devices = _devices(buffers)
    count = max(devices, default=-1) + 1
    found: dict[str, Any] = {"n_parallel": raw.get("n_seq_max") or 1}
    if raw.get("type_k") and not raw.get("type_v"):
        found["cache_type_v"] = raw["type_k"]
    if not _is_known(file_mix(raw)):
        found["weight_format"] = "Q8_0"
    return found | (_placed(raw, buffers, devices, count) if count else {})


def _placed(
    raw: dict[str, Any],
    buffers: dict[str, dict[str, float]],
    devices: dict[int, dict[str, float]],
    count: int,
) -> dict[str, Any]:
    """What lies where, on ``count`` GPUs."""
    offloaded, layers = _offloaded(raw, devices)
    found: dict[str, Any] = {"gpu_count": count, "n_gpu_layers": offloaded}
    named = [match for match in map(_DEVICE.fullmatch, buffers) if match]
    if named and named[0][1] != "MTL":
        found["gpu_total_bytes"] = _ROOM_BYTES
        if named[0][1] in _BACKENDS:
            found["backend"] = _BACKENDS[named[0][1]]
    flags = " ".join(raw.get("other_flags") or [])
    experts = re.search(r"-ncmoe (\d+)", flags)
    if experts:
        found["n_cpu_moe"] = int(experts[1])
    elif "exps=CPU" in flags or (offloaded == -2 and _has_experts_on_host(buffers, devices)):
        found["n_cpu_moe"] = 999
    if "-nkvo" in flags:
        found["offload_kqv"] = False
    held = [devices.get(number, {}).get("kv", 0) for number in range(count)]
    if count > 1 and layers and all(held):
        dealt = [round(size / sum(held) * layers) for size in held]
        # The output layer goes with the last of them.
        found["tensor_split"] = [*dealt[:-1], dealt[-1] + 1]
    return found


def unread(raw: dict[str, Any], request: dict[str, Any]) -> dict[str, str]:
    """Buffers that cannot be compared, and why."""
    if not raw["reported"].get("buffers_mib"):
        return {}
    found: dict[str, str] = {}
    if "n_cpu_moe" in request:
        found[_MODEL] = _BY_HAND
    if not _is_known(file_mix(raw)):
        found |= {_MODEL: _MIX, "card": _MIX}
    name = f"{raw.get('model')} {raw.get('model_inferred')}"
    if raw["engine"] == "ik_llama.cpp":
        if request.get("gpu_count", 1) > 1 or _LATENT.search(name) or not request["n_gpu_layers"]:
            found[_COMPUTE] = _OWN_RULES
    elif not _BUILD.match(raw.get("engine_version") or ""):
        found[_COMPUTE] = _BUILD_UNSTATED
    return found


def _devices(buffers: dict[str, dict[str, float]]) -> dict[int, dict[str, float]]:
    """Number of a GPU -> its buffers in MiB."""
    found: dict[int, dict[str, float]] = {}
    for name, held in buffers.items():
        match = _DEVICE.fullmatch(name)
        if match:
            found[int(match[2])] = held
    if not found and "Metal_Mapped" in buffers:
        found[0] = buffers["Metal_Mapped"]
    return found


def _offloaded(raw: dict[str, Any], devices: dict[int, dict[str, float]]) -> tuple[int, int]:
    """``n_gpu_layers`` (-2 for all), and how many layers the model has (0: not said)."""
    stated = re.fullmatch(r"(\d+)/(\d+)", raw.get("offloaded_layers") or "")
    if stated:
        return (-2 if stated[1] == stated[2] else int(stated[1])), int(stated[2]) - 1
    is_held = any(held.get("kv") or held.get("model") for held in devices.values())
    return (-2 if is_held else 0), 0


def _has_experts_on_host(
    buffers: dict[str, dict[str, float]], devices: dict[int, dict[str, float]]
) -> bool:
    """Whether more lies on the host than on the GPUs though all layers are offloaded."""
    beside = sum(held.get("model", 0) for held in devices.values())
    return sum(held.get("model", 0) for held in buffers.values()) > 2 * beside > 0


def _is_known(mix: str | None) -> bool:
    return mix is not None and _MIXES.fullmatch(mix) is not None
