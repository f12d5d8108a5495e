import json
import struct

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine.architecture.read import read, specify
from engine.architecture.spec import Direction, Subject
from engine.cancel import CancelToken
from engine.errors import (
    ConfigError,
    HeaderError,
    HubNotFoundError,
    SourceError,
    UnknownArchitectureError,
)
from engine.source import files, local, shards
from engine.source.hub import HubClient
from engine.source.resolve import resolve
from tests.helpers import fake_hub
from tests.helpers.fake_hub import Repo

BASE = {
    "model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 64,
}  # fmt: skip
LORA = {"peft_type": "LORA", "r": 4, "target_modules": ["q_proj"]}
PAIR = {
    f"base_model.model.model.layers.{n}.self_attn.q_proj.lora_{side}.weight": np.zeros(
        (4, 32) if side == "A" else (32, 4), np.float16
    )
    for n in (0, 1)
    for side in "AB"
}


@pytest.fixture(autouse=True)
def _cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))


def folder_of(place, config, *, tensors=None, base=None):
    place.mkdir(parents=True, exist_ok=True)
    (place / "adapter_config.json").write_text(json.dumps(config))
    if tensors:
        save_file(tensors, place / "adapter_model.safetensors")
    if base:
        (place / "config.json").write_text(json.dumps(base))
    return place


def opened(place):
    return read(files.read(place, CancelToken()))


def test_that_a_header_counts_and_its_dtype_is_kept(tmp_path):
    place = folder_of(tmp_path / "lora", LORA, tensors=PAIR, base=BASE)
    alone = read(files.read(place / "config.json", CancelToken()))
    for path in (place, place / "adapter_config.json", place / "adapter_model.safetensors"):
        model = opened(path)
        assert model.id == "lora"
        assert model.parameters == alone.parameters + 2 * 2 * 4 * 32
        assert {t.stored_as for t in model.spec.outer if "lora" in t.name} == {"fp16"}
        assert model.spec.doubts == ()
    assert model.notes[0] == (
        "A LoRA adapter of rank 4 on q_proj, 512 parameters, counted on top of the model whose "
        "config lies beside it."
    )


def test_that_the_bytes_of_base_and_adapter_are_summed_from_their_headers(tmp_path):
    spec = specify(BASE)
    tensors = {
        f"model.layers.{n}.{t.name}": np.zeros(t.shape, np.float16)
        for n, layer in enumerate(spec.layers)
        for t in layer.tensors
    } | {t.name: np.zeros(t.shape, np.float16) for t in spec.outer}
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text(json.dumps({**BASE, "torch_dtype": "float16"}))
    save_file(tensors, base / "model.safetensors")
    config = {**LORA, "base_model_name_or_path": "../base"}
    model = opened(folder_of(tmp_path / "lora", config, tensors=PAIR))
    assert model.stored is not None
    assert model.stored.size_bytes == 2 * (spec.parameters + 512)
    files_of = (base / "model.safetensors", tmp_path / "lora/adapter_model.safetensors")
    assert model.stored.file_bytes == sum(path.stat().st_size for path in files_of)
    assert model.parameters == spec.parameters + 512


def test_that_the_base_is_found_beside_the_adapter(tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text(json.dumps(BASE))
    for name in ("../base", "base", str(base), "./base"):
        place = folder_of(tmp_path / "lora", {**LORA, "base_model_name_or_path": name})
        assert opened(place).spec.hidden_size == 32


def test_that_the_catalogue_knows_the_base(tmp_path):
    name = "meta-llama/Llama-3.1-8B-Instruct"
    modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    config = {"peft_type": "LORA", "r": 16, "target_modules": modules}
    model = opened(folder_of(tmp_path / "lora", {**config, "base_model_name_or_path": name}))
    # Rank 16 on every linear layer of Llama 3.1 8B, by hand: r · (in + out) for each.
    widths = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336)
    assert model.parameters == 8_030_261_248 + 32 * 16 * widths
    assert model.spec.direction(Subject.WEIGHTS) is Direction.EITHER


def test_that_a_base_that_is_nowhere_is_named(tmp_path):
    place = folder_of(tmp_path / "lora", {**LORA, "base_model_name_or_path": "org/lost"})
    with pytest.raises(SourceError, match=r"lora is an adapter for org/lost.*config\.json"):
        opened(place)
    with pytest.raises(SourceError, match="a base not named"):
        opened(folder_of(tmp_path / "other", LORA))


def test_that_adapters_on_adapters_end(tmp_path):
    first = folder_of(tmp_path / "a", {**LORA, "base_model_name_or_path": "../b"})
    folder_of(tmp_path / "b", {**LORA, "base_model_name_or_path": "../a"})
    with pytest.raises(SourceError, match="an adapter itself"):
        opened(first)
    with pytest.raises(SourceError, match="not found"):
        opened(folder_of(tmp_path / "c", {**LORA, "base_model_name_or_path": "../c"}))


def test_that_a_pasted_adapter_config_is_read():
    text = json.dumps({**LORA, "base_model_name_or_path": "meta-llama/Llama-3.1-8B-Instruct"})
    model = read(resolve(text, CancelToken()))
    assert model.parameters == 8_030_261_248 + 32 * 4 * (4096 + 4096)


