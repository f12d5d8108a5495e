"""``plimsoll size``: status, answer, and what people read."""

from __future__ import annotations

import io
import json
import math
import struct
from typing import TYPE_CHECKING

import jsonschema
import pytest

from engine.budget.model import Region
from engine.cli import main
from engine.cli.look import Look, cells

if TYPE_CHECKING:
    from pathlib import Path
from tests.helpers import fake_hub
from tests.unit.cli.conftest import LLAMA_8B, LLAMA_70B, published

CARD = ("--gpu", "RTX 4090")


def test_that_the_answer_follows_the_published_schema_and_the_known_figures(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, *CARD, "--context", "8k", "--json")
    assert ran.status == 0
    answer = ran.answer
    jsonschema.validate(answer, published("budget"))
    assert answer["model"]["parameters"] == 8_030_261_248
    assert answer["model"]["weights_bytes"] == 16_060_522_496
    assert answer["sequence_state"]["bytes_per_token"] == 131_072
    assert answer["sequence_state"]["architecture_bytes_per_sequence"] == 2**30
    rank = answer["ranks"][0]
    assert list(rank["regions"]) == [region.value for region in Region]
    assert rank["planned_bytes"] == sum(r["likely"] for r in rank["regions"].values())
    assert rank["free_bytes"] == rank["allocatable_bytes"] - rank["planned_bytes"]


@pytest.mark.parametrize(
    ("context", "concurrency", "status", "verdict"),
    [
        (1024, 1, 0, {"fits", "tight"}),
        # Sixteen requests of 8,192 tokens and BF16 weights take 33.2 GB: no 24 GB card holds that.
        (8192, 16, 1, {"does_not_fit"}),
    ],
)
def test_that_the_exit_status_is_the_verdict(
    plimsoll, llama_8b, context, concurrency, status, verdict
):
    plan = ("--context", context, "--concurrency", concurrency)
    ran = plimsoll("size", llama_8b, *CARD, *plan, "--json")
    assert ran.status == status
    assert ran.answer["verdict"] in verdict


def test_that_a_model_known_only_in_part_is_answered_as_a_bound_with_status_3(plimsoll, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B | {"model_type": "never_seen_before"}))
    ran = plimsoll("size", path, "--gpu", "RTX 4090", "--context", "128k", "--json")
    jsonschema.validate(ran.answer, published("budget"))
    assert ran.status == 3
    assert ran.answer["verdict"] == "unknown"
    assert any("never_seen_before" in text for text in ran.answer["warnings"])


def test_that_aliases_mean_the_same_as_the_runtimes_own_names(plimsoll, llama_70b):
    long = plimsoll(
        "size", llama_70b, "--gpu", "H100 SXM 80GB", "--max-model-len", 4096,
        "--tensor-parallel-size", 4, "--pipeline-parallel-size", 2, "--json",
    )  # fmt: skip
    short = plimsoll(
        "size", llama_70b, "--gpu", "H100 SXM 80GB", "-c", "4k", "--tp", 4, "--pp", 2, "--json"
    )
    assert len(long.answer["ranks"]) == 8
    assert short.answer == long.answer


def test_that_what_was_not_given_is_listed_as_assumed(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, "--json")
    text = " ".join(ran.answer["assumptions"])
    assert "runtime" in text
    assert "this machine" in text.lower() or "this computer" in text.lower()
    assert "concurrency 1" in text
    named = plimsoll("size", llama_8b, *CARD, "--runtime", "vllm", "--json").answer["assumptions"]
    assert not any(text.startswith(("runtime", "Device")) for text in named)


def test_that_an_unnamed_gpu_gets_no_capacity_and_no_verdict(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, "--gpu-count", 8, "--tp", 8, "--runtime", "vllm", "--json")
    jsonschema.validate(ran.answer, published("budget"))
    assert ran.status == 3
    assert ran.answer["verdict"] == "unknown"
    assert {rank["total_bytes"] for rank in ran.answer["ranks"]} == {None}


