"""llama-server's own argument parser, from the library inside the ``xllamacpp`` wheel.

Run as a program it is the child: ``common_params_parse`` of llama.cpp fills the parameters that
the wheel's Python object holds, which are then told as JSON. A child, since the parser ends the
process over some errors, and prints as it likes.
"""

from __future__ import annotations

import ctypes as c
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_PARSE = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
_SERVER = 12
"""``LLAMA_EXAMPLE_SERVER``."""
_OBJECT_HEAD = 16
"""Bytes before the parameters in a Python object that holds them by value."""
_TOLD = (
    "n_ctx", "n_parallel", "kv_unified", "n_batch", "n_ubatch", "n_gpu_layers", "swa_full",
    "cache_ram_mib", "no_kv_offload", "no_op_offload", "no_extra_bufts", "no_mmproj",
)  # fmt: skip
_NAMED = ("cache_type_k", "cache_type_v", "flash_attn_type", "split_mode", "load_mode")


def parsed(*arguments: str) -> dict[str, Any] | None:
    """The parameters that llama-server starts with; None where it refuses the arguments."""
    child = [sys.executable, __file__, *arguments]
    found = subprocess.run(child, capture_output=True, text=True, check=False)
    lines = [line for line in found.stdout.splitlines() if line.startswith('{"plimsoll"')]
    return json.loads(lines[-1]) if lines else None


def _main() -> None:
    import xllamacpp

    assert xllamacpp.__file__ is not None
    library = c.CDLL(str(Path(xllamacpp.__file__).parent / "xllamacpp.abi3.so"))
    parse = getattr(library, _PARSE)
    parse.restype = c.c_bool
    parse.argtypes = [c.c_int, c.POINTER(c.c_char_p), c.c_void_p, c.c_int, c.c_void_p]
    params = xllamacpp.CommonParams()
    words = [b"llama-server", *(word.encode() for word in sys.argv[1:])]
    vector = (c.c_char_p * (len(words) + 1))(*words, None)
    if not parse(len(words), vector, id(params) + _OBJECT_HEAD, _SERVER, None):
        return
    found = {"plimsoll": 1} | {name: getattr(params, name) for name in _TOLD}
    found |= {name: getattr(getattr(params, name), "name", None) for name in _NAMED}
    found["model"] = params.model.path
    found["tensor_split"] = [share for share in params.tensor_split if share]
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    _main()
