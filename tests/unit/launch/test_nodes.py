"""A plan over several nodes: which rank lies where, and whether each text is what is taken."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml

from engine.launch import nodes
from engine.launch.nodes import Placement, place
from engine.launch.read import is_one, looks_like_one, read
from tests.helpers.commands import bare, text, written
from tests.unit.launch.test_options import RECORDS

KINDS = ("multi-node", "ray-serve")
TWICE_EIGHT = {"tensor_parallel_size": 8, "pipeline_parallel_size": 2, "max_model_len": 8192}


def _kinds(launch):
    return [form.kind.value for form in launch.forms if form.kind in KINDS]


def _commands(launch):
    """The commands of the multi-node form, each as its words."""
    lines = bare(launch, "multi-node").replace("\\\n", "").splitlines()
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize(
    ("tensor", "pipeline", "devices", "expected"),
    [
        (8, 2, 8, Placement(nodes=2, tensor=8, stages=1)),
        (8, 2, 4, None),
        (4, 4, 8, Placement(nodes=2, tensor=4, stages=2)),
        # Four stages of two would fit a node, but six don't go into fours: three and three.
        (2, 6, 8, Placement(nodes=2, tensor=2, stages=3)),
        (3, 4, 8, Placement(nodes=2, tensor=3, stages=2)),
        # A prime number of stages is split into single ones.
        (2, 5, 8, Placement(nodes=5, tensor=2, stages=1)),
    ],
)
def test_that_a_stage_lies_inside_a_node_and_every_node_holds_as_many(
    tensor, pipeline, devices, expected
):
    assert place(tensor, pipeline, devices) == expected


def test_that_two_nodes_of_eight_hold_the_ranks_that_a_hand_would_give_them():
    found = written("vllm", **TWICE_EIGHT)
    said = [line for line in text(found, "multi-node").splitlines() if line.startswith("# Node")]
    assert said == [
        "# Node 0 – ranks: 0–7; pipeline stages: 0",
        "# Node 1 – ranks: 8–15; pipeline stages: 1",
    ]
    head, other = _commands(found)
    same = [
        "vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "8192", "--tensor-parallel-size", "8",
        "--pipeline-parallel-size", "2", "--nnodes", "2", "--node-rank",
    ]  # fmt: skip
    assert head == [*same, "0", "--master-addr", "HEAD_ADDRESS"]
    assert other == [*same, "1", "--master-addr", "HEAD_ADDRESS", "--headless"]


def test_that_a_release_without_nodes_of_its_own_is_started_on_ray():
    found = written("vllm", runtime_version="0.11.0", **TWICE_EIGHT)
    head, other, serve = _commands(found)
    assert head == ["ray", "start", "--head", "--num-gpus", "8"]
    assert other == ["ray", "start", "--address", "HEAD_ADDRESS:6379", "--num-gpus", "8"]
    assert serve[-2:] == ["--distributed-executor-backend", "ray"]


@pytest.mark.parametrize(
    "record", [r for r in RECORDS if r["runtime"] == "vllm"], ids=lambda r: r["release"]
)
def test_that_a_release_is_given_only_options_that_it_takes(record):
    found = written("vllm", runtime_version=record["release"], **TWICE_EIGHT)
    given = {
        word
        for words in _commands(found)
        if words[0] == "vllm"
        for word in words
        if word.startswith("--")
    }
    assert given <= set(record["options"])
    # And what the release has is used: its own processes wherever they span nodes.
    assert ("--nnodes" in given) == ("--nnodes" in record["options"])


def test_that_each_node_has_a_container_with_its_share_of_the_devices():
    # Three stages of two on each node of eight: two devices are left.
    settings = {"tensor_parallel_size": 2, "pipeline_parallel_size": 6}
    lines = bare(written("vllm", **settings), "docker").replace("\\\n", "").splitlines()
    head, other = (shlex.split(line) for line in lines)
    for rank, words in enumerate((head, other)):
        assert words[:3] == ["docker", "run", "--rm"]
        assert words[words.index("--gpus") + 1] == '"device=0,1,2,3,4,5"'
        assert words[words.index("--network") + 1] == "host"
        assert "-p" not in words
        assert words[words.index("--node-rank") + 1] == str(rank)
    assert ("--headless" in head, "--headless" in other) == (False, True)
    whole = bare(written("vllm", **TWICE_EIGHT), "docker")
    assert whole.count("--gpus all") == 2


def test_that_compose_has_a_service_for_each_node_with_its_share_of_the_devices():
    made = yaml.safe_load(text(written("vllm", **TWICE_EIGHT), "compose"))
    assert list(made["services"]) == ["node-0", "node-1"]
    for rank, service in enumerate(made["services"].values()):
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert device["count"] == 8
        assert service["network_mode"] == "host"
        assert "ports" not in service
        command = service["command"]
        assert command[command.index("--node-rank") + 1] == str(rank)


def test_that_kubernetes_makes_a_group_of_as_many_pods_as_nodes():
    # vLLM's own manifest for LeaderWorkerSet: the size counts the leader, each pod has the
    # devices of its node, and workers take their number and the leader's address from the set.
    made = yaml.safe_load(text(written("vllm", **TWICE_EIGHT), "kubernetes"))
    assert made["apiVersion"] == "leaderworkerset.x-k8s.io/v1"
    assert made["kind"] == "LeaderWorkerSet"
    group = made["spec"]["leaderWorkerTemplate"]
    assert group["size"] == 2
    assert group["restartPolicy"] == "RecreateGroupOnPodRestart"
    shared = {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}
    for key, rank, last in (
        ("leaderTemplate", "0", "$(LWS_LEADER_ADDRESS)"),
        ("workerTemplate", "$(LWS_WORKER_INDEX)", "--headless"),
    ):
        pod = group[key]["spec"]
        (container,) = pod["containers"]
        assert container["resources"] == {"limits": {"nvidia.com/gpu": 8}}
        words = container["args"]
        assert words[words.index("--nnodes") + 1] == "2"
        assert words[words.index("--node-rank") + 1] == rank
        assert words[words.index("--master-addr") + 1] == "$(LWS_LEADER_ADDRESS)"
        assert words[-1] == last
        assert shared in pod["volumes"]
        assert ("ports" in container) == (key == "leaderTemplate")


def test_that_three_nodes_are_a_group_of_three():
    found = written("vllm", tensor_parallel_size=8, pipeline_parallel_size=3)
    group = yaml.safe_load(text(found, "kubernetes"))["spec"]["leaderWorkerTemplate"]
    assert group["size"] == 3
    said = [line.strip() for line in text(found, "kubernetes").splitlines() if "# Node" in line]
    assert said[2] == "# Node 2 – ranks: 16–23; pipeline stages: 2"


def test_that_no_form_says_that_one_machine_could_hold_what_is_spread():
    found = written("vllm", **TWICE_EIGHT)
    kinds = [form.kind.value for form in found.forms]
    assert kinds == ["multi-node", "docker", "compose", "kubernetes", "ray-serve"]
    assert not found.words
    before = written("vllm", runtime_version="0.11.0", **TWICE_EIGHT)
    assert [form.kind.value for form in before.forms] == ["multi-node", "ray-serve"]
    assert before.notes[-1] == "Containers over several nodes are written from vLLM 0.14 on."
    unplaced = written("vllm", tensor_parallel_size=16)
    assert [form.kind.value for form in unplaced.forms] == ["command"]


def test_that_a_claim_and_a_path_of_several_nodes_are_told():
    found = written("vllm", path="/data/qwen", **TWICE_EIGHT)
    told = text(found, "kubernetes")
    assert "# The claim “models” has to be one that several nodes may read." in told
    assert "# The cluster needs the LeaderWorkerSet controller: lws.sigs.k8s.io." in told


def test_that_ray_serve_is_given_a_bundle_for_each_rank_and_the_same_arguments():
    settings = TWICE_EIGHT | {
        "enable_prefix_caching": False, "enforce_eager": True, "kv_cache_dtype": "fp8",
        "gpu_memory_utilization": 0.85, "speculative_tokens": 3, "pp_layer_partition": (20, 16),
    }  # fmt: skip
    made = yaml.safe_load(text(written("vllm", **settings), "ray-serve"))
    (application,) = made["applications"]
    assert application["import_path"] == "ray.serve.llm:build_openai_app"
    (config,) = application["args"]["llm_configs"]
    assert config == {
        "model_loading_config": {"model_id": "Qwen/Qwen3-8B"},
        "engine_kwargs": {
            "max_model_len": 8192,
            "tensor_parallel_size": 8,
            "pipeline_parallel_size": 2,
            "gpu_memory_utilization": 0.85,
            "kv_cache_dtype": "fp8",
            "enforce_eager": True,
            "enable_prefix_caching": False,
            "speculative_config": {"method": "mtp", "num_speculative_tokens": 3},
        },
        "placement_group_config": {"strategy": "PACK", "bundles": [{"CPU": 1, "GPU": 1}] * 16},
        "deployment_config": {"num_replicas": 1},
        "runtime_env": {"env_vars": {"VLLM_PP_LAYER_PARTITION": "20,16"}},
    }


def test_that_a_node_offers_ray_only_as_many_devices_as_it_is_to_hold():
    # Three stages of two on each node of eight: Ray would else fill the first with eight ranks.
    found = written("vllm", tensor_parallel_size=2, pipeline_parallel_size=6)
    config = text(found, "ray-serve")
    assert re.findall(r"--num-gpus (\d+)\n", config) == ["6", "6"]
    assert [len(part.split("- {CPU")) - 1 for part in config.split("# Node ")[1:]] == [6, 6]


def test_that_a_model_on_a_disk_is_named_and_its_path_given():
    found = written("vllm", path="/data/qwen", **TWICE_EIGHT)
    made = yaml.safe_load(text(found, "ray-serve"))
    config = made["applications"][0]["args"]["llm_configs"][0]
    assert config["model_loading_config"] == {
        "model_id": "Qwen/Qwen3-8B",
        "model_source": "/data/qwen",
    }
    assert "# Every node reads the model from the same path." in text(found, "multi-node")


def test_that_ray_serve_is_left_out_where_no_ray_has_its_placement_for_the_release():
    assert _kinds(written("vllm", runtime_version="0.10.0", **TWICE_EIGHT)) == ["multi-node"]


@pytest.mark.parametrize(
    ("settings", "node_devices"),
    [
        ({"tensor_parallel_size": 8}, 8),
        ({"tensor_parallel_size": 4, "pipeline_parallel_size": 2}, 8),
        (TWICE_EIGHT, 16),
    ],
)
def test_that_a_plan_which_fits_one_node_has_no_forms_for_several(settings, node_devices):
    found = written("vllm", node_devices=node_devices, **settings)
    assert not _kinds(found)
    assert not any("node" in note for note in found.notes)


def test_that_smaller_nodes_make_more_of_them():
    settings = {"tensor_parallel_size": 4, "pipeline_parallel_size": 2}
    found = written("vllm", node_devices=4, **settings)
    assert [words[-1] for words in _commands(found)] == ["HEAD_ADDRESS", "--headless"]
    assert "The plan’s 8 ranks are more than the 4 devices of a node" in text(found, "multi-node")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"tensor_parallel_size": 16}, "A tensor parallel size of 16 would cross nodes of 8"),
        (TWICE_EIGHT | {"data_parallel_size": 2}, "written for one replica alone"),
    ],
)
def test_that_what_would_be_placed_badly_is_refused_with_the_reason(settings, why):
    found = written("vllm", **settings)
    assert not _kinds(found)
    assert why in " ".join(found.notes)


@pytest.mark.parametrize("release", ["0.6.6", "0.11.0", "0.14.0", "0.33.0"])
def test_that_the_form_is_read_back_as_the_plan(release):
    plan = TWICE_EIGHT | {"pp_layer_partition": (20, 16)}
    form = text(written("vllm", runtime_version=release, **plan), "multi-node")
    found = read(form)
    assert is_one(form)
    assert not found.strays
    assert found.model == "Qwen/Qwen3-8B"
    assert {name: found.stated[name] for name in plan} == plan
    told = "ray start only joins the nodes, and counts for nothing here."
    assert (told in found.remarks) == (release in ("0.6.6", "0.11.0"))


def test_that_a_block_that_begins_with_the_cluster_is_a_command():
    assert looks_like_one("ray start --head\nvllm serve Qwen/Qwen3-8B")


def test_that_what_only_nodes_are_given_changes_no_plan():
    names = {name for flag in nodes.FLAGS for name in flag.names}
    words = " ".join(f"{name} 1" for name in sorted(names - {"--headless"}))
    found = read(f"vllm serve m --headless {words} --max-model-len 64")
    assert set(found.harmless) == names
    assert found.stated == {"runtime": "vllm", "max_model_len": 64}
