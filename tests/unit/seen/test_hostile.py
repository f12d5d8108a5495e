"""Whatever an endpoint answers, a look ends with rows or without, and never with an exception."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.cancel import CancelToken
from engine.seen import identify, plain
from engine.seen.asker import Asker
from engine.seen.attribution import difference
from engine.telemetry import wire
from engine.telemetry.address import Address

KEYS = (
    "models", "data", "id", "name", "size", "size_vram", "details", "expires_at", "context_length",
    "version", "default_generation_settings", "n_ctx", "total_slots", "model_path", "role",
    "status", "value", "is_processing", "next_token", "n_decoded", "n_prompt_tokens_processed",
    "devices", "model", "context", "internal_states", "memory_usage", "weight", "kvcache", "graph",
    "loads", "memory", "token_usage", "max_total_num_tokens", "num_running_reqs", "model_id",
    "max_total_tokens", "max_batch_total_tokens", "loaded_instances", "config", "parallel", "key",
    "state", "quantization", "kvCacheStats", "maxNumBlocks", "usedNumBlocks", "tokensPerBlock",
    "gpuMemUsage", "owned_by", "max_model_len", "tp_size", "mem_fraction_static", "build_info",
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([0, -1, 2**63, 1e308])
)
SCALARS = st.one_of(
    st.none(), st.booleans(), NUMBERS, st.text(max_size=8),
    st.sampled_from(["loaded", "router", "vllm", "None", "0", "2400-01-01T00:00:00Z"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=20,
)
PATHS = (
    "/api/version", "/api/ps", "/props", "/slots", "/memory", "/health", "/server_info",
    "/v1/loads", "/info", "/api/v1/models", "/api/v0/models", "/v1/models", "/metrics", "/version",
)  # fmt: skip
GAUGES = st.builds(
    "{}{{{}}} {}\n".format,
    st.sampled_from([
        "vllm:kv_cache_usage_perc", "vllm:num_requests_running", "vllm:cache_config_info",
        "vllm:engine_sleep_state", "sglang:token_usage", "sglang_weight_memory_usage_gb",
        "llamacpp:kv_cache_usage_ratio", "tgi_batch_current_size", "trtllm_kv_cache_max_blocks",
    ]),
    st.sampled_from([
        "", 'engine="0"', 'engine="1",block_size="16",num_gpu_blocks="7"', 'tp_rank="0"',
        'kv_cache_size_tokens="9999999999999999999999"', 'block_size="-3",num_gpu_blocks="x"',
    ]),
    st.sampled_from(["0", "1", "0.5", "-7", "1e300", "NaN", "+Inf", "x"]),
)  # fmt: skip
PAGES = st.lists(GAUGES, max_size=6).map("".join)


@dataclass
class Answers:
    """What is answered by path; anything else is a 404."""

    by_path: dict[str, Any] = field(default_factory=dict[str, Any])
    page: str = ""

    def ask(self, path: str) -> wire.Answer:
        plain_path = path.partition("?")[0]
        if plain_path == "/metrics" and self.page:
            return wire.Answer(200, self.page.encode())
        if plain_path not in self.by_path:
            return wire.Answer(404, b"")
        return wire.Answer(200, json.dumps(self.by_path[plain_path]).encode())


class Offered(Asker):
    """An asker whose answers are there without anybody being asked."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(Address("127.0.0.1", 1), wire.Asking(CancelToken()))
        self._offered = answers

    def _reaches(self, path: str, body: dict[str, Any] | None = None) -> bool:
        return True

    def _answer(self, path: str, body: dict[str, Any] | None = None) -> wire.Answer:
        return self._offered.ask(path)


@given(
    st.dictionaries(st.sampled_from(PATHS), VALUES, max_size=8), PAGES,
    st.sampled_from(["", *(kind.runtime for kind in identify.KINDS)]),
)  # fmt: skip
def test_that_no_answer_makes_a_look_fail(by_path, page, expected):
    for seen in identify.read(Offered(Answers(by_path, page)), expected):
        # What came of it can be written down, strictly: no NaN and no infinity.
        json.dumps(plain.to_dict(seen), allow_nan=False)
        difference(seen)


@given(VALUES, PAGES, st.sampled_from(identify.KINDS))
def test_that_no_reader_fails_on_answers_that_are_not_its_own(value, page, kind):
    by_path = dict.fromkeys(PATHS, value)
    for seen in kind.read(Offered(Answers(by_path, page))):
        json.dumps(plain.to_dict(seen), allow_nan=False)
