import json
import struct

import pytest

from engine.cancel import CancelToken, JobCancelledError
from engine.source import files, local

COMMIT = "0123456789" * 4
DIGEST = "ab" * 32


def gguf():
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, 0) + b"\0" * 8


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


def put(path, data=b""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def found():
    return {m.id: m for m in local.find(CancelToken())}


def test_that_a_computer_without_models_has_none(home):
    assert found() == {}


def test_that_the_hub_cache_is_listed_at_the_commit_of_main(home):
    repo = home / ".cache/huggingface/hub/models--org--name"
    put(repo / "refs/main", COMMIT.encode())
    put(repo / "snapshots" / COMMIT / "config.json", b'{"model_type": "x"}')
    blob = put(repo / "blobs/abc", b"x" * 1000)
    (repo / "snapshots" / COMMIT / "model.safetensors").symlink_to(blob)
    put(repo / "snapshots/old/config.json", b"{}")
    put(home / ".cache/huggingface/hub/datasets--org--data/snapshots/x/config.json", b"{}")
    model = found()["org/name"]
    assert (model.kind, model.size_bytes) == ("Hugging Face cache", 1000)
    assert model.path == repo / "snapshots" / COMMIT
    assert len(found()) == 1


def test_that_gguf_files_of_the_hub_cache_are_models_of_their_own(home):
    folder = home / ".cache/huggingface/hub/models--org--name-GGUF/snapshots/abc"
    put(folder / "m-Q4_K_M.gguf", gguf())
    put(folder / "m-Q8_0-00001-of-00002.gguf", gguf())
    put(folder / "m-Q8_0-00002-of-00002.gguf", gguf())
    put(folder / "mmproj-m.gguf", gguf())
    models = found()
    assert set(models) == {"org/name-GGUF:m-Q4_K_M", "org/name-GGUF:m-Q8_0"}
    assert models["org/name-GGUF:m-Q8_0"].size_bytes == 2 * len(gguf())
    assert files.read(models["org/name-GGUF:m-Q4_K_M"].path, CancelToken()).tensors == ()


def test_that_the_variables_of_the_library_move_the_cache(home, monkeypatch):
    for name, folder in (("HF_HOME", "a/hub"), ("HF_HUB_CACHE", "b"), ("XDG_CACHE_HOME", "c")):
        monkeypatch.setenv(name, str(home / folder.removesuffix("/hub")))
        place = home / (folder if name != "XDG_CACHE_HOME" else "c/huggingface/hub")
        put(place / f"models--org--{name}/snapshots/x/config.json", b"{}")
        assert set(found()) == {f"org/{name}"}
        monkeypatch.delenv(name)


def test_that_ollamas_models_are_found_by_their_manifests(home):
    store = home / ".ollama/models"
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "0" * 64},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{DIGEST}"},
    ]
    manifest = json.dumps({"layers": layers}).encode()
    put(store / "manifests/registry.ollama.ai/library/llama3.2/3b", manifest)
    put(store / "manifests/registry.ollama.ai/someone/own/latest", manifest)
    put(store / f"blobs/sha256-{DIGEST}", gguf())
    for n, bad in enumerate(
        [b"", b"[]", b"{}", b'{"layers": 7}', b'{"layers": [7, {}]}', b"[" * 9999]
    ):
        put(store / f"manifests/registry.ollama.ai/library/bad/{n}", bad)
    models = local.find(CancelToken())
    # Both tags share one blob; it is one model on the disk.
    assert [(m.id, m.kind, m.size_bytes) for m in models] == [
        ("llama3.2:3b", "Ollama", len(gguf()))
    ]


def test_that_folders_of_lm_studio_and_llama_cpp_are_searched(home):
    put(home / ".lmstudio/models/org/repo/m-Q4_0.gguf", gguf())
    put(home / ".cache/llama.cpp/n-Q8_0.gguf", gguf())
    assert {m.id: m.kind for m in found().values()} == {
        "m-Q4_0": "LM Studio",
        "n-Q8_0": "llama.cpp",
    }


def test_that_a_loop_of_folders_ends(home):
    folder = home / ".lmstudio/models"
    put(folder / "a/m.gguf", gguf())
    (folder / "a/again").symlink_to(folder, target_is_directory=True)
    assert set(found()) == {"m"}


def test_that_a_cancelled_token_stops_the_search(home):
    put(home / ".cache/llama.cpp/n-Q8_0.gguf", gguf())
    token = CancelToken()
    token.cancel()
    with pytest.raises(JobCancelledError):
        local.find(token)