def test_that_people_read_the_verdict_the_regions_and_the_limits(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, *CARD, "--context", "8k", "--concurrency", 16)
    assert ran.status == 1
    assert "Doesn't fit" in ran.output or "Doesn’t fit" in ran.output
    for region in Region:
        assert region.label in ran.output
    assert "16.00" in ran.output  # GiB of KV cache that sixteen such requests need
    assert "131,072 B a token" in ran.output
    assert "Limits" in ran.output
    assert "\x1b" not in ran.output  # no colour where it is no terminal


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_that_no_line_is_wider_than_the_terminal(llama_70b, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    stream = _Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    main(["size", str(llama_70b), "--gpu", "H100 SXM 80GB", "--tp", "8", "--context", "32k"])
    text = stream.getvalue()
    assert "\x1b[" in text
    plain = _without_colour(text)
    assert max(cells(line) for line in plain.splitlines()) <= width


def test_that_colour_stays_away_where_it_is_not_wanted(llama_8b, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = _Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    main(["size", str(llama_8b), *CARD])
    assert "\x1b" not in stream.getvalue()


def test_that_a_terminal_without_unicode_gets_ascii():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    look = Look.of(stream)
    look.write(["✓ Fits, 1 – 2 × 3 · 日本"], stream)
    assert stream.buffer.getvalue() == rb"+ Fits, 1 - 2 x 3 - \u65e5\u672c" + b"\n"


def _without_colour(text: str) -> str:
    parts = text.split("\x1b[")
    return parts[0] + "".join(part.split("m", 1)[1] for part in parts[1:])


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


TINY = LLAMA_8B | {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 256,
}  # fmt: skip


def _tiny_folder(folder: Path) -> int:
    """A model folder with real headers; returns the bytes of its tensors."""
    shapes = {
        "model.embed_tokens.weight": [256, 64], "lm_head.weight": [256, 64],
        "model.norm.weight": [64],
    }  # fmt: skip
    for layer in range(2):
        part = f"model.layers.{layer}."
        shapes |= {
            part + "self_attn.q_proj.weight": [64, 64],
            part + "self_attn.k_proj.weight": [32, 64],
            part + "self_attn.v_proj.weight": [32, 64],
            part + "self_attn.o_proj.weight": [64, 64],
            part + "mlp.gate_proj.weight": [128, 64],
            part + "mlp.up_proj.weight": [128, 64],
            part + "mlp.down_proj.weight": [64, 128],
            part + "input_layernorm.weight": [64],
            part + "post_attention_layernorm.weight": [64],
        }
    entries, offset = {}, 0
    for name, shape in shapes.items():
        span = [offset, offset + 2 * math.prod(shape)]
        entries[name] = {"dtype": "BF16", "shape": shape, "data_offsets": span}
        offset = span[1]
    text = json.dumps(entries).encode()
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TINY))
    file = struct.pack("<Q", len(text)) + text + bytes(offset)
    (folder / "model.safetensors").write_bytes(file)
    return offset


def test_that_a_model_folder_is_summed_from_its_headers(plimsoll, tmp_path):
    size_bytes = _tiny_folder(tmp_path / "tiny")
    answer = plimsoll("size", tmp_path / "tiny", *CARD, "-c", 1024, "--json").answer
    jsonschema.validate(answer, published("budget"))
    assert answer["model"]["weights_bytes"] == size_bytes
    assert answer["model"]["parameters"] == size_bytes // 2
    assert answer["model"]["basis"] == "read"


def test_that_a_truncated_file_costs_one_sentence_that_names_it(plimsoll, tmp_path):
    _tiny_folder(tmp_path / "tiny")
    path = tmp_path / "tiny" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    ran = plimsoll("size", path, *CARD)
    assert (ran.status, ran.output) == (2, "")
    assert "model.safetensors" in ran.complaint
    assert ran.complaint.count("\n") == 1


def test_that_an_error_is_an_answer_too_where_json_is_asked_for(plimsoll):
    ran = plimsoll("size", "no-such-model", "--offline", "--json")
    jsonschema.validate(ran.answer, published("budget"))
    assert ran.status == 2
    assert ran.answer["error"]["code"] == "not_found"
    assert "no-such-model" in ran.complaint


def test_that_a_file_gets_whole_sentences_and_a_terminal_lines_of_its_width(
    plimsoll, llama_8b, monkeypatch
):
    whole = plimsoll("size", llama_8b, *CARD).output
    assert "…" not in whole
    assert "51 capture sizes" in whole
    raw = io.BytesIO()
    screen = io.TextIOWrapper(raw, encoding="utf-8")
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", screen)
    assert main(["size", str(llama_8b), *CARD]) == 1
    lines = raw.getvalue().decode().splitlines()
    assert max(map(cells, lines)) <= 100
    assert any(line.endswith("…") for line in lines)


