"""Commands as they stand in documentation and issues, and the plans they mean."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.launch.read import is_one, looks_like_one, read
from engine.launch.weights import of_model
from tests.helpers.commands import model


def _stated(text):
    found = read(text)
    return found.runtime, found.model, {k: v for k, v in found.stated.items() if k != "runtime"}


@pytest.mark.parametrize(
    ("text", "runtime", "name", "settings"),
    [
        (
            "vllm serve Qwen/Qwen3-8B --max-model-len 32768 -tp 2 --port 8001",
            "vllm", "Qwen/Qwen3-8B", {"max_model_len": 32768, "tensor_parallel_size": 2},
        ),
        (
            "$ vllm serve --max_model_len=32k Qwen/Qwen3-8B",
            # vLLM's own: k is 1,000 and K is 1,024 (utils/argparse_utils.py).
            "vllm", "Qwen/Qwen3-8B", {"max_model_len": 32000},
        ),
        (
            ("vllm serve Qwen/Qwen3-8B --max-model-len 32K --kv-cache-dtype fp8_e4m3 "
            "--no-enable-prefix-caching --enforce-eager"),
            "vllm", "Qwen/Qwen3-8B",
            {"max_model_len": 32768, "kv_cache_dtype": "fp8_e4m3",
             "enable_prefix_caching": False, "enforce_eager": True},
        ),
        (
            "python3 -m vllm.entrypoints.openai.api_server --model X/Y --enforce-eager",
            "vllm", "X/Y", {"enforce_eager": True},
        ),
        (
            "llama-server -m ./models/q.gguf -c 32768 -ngl 99",
            "llama.cpp", "./models/q.gguf", {"max_model_len": 32768, "n_gpu_layers": 99},
        ),
        (
            "./build/bin/llama-server -hf ggml-org/gemma-3-4b-it-GGUF:Q8_0 -c 32768 -np 4 -fa",
            "llama.cpp", "ggml-org/gemma-3-4b-it-GGUF:Q8_0",
            {"max_model_len": 8192, "concurrency": 4, "n_parallel": 4, "flash_attn": "on"},
        ),
        (
            r"C:\llama\llama-server.exe -m C:/models/q.gguf -fa off -ctk q8_0 --no-mmap -ts 3,1",
            "llama.cpp", "C:/models/q.gguf",
            {"flash_attn": "off", "cache_type_k": "q8_0", "mmap": False,
             "tensor_split": (3.0, 1.0)},
        ),
        (
            "llama-server -m q.gguf -c 8192 -np 3 --kv-unified -ngl all -ncmoe 12",
            "llama.cpp", "q.gguf",
            {"n_ctx": 8192, "n_parallel": 3, "concurrency": 3, "kv_unified": True,
             "n_gpu_layers": -2, "n_cpu_moe": 12},
        ),
        (
            ("python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 4 "
            "--mem-fraction-static 0.85 --disable-radix-cache --dp 4 --enable-dp-attention"),
            "sglang", "Qwen/Qwen3-8B",
            {"tensor_parallel_size": 4, "mem_fraction_static": 0.85,
             "enable_prefix_caching": False, "data_parallel_size": 4, "enable_dp_attention": True},
        ),
        (
            "mlx_lm.server --model mlx-community/Qwen3-8B-4bit --kv-bits 8 --prefill-step-size 512",
            "mlx", "mlx-community/Qwen3-8B-4bit", {"kv_bits": 8.0, "prefill_step_size": 512},
        ),
        (
            "OLLAMA_NUM_PARALLEL=4 OLLAMA_FLASH_ATTENTION=1 ollama serve &\nollama run llama3.1:8b",
            "ollama", "llama3.1:8b", {"n_parallel": 4, "concurrency": 4, "flash_attn": "on"},
        ),
        (
            'FROM llama3.1:8b\nPARAMETER num_ctx 8192\nPARAMETER temperature 1\nSYSTEM """hi"""',
            "ollama", "llama3.1:8b", {"max_model_len": 8192},
        ),
        (
            ("from transformers import AutoModelForCausalLM\nimport torch\n"
            "m = AutoModelForCausalLM.from_pretrained('X/Y', torch_dtype=torch.float16, "
            "device_map='auto')\nm.generate(**i, max_length=2048)"),
            "transformers", "X/Y",
            {"weight_format": "fp16", "device_map": "auto", "max_model_len": 2048},
        ),
    ],
)  # fmt: skip
def test_that_a_command_is_understood(text, runtime, name, settings):
    assert _stated(text) == (runtime, name, settings)
    assert not read(text).strays


def test_that_a_container_is_peeled_off():
    found = read(
        "docker run --runtime nvidia --gpus '\"device=0,1\"' \\\n"
        "    -v ~/.cache/huggingface:/cache \\\n"
        '    --env "HF_TOKEN=hf_abcdefghijklmnop" -p 8000:8000 --ipc=host \\\n'
        "    vllm/vllm-openai:v0.10.2 \\\n"
        "    --model Qwen/Qwen3-8B --tensor-parallel-size 2"
    )
    assert (found.runtime, found.model, found.devices) == ("vllm", "Qwen/Qwen3-8B", 2)
    assert found.deployment.runtime_version == "0.10.2"
    assert found.deployment.tensor_parallel_size == 2
    assert not found.strays


def test_that_visible_devices_are_counted():
    assert read("CUDA_VISIBLE_DEVICES=0,2,3 vllm serve X/Y").devices == 3
    assert read("vllm serve X/Y").devices is None


def test_that_every_flag_that_is_not_understood_is_named():
    found = read("vllm serve X/Y --foo 3 --bar --max-num-seqs many --port 80 --made=up")
    assert found.strays == ("--foo 3", "--bar", "--max-num-seqs many", "--made up")
    assert found.harmless == ("--port",)
    assert any("--foo 3" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve X/Y --tokenn-api-key pa55word",
        "vllm serve X/Y --my-token='pa55word two'",
        "vllm serve X/Y --header 'Authorization: Bearer pa55word'",
        "vllm serve X/Y --extra HF_TOKEN=pa55word",
        "llama-server -m q.gguf -hft pa55word",
        "python -m sglang.launch_server --model-path X/Y --admin-api-key pa55word",
        "docker run -e HF_TOKEN=pa55word vllm/vllm-openai --model X/Y --what 'token: pa55word'",
        "HF_TOKEN=pa55word vllm serve https://me:pa55word@example.org/X/Y",
        "m = A.from_pretrained('X/Y', my_token='pa55word', use_auth_token='pa55word')",
        "FROM llama3.1:8b\nPARAMETER api_key pa55word",
    ],
)
def test_that_a_secret_of_a_command_is_not_repeated(text):
    found = read(text)
    assert "pa55word" not in repr(found)
    assert "two" not in repr(found)


def test_that_a_quantised_checkpoint_is_loaded_as_it_is_stored():
    plan = read("vllm serve X/Y --quantization fp8").deployment
    assert plan.weight_format == "fp8"
    assert of_model(plan, model()).weight_format == "fp8"
    stored = model("Qwen/Qwen3-8B-FP8")
    assert of_model(plan, stored).weight_format == "auto"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ls -la", "Nothing here starts a model"),
        ("vllm serve 'X/Y", "quotation mark"),
        ("OLLAMA_NUM_PARALLEL=many ollama serve", "OLLAMA_NUM_PARALLEL=many is no value"),
        ("vllm " + "x" * 30_000, "too long"),
        ("(" * 10_000, "Nothing here starts a model"),
        ("", "Nothing here starts a model"),
    ],
)
def test_that_what_is_no_command_is_told_in_one_sentence(text, words):
    with pytest.raises(UsageError, match=words):
        read(text)


def test_that_a_name_or_a_config_is_not_taken_for_a_command():
    assert looks_like_one("  vllm serve X")
    assert looks_like_one("$ docker run --gpus all vllm/vllm-openai --model X")
    assert not looks_like_one("Qwen/Qwen3-8B")
    assert not looks_like_one('{"model_type": "llama"}')
    assert not looks_like_one("vllm-project/x")
    assert not looks_like_one("ollama run llama3.1:8b")  # a name, as the search has it


SERVE = "vllm serve Qwen/Qwen3-8B --max-model-len 32768"


@pytest.mark.parametrize(
    "text",
    [
        SERVE,
        "vllm serve Qwen/Qwen3-8B \\\n  --max-model-len 32768 \\\n  --dtype bfloat16\n",
        "$env:CUDA_VISIBLE_DEVICES = '0'\nvllm serve Qwen/Qwen3-8B `\n  --dtype bfloat16",
        f"# fits with 3 GiB to spare\nexport CUDA_VISIBLE_DEVICES=0\n{SERVE}",
        (
            "pip install vllm\ndocker pull vllm/vllm-openai\ndocker run --gpus all \\\n  "
            "vllm/vllm-openai:v0.10.0 --model Qwen/Qwen3-8B"
        ),
        "FROM llama3.2:3b\nPARAMETER num_ctx 32768",
    ],
)
def test_that_a_command_over_several_lines_is_one(text):
    assert is_one(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name\nFROM models\nWHERE size > 1",
        "from os import path\nprint(path)",
        "from vllm import LLM\nllm = LLM(model='X/Y')",
        "import torch\nfrom models import load\nload()",
        'FROM vllm/vllm-openai:v0.9.0\nENV A=b\nCMD ["--model", "X/Y"]',
        "FROM",
        "FROM  \nPARAMETER num_ctx 4096",
        "DELETE FROM llama",
        "FROM llama3.1:8b\nand then we went home",
    ],
)
def test_that_a_line_with_from_is_not_yet_a_modelfile(text):
    with pytest.raises(UsageError, match="Nothing here starts a model"):
        read(text)


@pytest.mark.parametrize(
    ("text", "name", "context"),
    [
        ("# mine\n\nfrom llama3.1:8b\nparameter num_ctx 4096\n", "llama3.1:8b", 4096),
        ('FROM ./m.gguf\nFROM ./mmproj.gguf\nPARAMETER num_ctx "4096"', "./m.gguf", 4096),
        ('FROM x:1b\nTEMPLATE """\nfrom a import b\nPARAMETER num_ctx 1\n"""', "x:1b", None),
        ("%%writefile Modelfile\nFROM x:1b\nPARAMETER num_ctx 2048", "x:1b", 2048),
        (
            "cat <<'EOF' > Modelfile\nFROM x:1b\nPARAMETER num_ctx 2048\nEOF\nollama create y",
            "x:1b", 2048,
        ),
    ],
)  # fmt: skip
def test_that_a_modelfile_is_read_as_ollama_reads_it(text, name, context):
    found = read(text)
    assert (found.runtime, found.model) == ("ollama", name)
    assert found.stated.get("max_model_len") == context


@pytest.mark.parametrize(
    "text",
    [
        f"{SERVE}\nINFO 07-01 10:00:00 [loader.py:1] Loading weights took 3.20 seconds",
        f"$ {SERVE} \\\n  --dtype bfloat16\ntorch.OutOfMemoryError: CUDA out of memory.",
        f"{SERVE}\nit can't be loaded",
        "pip install vllm\ncd models",
        "FROM llama3.1:8b\nload_tensors: offloaded 33/33 layers to GPU",
        '{"model_type": "llama",\n "hidden_size": 64}',
        "",
        f"{SERVE} " + "x" * 20_000,
    ],
)
def test_that_a_log_that_begins_with_its_command_is_none(text):
    assert not is_one(text)


@pytest.mark.parametrize(
    "text",
    [
        "!vllm serve X/Y -tp 2",
        "!!vllm serve X/Y -tp 2",
        "  %sx vllm serve X/Y -tp 2",
        "%%bash\nvllm serve X/Y -tp 2",
        "%%script bash\nvllm serve X/Y -tp 2",
        "In [12]: !vllm serve X/Y -tp 2",
        "from transformers import pipeline\n# don't\nprint('it's')\n!vllm serve X/Y \\\n  -tp 2\n",
        "%pip install vllm\n!pip install -q x\n!nohup vllm serve X/Y -tp 2 > log.txt 2>&1 &",
        "(venv) me@host:~/models$ vllm serve X/Y -tp 2",
        "root@0a1b:/# vllm serve X/Y -tp 2",
    ],
)
def test_that_a_command_of_a_cell_or_behind_a_prompt_is_one(text):
    found = read(text)
    assert (found.runtime, found.model) == ("vllm", "X/Y")
    assert found.deployment.tensor_parallel_size == 2
    assert not found.strays


@pytest.mark.parametrize("export", ["export ", "", "%env ", "%set_env ", "set ", "!export "])
def test_that_a_variable_set_on_a_line_of_its_own_holds_for_the_next(export):
    start = "!" if export[:1] in "%!" and export else ""
    text = f"{export}CUDA_VISIBLE_DEVICES=0,2,3\n{start}vllm serve X/Y"
    assert read(text).devices == 3


def test_that_lines_typed_into_python_are_read():
    text = (
        ">>> from transformers import AutoModelForCausalLM\n"
        ">>> m = AutoModelForCausalLM.from_pretrained(\n...   'X/Y', device_map='auto')\n>>>\n"
    )
    assert read(text).stated == {"runtime": "transformers", "device_map": "auto"}
    cell = "!pip install transformers\nm = AutoModel.from_pretrained('X/Y')\n"
    assert read(cell).model == "X/Y"


def test_that_a_command_is_known_by_its_start_behind_a_prompt_too():
    for text in ("!vllm serve X", "%%bash\nvllm serve X", "me@host:~$ llama-server -m x.gguf"):
        assert looks_like_one(text)
    assert not looks_like_one("!pip install vllm")