def test_that_a_quantisation_is_found_in_the_hub_cache(home):
    folder = home / ".cache/huggingface/hub/models--org--name-GGUF/snapshots" / COMMIT
    put(folder / "m-Q4_K_M.gguf", gguf())
    put(folder / "UD-Q3_K_XL/m-UD-Q3_K_XL-00001-of-00002.gguf", gguf())
    put(folder / "UD-Q3_K_XL/m-UD-Q3_K_XL-00002-of-00002.gguf", gguf())
    put(folder.parents[1] / "refs/main", COMMIT.encode())
    place = folder / "UD-Q3_K_XL/m-UD-Q3_K_XL-00001-of-00002.gguf"
    for file, found in (
        ("", folder), ("q4_k_m", folder / "m-Q4_K_M.gguf"), ("UD-Q3_K_XL", place),
        ("m-Q4_K_M.gguf", folder / "m-Q4_K_M.gguf"), ("Q8_0", None), ("Q4", None),
    ):  # fmt: skip
        assert local.cached("org/name-GGUF", None, file) == found
    assert local.cached("org/name-GGUF", "v2") is None
    assert local.cached("org/else", None) is None


def test_that_jans_models_are_called_by_their_folders(home, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    folder = home / ".config/Jan/data/llamacpp/models/janhq/Jan-v1-4B-Q4_K_M"
    put(folder / "model.gguf", gguf())
    put(folder / "mmproj.gguf", gguf() + b"\0" * 8)
    put(folder / "model.yml", b"name: x")
    model = found()["janhq/Jan-v1-4B-Q4_K_M"]
    assert (model.kind, model.path.name) == ("Jan", "model.gguf")
    assert (model.size_bytes, model.projector_bytes) == (len(gguf()), len(gguf()) + 8)


def test_that_gpt4alls_folder_is_the_one_that_its_settings_name(home, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    put(home / ".local/share/nomic.ai/GPT4All/a.Q4_0.gguf", gguf())
    put(home / ".cache/gpt4all/b.Q4_0.gguf", gguf())
    put(home / "big disk/c.Q4_0.gguf", gguf())
    ini = f"[General]\nmodelPath={home / 'big disk'}\n"
    put(home / ".config/nomic.ai/GPT4All.ini", ini.encode())
    assert {m.id: m.kind for m in found().values()} == dict.fromkeys(
        ("a.Q4_0", "b.Q4_0", "c.Q4_0"), "GPT4All"
    )


def test_that_lm_studios_folder_is_the_one_that_its_settings_name(home):
    settings = json.dumps({"downloadsFolder": str(home / "elsewhere")})
    put(home / ".lmstudio/settings.json", settings.encode())
    put(home / "elsewhere/org/repo/m-Q4_0.gguf", gguf())
    mlx = home / "elsewhere/mlx-community/Qwen3-4B-4bit"
    put(mlx / "config.json", b'{"model_type": "qwen3"}')
    put(mlx / "model.safetensors", b"x" * 500)
    models = found()
    assert models["m-Q4_0"].kind == "LM Studio"
    assert models["mlx-community/Qwen3-4B-4bit"].size_bytes == 500


@pytest.mark.parametrize("settings", [b"", b"[]", b"[" * 9999, b'{"downloadsFolder": "x"}'])
def test_that_settings_of_others_which_make_no_sense_cost_nothing(home, settings):
    put(home / ".lmstudio/settings.json", settings)
    put(home / ".config/nomic.ai/GPT4All.ini", b"modelPath=relative\xff")
    assert found() == {}


def test_that_folders_of_ones_own_are_searched_with_splits_joined_and_adapters_told(home):
    own = home / "models"
    put(own / "deep/m-Q8_0-00001-of-00002.gguf", gguf())
    put(own / "deep/m-Q8_0-00002-of-00002.gguf", gguf())
    put(own / "lora/adapter_config.json", b"{}")
    put(own / "lora/adapter_model.safetensors", b"x" * 40)
    put(own / "notes/config.json", b"{}")
    models = {m.id: m for m in local.find(CancelToken(), (own, home / "absent"))}
    assert set(models) == {"m-Q8_0", "lora"}
    assert models["m-Q8_0"].size_bytes == 2 * len(gguf())
    assert (models["lora"].kind, models["lora"].size_bytes) == ("models", 40)