@pytest.mark.parametrize("runtime", ["vllm", "transformers", "llama.cpp"])
def test_that_a_state_that_is_not_known_is_no_exact_nothing(plimsoll, tmp_path, runtime):
    shapes = {"backbone.embeddings.weight": [64, 32], "backbone.layers.0.mixer.D": [32]}
    table, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + 2 * math.prod(shape)
        table[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    header = json.dumps(table).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(end))
    plan = ("--context", "1k", "--runtime", runtime)
    ran = plimsoll("size", path, *CARD, *plan, "--json")
    assert (ran.status, ran.answer["verdict"]) == (3, "unknown")
    regions = ran.answer["ranks"][0]["regions"]
    assert {regions[name]["basis"] for name in ("kv_cache", "recurrent_state")} == {"bound"}
    assert ran.answer["limits"]["max_context"] is None


def test_that_an_attention_free_model_of_unknown_type_is_a_bound_with_status_3(plimsoll, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({
        "model_type": "rwkv", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50277,
    }))  # fmt: skip
    ran = plimsoll("size", path, *CARD, "--context", "1k", "--json")
    assert (ran.status, ran.answer["verdict"]) == (3, "unknown")


def test_that_the_answer_names_the_type_of_the_whole_config(plimsoll):
    ran = plimsoll("size", "google/gemma-3-27b-it", "--offline", *CARD, "--json")
    assert ran.answer["model"]["model_type"] == "gemma3"


def test_that_one_of_two_cards_is_named_where_only_one_is_used(plimsoll, llama_8b):
    plan = ("--runtime", "vllm", "--gpu", "H100 SXM 80GB", "--gpu-count", 2, "--context", "8k")
    ran = plimsoll("size", llama_8b, *plan)
    assert "vLLM 0.33.0 on 1 of 2 × H100 SXM 80GB" in ran.output
    assert "1 of 2 devices is used; --tp 2 spreads the model." in ran.output
    both = plimsoll("size", llama_8b, *plan, "--tp", 2).output
    assert "on 2 × H100 SXM 80GB" in both
    assert "is used" not in both


def test_that_the_ram_of_a_machine_elsewhere_is_listed_as_assumed(plimsoll, llama_8b):
    plan = ("--runtime", "llama.cpp", "--context", 4096, "--json")
    ran = plimsoll("size", llama_8b, *CARD, *plan)
    assert any("Host RAM 64.00 GiB" in text for text in ran.answer["assumptions"])
    # A Mac has no other memory, and vLLM plans none.
    mac = plimsoll("size", llama_8b, "--gpu", "Apple M4 Max 128 GB", *plan)
    vllm = plimsoll("size", llama_8b, *CARD, "--runtime", "vllm", "--json")
    for other in (mac, vllm):
        assert not any("Host RAM" in text for text in other.answer["assumptions"])


def test_that_a_context_of_fit_says_what_its_gibibyte_counts(plimsoll, llama_8b):
    ran = plimsoll("size", llama_8b, *CARD, "--runtime", "llama.cpp", "--json")
    (text,) = (t for t in ran.answer["assumptions"] if t.startswith("Context "))
    assert "1 GiB stays free" in text
    assert "buffers at their likely size against free device memory" in text


def test_that_a_plan_that_does_not_fit_names_what_would(plimsoll, llama_8b):
    # Weights of 14.96 and a cache of 16 GiB on 23.6: at one request it is 1 GiB of cache.
    ran = plimsoll("size", llama_8b, *CARD, "--context", "8k", "--concurrency", 16)
    head, _, tail = ran.output.partition("What would fit\n")
    ways = tail.split("\n\n", 1)[0].splitlines()
    assert "Doesn’t fit" in head
    assert any(way.split()[0] == "Context" for way in ways)
    assert all("to spare" in way for way in ways)
    assert "What would fit" not in plimsoll("size", llama_8b, *CARD, "--context", "8k").output


def test_that_a_pool_says_what_it_has_to_spare(plimsoll, llama_8b):
    plan = ("--gpu", "H100 SXM 80GB", "--context", "8k")
    text = plimsoll("size", llama_8b, *plan).output
    state = plimsoll("size", llama_8b, *plan, "--json").answer["sequence_state"]
    # 512 blocks of 16 tokens for the request, and the null block: 2 MiB each.
    spare = state["pool_bytes"] - 513 * 2**21
    assert f"Spare in the pool{spare / 2**30:9.2f}" in text
    assert "  Left" not in text


