"""Files that start a model: what they say is read, and what is written is read as the same plan."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.deployment.spec import Deployment
from engine.errors import PlimsollError, UsageError
from engine.launch import manifests
from engine.launch.read import is_one, looks_like_one, read
from tests.helpers.commands import text, written
from tests.unit.launch.test_round_trip import LLAMA_CPP, SGLANG, VLLM

_TOTALS = {"max_model_len", "n_ctx", "n_parallel", "kv_unified", "concurrency"}

COMPOSE = """
# A service of a stack, as people share them.
x-gpu: &gpu
  deploy:
    resources:
      reservations:
        devices:
          - driver: nvidia
            device_ids: ["0", "1"]
            capabilities: [gpu]
services:
  proxy:
    image: nginx:1.29
    ports: ["80:80"]
  llm:
    <<: *gpu
    image: vllm/vllm-openai:v0.11.0
    environment:
      MODEL: Qwen/Qwen3-32B
      HF_TOKEN: hf_secretsecret
    command: >
      --model ${MODEL} --tensor-parallel-size 2
      --max-model-len ${LENGTH:-32768} --api-key s3cret --served-model-name "my model"
"""
MANIFEST = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mistral}
spec:
  template:
    spec:
      containers:
        - name: sidecar
          image: busybox
          command: ["sleep", "infinity"]
        - name: mistral
          image: vllm/vllm-openai:latest
          command: ["/bin/sh", "-c"]
          args:
            - "vllm serve mistralai/Mistral-7B-Instruct-v0.3 --trust-remote-code
              --max-num-batched-tokens 1024 --enforce-eager"
          resources:
            limits: {nvidia.com/gpu: "1"}
"""
GROUP = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      spec:
        containers:
          - name: vllm-leader
            image: docker.io/vllm/vllm-openai:v0.8.5
            command:
              - sh
              - -c
              - "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh leader
                --ray_cluster_size=$(LWS_GROUP_SIZE); python3 -m vllm.entrypoints.openai.api_server
                --model meta-llama/Llama-3.1-405B --tensor-parallel-size 8
                --pipeline_parallel_size $(LWS_GROUP_SIZE)"
            resources: {limits: {nvidia.com/gpu: "8", memory: 1124Gi}}
    workerTemplate:
      spec:
        containers:
          - name: vllm-worker
            image: docker.io/vllm/vllm-openai:v0.8.5
            command: ["sh", "-c", "bash multi-node-serving.sh worker"]
            resources: {limits: {nvidia.com/gpu: "8"}}
"""
RAY = """
apiVersion: ray.io/v1
kind: RayService
metadata: {name: llm}
spec:
  serveConfigV2: |
    applications:
    - name: llms
      import_path: ray.serve.llm:build_openai_app
      args:
        llm_configs:
        - model_loading_config:
            model_id: qwen
            model_source: Qwen/Qwen3-32B
          accelerator_type: A100
          engine_kwargs:
            tensor_parallel_size: 4
            max_model_len: 16384
            enable_prefix_caching: false
            gpu_memory_utilization: 0.85
            trust_remote_code: false
            hf_overrides: {rope_theta: 1000000}
          runtime_env: {env_vars: {HF_TOKEN: hf_secretsecret}}
