"""A real llama.cpp in a process of its own: loads a synthetic GGUF on the CPU and decodes.

Run as a program it is the child: it drives the C API inside the ``xllamacpp`` wheel and
answers commands on stdin with one JSON line each. ``LlamaProcess`` is the parent's side.
"""

from __future__ import annotations

import ctypes as c
import json
import re
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

ANSWER_LIMIT_S = 120
_MIB = 2**20
_BUFFER = re.compile(r":\s+(\S+)\s+(model|KV|RS|compute|output)\s+buffer size =\s+([0-9.]+) MiB")


@dataclass
class LlamaProcess:
    """Starts the child, waits for its lines, ends it.

    ``with LlamaProcess(path, n_ctx=4096) as llama: llama.decode(64)``
    """

    gguf: Path
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    pid: int = 0
    buffers: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """``model``, ``KV``, ``RS``, ``compute``, ``output`` -> device -> bytes, as printed."""

    def __enter__(self) -> Self:
        command = [sys.executable, __file__, str(self.gguf), json.dumps(self.settings)]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.pid = self._child.pid
        try:
            self.buffers = self._answer()["buffers"]
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def decode(self, tokens: int) -> dict[str, Any]:
        """Push one batch of ``tokens`` through the model."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({"decode": tokens}) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        out = self._child.stdout
        assert out is not None
        deadline = time.monotonic() + ANSWER_LIMIT_S
        while time.monotonic() < deadline:
            ready, _, _ = select.select([out], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                break
            line = out.readline()
            if not line:
                raise RuntimeError(f"llama.cpp ended with {self._child.wait()}")
            if line.startswith('{"plimsoll"'):
                answer = json.loads(line)
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer
        raise TimeoutError(f"llama.cpp did not answer within {ANSWER_LIMIT_S} s")

    def _end(self) -> None:
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        self._child.kill()
        self._child.wait()


# ------------------------------------------------------------------ the child's side

_I32, _U32, _F32, _BOOL, _PTR = c.c_int32, c.c_uint32, c.c_float, c.c_bool, c.c_void_p
_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q5_0": 6, "q8_0": 8, "bf16": 30}


class _ModelParams(c.Structure):
    _fields_ = [
        ("devices", _PTR), ("overrides", _PTR), ("n_gpu_layers", _I32), ("split_mode", _I32),
        ("load_mode", _I32), ("lazy_mode", _I32), ("main_gpu", _I32), ("tensor_split", _PTR),
        ("progress", _PTR), ("progress_data", _PTR), ("kv_overrides", _PTR),
        ("vocab_only", _BOOL), ("check_tensors", _BOOL), ("use_extra_bufts", _BOOL),
        ("no_host", _BOOL), ("no_alloc", _BOOL), ("load_mtp", _BOOL), ("_rest", c.c_uint8 * 64),
    ]  # fmt: skip


_HEAD = [
    ("n_ctx", _U32), ("n_batch", _U32), ("n_ubatch", _U32), ("n_seq_max", _U32),
    ("n_rs_seq", _U32), ("n_outputs_max", _U32), ("n_outputs_max_per_seq", _U32),
    ("n_threads", _I32), ("n_threads_batch", _I32), ("ctx_type", _I32), ("rope_type", _I32),
    ("pooling_type", _I32), ("attention_type", _I32), ("flash_attn_type", _I32),
    ("rope", _F32 * 6), ("yarn_orig_ctx", _U32), ("defrag", _F32), ("cb_eval", _PTR),
    ("cb_data", _PTR), ("type_k", _I32), ("type_v", _I32), ("abort_cb", _PTR),
    ("abort_data", _PTR),
]  # fmt: skip
_TAIL = [
    ("embeddings", _BOOL), ("offload_kqv", _BOOL), ("no_perf", _BOOL), ("op_offload", _BOOL),
    ("swa_full", _BOOL), ("kv_unified", _BOOL), ("samplers", _PTR), ("n_samplers", c.c_size_t),
    ("other", _PTR), ("_rest", c.c_uint8 * 64),
]  # fmt: skip


class _ContextParams(c.Structure):  # b11434
    _fields_ = _HEAD + _TAIL


class _WiderContextParams(c.Structure):  # b11549 has one more field before the booleans
    _fields_ = [*_HEAD, ("extra", c.c_uint64), *_TAIL]


class _Batch(c.Structure):
    _fields_ = [
        ("n_tokens", _I32), ("token", _PTR), ("embd", _PTR), ("pos", _PTR), ("n_seq_id", _PTR),
        ("seq_id", _PTR), ("logits", _PTR), ("_rest", c.c_uint8 * 64),
    ]  # fmt: skip


_LOG = c.CFUNCTYPE(None, c.c_int, c.c_char_p, _PTR)


def _context_type(library: c.CDLL) -> type[c.Structure]:
    """The layout whose booleans hold the defaults that the library is known to return."""
    for layout in (_ContextParams, _WiderContextParams):
        library.llama_context_default_params.restype = layout
        raw = bytes(library.llama_context_default_params())
        start = layout.embeddings.offset
        if raw[start : start + 6] == bytes((0, 1, 1, 1, 1, 0)):
            return layout
    raise RuntimeError("unknown layout of llama_context_params")


def _parsed(log: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for device, kind, mib in _BUFFER.findall(log):
        held = found.setdefault(kind, {})
        held[device] = held.get(device, 0) + float(mib) * _MIB
    return found


def _say(**answer: Any) -> None:
    sys.stdout.write(json.dumps({"plimsoll": 1, **answer}) + "\n")
    sys.stdout.flush()


def _serve(gguf: str, settings: dict[str, Any]) -> None:
    from importlib.util import find_spec

    spec = find_spec("xllamacpp")
    assert spec is not None
    assert spec.origin is not None
    library = c.CDLL(str(Path(spec.origin).parent / "xllamacpp.abi3.so"), mode=c.RTLD_GLOBAL)
    log: list[str] = []
    listener = _LOG(lambda _level, text, _data: log.append(text.decode("utf-8", "replace")))
    library.llama_log_set(listener, None)
    library.llama_backend_init()
    library.llama_model_default_params.restype = _ModelParams
    model_params = library.llama_model_default_params()
    model_params.use_extra_bufts = settings.get("repack", True)
    library.llama_model_load_from_file.argtypes = [c.c_char_p, _ModelParams]
    library.llama_model_load_from_file.restype = _PTR
    model = library.llama_model_load_from_file(gguf.encode(), model_params)
    if not model:
        _say(error="load failed: " + "".join(log[-4:]))
        return
    layout = _context_type(library)
    params = library.llama_context_default_params()
    for name in ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", "n_outputs_max", "kv_unified"):
        if name in settings:
            setattr(params, name, settings[name])
    params.swa_full = settings.get("swa_full", False)
    params.flash_attn_type = 1
    params.type_k = _TYPES[settings.get("type_k", "f16")]
    params.type_v = _TYPES[settings.get("type_v", "f16")]
    library.llama_init_from_model.argtypes = [_PTR, layout]
    library.llama_init_from_model.restype = _PTR
    context = library.llama_init_from_model(model, params)
    if not context:
        _say(error="context failed: " + "".join(log[-4:]))
        return
    _say(buffers=_parsed("".join(log)))
    library.llama_batch_get_one.argtypes = [_PTR, _I32]
    library.llama_batch_get_one.restype = _Batch
    library.llama_decode.argtypes = [_PTR, _Batch]
    for line in sys.stdin:
        count = json.loads(line)["decode"]
        tokens = (_I32 * count)(*range(1, count + 1))
        status = library.llama_decode(context, library.llama_batch_get_one(tokens, count))
        _say(status=status, buffers=_parsed("".join(log)))


if __name__ == "__main__":
    _serve(sys.argv[1], json.loads(sys.argv[2]))