def test_that_the_sum_of_the_least_stands_in_the_row_of_the_plan(plimsoll, llama_8b, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    plan = ("--gpu", "H100 SXM 80GB", "--context", "8k")
    rows = plimsoll("size", llama_8b, *plan).output.splitlines()
    (row,) = (line for line in rows if line.startswith("  Planned"))
    (head,) = (line for line in rows if " least " in line)
    # 16,060,522,496 B of weights, 1 GiB of cache, a bare context of 36 + 2.8 × 132 SM MiB.
    assert (
        row[: head.index(" least ") + 6].split()[-1]
        == f"{16_060_522_496 / 2**30 + 1 + (36 + 2.8 * 132) / 1024:.2f}"
    )


@pytest.mark.parametrize(
    ("option", "part"),
    [
        (("--runtime", "onnx"), "runtime is one of vllm"),
        (("--gpu", "RTX 4900"), "is not in the device catalogue"),
    ],
)
def test_that_options_are_checked_before_the_hub_is_asked(plimsoll, option, part):
    with fake_hub.serving() as hub:
        ran = plimsoll("size", "org/model", *option, "--endpoint", hub.url)
        asked = list(hub.requests)
    assert ran.status == 2
    assert part in ran.complaint
    assert asked == []


def test_that_an_unknown_runtime_is_told_which_there_are(plimsoll, llama_8b):
    wrong = plimsoll("size", llama_8b, "--runtime", "onnx").complaint
    assert (
        "runtime is one of vllm, sglang, llama.cpp, ollama, transformers, mlx, lmstudio, jan, "
        in wrong
    )
    assert "tgi, not 'onnx'" in wrong


@pytest.mark.parametrize("option", [("--context", "-1"), ("--context=-1",)])
def test_that_vllms_longest_context_may_be_asked_for(plimsoll, llama_8b, option):
    found = plimsoll("size", llama_8b, "--gpu", "RTX 4090", *option)
    assert found.status == 0
    assert "to spare" in found.output
    wrong = plimsoll("size", llama_8b, "--gpu", "RTX 4090", "--context", "-2")
    assert wrong.complaint.startswith("plimsoll: max_model_len must be between -1 and ")


def test_that_every_size_that_spreads_a_model_is_named(plimsoll, llama_8b):
    # 16 GB in 16 bits: two cards of 12 share the layers, or the four of 8 share each of them.
    for gpu in ("RTX 3060 12GB", "RTX 3060 8GB"):
        found = plimsoll("size", llama_8b, "--gpu", gpu, "--context", "1k", "--inverse")
        line = next(line for line in found.output.splitlines() if "Fewest devices" in line)
        words = line.split()
        spread = int(words[words.index("tensor_parallel_size") + 1]) * int(
            words[words.index("pipeline_parallel_size") + 1]
        )
        assert spread == int(words[2])


def test_that_ram_of_another_machine_is_taken_with_its_unit(plimsoll, tmp_path):
    big = tmp_path / "config.json"
    big.write_text(json.dumps(LLAMA_70B))
    words = ("--gpu", "RTX 4090", "--runtime", "llama.cpp", "--n-gpu-layers", "40", "-c", "8k")
    ran = plimsoll("size", str(big), *words, "--no-mmap", "--ram", "12GiB", "--json")
    host = ran.answer["ranks"][-1]
    assert host["allocatable_bytes"] == 12 * 2**30
    assert ran.status == 1
    here = plimsoll("size", str(big), "--ram", "12GiB")
    assert here.status == 2
    assert "RAM is measured" in here.complaint


def test_that_the_table_adds_up_where_the_pool_is_too_small_for_the_plan(plimsoll, llama_8b):
    # 4 x 65,536 tokens of 131,072 bytes are 32 GiB, of which a card of 24 GB has 5.5.
    ran = plimsoll("size", llama_8b, *CARD, "-c", "64k", "--concurrency", "4")
    table = ran.output.partition("Rank 0")[2].partition("Peaks")[0].splitlines()[2:]
    rows = {line[2:19].strip(): line[19:].split() for line in table}
    assert rows["KV cache"][0] == "32.00"
    parts = [float(rows[region.label][0]) for region in Region]
    planned, line = float(rows["Planned"][0]), float(rows["Load line"][0])
    assert planned == pytest.approx(sum(parts), abs=0.05)
    assert float(rows["Over"][0]) == pytest.approx(planned - line, abs=0.02)
    assert planned >= float(rows["Planned"][1])


def test_that_what_fits_nowhere_is_said_once_a_question(plimsoll, tmp_path):
    big = tmp_path / "config.json"
    big.write_text(json.dumps(LLAMA_70B))
    ran = plimsoll("size", str(big), *CARD, "-c", "8k", "--inverse")
    assert "largest context none · most requests none · best weight format none" in ran.output
    far = ran.output.partition("How far")[2]
    first = next(line for line in far.splitlines() if "Largest context" in line)
    assert "none" in first
    assert "even the least: Doesn’t fit" in first
    assert "beyond" not in first
