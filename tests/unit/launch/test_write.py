"""What stands in a command, worked out by hand from the plan and the runtimes' documentation."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import replace

import pytest
import yaml

from engine.architecture.read import read
from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.deployment.spec import Deployment
from engine.launch import notes
from engine.launch.launch import Kind
from engine.launch.write import launch
from engine.sizing import size
from engine.source.by_hand import Measures, by_hand
from engine.words import choose
from tests.helpers.commands import bare, machine, text, written


def _of(model="Qwen/Qwen3-8B", path="", **asked):
    """The launch of a plan that was sized."""
    plan = Desk(CancelToken()).plan(parse({"model": model, **asked}))
    sizing = size(plan.model, plan.deployment, plan.machine)
    return launch(sizing, plan.deployment, path, capacity_known=plan.notes.capacity_known)


def test_that_only_what_the_plan_states_becomes_a_flag():
    assert bare(_of(gpu="L40S", runtime="vllm")) == "vllm serve Qwen/Qwen3-8B"
    stated = _of(gpu="L40S", runtime="vllm", max_model_len=8192, gpu_memory_utilization=0.85)
    assert bare(stated) == (
        "vllm serve Qwen/Qwen3-8B --max-model-len 8192 --gpu-memory-utilization 0.85"
    )


def test_that_a_share_is_said_to_be_a_margin():
    # vLLM's log of an L40S states 44.39 GiB, ours 44.42: 0.85 of it are 37.8, which leaves 6.7.
    found = _of(gpu="L40S", runtime="vllm", gpu_memory_utilization=0.85)
    assert (
        "--gpu-memory-utilization 0.85 is a margin: vLLM takes up to 37.8 GiB of 44.4 GiB and "
        "leaves 6.7 GiB to others."
    ) in found.notes


def test_that_a_plan_that_does_not_fit_says_so_above_its_command():
    found = _of("meta-llama/Llama-3.1-70B", gpu="RTX 4090", runtime="vllm")
    first = text(found).splitlines()[0]
    assert first.startswith("# Doesn’t fit: ")
    assert "because of the weights" in first


def test_that_a_gated_model_asks_for_a_token_in_the_environment_and_never_prints_one(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_" + "a" * 20)
    found = _of("meta-llama/Llama-3.1-8B", gpu="L40S", runtime="vllm")
    assert any("is gated" in note and "HF_TOKEN" in note for note in found.notes)
    assert not any("hf_a" in form.text for form in found.forms)
    assert not any("is gated" in note for note in _of(gpu="L40S", runtime="vllm").notes)


def test_that_scales_of_an_fp8_cache_are_told():
    found = _of(gpu="L40S", runtime="vllm", kv_cache_dtype="fp8")
    assert any("scales" in note for note in found.notes)


def test_that_nothing_is_said_of_fitting_where_the_device_is_not_known():
    found = _of("meta-llama/Llama-3.1-70B", gpu_count=1, runtime="vllm", max_model_len=4096)
    assert not any("fit" in note for note in found.notes)
    assert "Planned for 1 request of 4,096 tokens." in found.notes


def test_that_speculation_is_one_json_object_that_survives_the_shell():
    found = written("vllm", speculative_tokens=3)
    words = shlex.split(bare(found).replace("\\\n", ""))
    assert words[-1] == '{"method": "mtp", "num_speculative_tokens": 3}'


def test_that_a_setting_without_a_flag_is_named():
    found = written("vllm", runtime_version="0.8.5", decode_context_parallel_size=2)
    assert "vLLM 0.8.5 has no flag for decode_context_parallel_size 2" in text(found)
    assert "decode_context_parallel_size" in found.unsaid
    newer = written("vllm", runtime_version="0.11.0", decode_context_parallel_size=2)
    assert bare(newer).endswith("--decode-context-parallel-size 2")
    assert not newer.unsaid


@pytest.mark.parametrize(
    ("build", "flags"),
    [
        ("b5772", "-fa --no-mmap"),
        ("b7710", "-fa on --no-mmap"),
        ("b11549", "-fa on -lm none"),
    ],
)
def test_that_flags_of_llama_server_follow_the_build(build, flags):
    found = written("llama.cpp", runtime_version=build, flash_attn="on", mmap=False)
    assert bare(found) == f"llama-server -m Qwen3-8B-BF16.gguf {flags}"


def test_that_sglangs_renamed_flag_follows_the_release():
    older = written("sglang", runtime_version="0.5.9", cuda_graph_max_bs=32)
    newer = written("sglang", runtime_version="0.5.21", cuda_graph_max_bs=32)
    assert bare(older).endswith("--cuda-graph-max-bs 32")
    assert bare(newer).endswith("--cuda-graph-max-bs-decode 32")


def test_that_weights_that_are_made_while_loading_are_asked_for_and_others_named():
    assert bare(written("vllm", weight_format="fp8")).endswith("--quantization fp8")
    assert bare(written("vllm", weight_format="fp16")).endswith("--dtype float16")
    awq = written("vllm", weight_format="awq-int4")
    assert bare(awq) == "vllm serve Qwen/Qwen3-8B"
    assert "AWQ 4 bit" in text(awq)


def test_that_a_checkpoint_is_given_its_own_file_in_llama_server():
    found = written("llama.cpp", path="/data/my models/q.gguf")
    # A model that is no GGUF is still to be converted, wherever it lies.
    assert "Qwen3-8B-BF16.gguf stands for your BF16 file" in text(found)


def test_that_ollama_gets_a_modelfile_and_variables():
    found = written(
        "ollama", max_model_len=16384, concurrency=2, kv_cache_dtype="q8_0",
        gpu_overhead_bytes=2**30,
    )  # fmt: skip
    assert bare(found).splitlines() == [
        (
            "OLLAMA_NUM_PARALLEL=2 OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_GPU_OVERHEAD=1073741824 "
            "ollama serve"
        ),
        "ollama create plan -f Modelfile",
        "ollama run plan",
    ]
    assert bare(found, Kind.MODELFILE).splitlines() == [
        "FROM ./Qwen3-8B-Q4_K_M.gguf",
        "PARAMETER num_ctx 16384",
    ]


def test_that_mlx_says_how_its_files_are_made():
    found = written("mlx", gpu="M4 Pro 48 GB", count=1, weight_format="mlx-4bit", concurrency=2)
    assert bare(found) == "mlx_lm.server --model Qwen3-8B-mlx-4bit --decode-concurrency 2"
    assert (
        "First make Qwen3-8B-mlx-4bit: mlx_lm.convert --hf-path Qwen/Qwen3-8B --mlx-path "
        "Qwen3-8B-mlx-4bit -q --q-bits 4"
    ) in found.notes


def test_that_the_lines_for_transformers_are_python_that_the_library_knows():
    from transformers import GenerationConfig

    found = written(
        "transformers", count=1, weight_format="nf4", cache_implementation="quantized",
        kv_bits=4.0, max_model_len=4096, concurrency=3, num_beams=2, prefill_chunk_size=512,
    )  # fmt: skip
    tree = ast.parse(text(found, Kind.PYTHON))
    calls = {ast.unparse(n.func): n for n in ast.walk(tree) if isinstance(n, ast.Call)}
    given = {k.arg: ast.literal_eval(k.value) for k in calls["model.generate"].keywords if k.arg}
    assert given == {
        "max_length": 4096,
        "num_beams": 2,
        "cache_implementation": "quantized",
        "prefill_chunk_size": 512,
        "cache_config": {"nbits": 4, "backend": "quanto"},
    }
    GenerationConfig(**given).validate()
    loaded = {
        k.arg: ast.unparse(k.value) for k in calls["AutoModelForCausalLM.from_pretrained"].keywords
    }
    assert loaded == {"device_map": "'cuda'", "quantization_config": "config"}
    assert "['Put your prompt here'] * 3" in ast.unparse(tree)


@pytest.mark.parametrize("runtime", ["lmstudio", "jan", "koboldcpp"])
def test_that_a_program_with_a_window_gets_its_settings_as_a_list(runtime):
    found = _of(gpu="RTX 4090", runtime=runtime, max_model_len=4096, concurrency=4)
    assert [form.kind for form in found.forms] == [Kind.SETTINGS]
    assert not found.words
    assert any(line.startswith("Context") for line in bare(found, Kind.SETTINGS).splitlines())


@pytest.fixture
def german():
    choose("de")
    yield
    choose("en")


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("runtime", ["vllm", "llama.cpp", "mlx", "lmstudio"])
def test_that_figures_in_sentences_have_the_separators_of_the_language(runtime):
    gpu = "M4 Max 128 GB" if runtime == "mlx" else "H100 SXM"
    slots = {"n_parallel": 2} if runtime == "llama.cpp" else {}
    found = _of(gpu=gpu, runtime=runtime, max_model_len=16384, concurrency=2, **slots)
    said = "\n".join(found.notes)
    assert "16.384" in said
    assert not re.search(r"\d,\d{3}\b", said)
    if runtime == "llama.cpp":
        assert "32.768" in said  # of both slots together
    if runtime == "lmstudio":
        assert "32.768" in bare(found, Kind.SETTINGS)


@pytest.mark.usefixtures("german")
def test_that_the_model_of_a_list_is_found_in_every_language():
    assert _of(gpu="RTX 4090", runtime="lmstudio").model.endswith(".gguf")


def test_that_a_share_that_nobody_knows_is_not_told_as_0():
    plan = Desk(CancelToken()).plan(parse({"model": "Qwen/Qwen3-8B", "gpu": "L40S"}))
    sizing = size(plan.model, plan.deployment, plan.machine)
    budget = sizing.budget
    unknown = replace(budget, deployment=budget.deployment.with_(gpu_memory_utilization=None))
    told = notes.of(replace(sizing, budget=unknown), plan.deployment)
    assert not any("gpu-memory-utilization" in sentence for sentence in told)


def test_that_powershell_is_written_for_windows():
    found = written(
        "llama.cpp", platform="windows", gpu="RTX 4090", count=1, n_ubatch=1024, n_batch=4096,
        max_model_len=8192, concurrency=8, tensor_split=(1.0, 2.5), op_offload=False,
    )  # fmt: skip
    assert bare(found).splitlines() == [
        "llama-server `",
        "  -m Qwen3-8B-BF16.gguf `",
        "  -c 65536 `",
        "  -np 8 `",
        "  -ts '1,2.5' `",
        "  -b 4096 `",
        "  -ub 1024 `",
        "  --no-op-offload",
    ]


def _container(kind, **settings):
    asked = {"count": 4, "tensor_parallel_size": 4, "max_model_len": 32768} | settings
    return text(written("vllm", **asked), kind)


def test_that_compose_gives_the_same_words_and_all_devices():
    made = yaml.safe_load(_container("compose"))["services"]["vllm"]
    assert made["image"] == "vllm/vllm-openai:v0.33.0"
    assert made["command"] == [
        "Qwen/Qwen3-8B", "--max-model-len", "32768", "--tensor-parallel-size", "4",
    ]  # fmt: skip
    (device,) = made["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 4, "capabilities": ["gpu"]}
    assert made["ipc"] == "host"
    assert made["environment"] == ["HF_HOME=/hub", "HF_TOKEN"]


def test_that_kubernetes_asks_for_the_device_resource_and_shared_memory():
    made = yaml.safe_load(_container("kubernetes", data_parallel_size=1))
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 4}}
    assert container["args"][:2] == ["Qwen/Qwen3-8B", "--max-model-len"]
    assert {"name": "shared-memory", "emptyDir": {"medium": "Memory"}} in pod["volumes"]
    home, token = container["env"]
    assert home == {"name": "HF_HOME", "value": "/hub"}
    assert token["valueFrom"]["secretKeyRef"]["optional"] is True


@pytest.mark.parametrize(
    ("release", "named"),
    [
        # Images of 0.13.0 to 0.22.0 warn of --model; those before run the module that asks for it.
        ("0.11.0", ["--model", "Qwen/Qwen3-8B"]),
        ("0.14.0", ["Qwen/Qwen3-8B"]),
    ],
)
def test_that_an_image_is_given_the_model_as_its_own_entry_takes_it(release, named):
    words = shlex.split(
        bare(written("vllm", runtime_version=release), "docker").replace("\\\n", "")
    )
    assert words[words.index(f"vllm/vllm-openai:v{release}") + 1 :] == named


def test_that_a_dollar_sign_in_a_path_is_no_variable_of_compose_or_kubernetes():
    found = written("vllm", count=1, path="/data/$HOME/$(A)b")
    (service,) = yaml.safe_load(text(found, "compose"))["services"].values()
    assert service["command"] == ["/models/$$(A)b"]
    assert service["volumes"] == ["/data/$$HOME:/models:ro"]
    pod = yaml.safe_load(text(found, "kubernetes"))["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["/models/$$(A)b"]


def test_that_llama_server_which_is_one_process_asks_for_no_shared_memory():
    made = yaml.safe_load(text(written("llama.cpp", count=2), "compose"))["services"]["llama-cpp"]
    assert "ipc" not in made
    assert made["volumes"] == [".:/models:ro"]


def test_that_docker_takes_only_as_many_devices_as_the_plan():
    some = shlex.split(_container("docker", count=8).partition("docker run")[2].replace("\\\n", ""))
    assert some[some.index("--gpus") + 1] == '"device=0,1,2,3"'
    whole = shlex.split(_container("docker").partition("docker run")[2].replace("\\\n", ""))
    assert whole[whole.index("--gpus") + 1] == "all"


def test_that_a_file_is_mounted_into_the_container():
    found = written("vllm", count=1, path="/data/my models/qwen")
    words = shlex.split(bare(found, "docker").replace("\\\n", ""))
    assert "/data/my models:/models:ro" in words
    assert words[-2:] == ["vllm/vllm-openai:v0.33.0", "/models/qwen"]
    assert "HF_TOKEN" not in words


def test_that_no_container_is_made_up_for_devices_without_a_known_image():
    assert [f.kind for f in written("vllm", gpu="MI300X", count=2).forms] == [Kind.COMMAND]
    assert [f.kind for f in written("llama.cpp", gpu="M4 Pro 48 GB", count=1).forms] == [
        Kind.COMMAND
    ]


def test_that_a_file_of_a_folder_stands_for_the_folder():
    found = _of(gpu="L40S", runtime="vllm", path="/data/qwen/config.json")
    assert bare(found) == "vllm serve /data/qwen"


def test_that_a_model_entered_by_hand_is_said_to_be_a_name_only():
    measures = Measures(
        parameters=8 * 10**9, num_hidden_layers=32, num_key_value_heads=8, head_dim=128,
        name="My model",
    )  # fmt: skip
    made = read(by_hand(measures))
    plan = Deployment(runtime="vllm", max_model_len=4096)
    found = launch(size(made, plan, machine("L40S", 1)), plan)
    assert bare(found) == "vllm serve 'My model' --max-model-len 4096"
    assert any(note.startswith("My model stands for your model") for note in found.notes)


def test_that_a_hostile_name_can_not_leave_its_quotes_or_its_comment():
    found = written("vllm", path="x'; rm -rf ~ #\n$(reboot)")
    words = shlex.split(bare(found).replace("\\\n", ""), comments=True)
    assert words[:2] == ["vllm", "serve"]
    assert len(words) == 3