"""


@pytest.mark.parametrize(
    ("file", "runtime", "model", "devices", "version", "stated"),
    [
        (COMPOSE, "vllm", "Qwen/Qwen3-32B", 2, "0.11.0",
         {"tensor_parallel_size": 2, "max_model_len": 32768}),
        (MANIFEST, "vllm", "mistralai/Mistral-7B-Instruct-v0.3", 1, None,
         {"max_num_batched_tokens": 1024, "enforce_eager": True}),
        # Eight devices on each of two nodes.
        (GROUP, "vllm", "meta-llama/Llama-3.1-405B", 16, "0.8.5",
         {"tensor_parallel_size": 8, "pipeline_parallel_size": 2}),
        (RAY, "vllm", "Qwen/Qwen3-32B", None, None,
         {"tensor_parallel_size": 4, "max_model_len": 16384, "enable_prefix_caching": False,
          "gpu_memory_utilization": 0.85}),
    ],
    ids=["compose", "deployment", "leader-worker-set", "ray-service"],
)  # fmt: skip
def test_that_a_file_says_its_plan(file, runtime, model, devices, version, stated):
    found = read(file)
    assert (found.runtime, found.model, found.devices) == (runtime, model, devices)
    version_stated = {"runtime_version": version} if version else {}
    assert found.stated == {"runtime": runtime} | version_stated | stated
    assert is_one(file)
    assert looks_like_one(file)


def test_that_what_a_file_says_beside_the_plan_is_named_without_its_secrets():
    assert set(read(COMPOSE).harmless) == {"--api-key", "--served-model-name"}
    ray = read(RAY)
    assert ray.strays == ('--hf-overrides {"rope_theta": 1000000}',)
    assert ray.harmless == ("--no-trust-remote-code",)
    for file in (COMPOSE, RAY):
        assert "secret" not in repr(read(file))
    assert "s3cret" not in repr(read(COMPOSE))


def test_that_a_second_model_of_a_file_is_told_and_a_second_node_is_none():
    two = COMPOSE + "  small:\n    image: ollama/ollama\n    command: serve\n"
    assert not read(two).notes
    two = COMPOSE + "  other:\n    image: vllm/vllm-openai\n    command: [X/Y]\n"
    assert read(two).notes == ("It starts other models too, which count for nothing here.",)
    assert not read(GROUP).notes


@pytest.mark.parametrize(
    "head",
    [
        "kubectl apply -f - <<EOF\n{}\nEOF\n",
        "$ kubectl apply -n llm -f - <<'YAML'\n{}\nYAML",
        "cat <<EOF | kubectl apply -f -\n{}\nEOF",
    ],
)
def test_that_a_manifest_that_is_handed_to_kubectl_is_read(head):
    assert read(head.format(MANIFEST)) == read(MANIFEST)


def test_that_a_list_of_objects_is_read():
    listed = MANIFEST.split("---\n")[1].strip().replace("\n", "\n    ")
    assert read(f"apiVersion: v1\nkind: List\nitems:\n  - {listed}\n") == read(MANIFEST)


@pytest.mark.parametrize(
    ("words", "stated"),
    [
        # The image's own entry is not run where another is named.
        ("docker run --entrypoint vllm vllm/vllm-openai:v0.11.0 serve X/Y -tp 2", {}),
        ("docker run --entrypoint bash vllm/vllm-openai:v0.11.0 -c 'vllm serve X/Y -tp 2'", {}),
        ("docker run vllm/vllm-openai:v0.11.0 bash -lc 'cd /m && vllm serve X/Y -tp 2'", {}),
    ],
)
def test_that_the_entry_of_a_container_is_what_is_run(words, stated):
    found = read(words)
    assert found.model == "X/Y"
    assert found.stated == {
        "runtime": "vllm", "runtime_version": "0.11.0", "tensor_parallel_size": 2, **stated,
    }  # fmt: skip
    assert not found.strays


@pytest.mark.parametrize(
    ("volume", "path"),
    [
        ("/data:/models:ro", "/data/q/w.gguf"),
        (".:/models", "q/w.gguf"),
        ("./sub:/models:ro,z", "sub/q/w.gguf"),
        ("C:/data:/models", "C:/data/q/w.gguf"),
        # A volume has a name and no folder that could be looked into.
        ("models:/models", "/models/q/w.gguf"),
        ("/data:/elsewhere", "/models/q/w.gguf"),
    ],
)
def test_that_a_path_in_a_container_is_read_as_where_it_lies_outside(volume, path):
    words = f"docker run -v '{volume}' ghcr.io/ggml-org/llama.cpp:server -m /models/q/w.gguf"
    file = (
        "services: {llm: {image: 'ghcr.io/ggml-org/llama.cpp:server', "
        f"volumes: ['{volume}'], command: -m /models/q/w.gguf}}}}"
    )
    assert read(words).model == read(file).model == path


def test_that_the_line_of_a_shell_is_read():
    found = read("""nohup bash -c "HF_HOME=/x vllm serve X/Y --max-model-len 4096" """)
    assert (found.model, found.deployment.max_model_len) == ("X/Y", 4096)


# --- there and back


def _stated(found, plan):
    """What came back of the fields of ``plan``."""
    default = Deployment()
    return {
        name: getattr(found.deployment, name)
        for name, value in plan.items()
        if value != getattr(default, name)
    }


def runs_a_file(kind, model):
    return kind == "kubernetes" and model.endswith(".gguf")


def _same_as_the_command(launch, kind):
    """What a form says, beside what the runtime's own command says."""
    form = text(launch, kind)
    found, command = read(form), read(launch.forms[0].text)
    assert not found.strays
    assert is_one(form)
    # In Kubernetes a claim is mounted, of which nobody knows where it lies.
    model = f"/models/{command.model}" if runs_a_file(kind, command.model) else command.model
    assert found.model == model
    names = [field.name for field in fields(Deployment) if field.name != "runtime_version"]
    return (
        {name: getattr(found.deployment, name) for name in names},
        {name: getattr(command.deployment, name) for name in names},
    )


@pytest.mark.parametrize("runtime", ["vllm", "sglang", "llama.cpp"])
@pytest.mark.parametrize("kind", ["docker", "compose", "kubernetes"])
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_that_a_container_is_read_back_as_the_plan(runtime, kind, data):
    table = {"vllm": VLLM, "sglang": SGLANG, "llama.cpp": LLAMA_CPP}[runtime]
    plan = data.draw(st.fixed_dictionaries({}, optional=table))
    # One machine that holds all ranks.
    launch = written(runtime, count=512, node_devices=512, **plan)
    form, command = _same_as_the_command(launch, kind)
    assert form == command


