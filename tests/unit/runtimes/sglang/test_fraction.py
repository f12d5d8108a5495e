"""The static share where it is not given, by hand from the rules of each release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.errors import DeploymentError
from engine.runtimes.sglang.fraction import (
    Load,
    Tower,
    decode_sizes,
    default_step,
    fraction,
    of_multimodal,
    prefill_buckets,
    reserved_mib,
)
from engine.runtimes.sglang.rules import parse_version

NEW = (0, 5, 23)
PLAIN = Load(
    version=NEW,
    device_mib=24564,
    tensor_parallel_size=1,
    pipeline_parallel_size=1,
    data_parallel_attention=1,
    chunked_prefill_size=4096,
    decode_max_bs=48,
    prefill_buckets=0,
    is_latent=False,
    drafts=False,
)


@pytest.mark.parametrize(
    ("device_mib", "chunk", "batch", "reserved", "share"),
    [
        # 512 + 1.5 × 4,096 + 128 + 2 × 48 = 6,880 MiB of 24,564.
        (24564, 4096, 48, 6880, 0.72),
        (40960, 4096, 32, 6848, 0.833),
        (81559, 8192, 256, 13440, 0.835),
    ],
)
def test_that_the_reserve_is_that_of_the_specification(
    device_mib: int, chunk: int, batch: int, reserved: int, share: float
) -> None:
    load = replace(PLAIN, device_mib=device_mib, chunked_prefill_size=chunk, decode_max_bs=batch)
    assert reserved_mib(load) == reserved
    assert fraction(load) == share


def test_that_large_devices_keep_ten_gib_at_the_least() -> None:
    # 512 + 3,072 + 128 + 512 MiB are less than 10 GiB.
    load = replace(PLAIN, device_mib=81920, chunked_prefill_size=2048, decode_max_bs=256)
    assert reserved_mib(load) == 10240
    assert reserved_mib(replace(load, device_mib=40960)) == 512 + 3072 + 128 + 512


def test_that_prefill_graphs_take_eight_mib_a_size_and_latents_one_and_a_half_gib() -> None:
    load = replace(PLAIN, prefill_buckets=50)
    assert reserved_mib(load) == 6880 + 400
    assert reserved_mib(replace(load, is_latent=True)) == 6880 + 1536


def test_that_attention_split_by_data_takes_more_for_every_rank() -> None:
    load = replace(PLAIN, tensor_parallel_size=8, data_parallel_attention=8, decode_max_bs=160)
    # 512 + 6,144 + 1,024 + 320 + 3 × 160 × 8; from 301 on 4.5 in place of 3.
    assert reserved_mib(load) == 512 + 6144 + 1024 + 320 + 3840
    assert reserved_mib(replace(load, decode_max_bs=512)) == 512 + 6144 + 1024 + 1024 + 18432


def test_that_a_draft_was_reserved_for_until_it_counted_as_weights() -> None:
    load = replace(PLAIN, drafts=True)
    assert reserved_mib(load) == 6880
    assert reserved_mib(replace(load, version=(0, 5, 12))) == 6880 + 4096
    assert reserved_mib(replace(load, version=(0, 5, 9))) == 6880 + 2048


def test_that_early_releases_go_by_the_number_of_ranks() -> None:
    shares = [
        fraction(replace(PLAIN, version=(0, 4, 4), tensor_parallel_size=n))
        for n in (1, 2, 4, 8, 16)
    ]
    assert shares == [0.88, 0.87, 0.85, 0.81, 0.79]


def test_that_releases_between_keep_a_sum_by_size() -> None:
    large = replace(PLAIN, device_mib=143771)
    assert fraction(replace(large, version=(0, 4, 6))) == (143771 - 13 * 1024) / 143771
    # min(0.88 + 48 GiB × 0.12 / 143,771, (143,771 − 18 GiB) / 143,771)
    assert fraction(replace(large, version=(0, 4, 7))) == pytest.approx(0.8718, abs=1e-4)
    # (12 + 1 / 2) GiB of 143,771 MiB; (9.5 + 8 / 2) GiB of 81,559: a log of Grok on eight H100.
    assert fraction(replace(large, version=(0, 4, 9))) == 0.911
    eight = replace(PLAIN, version=(0, 5, 1), device_mib=81559, tensor_parallel_size=8)
    assert fraction(eight) == 0.831
    # (2.8 + 1 / 10) GiB of 24,564 MiB: a log of Llama-3.1-8B of July 2025.
    assert fraction(replace(PLAIN, version=(0, 4, 9))) == 0.879


def test_that_intel_keeps_two_gib_more_since_0_5_20() -> None:
    intel = replace(PLAIN, is_cuda=False, is_intel=True)
    for version, more in (((0, 5, 19), 0), ((0, 5, 20), 2048)):
        own, other = (replace(one, version=version) for one in (intel, PLAIN))
        assert reserved_mib(own) - reserved_mib(other) == more


def test_that_defaults_follow_the_size_of_the_device() -> None:
    assert tuple_of(NEW, 16376, 1) == (2048, 8)
    assert tuple_of(NEW, 24564, 1) == (4096, 48)
    assert tuple_of(NEW, 24564, 4) == (4096, 160)
    assert tuple_of((0, 5, 19), 24564, 1) == (2048, 24)
    assert tuple_of((0, 5, 3), 24564, 1) == (2048, 16)
    assert tuple_of(NEW, 46068, 2) == (4096, 32)
    assert tuple_of(NEW, 81559, 4) == (8192, 512)
    assert tuple_of(NEW, 143771, 2) == (8192, 256)
    assert tuple_of(NEW, 183359, 1) == (16384, 512)


def tuple_of(version: tuple[int, ...], device_mib: int, tp: int) -> tuple[int, int]:
    found = default_step(version, device_mib, tp, None)
    return found.chunked_prefill_size, found.decode_max_bs


def test_that_graphs_stop_at_the_requests_since_0_5_22() -> None:
    assert default_step(NEW, 81559, 1, 32).decode_max_bs == 32
    assert default_step((0, 5, 21), 81559, 1, 32).decode_max_bs == 256


def test_that_sizes_are_counted_as_they_are_captured() -> None:
    # 8 + 14 + 8 + 8 + 12 to 4,096; 8 more to 8,192; 16 more to 16,384.
    assert [prefill_buckets(n) for n in (4096, 8192, 16384)] == [50, 58, 74]
    # "Capturing batches 52/52" of a start on B300.
    assert decode_sizes(512) == 52
    assert [decode_sizes(n) for n in (0, 8, 256, 100)] == [0, 4, 36, 17]


def test_that_a_tower_takes_its_share_by_layers_and_width() -> None:
    assert of_multimodal(NEW, Tower()) == 0.95
    # Kimi-K2.5: 27 layers of 1,152 weigh 1.4238 of a ViT-L.
    assert of_multimodal(NEW, Tower(27, 1152)) == pytest.approx(0.95 * 0.95762, abs=1e-5)
    assert of_multimodal(NEW, Tower(80, 3200)) == 0.95 * 0.8
    assert of_multimodal(NEW, Tower(6, 384)) == 0.95 * 1.05
    assert of_multimodal(NEW, None) == 1.0
    assert of_multimodal((0, 4, 9), None) == 0.9


def test_that_versions_are_read_or_refused_in_one_sentence() -> None:
    assert parse_version("0.5.6.post2") == (0, 5, 6)
    assert parse_version("v0.4.10") == (0, 4, 10)
    assert parse_version(None) == NEW
    for text in ("0.3.6", "main"):
        with pytest.raises(DeploymentError, match=r"SGLang") as refused:
            parse_version(text)
        assert refused.value.field == "runtime_version"
