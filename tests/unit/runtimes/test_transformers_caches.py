"""Transformers: caches that are packed or moved to RAM, and layers that a card has no room for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.budget.model import Region
from engine.deployment.spec import Deployment
from engine.runtimes.registry import get
from tests.helpers.published import GIB, H100, gpu, machine, model

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget
    from engine.devices.device import Machine

LLAMA = "Llama-3.1-8B"
TOKEN = 32 * 2 * 8 * 128 * 2
"""Bytes of a token in all layers, in 16 bits."""


def plan(where: Machine | None = None, name: str = LLAMA, **settings: Any) -> Budget:
    chosen = {"runtime": "transformers", "max_model_len": 8192} | settings
    return get("transformers").plan(model(name), Deployment(**chosen), where or machine(H100))


def likely(rank: RankBudget, region: Region) -> int:
    return rank.regions[region].estimate.likely_bytes


def packed(**settings: Any) -> int:
    found = plan(cache_implementation="quantized", **settings)
    return likely(found.ranks[0], Region.KV_CACHE)


@pytest.mark.parametrize(
    ("bits", "of_64_values"),
    # Packed values, with a scale and a zero point of 16 bits; HQQ packs 3 bits by tens into 32.
    [(2, 16 + 4), (4, 32 + 4), (3, 28 + 4), (8, 64 + 4)],
)
def test_that_a_quantised_cache_packs_64_values_to_a_scale(bits: int, of_64_values: int) -> None:
    assert packed(kv_bits=bits) == 8192 * TOKEN * of_64_values // (64 * 2)


def test_that_the_newest_tokens_are_packed_128_at_a_time() -> None:
    # 192 tokens were answered: 128 of them are packed, and 64 still plain.
    assert packed(prompt_len=8000) == (8192 - 64) * TOKEN * 36 // 128 + 64 * TOKEN


def test_that_an_fp8_cache_keeps_a_byte_a_value_and_two_scales_a_layer() -> None:
    assert packed(kv_cache_dtype="fp8") == 8192 * TOKEN // 2 + 32 * 8


def test_that_a_packed_layer_is_unpacked_and_copied_for_every_token() -> None:
    found = plan(cache_implementation="quantized").ranks[0].moments.decode
    assert found is not None
    assert found.likely_bytes == 2 * 8192 * TOKEN // 32


def test_that_an_offloaded_cache_keeps_the_layer_that_computes_and_the_next() -> None:
    device, host = plan(cache_implementation="offloaded").ranks
    assert likely(device, Region.KV_CACHE) == 8192 * TOKEN * 2 // 32
    assert likely(host, Region.KV_CACHE) == 8192 * TOKEN
    assert likely(host, Region.WEIGHTS) == 0


def test_that_a_static_cache_grows_by_no_copy() -> None:
    found = plan(cache_implementation="static").ranks[0].moments.decode
    assert found is not None
    assert found.likely_bytes == 0


def test_that_a_static_cache_has_its_step_compiled_with_the_first_requests() -> None:
    def coming(**settings: Any) -> tuple[str, ...]:
        return tuple(part.label for part in plan(**settings).ranks[0].moments.sustained)

    # Since 4.47, where the cache lies on the device.
    assert coming(cache_implementation="static") == ("CUDA graphs of the compiled step",)
    assert coming() == ()
    assert coming(cache_implementation="offloaded_static") == ()
    assert coming(cache_implementation="static", runtime_version="4.46.3") == ()


@pytest.mark.parametrize("attention", ["sdpa", "flash_attention_2"])
def test_that_windows_make_a_mask_for_sdpa_alone(attention: str) -> None:
    # 8,192 × 8,192 bytes of mask, and 64 query heads of 64 in place of 8, keys and values.
    whole = plan(name="gpt-oss-20b", attn_implementation=attention).ranks[0]
    flash = plan(name="gpt-oss-20b", attn_implementation="flash_attention_2").ranks[0]
    more = likely(whole, Region.ACTIVATIONS) - likely(flash, Region.ACTIVATIONS)
    assert more >= 0
    assert (attention == "sdpa") or more == 0


@pytest.mark.parametrize(
    ("chunk", "stored"),
    # As a small Gemma 3 holds them: 40 tokens read at once lie whole behind a window of 8, of
    # four times 10 the last 10 and the 7 that the window kept.
    [(None, 8192), (1000, 127 + 1000)],
)
def test_that_windows_hold_the_prompt_until_the_next_token(chunk: int | None, stored: int) -> None:
    def peak(cache: str | None) -> int:
        settings = {"cache_implementation": cache, "prefill_chunk_size": chunk}
        flash = {"attn_implementation": "flash_attention_2"}
        return likely(plan(name="gpt-oss-20b", **settings, **flash).ranks[0], Region.ACTIVATIONS)

    # Twelve layers with windows of 128, of 8 heads of 64, keys and values; 127 are counted as
    # cache. A static cache has room for the window alone.
    assert peak(None) - peak("static") == 12 * (stored - 127) * 2 * 8 * 64 * 2


TABLE = 128_256 * 4096 * 2
LAYER = (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14_336 * 4096 + 2 * 4096) * 2


def test_that_device_map_auto_leaves_in_ram_what_a_card_has_no_room_for() -> None:
    # accelerate: nine tenths of what is free, and room for the largest part to come, the head.
    # 0.9 × (10 GiB − 330 MiB of the process) − 2 tables = 7.25 GB: 16 layers of 0.44 GB.
    device, host = plan(machine(gpu(10.0)), device_map="auto").ranks
    away = 16 * LAYER + TABLE + 4096 * 2
    assert likely(host, Region.WEIGHTS) == away
    # What computes there for a moment, the largest part at most, is counted in half.
    assert likely(device, Region.WEIGHTS) == TABLE + 16 * LAYER + TABLE // 2
    assert likely(device, Region.KV_CACHE) == 8192 * TOKEN
    assert likely(host, Region.KV_CACHE) == 0


def test_that_a_card_with_room_takes_the_whole_model_under_device_map_auto() -> None:
    (device,) = plan(machine(gpu(24.0)), device_map="auto").ranks
    assert likely(device, Region.WEIGHTS) == 2 * TABLE + 32 * LAYER + 4096 * 2


def test_that_bitsandbytes_refuses_layers_in_ram() -> None:
    found = plan(machine(gpu(4.0)), device_map="auto", weight_format="nf4")
    assert "bitsandbytes refuses" in found.refusals[0]


def test_that_adapters_are_kept_in_32_bits_and_made_in_16() -> None:
    # Rank 16 on the seven linear layers of 32: r × (in + out) parameters each.
    sides = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14_336)
    parameters = 16 * 32 * sides
    plain = plan().ranks[0]
    adapted = plan(max_loras=1, max_lora_rank=16).ranks[0]
    assert likely(adapted, Region.WEIGHTS) - likely(plain, Region.WEIGHTS) == 4 * parameters
    made = next(part for part in adapted.moments.load if part.label == "adapters in 16 bits")
    assert (made.low_bytes, made.high_bytes) == (0, 2 * parameters)


def test_that_a_moment_of_unpacking_is_named() -> None:
    # Without CUDA's kernels MXFP4 experts are unpacked: 32 × 3 matrices of 2,880², 2 B each.
    computer = machine(H100)
    (rank,) = plan(replace(computer, slots=(computer.host,)), "gpt-oss-20b").ranks
    unpacking = next(part for part in rank.moments.load if "unpacked" in part.label)
    assert unpacking.likely_bytes == pytest.approx(32 * 3 * 2880 * 2880 * 2, rel=0.01)
    assert unpacking.likely_bytes > GIB
