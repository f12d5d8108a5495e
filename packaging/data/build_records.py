"""Write ``tests/truth/records/*.jsonl``: the facts of measured records, in our own schema.

    python packaging/data/build_records.py ../shared/truth

The folder holds three corpora: ``runtime-logs`` (what servers printed), ``second-corpus`` (other
runtimes and real devices) and ``llama.cpp`` (its own allocations). A line of ours keeps where a
record comes from, the request in the keys of the machine contract, the figures in bytes with
half a unit of their last printed digit, and what is left out with the reason. No text of the
source travels.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import record_logs as logs  # noqa: E402
from record_fields import REQUEST_OF, figures_of, whole_reason  # noqa: E402 - path is set above
from record_general import card_for, free_before, model_name, unread, whole_need  # noqa: E402
from record_llama_cpp import runs, shapes  # noqa: E402
from record_readings import KNOWN, LEFT_OUT, READINGS  # noqa: E402
from record_readings_files import CALIBRATED, calibrated, strix  # noqa: E402
from record_readings_forks import FORKS, FORKS_LEFT_OUT  # noqa: E402
from record_readings_more import adapter, after_loading  # noqa: E402

GIB = 2**30
FILES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llama.cpp": "llama_cpp_devices",
    "ollama": "ollama",
    "transformers": "transformers",
    "mlx-lm": "mlx",
    "mlx-vlm": "mlx",
    "ik_llama.cpp": "ik_llama_cpp",
}
"""Engine of a record -> file of ours. Every other goes to ``others``, counted and not scored."""
_READ = READINGS | FORKS
_UNREAD = LEFT_OUT | FORKS_LEFT_OUT
LLM_D = "https://github.com/llm-d/llm-d-planner (pull request 205)"
OUT = ROOT / "tests" / "truth" / "records"


def main() -> None:
    """Write every file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    truth: Path = parser.parse_args().folder
    files: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for corpus in ("runtime-logs", "second-corpus"):
        for raw in lines(truth / corpus / "records.jsonl"):
            files[FILES.get(raw["engine"], "others")].append(converted(raw))
    files["vllm_h100"] = [h100(row) for row in table(truth / "runtime-logs/vllm-0.19-h100.csv")]
    versions = table(truth / "runtime-logs/vllm-older-versions.csv")
    files["vllm_h100"] += [swept(row) for row in versions]
    files["llama_cpp_runs"] = runs(truth / "llama.cpp")
    files["llama_cpp_shapes"] = shapes(truth / "llama.cpp")
    OUT.mkdir(exist_ok=True)
    for name, found in sorted(files.items()):
        text = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in found)
        (OUT / f"{name}.jsonl").write_text(text, encoding="utf-8")
        print(f"{name}: {len(found)} records, {len(text)} bytes")


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def converted(raw: dict[str, Any]) -> dict[str, Any]:
    """One record of the two corpora of text."""
    if raw["id"] in CALIBRATED:
        return overhead(raw)
    is_strix = "model_size_bytes" in raw["reported"] and "backend" in raw
    reading = strix(raw) if is_strix else _READ.get(raw["id"], {})
    asked = REQUEST_OF[raw["engine"]](raw) if raw["engine"] in REQUEST_OF else {}
    read = reading.get("request", {}) if reading else logs.settings(raw)
    request = asked | read
    request = {k: v for k, v in request.items() if v is not None}
    model = reading.get("model") or model_name(raw)
    facts = free_before(raw) | whole_need(raw) | reading.get("facts", {}) | adapter(raw)
    if "free_before_bytes" in facts and "gpu" not in request:
        request["gpu"] = card_for(facts["free_before_bytes"])
    found = reading.get("left_out", {}) if reading else _unread(raw, request)
    left_out = unscored(raw, request) | found
    reason = _UNREAD.get(raw["id"]) or whole_reason(raw, model) or after_loading(raw)
    if reason:
        left_out["*"] = reason
    if model and request and "config" not in request:
        request = {"model": model} | request
    return {
        "id": raw["id"],
        "source": raw["source_url"],
        "runtime": request.get("runtime", raw["engine"]),
        "version": raw.get("engine_version") or "",
        "model": raw.get("model") or raw.get("model_inferred") or "",
        "request": request,
        "printed": figures_of(raw) | reading.get("printed", {}) if raw["engine"] in FILES else {},
        **({"facts": facts} if facts else {}),
        "left_out": left_out,
    }


def _unread(raw: dict[str, Any], request: dict[str, Any]) -> dict[str, str]:
    return unread(raw, request) | logs.unread(raw, request)


def overhead(raw: dict[str, Any]) -> dict[str, Any]:
    """A reading of a device or a process without a plan."""
    return {
        "id": raw["id"],
        "source": raw["source_url"],
        "runtime": "devices",
        "version": raw.get("engine_version") or "",
        "model": "",
        "request": {},
        "printed": calibrated(raw),
        "facts": CALIBRATED[raw["id"]],
        "left_out": {},
    }


def unscored(raw: dict[str, Any], request: dict[str, Any]) -> dict[str, str]:
    """Figures that cannot be compared, for reasons that hold for every record."""
    found: dict[str, str] = {}
    if raw["engine"] == "vllm" and "gpu_memory_utilization" not in request:
        reason = "the share of the device is not stated"
        found |= dict.fromkeys(("kv_pool", "concurrency from scratch"), reason)
        if "nvidia_smi_used_mib" in raw["reported"]:
            found["card"] = reason
    elif raw["engine"] == "vllm" and not request.keys() & {"gpu", "gpu_total_bytes"}:
        reason = "the card is not named"
        found |= dict.fromkeys(("kv_pool", "concurrency from scratch"), reason)
    if raw["engine"] == "sglang" and not request.keys() & {"gpu", "gpu_total_bytes"}:
        found |= dict.fromkeys(("kv_pool", "tokens from scratch"), "the card is not named")
    for theirs, ours in (("graph_gib", "graphs"), ("graph_estimated_gib", "graphs_estimated")):
        if (raw["reported"].get(theirs) or 1) < 0:
            found[ours] = "a negative reading, which no graph has"
    return found