@pytest.mark.parametrize("kind", ["multi-node", "docker", "compose", "kubernetes", "ray-serve"])
@settings(deadline=None, max_examples=60)
@given(
    plan=st.fixed_dictionaries(
        {"tensor_parallel_size": st.integers(1, 8), "pipeline_parallel_size": st.integers(2, 16)},
        optional={n: v for n, v in VLLM.items() if n not in (
            "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
            "weight_format",
        )},
    ),
    release=st.sampled_from(["0.14.0", "0.22.0", "0.27.0", "0.33.0"]),
)  # fmt: skip
def test_that_a_plan_over_several_nodes_is_read_back_from_each_of_its_forms(kind, plan, release):
    ranks = plan["tensor_parallel_size"] * plan["pipeline_parallel_size"]
    launch = written("vllm", runtime_version=release, count=128, **plan)
    if ranks <= 8:
        assert kind not in ("multi-node", "ray-serve") or kind not in {f.kind for f in launch.forms}
        return
    found = read(text(launch, kind))
    assert not found.strays
    assert not found.notes
    assert found.model == "Qwen/Qwen3-8B"
    said = {name: value for name, value in plan.items() if name not in launch.unsaid}
    default = Deployment()
    assert _stated(found, said) == {
        name: value for name, value in said.items() if value != getattr(default, name)
    }
    # As many devices as ranks, over all nodes; what takes all of a node doesn't say how many.
    assert found.devices in (None, ranks)
    assert found.devices == ranks or kind in ("multi-node", "docker")
    tagged = kind not in ("multi-node", "ray-serve")
    assert found.deployment.runtime_version == (release if tagged else None)


# --- hostile

DEEP = "[" * 9_000
MERGED = "".join(f"x-{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ('services:\n  llm:\n    command: ["a"\n    image: b', "line 4 breaks off"),
        ("services:\n\tllm: x", "line 2 breaks off"),
        ("services: " + DEEP, "nested too deep"),
        ("kind: Pod\nspec: !!timestamp soon\n", "odd characters"),
        ("services:\n" + "- " * 9_000, "nested too deep"),
        ("services: {}\nx-0: &a0 {a: 1}\n" + MERGED, "refers to itself"),
        ("services:\n  a: !!python/object/apply:os.system ['true']", "line 2 breaks off"),
        ("services: {a: {image: nginx}}", "Nothing here starts a model"),
        ("apiVersion: v1\nkind: Pod\nspec: 7", "Nothing here starts a model"),
        ("services: 17", "Nothing here starts a model"),
        ("services: {a: {image: vllm/vllm-openai, command: \"'x\"}}", "quotation mark"),
        ('kind: RayService\nspec: {serveConfigV2: "a: ["}', "line 1 breaks off"),
        ("llm_configs: [{engine_kwargs: {a: &x [*x]}}]", "a holds what no command could"),
        ("llm_configs: [{engine_kwargs: {a: [2001-01-01]}}]", "a holds what no command could"),
    ],
)  # fmt: skip
def test_that_a_file_that_can_not_be_read_is_one_sentence(file, why):
    with pytest.raises(UsageError, match=why) as raised:
        read(file)
    assert "\n" not in raised.value.message
    assert not is_one(file)


def test_that_an_image_that_is_given_no_arguments_names_no_model_and_its_devices():
    found = read(
        "kind: Pod\nspec:\n  containers:\n"
        "  - {image: vllm/vllm-openai, resources: {limits: {nvidia.com/gpu: 2}}}\n"
    )
    assert (found.runtime, found.model, found.devices) == ("vllm", "", 2)


def test_that_a_number_of_thousands_of_digits_is_no_value():
    found = read("llm_configs: [{model_loading_config: {model_id: X/Y}, engine_kwargs: "
                 "{max_model_len: 0x" + "f" * 6_000 + "}}]")  # fmt: skip
    assert found.deployment.max_model_len is None


PIECES = st.sampled_from([
    "services:", "applications:", "llm_configs:", "apiVersion: v1", "kind: Deployment", "spec:",
    "kind: LeaderWorkerSet", "  leaderWorkerTemplate:", "  template:", "    spec:", "size: 99999",
    "      containers:", "        - image: vllm/vllm-openai", "  llm:", "    image: ollama/ollama",
    "    command: [serve]", "    command: vllm serve X/Y", "- a", "{", "}", "[", "&a", "*a",
    "<<: *a",
    "args: [\"$(A)\", '${B:-c}']", "---", "\t", "!!set {a}", "engine_kwargs: {a: .nan}", "? x", "|",
    "env: [{name: A, value: 1}]", "resources: {limits: {nvidia.com/gpu: x}}", "\0", "\u202e",
])  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(text=st.lists(PIECES, max_size=14).map("\n".join))
def test_that_any_file_is_a_plan_or_one_sentence(text):
    told = ""
    try:
        found = read(text)
    except PlimsollError as error:
        found, told = None, error.message
    assert "\n" not in told
    if manifests.looks_like_one(text) and found is not None:
        assert found.runtime in ("vllm", "ollama")
