"""What endpoints state, by hand from recorded answers; absent values with their reasons."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from engine.budget.model import Region
from engine.seen.model import Known, ModelSeen, Reach
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2**30


def sample(shared: Path, name: str) -> str:
    return (shared / "live" / "samples" / name).read_text(encoding="utf-8")


def stated(seen) -> dict[Region | None, int]:
    found: dict[Region | None, int] = {}
    for one in seen.stated:
        found[one.region] = found.get(one.region, 0) + one.size_bytes
    return found


# --- vLLM

MODELS = {"data": [{"id": "opt-125m-tp2", "root": "/models/opt", "max_model_len": 2048,
                    "owned_by": "vllm"}]}  # fmt: skip


def test_that_vllm_fills_its_pool_by_tokens_and_waits_for_slots(shared, said):
    (seen,) = said({
        "/metrics": sample(shared, "vllm/metrics_0.25.1_loaded.prom"),
        "/version": {"version": "0.25.1"}, "/v1/models": MODELS,
    })  # fmt: skip
    assert (seen.runtime, seen.version) == ("vllm", "0.25.1")
    assert seen.model == ModelSeen("opt-125m-tp2", 2048, file="/models/opt")
    # 25028 blocks of 16, as its own label has it; 0.11223878 of them.
    assert (seen.pool.tokens, seen.pool.tokens_known) == (400_448, Known.STATED)
    assert seen.pool.used_tokens == round(400_448 * 0.11223878211531546) == 44_946
    assert (seen.running, seen.waiting) == (64, 64)
    assert (seen.prompt_tokens, seen.output_tokens) == (339_968, 165_293)
    assert seen.notes == (
        "64 requests wait though the pool is 11% full: max_num_seqs is the limit, not memory.",
    )
    assert seen.pool.size_bytes == Missing("vLLM states its pool in tokens alone")
    assert seen.settings["gpu_memory_utilization"] == 0.3
    assert seen.settings["max_model_len"] == 2048
    # Labels that nobody here knows are kept as they stood; those that were read are not.
    assert seen.raw["prefix_caching_hash_algo"] == "sha256"
    assert "num_gpu_blocks" not in seen.raw


def test_that_an_idle_vllm_has_nothing_to_remark(shared, said):
    (seen,) = said({"/metrics": sample(shared, "vllm/metrics_0.25.1_idle.prom")})
    assert (seen.running, seen.waiting, seen.pool.used_tokens) == (0, 0, 0)
    assert seen.notes == ()
    assert seen.model == Missing("the runtime lists no model")


V0 = """\
vllm:num_requests_running{model_name="m"} 3.0
vllm:num_requests_swapped{model_name="m"} 0.0
vllm:num_requests_waiting{model_name="m"} 1.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
vllm:cpu_cache_usage_perc{model_name="m"} 0.0
vllm:num_preemptions_total{model_name="m"} 7.0
vllm:cache_config_info{block_size="16",num_gpu_blocks="7299",num_cpu_blocks="512"} 1.0
"""


def test_that_the_names_of_v0_are_read_and_blocks_stand_for_tokens(said):
    (seen,) = said({"/metrics": V0})
    # 7299 x 16, as the log of the same release has it (startup_v0_2025-04.log).
    assert (seen.pool.tokens, seen.pool.tokens_known) == (116_784, Known.DERIVED)
    assert (seen.pool.used_share, seen.running, seen.waiting) == (0.5, 3, 1)
    assert "7 requests were set back since the start" in seen.notes[0]


def test_that_blocks_that_are_none_yet_are_no_zero(said):
    page = V0.replace('num_gpu_blocks="7299"', 'num_gpu_blocks="None"')
    (seen,) = said({"/metrics": page})
    assert seen.pool.tokens == Missing("this release doesn’t tell how many blocks it has")


def test_that_a_hybrid_models_smallest_block_makes_no_capacity(said):
    (seen,) = said({"/metrics": V0.replace('block_size="16"', 'block_size="4"')})
    assert isinstance(seen.pool.tokens, Missing)
    assert "blocks of different sizes" in seen.pool.tokens.reason


def test_that_data_parallel_engines_add_up_and_the_fullest_decides(said):
    page = """\