def test_that_an_adapter_of_the_hub_asks_it_for_the_base(tmp_path):
    save_file(PAIR, tmp_path / "adapter_model.safetensors")
    config = {**LORA, "base_model_name_or_path": "org/base"}
    with fake_hub.serving() as hub:
        hub.add(Repo("org/base", {"config.json": json.dumps(BASE).encode()}))
        hub.add(
            Repo(
                "org/lora",
                {
                    "adapter_config.json": json.dumps(config).encode(),
                    "adapter_model.safetensors": (
                        tmp_path / "adapter_model.safetensors"
                    ).read_bytes(),
                },
            )
        )
        lost = json.dumps({**LORA, "base_model_name_or_path": "org/lost"}).encode()
        hub.add(Repo("org/orphan", {"adapter_config.json": lost}))
        client = HubClient(hub.url, timeout_s=5)
        model = read(resolve("org/lora", CancelToken(), client))
        with pytest.raises(HubNotFoundError, match="org/orphan is an adapter for org/lost"):
            resolve("org/orphan", CancelToken(), client)
    alone = read(files.read(folder_of(tmp_path / "x", LORA, base=BASE), CancelToken()))
    assert model.id == "org/lora"
    assert model.parameters == alone.parameters
    assert "512 parameters" in model.notes[0]
    assert "org/base" in model.notes[0]


def test_that_an_adapter_in_the_cache_is_listed(tmp_path):
    place = tmp_path / "cache/models--org--lora/snapshots" / ("a" * 40)
    folder_of(place, LORA, tensors=PAIR)
    (found,) = local.find(CancelToken())
    assert (found.id, found.path) == ("org/lora", place)
    assert found.size_bytes == (place / "adapter_model.safetensors").stat().st_size


def test_that_a_model_with_an_adapter_beside_it_stays_a_model(tmp_path):
    place = folder_of(tmp_path / "m", LORA, base=BASE)
    save_file({"w": np.zeros(4, np.float32)}, place / "model.safetensors")
    assert files.read(place, CancelToken()).adapter is None


def test_that_a_gguf_model_beside_an_adapter_is_what_is_meant():
    names = ["adapter_config.json", "adapter_model.safetensors"]
    assert shards.is_adapter(names)
    assert shards.is_adapter([*names, "my-lora-f16.gguf"])
    assert not shards.is_adapter([*names, "merged-Q4_K_M.gguf"])


def test_that_other_kinds_need_their_header(tmp_path):
    config = {"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 8}
    with pytest.raises(UnknownArchitectureError, match="PREFIX_TUNING"):
        opened(folder_of(tmp_path / "p", config, base=BASE))
    tensors = {"prompt_embeddings": np.zeros((8, 64), np.float32)}
    model = opened(folder_of(tmp_path / "p", config, tensors=tensors, base=BASE))
    assert "A PREFIX_TUNING adapter, 512 parameters" in model.notes[0]
    assert model.spec.direction(Subject.SEQUENCE_STATE) is Direction.LOWER


def test_that_an_adapter_of_a_deeper_model_is_refused(tmp_path):
    name = "base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight"
    tensors = {name: np.zeros((4, 32), np.float16)}
    with pytest.raises(HeaderError, match="layer 7"):
        opened(folder_of(tmp_path / "lora", LORA, tensors=tensors, base=BASE))


@pytest.mark.parametrize(
    "more",
    [
        {"target_modules": "(a+)+b"},
        {"target_modules": "("},
        {"target_modules": "(.|.)*X"},
        {"target_modules": ".*" * 7 + "X"},
        {"target_modules": None},
        {"target_modules": 3},
        {"r": 0},
        {"r": "8"},
        {"rank_pattern": [1]},
        {"rank_pattern": {"(": 2}},
        {"bias": 1},
        {"trainable_token_indices": 3},
        {"layers_to_transform": "all"},
    ],
)
def test_that_what_cannot_be_is_named(tmp_path, more):
    with pytest.raises(ConfigError, match="adapter_config"):
        opened(folder_of(tmp_path / "lora", {**LORA, **more}, base=BASE))


def test_that_unknown_keys_put_the_count_in_doubt(tmp_path):
    model = opened(folder_of(tmp_path / "lora", {**LORA, "layer_replication": [[0, 2]]}, base=BASE))
    assert any("layer_replication" in doubt.reason for doubt in model.spec.doubts)


def test_that_tensors_of_an_adapter_alone_are_no_model(tmp_path):
    save_file(PAIR, tmp_path / "some.safetensors")
    with pytest.raises(UnknownArchitectureError, match="LoRA adapter"):
        opened(tmp_path / "some.safetensors")


def test_that_an_adapter_in_gguf_is_named(tmp_path):
    def pair(key, value):
        return struct.pack(
            f"<Q{len(key)}sIQ{len(value)}s", len(key), key.encode(), 8, len(value), value.encode()
        )

    pairs = (
        pair("general.architecture", "llama"),
        pair("general.type", "adapter"),
        pair("adapter.type", "lora"),
    )
    path = tmp_path / "lora.gguf"
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(pairs)) + b"".join(pairs)
    path.write_bytes(head + b"\0" * (-len(head) % 32))
    with pytest.raises(SourceError, match="LoRA adapter in GGUF, made for llama"):
        opened(path)