def gib(text: str, decimals: int = 2) -> list[float]:
    """A figure printed in GiB: bytes, and half a unit of its last digit."""
    return [round(float(text) * GIB), round(0.5 * 10**-decimals * GIB)]


def h100(row: dict[str, str]) -> dict[str, Any]:
    """One logged start of vLLM 0.19 on an H100."""
    tp, pp = int(row["tp"]), int(row["pp"])
    request: dict[str, Any] = {
        "model": row["model"],
        "runtime": "vllm",
        "runtime_version": "0.19.0",
        "gpu": "H100 SXM 80GB",
        "gpu_total_bytes": int(float(row["total_gib"]) * GIB),
        "gpu_count": tp * pp,
        "tensor_parallel_size": tp,
        "pipeline_parallel_size": pp,
        "max_model_len": int(row["max_model_len"]),
        "gpu_memory_utilization": float(row["util"]),
        "kv_cache_dtype": row["kv_dtype"],
        "max_num_batched_tokens": int(row["max_batched_tokens"]),
        "max_num_seqs": int(row["max_num_seqs"]),
    }
    if row["quant"] == "fp8":
        request["weight_format"] = "fp8"
    elif row["dtype"] == "torch.float32":
        request["weight_format"] = "fp32"
    left_out: dict[str, str] = {}
    if row["quant"] == "mxfp4":
        left_out["load peak"] = "read before the experts are laid out anew"
    if pp > 1:
        reason = "the log prints one stage's pool, and the poorest decides"
        left_out |= dict.fromkeys(("kv_pool", *KNOWN), reason)
    weights = row["weights_gib"]
    if pp == 4:
        weights = row["load_gib"]  # This log mixes two stages: 4.26 loaded, 3.28 charged.
    printed = {
        "weights": gib(weights),
        "load peak": gib(row["load_peak_gib"]),
        "activations": gib(row["act_peak_gib"]),
        "non_torch": gib(row["non_torch_gib"]),
        "graphs": gib(row["cudagraph_gib"]),
        "kv_pool": gib(row["kv_avail_gib"]),
        "kv_tokens": [int(row["kv_tokens"]), 0],
        "max_concurrency": [float(row["max_concurrency"]), 0.005],
    }
    if row["num_blocks"]:
        printed["kv_blocks"] = [int(row["num_blocks"]), 0]
    return {
        "id": "h100/" + row["log"].removesuffix(".log"),
        "source": LLM_D,
        "runtime": "vllm",
        "version": "0.19.0",
        "model": row["model"],
        "request": request,
        "printed": printed,
        "left_out": left_out,
    }


SWEPT = {
    "weights_gib": "weights",
    "act_peak_gib": "activations",
    "non_torch_gib": "non_torch",
    "cudagraph_gib": "graphs",
    "kv_avail_gib": "kv_pool",
}


MEANT: dict[str, dict[str, Any]] = {
    # Its four parts come to 0.95 of the card; the table says 0.9.
    "sweep/gpt-oss-120b-0.11-16000-tp1": {"gpu_memory_utilization": 0.95},
    # 0.11 sorts the words of 1,024 rows, 4.8 GiB. Its 2.12 GiB are of a sampler that does not,
    # as the 2.10 that the project read under 0.19; nothing outside PyTorch has grown yet.
    "sweep/Mistral-Small-3.2-24B-Instruct-2506-0.11-16000-tp1": {"runtime_version": "0.17.0"},
}
"""Rows of the sweep -> what they mean where their own figures contradict what they state."""


def swept(row: dict[str, str]) -> dict[str, Any]:
    """One row of the same project's sweep over older versions."""
    version = row["engine"].split()[1]
    request: dict[str, Any] = {
        "model": row["model"],
        "runtime": "vllm",
        "runtime_version": version + ".0" if version.count(".") == 1 else version,
        "gpu": "H100 SXM 80GB",
        "gpu_total_bytes": int(float(row["total_gib"]) * GIB),
        "gpu_count": int(row["tp"]),
        "tensor_parallel_size": int(row["tp"]),
        "gpu_memory_utilization": float(row["util"]),
    }
    if row["max_model_len"]:
        request["max_model_len"] = int(row["max_model_len"])
    printed = {ours: gib(row[theirs]) for theirs, ours in SWEPT.items() if row[theirs]}
    if row["kv_tokens"]:
        printed["kv_tokens"] = [int(row["kv_tokens"]), 0]
    if row["max_concurrency"]:
        printed["max_concurrency"] = [float(row["max_concurrency"]), 0.005]
    name = row["model"].split("/")[1]
    name = f"sweep/{name}-{version}-{row['max_model_len']}-tp{row['tp']}"
    request |= MEANT.get(name, {})
    return {
        "id": name,
        "source": LLM_D,
        "runtime": "vllm",
        "version": version,
        "model": row["model"],
        "request": request,
        "printed": printed,
        "left_out": {"graphs": "a negative reading, which no graph has"}
        if float(row["cudagraph_gib"] or 1) < 0
        else {},
    }


if __name__ == "__main__":
    main()