vllm:num_requests_running{engine="0"} 2
vllm:num_requests_running{engine="1"} 5
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:cache_config_info{engine="0",kv_cache_size_tokens="1000",kv_cache_memory_bytes="4096"} 1
vllm:cache_config_info{engine="1",kv_cache_size_tokens="1000",kv_cache_memory_bytes="4096"} 1
"""
    (seen,) = said({"/metrics": page})
    assert (seen.running, seen.pool.tokens, seen.pool.used_tokens) == (7, 2000, 1000)
    assert seen.pool.used_share == 0.75
    assert stated(seen) == {Region.KV_CACHE: 8192}
    assert seen.pool.size_bytes == 8192


def test_that_a_sleeping_engine_explains_where_its_memory_went(said):
    page = V0 + 'vllm:engine_sleep_state{sleep_state="weights_offloaded"} 1.0\n'
    (seen,) = said({"/metrics": page})
    assert "The engine sleeps: its weights lie in the computer’s memory." in seen.notes


def test_that_a_vllm_without_metrics_is_still_its_model(said):
    (seen,) = said({"/v1/models": MODELS})
    assert (seen.runtime, seen.model.name) == ("vllm", "opt-125m-tp2")
    assert seen.running == Missing("the runtime has no /metrics (it answers 404)")


# --- SGLang


def test_that_sglang_states_its_bytes_in_gib_though_it_writes_gb(shared, said):
    info = json.loads(sample(shared, "sglang/server_info_memory_usage_0.5.x.json"))
    info |= {"api_key": "sk-hidden", "model_path": "/m/x", "mem_fraction_static": 0.8, "tp_size": 1}
    (seen,) = said({"/server_info": info})
    assert stated(seen) == {
        Region.WEIGHTS: round(0.98 * GIB),
        Region.KV_CACHE: round(0.23 * GIB),
        Region.CUDA_GRAPHS: round(0.57 * GIB),
    }
    assert (seen.pool.tokens, seen.pool.size_bytes) == (20_480, round(0.23 * GIB))
    assert seen.settings["mem_fraction_static"] == 0.8
    assert "sk-hidden" not in repr(seen)


def test_that_graphs_by_phase_are_one_figure(said):
    usage = {"weight": 56.98, "kvcache": 152.88, "graph": {"decode": 1.5, "prefill": 0.5},
             "startup_available": 200.1, "token_capacity": 1_669_816}  # fmt: skip
    (seen,) = said(
        {"/server_info": {"version": "0.5.23", "internal_states": [{"memory_usage": usage}]}}
    )
    assert seen.version == "0.5.23"
    assert stated(seen)[Region.CUDA_GRAPHS] == 2 * GIB
    # 152.88 GiB for 1,669,816 tokens are 98,306 bytes each: 48 layers x 4 heads x 128 x 2 x 2.
    assert round(seen.pool.size_bytes / seen.pool.tokens) == 98_306


def test_that_loads_are_read_per_data_parallel_rank(said):
    row = {"num_running_reqs": 2, "num_waiting_reqs": 1, "num_used_tokens": 500,
           "max_total_num_tokens": 1000,
           "memory": {"weight_gb": 1.0, "kv_cache_gb": 2.0, "graph_gb": 0.5}}  # fmt: skip
    loads = [{"dp_rank": 0, "token_usage": 0.5, **row}, {"dp_rank": 1, "token_usage": 0.7, **row}]
    (seen,) = said({"/v1/loads": {"loads": loads}, "/server_info": {"internal_states": []}})
    assert (seen.running, seen.waiting, seen.pool.tokens) == (4, 2, 2000)
    assert (seen.pool.used_share, seen.pool.used_tokens) == (0.7, 1000)
    assert stated(seen)[Region.WEIGHTS] == 2 * GIB
    assert {one.rank for one in seen.stated} == {"DP0", "DP1"}


def test_that_ranks_of_one_group_count_the_same_requests_once(said):
    page = "".join(
        f'sglang:{name}{{tp_rank="{rank}",dp_rank="0"}} {value}\n'
        for rank in (0, 1)
        for name, value in (
            ("num_running_reqs", 3), ("num_queue_reqs", 2), ("max_total_num_tokens", 1000),
            ("num_used_tokens", 400), ("kv_evictable_tokens", 100), ("token_usage", 0.4),
            ("weight_memory_usage_gb", 7.5), ("kv_cache_memory_usage_gb", 2),
        )
    )  # fmt: skip
    (seen,) = said({"/metrics": page})
    assert (seen.running, seen.waiting) == (3, 2)
    assert (seen.pool.tokens, seen.pool.used_tokens, seen.pool.evictable_tokens) == (1000, 400, 100)
    # Bytes are per rank, so they do add up.
    assert stated(seen)[Region.WEIGHTS] == 15 * GIB


@pytest.mark.parametrize(
    "name", ["metrics_2025-11_0.5.1.prom", "metrics_2024-11_first-version.prom",
             "metrics_underscore-names.prom"],
)  # fmt: skip
def test_that_every_age_of_sglangs_metrics_is_known_for_its_own(shared, said, name):
    (seen,) = said({"/metrics": sample(shared, f"sglang/{name}")})
    assert seen.runtime == "sglang"


def test_that_the_first_sglang_gives_context_and_capacity(shared, said):
    (seen,) = said({"/metrics": sample(shared, "sglang/metrics_2024-11_first-version.prom")})
    assert (seen.pool.tokens, seen.model.context_tokens) == (570_979, 131_072)
    assert seen.model.name == "meta-llama/Llama-3.2-3B"


# --- Ollama


def ollama(ps, **more):
    return {"/api/version": {"version": "0.31.0"}, "/api/ps": ps, **more}


def test_that_ollama_states_bytes_and_an_older_one_no_context(shared, said):
    (seen,) = said(ollama(json.loads(sample(shared, "ollama/api_ps_docs.json"))))
    assert (seen.runtime, seen.version, seen.model.name) == ("ollama", "0.31.0", "mistral:latest")
    assert seen.stated_bytes == 5_137_025_024
    assert seen.model.quantisation == "Q4_0"
    assert isinstance(seen.model.context_tokens, Missing)
    assert seen.model.expires == "2024-06-04T14:38:31.83753-07:00"
    assert seen.notes == ("All of what it states lies on the GPU.",)


def test_that_what_ollama_keeps_beside_the_gpu_is_told_apart(said):
    ps = {"models": [{"name": "a:1", "size": 10 * GIB, "size_vram": 6 * GIB,
                      "context_length": 32768, "expires_at": "2318-01-01T00:00:00Z"}]}  # fmt: skip
    (seen,) = said(ollama(ps))
    assert seen.stated_bytes == 6 * GIB
    assert [(s.size_bytes, s.on_device) for s in seen.stated] == [(6 * GIB, True), (4 * GIB, False)]
    assert seen.model.context_tokens == 32768
    assert seen.model.expires == "never"
    assert seen.notes[0].startswith("60% of what it states lies on the GPU")


def test_that_an_empty_ollama_is_a_row_without_a_model(said):
    (seen,) = said(ollama({"models": []}))
    assert (seen.reach, seen.model) == (Reach.ANSWERS, Missing("no model is loaded"))


def test_that_two_models_of_one_ollama_are_two_rows(said):
    ps = {"models": [{"name": "a:1", "size": 1}, {"name": "b:1", "size": 2}]}
    blob = "/usr/share/ollama/blobs/sha256-" + "0" * 64
    rows = said(ollama(ps, **{"/api/show": {"modelfile": f"# made\nFROM {blob}\nPARAMETER x 1"}}))
    assert [row.model.name for row in rows] == ["a:1", "b:1"]
    assert {row.model.file for row in rows} == {blob}


# --- llama-server

PROPS = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 2,
         "model_path": "/m/x.gguf", "build_info": "b11549-0a1b2c3", "model_alias": "x"}  # fmt: skip
SLOT = {"id": 0, "n_ctx": 4096, "is_processing": True, "prompt": "what nobody else may read"}


def test_that_llama_servers_fill_is_what_its_slots_work_on(said):
    # b11549: n_prompt_tokens grows with the answer, so it isn't added to it.
    busy = SLOT | {"n_prompt_tokens": 1316, "n_prompt_tokens_processed": 1200,
                   "n_prompt_tokens_cache": 42, "next_token": [{"n_decoded": 74}]}  # fmt: skip
    idle = {"id": 1, "n_ctx": 4096, "is_processing": False, "n_prompt_tokens": 900}
    page = "llamacpp:requests_processing 1\nllamacpp:requests_deferred 4\n"
    page += "llamacpp:prompt_tokens_total 5000\nllamacpp:tokens_predicted_total 100\n"
    (seen,) = said({"/health": {"status": "ok"}, "/props": PROPS, "/slots": [busy, idle],
                    "/metrics": page})  # fmt: skip
    assert (seen.runtime, seen.version) == ("llama.cpp", "b11549")
    assert seen.pool.used_tokens == 1200 + 42 + 74
    assert (seen.running, seen.waiting, seen.prefilling) == (1, 4, 0)
    assert (seen.prompt_tokens, seen.output_tokens) == (5000, 174)
    assert (seen.model.context_tokens, seen.model.slots) == (4096, 2)
    assert isinstance(seen.pool.tokens, Missing)
    assert isinstance(seen.pool.used_share, Missing)
    assert "nobody else" not in repr(seen)


def test_that_a_build_without_a_number_states_none(said):
    (seen,) = said({"/props": PROPS | {"build_info": "b0-unknown"}})
    assert isinstance(seen.version, Missing)


def test_that_one_slot_has_the_whole_cache(said):
    older = SLOT | {"n_past": 1024, "next_token": {"n_decoded": 0}}
    (seen,) = said({"/props": PROPS | {"total_slots": 1}, "/slots": [older]})
    assert (seen.pool.tokens, seen.pool.used_tokens, seen.pool.used_share) == (4096, 1024, 0.25)
    assert seen.prefilling == 1


def test_that_a_router_has_a_row_for_each_model_that_it_has_loaded(said):
    listed = [
        {"id": "a/x:Q4", "status": {"value": "loaded"}},
        {"id": "b", "status": {"value": "unloaded"}},
        {"id": "c", "status": {"value": "loaded"}},
    ]
    router = {"role": "router", "model_path": "none",
              "default_generation_settings": {"n_ctx": 0}}  # fmt: skip
    first = PROPS | {"total_slots": 1, "model_alias": "a/x:Q4"}
    rows = said({
        "/props": router, "/v1/models": {"data": listed},
        "/props?model=a%2Fx%3AQ4": first, "/slots?model=a%2Fx%3AQ4": [SLOT | {"n_past": 2048}],
    })  # fmt: skip
    assert [(row.model.name, row.reach) for row in rows] == [
        ("a/x:Q4", Reach.ANSWERS), ("c", Reach.ANSWERS),
    ]  # fmt: skip
    assert (rows[0].pool.tokens, rows[0].pool.used_share) == (4096, 0.5)
    assert isinstance(rows[1].pool.tokens, Missing)
    (nothing,) = said({"/props": router, "/v1/models": {"data": listed[1:2]}})
    assert nothing.model == Missing("no model is loaded")


def test_that_a_loading_llama_server_says_so(said):
    def loading(handler, _):
        body = b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'
        handler.send_response(503)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    (seen,) = said({"/health": loading, "/props": loading})
    assert (seen.runtime, seen.reach) == ("llama.cpp", Reach.LOADING)
    assert seen.model == Missing("the model is being loaded")


def test_that_a_llama_server_without_metrics_and_slots_says_why(said):
    (seen,) = said({"/props": PROPS})
    assert seen.waiting == Missing("the runtime has no /metrics (it answers 404)")
    assert seen.pool.used_tokens == Missing("llama-server was started without /slots")


def test_that_memory_is_taken_where_a_build_has_it(said):
    memory = {"devices": [{"name": "CUDA0", "model": 9436 * 2**20, "context": 14193 * 2**20,
                           "compute": 451 * 2**20, "free": 1}]}  # fmt: skip
    (seen,) = said({"/props": PROPS, "/memory": memory})
    # 9436 + 14193 + 451 = 24080 MiB, as the table of memory-breakdown_2025-09.log has them.
    assert seen.stated_bytes == 24080 * 2**20


def test_that_the_gauges_of_early_2025_give_the_fill(said):
    page = "llamacpp:kv_cache_usage_ratio 0.5\nllamacpp:kv_cache_tokens 2048\n"
    (seen,) = said({"/props": PROPS | {"total_slots": 1}, "/metrics": page})
    assert (seen.pool.used_share, seen.pool.used_tokens) == (0.5, 2048)


def test_that_the_recorded_page_of_mid_2025_has_no_fill(shared, said):
    page = sample(shared, "llamacpp/server_metrics_2025-06.prom")
    (seen,) = said({"/props": PROPS, "/metrics": page})
    assert (seen.prompt_tokens, seen.output_tokens) == (143, 673)
    assert "no fill of its cache since mid-2025" in seen.pool.used_share.reason


# --- the others


def test_that_lm_studio_gives_settings_and_no_bytes(shared, said):
    (seen,) = said({"/api/v1/models": json.loads(sample(shared, "lmstudio/api_v1_models.json"))})
    assert seen.runtime == "lmstudio"
    assert seen.model == ModelSeen("google/gemma-4-26b-a4b", 4096, 4, "Q4_K_M")
    assert seen.settings == {"max_model_len": 4096, "n_batch": 512,
                             "flash_attn": True, "offload_kqv": True}  # fmt: skip
    assert isinstance(seen.stated_bytes, Missing)


def test_that_the_older_interface_lists_what_is_loaded_alone(shared, said):
    listed = json.loads(sample(shared, "lmstudio/api_v0_models.json"))
    (nothing,) = said({"/api/v0/models": listed})
    assert nothing.model == Missing("no model is loaded")
    listed["data"][1] |= {"state": "loaded", "loaded_context_length": 4096}
    (seen,) = said({"/api/v0/models": listed})
    assert (seen.model.name, seen.model.context_tokens) == ("meta-llama-3.1-8b-instruct", 4096)


INFO = {"model_id": "m/x", "max_total_tokens": 8192, "max_batch_total_tokens": 16000,
        "version": "2.4.1", "max_input_tokens": 4096}  # fmt: skip


def test_that_tgi_states_tokens(said):
    page = "tgi_batch_current_size 3\ntgi_queue_size 2\ntgi_batch_current_max_tokens 4000\n"
    (seen,) = said({"/info": INFO, "/metrics": page})
    assert (seen.runtime, seen.version, seen.model.context_tokens) == ("tgi", "2.4.1", 8192)
    assert (seen.pool.tokens, seen.pool.used_share) == (16000, 0.25)
    assert (seen.running, seen.waiting) == (3, 2)


def test_that_tgis_capacity_to_be_inferred_is_no_capacity(said):
    # The sentinel of args_and_warmup.log.
    (seen,) = said({"/info": INFO | {"max_batch_total_tokens": 4294967295}})
    assert seen.pool.tokens == Missing("the runtime has not worked out its capacity")


def test_that_tensorrt_llm_counts_blocks(shared, said):
    statistics = json.loads(sample(shared, "trtllm/iteration_stats.json"))
    (seen,) = said({"/metrics": [statistics]})
    assert seen.runtime == "tensorrt-llm"
    # 7240 blocks of 64, 5495 of them used.
    assert (seen.pool.tokens, seen.pool.used_tokens) == (463_360, 351_680)
    assert round(seen.pool.used_share, 3) == 0.759
    assert (seen.running, seen.waiting, seen.stated_bytes) == (1, 7, 25_330_607_135)


def test_that_no_iteration_since_the_last_look_is_no_zero(said):
    (seen,) = said({"/metrics": []})
    assert seen.running == Missing("no iteration ran since the last look")


def test_that_tokens_per_block_are_a_label_of_tritons_kind_of_page(said):
    page = "trtllm_kv_cache_utilization 0.5\ntrtllm_kv_cache_max_blocks 100\n"
    page += 'trtllm_cache_config_info{block_size="32"} 1\n'
    (seen,) = said({"/prometheus/metrics": page})
    assert (seen.pool.tokens, seen.pool.used_share) == (3200, 0.5)


def test_that_mlx_has_a_model_and_no_memory(said):
    (seen,) = said({"/v1/models": {"data": [{"id": "mlx-community/x"}]}}, "mlx")
    assert (seen.runtime, seen.model.name) == ("mlx", "mlx-community/x")
    assert isinstance(seen.pool.size_bytes, Missing)


def test_that_a_server_that_nobody_knows_is_shown_with_what_it_says(said):
    (seen,) = said({"/v1/models": {"data": [{"id": "x", "context_window": 8192}]}})
    assert (seen.runtime, seen.label) == ("", "OpenAI-compatible server")
    assert seen.model.context_tokens == 8192


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"/metrics": "go_goroutines 12\n", "/health": "ok", "/info": {"app": "x"}},
        {"/metrics": b"\xff\xfe\x00", "/props": "[" * 10_000, "/api/version": "null"},
        {"/v1/models": {"data": "x"}, "/server_info": [1], "/slots": {"id": 1}},
    ],
)
def test_that_what_is_no_runtime_is_no_row(said, answers):
    assert said(answers) == ()


@pytest.mark.parametrize(
    "hostile",
    [
        {"/props": PROPS | {"total_slots": -1, "model_path": "\x1b[31m" * 100}},
        {"/api/version": {"version": "x" * 10_000}, "/api/ps": {"models": [{"name": "a",
         "size": float("1e400"), "size_vram": "12"}] * 10_000}},
        {"/metrics": "vllm:num_requests_running NaN\nvllm:kv_cache_usage_perc 1e300\n"
                     'vllm:cache_config_info{kv_cache_size_tokens="9e99"} 1\n'},
        {"/metrics": 'sglang:weight_memory_usage_gb{tp_rank="0"} 1e300\n'},
        {"/metrics": [{"gpuMemUsage": 2**70, "kvCacheStats": {"maxNumBlocks": 0}}]},
    ],
)  # fmt: skip
def test_that_nonsense_becomes_no_figure(said, hostile):
    for seen in said(hostile):
        assert isinstance(seen.stated_bytes, Missing) or seen.stated_bytes < 2**60
        shown = repr(seen)
        assert "\x1b" not in shown
        assert "nan" not in shown.lower().replace("nanosecond", "")
        assert "inf" not in shown.lower().replace("info", "")
