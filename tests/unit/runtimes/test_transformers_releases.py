"""What Transformers took in older releases: whole logits, caches made anew, kernels' buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.architecture.read import read
from engine.budget.model import RankBudget, Region
from engine.deployment.spec import Deployment
from engine.runtimes.registry import get
from engine.source.raw import RawModel
from tests.helpers.published import GIB, H100, machine, model

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.evidence import Estimate

MIB = 2**20
LLAMA = "Llama-3.1-8B"
HEAD = 128_256
MATRIX = 14_336 * 4096
"""Elements of the largest matrix of Llama 3.1 8B."""


def rank(found: Model | str = LLAMA, **settings: Any) -> RankBudget:
    chosen = {"runtime": "transformers", "max_model_len": 8192} | settings
    one = model(found) if isinstance(found, str) else found
    return get("transformers").plan(one, Deployment(**chosen), machine(H100)).ranks[0]


def made_of(**config: Any) -> Model:
    return read(RawModel(id="a model", source="hand", config=config))


def activations(**settings: Any) -> Estimate:
    return rank(**settings).regions[Region.ACTIVATIONS].estimate


def part(found: RankBudget, label: str) -> Estimate | None:
    parts = found.regions[Region.WEIGHTS].estimate.parts
    return next((each for each in parts if each.label == label), None)


def decode(**settings: Any) -> int:
    found = rank(**settings).moments.decode
    assert found is not None
    return found.likely_bytes


def test_that_an_older_release_never_takes_less_of_the_same_plan() -> None:
    def peak(version: str) -> int:
        regions = rank(runtime_version=version, prompt_len=1024).regions
        return sum(entry.estimate.likely_bytes for entry in regions.values())

    sizes = [peak(version) for version in get("transformers").versions]
    assert len(set(sizes)) >= 3
    assert sizes == sorted(sizes)


def test_that_logits_of_a_whole_prompt_are_made_until_4_45() -> None:
    # In 16 bits, and copied to 32: 6 bytes for each of 8,192 tokens and 128,256 words.
    assert activations(runtime_version="4.44.2").likely_bytes == 8192 * HEAD * 6
    assert activations(runtime_version="4.45.0").likely_bytes < GIB


@pytest.mark.parametrize(("version", "copies"), [("4.57.6", 1), ("5.0.0", 0)])
def test_that_older_classes_make_them_until_5_0(version: str, copies: int) -> None:
    # OPT's class never copied them to 32 bits.
    opt = made_of(model_type="opt", vocab_size=400_000)
    found = rank(opt, runtime_version=version, max_model_len=2048)
    likely = found.regions[Region.ACTIVATIONS].estimate.likely_bytes
    assert (likely == 2048 * 400_000 * 2) is bool(copies)


def test_that_every_step_makes_the_whole_cache_anew_until_4_42() -> None:
    # 1 GiB of cache; later only the keys of one of 32 layers are copied, half of a 32nd.
    assert decode(runtime_version="4.41.2", prompt_len=1) == GIB
    assert decode(runtime_version="4.42.0", prompt_len=1) == GIB // 64


def test_that_logits_of_the_prompt_lie_beside_the_first_step_until_4_42() -> None:
    # Copied to 32 bits. The cache that is held already is counted elsewhere.
    assert decode(runtime_version="4.41.2", prompt_len=8191) == GIB + 8191 * HEAD * 4


def test_that_a_plan_says_what_newer_releases_spare() -> None:
    def told(version: str) -> str:
        chosen = Deployment(runtime="transformers", max_model_len=8192, runtime_version=version)
        return " ".join(get("transformers").plan(model(LLAMA), chosen, machine(H100)).warnings)

    # 8,192 × 128,256 × 6 B.
    assert "logits of 8,192 tokens of the prompt are made at once: 5.87 GiB" in told("4.41.2")
    assert "whole cache anew" in told("4.41.2")
    assert "anew" not in told("4.42.0")
    assert told("4.45.0") == ""


def test_that_qwen_1_passes_tuples_in_every_release() -> None:
    qwen = made_of(
        model_type="qwen", num_hidden_layers=32, hidden_size=4096, num_attention_heads=32,
        kv_channels=128, intermediate_size=22016, vocab_size=151_936,
    )  # fmt: skip
    found = rank(qwen, prompt_len=1, max_model_len=2048).moments.decode
    assert found is not None
    assert found.likely_bytes == GIB


@pytest.mark.parametrize(
    ("config", "version", "size"),
    [
        # One for all layers, in every release: StarCoder's 8,192 positions.
        ({"model_type": "gpt_bigcode", "n_positions": 8192}, "5.24.0", 64 * MIB),
        # One in each of 24 layers until 4.49.
        ({"model_type": "gpt_neox", "max_position_embeddings": 2048}, "4.48.3", 24 * 4 * MIB),
        ({"model_type": "gpt_neox", "max_position_embeddings": 2048}, "4.49.0", 0),
        ({"model_type": "llama", "max_position_embeddings": 2048}, "4.36.0", 0),
    ],
)
def test_that_older_classes_keep_masks(config: dict[str, Any], version: str, size: int) -> None:
    sides = {"hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}
    layers = {"num_hidden_layers": 24, "n_layer": 24, "vocab_size": 50_000}
    found = rank(made_of(**sides, **layers, **config), runtime_version=version, max_model_len=64)
    masks = part(found, "masks")
    assert (masks.likely_bytes if masks is not None else 0) == size


def test_that_exllama_keeps_the_largest_matrix_unpacked() -> None:
    old = part(rank(weight_format="gptq-int4", runtime_version="4.48.0"), "exllama")
    either = part(rank(weight_format="gptq-int4", runtime_version="4.57.6"), "exllama")
    assert old is not None
    assert either is not None
    assert (old.low_bytes, old.likely_bytes) == (0, MATRIX * 2)
    # Columns out of order: 2,048 rows of 14,336 values are sorted.
    assert old.high_bytes == MATRIX * 2 + 2048 * 14_336 * 2
    assert (either.likely_bytes, either.high_bytes) == (0, old.high_bytes)
    assert part(rank(weight_format="gptq-int4", runtime_version="5.0.0"), "exllama") is None
    assert part(rank(weight_format="gptq-int8", runtime_version="4.48.0"), "exllama") is None


def test_that_bitsandbytes_unpacks_a_matrix_for_more_than_one_token() -> None:
    def of(tokens: int, weight_format: str) -> Estimate:
        return activations(prompt_len=tokens, max_model_len=64, weight_format=weight_format)

    # BF16 for one who asks for it; 32 bits beside it for one who doesn't.
    assert of(64, "nf4").likely_bytes - of(64, "bf16").likely_bytes == MATRIX * 2
    assert of(64, "nf4").high_bytes >= MATRIX * 6
    assert of(1, "nf4") == of(1, "bf16")


def test_that_autoawq_unpacks_a_matrix_for_1024_tokens() -> None:
    def more(tokens: int, version: str) -> int:
        plain, awq = (
            activations(
                prompt_len=tokens, max_model_len=2048, runtime_version=version, weight_format=name
            )
            for name in ("bf16", "awq-int4")
        )
        return awq.likely_bytes - plain.likely_bytes

    assert more(1024, "4.57.6") == MATRIX * 2
    assert more(1023, "4.57.6") == more(1024, "5.0.0") == 0


def test_that_weights_are_rounded_up_until_the_allocator_is_warmed_up() -> None:
    # 5,120 × 13,696 × 2 B = 133.75 MiB, in segments of 134: three in each of 40 layers.
    llama = made_of(
        model_type="llama", num_hidden_layers=40, hidden_size=5120, intermediate_size=13_696,
        num_attention_heads=40, vocab_size=1000,
    )  # fmt: skip
    rounded = part(rank(llama, runtime_version="4.49.0", max_model_len=64), "rounding")
    assert rounded is not None
    assert rounded.likely_bytes == 40 * 3 * MIB // 4
    assert part(rank(llama, runtime_version="4.50.0", max_model_len=64), "rounding") is None
