"""Quantise small models with the public quantisers and write down what their files hold.

One line a file: the tool, the config it wrote, and every tensor with its dtype and shape. The
shapes are awkward on purpose: 320 and 480 columns are no multiple of 128 or 256, 136 rows no
multiple of 32. Whatever is not installed is left out and named at the end.

    python packaging/data/measure_quantised.py tests/evidence/quantised_files.jsonl

Needs torch and transformers, and of bitsandbytes, torchao, compressed-tensors, nvidia-modelopt,
amd-quark, auto-round and mlx-lm those that are to be measured; all of it runs on a CPU.
"""

# ruff: noqa: PLC0415 - what is not installed is left out

from __future__ import annotations

import argparse
import copy
import json
import struct
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Files = Iterator[tuple[str, Path]]
    """Names of measured files, and the folders they lie in."""

DENSE: dict[str, Any] = {
    "vocab_size": 136,
    "hidden_size": 320,
    "intermediate_size": 480,
    "num_hidden_layers": 1,
    "num_attention_heads": 5,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}
EXPERTS: dict[str, Any] = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 96,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
KEPT = {
    *DENSE,
    *EXPERTS,
    "num_local_experts",
    "model_type",
    "dtype",
    "torch_dtype",
    "transformers_version",
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "dense": ("llama", {}),
    "tied": ("llama", {"tie_word_embeddings": True}),
    "half": ("llama", {"dtype": "float16"}),
    "moe": ("qwen3_moe", EXPERTS),
}


def main() -> None:
    """Measure what is installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=", ".join(TOOLS))
    wanted = parser.parse_args()
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in MODELS:
            _make(root, name)
        for tool, measure in TOOLS.items():
            if wanted.tools and tool not in wanted.tools:
                continue
            try:
                found = [_line(tool, name, path) for name, path in measure(root)]
            except ImportError as error:
                print(f"{tool} is left out: {error}")
                continue
            print(f"{tool}: {len(found)} files")
            lines += found
    wanted.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _make(root: Path, name: str) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    model_type, changes = MODELS[name]
    stated = {**DENSE, **changes}
    dtype = getattr(torch, stated.pop("dtype", "bfloat16"))
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **stated)
    AutoModelForCausalLM.from_config(config, dtype=dtype).save_pretrained(root / name)


def _load(path: Path, **settings: Any) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(path, **settings)


def _line(tool: str, name: str, path: Path) -> str:
    stated: dict[str, Any] = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config = {k: v for k, v in stated.items() if k in KEPT or k.startswith("quantization")}
    tensors: dict[str, str] = {}
    for file in sorted(path.glob("*.safetensors")):
        with file.open("rb") as opened:
            (size,) = struct.unpack("<Q", opened.read(8))
            header: dict[str, Any] = json.loads(opened.read(size))
        header.pop("__metadata__", None)
        for tensor, entry in sorted(header.items()):
            tensors[tensor] = " ".join([entry["dtype"], "x".join(map(str, entry["shape"]))]).strip()
    said = f"{tool} {version(tool)}"
    return json.dumps({"tool": said, "name": name, "config": config, "tensors": tensors})


def bitsandbytes(root: Path) -> Files:
    """8 and 4 bits, with and without nested statistics."""
    from transformers import BitsAndBytesConfig

    four = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "nf4": ("dense", four),
        "nf4 nested": ("dense", {**four, "bnb_4bit_use_double_quant": True}),
        "fp4": ("dense", {"load_in_4bit": True}),
        "int8": ("dense", {"load_in_8bit": True}),
        "nf4 half": ("half", four),
        "nf4 tied": ("tied", four),
        "nf4 experts": ("moe", four),
        "nf4 with a list": ("dense", {**four, "llm_int8_skip_modules": ["q_proj"]}),
    }
    for name, (model, settings) in cases.items():
        config = BitsAndBytesConfig(**settings)
        yield _saved(root, name, _load(root / model, quantization_config=config, device_map="cpu"))


def transformers(root: Path) -> Files:
    """Methods whose own tools need a GPU: the modules into which Transformers loads their files."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.quantizers import AutoQuantizationConfig
    from transformers.quantizers.auto import AutoHfQuantizer

    blocks = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    whole = {"quant_method": "fp8", "weight_block_size": None}
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "fp8 blocks": ("dense", blocks),
        "fp8 blocks e8m0": ("dense", {**blocks, "scale_fmt": "ue8m0"}),
        "fp8 blocks of 64": ("dense", {**blocks, "weight_block_size": [64, 64]}),
        "fp8 blocks of experts": ("moe", blocks),
        "fp8": ("dense", {**whole, "activation_scheme": "dynamic"}),
        "fp8 static": ("dense", {**whole, "activation_scheme": "static"}),
        "bitnet": ("dense", {"quant_method": "bitnet"}),
    }
    for name, (model, stated) in cases.items():
        path = root / f"transformers-{name.replace(' ', '-')}"
        path.mkdir()
        config = AutoConfig.from_pretrained(root / model)
        quantiser = AutoHfQuantizer.from_config(
            AutoQuantizationConfig.from_dict(dict(stated)), pre_quantized=True
        )
        with torch.device("meta"):
            made = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        quantiser.preprocess_model(made, device_map=None)
        save_file(made.to_empty(device="cpu").state_dict(), path / "model.safetensors")
        written = json.loads((root / model / "config.json").read_text(encoding="utf-8"))
        written["quantization_config"] = stated
        (path / "config.json").write_text(json.dumps(written), encoding="utf-8")
        yield name, path


def torchao(root: Path) -> Files:
    """What torchao quantises without a GPU."""
    import torch
    from torchao.quantization import (
        Float8WeightOnlyConfig,
        Int8DynamicActivationInt8WeightConfig,
        Int8DynamicActivationIntxWeightConfig,
        Int8WeightOnlyConfig,
        PerGroup,
    )
    from transformers import TorchAoConfig

    four = {"weight_dtype": torch.int4, "weight_granularity": PerGroup(32)}
    for made in (
        Int8WeightOnlyConfig(),
        Int8DynamicActivationInt8WeightConfig(),
        Int8DynamicActivationIntxWeightConfig(**four),
        Float8WeightOnlyConfig(),
    ):
        config = TorchAoConfig(made)
        model = _load(root / "dense", quantization_config=config, device_map="cpu")
        yield _saved(root, type(made).__name__, model)


def _saved(root: Path, name: str, model: Any) -> tuple[str, Path]:
    path = root / name.replace(" ", "-")
    model.save_pretrained(path)
    return name, path


_INT8 = {"num_bits": 8, "type": "int", "symmetric": True}
_FP8 = {"num_bits": 8, "type": "float", "symmetric": True}
_INT4 = {"num_bits": 4, "type": "int", "symmetric": True}
_BY_GROUP = {"strategy": "group", "group_size": 32}
_TOKEN, _TENSOR = {"strategy": "token", "dynamic": True}, {"strategy": "tensor"}
_FP4 = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "tensor_group"}
_NVFP4 = {**_FP4, "group_size": 16, "scale_dtype": "torch.float8_e4m3fn"}
_MX = {"type": "float", "symmetric": True, **_BY_GROUP, "scale_dtype": "torch.uint8"}
COMPRESSED: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None]] = {
    "w4a16": ("pack-quantized", {**_INT4, **_BY_GROUP}, None),
    "w4a16 zeros": ("pack-quantized", {**_INT4, **_BY_GROUP, "symmetric": False}, None),
    "w4a16 weight order": ("pack-quantized", {**_INT4, **_BY_GROUP, "actorder": "weight"}, None),
    "w4a16 channel": ("pack-quantized", {**_INT4, "strategy": "channel"}, None),
    "w4a16 channel zeros": (
        "pack-quantized",
        {**_INT4, "strategy": "channel", "symmetric": False},
        None,
    ),
    "w8a16": ("pack-quantized", {**_INT8, **_BY_GROUP}, None),
    "w3a16": ("pack-quantized", {**_INT4, **_BY_GROUP, "num_bits": 3}, None),
    "w2a16": ("pack-quantized", {**_INT4, **_BY_GROUP, "num_bits": 2}, None),
    "w8a8": ("int-quantized", {**_INT8, "strategy": "channel"}, {**_INT8, **_TOKEN}),
    "w8a8 zeros": (
        "int-quantized",
        {**_INT8, "strategy": "channel", "symmetric": False},
        {**_INT8, **_TOKEN},
    ),
    "w8a8 static": ("int-quantized", {**_INT8, **_TENSOR}, {**_INT8, **_TENSOR}),
    "fp8 channel": ("float-quantized", {**_FP8, "strategy": "channel"}, {**_FP8, **_TOKEN}),
    "fp8 static": ("float-quantized", {**_FP8, **_TENSOR}, {**_FP8, **_TENSOR}),
    "fp8 block": (
        "float-quantized",
        {**_FP8, "strategy": "block", "block_structure": [128, 128]},
        {**_FP8, "strategy": "group", "group_size": 128, "dynamic": True},
    ),
    "nvfp4": ("nvfp4-pack-quantized", _NVFP4, {**_NVFP4, "dynamic": "local"}),
    "nvfp4 a16": ("nvfp4-pack-quantized", _NVFP4, None),
    "mxfp4": ("mxfp4-pack-quantized", {**_MX, "num_bits": 4}, None),
    "mxfp8": ("mxfp8-quantized", {**_MX, "num_bits": 8}, None),
    "fp8 channel with the head": ("float-quantized", {**_FP8, "strategy": "channel"}, None),
    "fp8 channel half": ("float-quantized", {**_FP8, "strategy": "channel"}, None),
}
"""Name -> layout, arguments of the weights, arguments of the activations."""


def compressed_tensors(root: Path) -> Files:
    """Every layout of compressed-tensors."""
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import (
        QuantizationArgs,
        QuantizationConfig,
        QuantizationScheme,
        apply_quantization_config,
    )

    for name, (layout, weights, activations) in COMPRESSED.items():
        model = _load(root / ("half" if name.endswith("half") else "dense"))
        scheme = QuantizationScheme(
            targets=["Linear"],
            weights=QuantizationArgs(**weights),
            input_activations=QuantizationArgs(**activations) if activations else None,
        )
        config = QuantizationConfig(
            config_groups={"group_0": scheme},
            ignore=[] if "head" in name else ["lm_head"],
            format=layout,
            quantization_status="frozen",
        )
        apply_quantization_config(model, config)
        for module in model.modules():
            if hasattr(module, "weight_scale"):
                module.weight_scale.data.fill_(1.0)
        compressor = ModelCompressor.from_pretrained_model(model)
        compressor.compress_model(model)
        _, path = _saved(root, name, model)
        compressor.update_config(path)
        yield name, path


RECIPES = (
    "FP8_DEFAULT_CFG",
    "FP8_2D_BLOCKWISE_WEIGHT_ONLY_CFG",
    "FP8_PER_CHANNEL_PER_TOKEN_CFG",
    "MXFP8_DEFAULT_CFG",
    "MXFP4_DEFAULT_CFG",
    "NVFP4_DEFAULT_CFG",
    "W4A16_NVFP4_CFG",
    "INT8_SMOOTHQUANT_CFG",
    "INT8_WEIGHT_ONLY_CFG",
)


def modelopt(root: Path) -> Files:
    """What modelopt's own recipes come to on a CPU."""
    import modelopt.torch.quantization as mtq
    import torch
    from modelopt.torch.export import export_hf_checkpoint

    made = {name: getattr(mtq, name) for name in RECIPES}
    cached = copy.deepcopy(mtq.NVFP4_DEFAULT_CFG)
    cached["quant_cfg"] = [*cached["quant_cfg"], *mtq.FP8_KV_CFG["quant_cfg"]]
    tokens = torch.arange(64).reshape(2, 32)
    made["NVFP4_DEFAULT_CFG with FP8_KV_CFG"] = cached
    made["FP8_DEFAULT_CFG of experts"] = mtq.FP8_DEFAULT_CFG
    made["NVFP4_DEFAULT_CFG of experts"] = mtq.NVFP4_DEFAULT_CFG
    for name, recipe in made.items():
        source = "moe" if name.endswith("experts") else "dense"
        model, path = _load(root / source), root / name.replace(" ", "-")
        mtq.quantize(model, recipe, lambda called: called(tokens))
        with torch.inference_mode():
            export_hf_checkpoint(model, export_dir=path)
        yield name, path


def quark(root: Path) -> Files:
    """What Quark exports: scales of one tensor, of channels, of groups."""
    import torch
    from quark.torch import ModelQuantizer, export_safetensors
    from quark.torch import quantization as kinds
    from torch.utils.data import DataLoader

    rounded = {"scale_type": "float", "round_method": "half_even", "is_dynamic": False}
    groups = {"ch_axis": -1, "group_size": 32, **rounded}
    whole = kinds.FP8E4M3PerTensorSpec(is_dynamic=False)
    cases: dict[str, tuple[Any, Any]] = {
        "fp8": (whole, None),
        "fp8 static": (whole, whole),
        "fp8 channel": (kinds.FP8E4M3PerChannelSpec(ch_axis=0, is_dynamic=False), None),
        "mxfp4": (kinds.OCP_MXFP4Spec(ch_axis=-1, is_dynamic=False), None),
        "int8": (kinds.Int8PerChannelSpec(symmetric=True, ch_axis=0, **rounded), None),
        "int4": (kinds.Int4PerGroupSpec(symmetric=True, **groups), None),
        "uint4": (kinds.Uint4PerGroupSpec(symmetric=False, **groups), None),
    }
    tokens = DataLoader(torch.arange(64).reshape(2, 32), batch_size=1)
    for name, (weights, inputs) in cases.items():
        made = kinds.QLayerConfig(
            weight=weights.to_quantization_spec(),
            input_tensors=inputs.to_quantization_spec() if inputs else None,
        )
        quantiser = ModelQuantizer(kinds.QConfig(global_quant_config=made, exclude=["lm_head"]))
        model = quantiser.quantize_model(_load(root / "dense").eval(), tokens)
        path = root / f"quark-{name.replace(' ', '-')}"
        with torch.no_grad():
            export_safetensors(
                model=quantiser.freeze(model),
                output_dir=str(path),
                weight_format="real_quantized",
                pack_method="reorder",
            )
        yield name, path


def auto_round(root: Path) -> Files:
    """Round-to-nearest in the packings that auto-round writes."""
    from auto_round import AutoRound
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({f"t{i}": i for i in range(136)}))
    tokens = PreTrainedTokenizerFast(tokenizer_object=words)
    widths = {"model.layers.0.mlp.down_proj": {"bits": 8}}
    widths["model.layers.0.self_attn.k_proj"] = {"bits": 16}
    cases: dict[str, tuple[str, str, dict[str, Any]]] = {
        "gptq 4": ("auto_gptq", "W4A16", {}),
        "gptq 8": ("auto_gptq", "W8A16", {}),
        "awq": ("auto_awq", "W4A16", {}),
        "awq zeros": ("auto_awq", "W4A16", {"sym": False}),
        "own 4": ("auto_round", "W4A16", {}),
        "own 3": ("auto_round", "W3A16", {}),
        "own 2": ("auto_round", "W2A16", {}),
        "own mxfp4": ("auto_round", "MXFP4", {}),
        "own widths": ("auto_round", "W4A16", {"layer_config": widths}),
        "own 4 of experts": ("auto_round", "W4A16", {}),
        "gptq 4 of experts": ("auto_gptq", "W4A16", {}),
    }
    for name, (packing, scheme, more) in cases.items():
        path = root / f"auto-round-{name.replace(' ', '-')}"
        settings = {"iters": 0, "nsamples": 1, "seqlen": 32, "group_size": 32}
        settings |= {"device_map": "cpu", "disable_opt_rtn": True, **more}
        source = "moe" if name.endswith("experts") else "dense"
        model = AutoRound(_load(root / source), tokens, scheme=scheme, **settings)
        model.quantize_and_save(str(path), format=packing)
        yield name, next(path.rglob("config.json")).parent


def mlx_lm(root: Path) -> Files:
    """Every width and mode of MLX, and one mixture."""
    from mlx_lm.utils import load_model, quantize_model, save_config, save_model

    def mixture(path: str, _module: object) -> bool | dict[str, int]:
        return {"bits": 8, "group_size": 32} if "q_proj" in path else True

    cases: list[tuple[str, str, dict[str, Any]]] = [
        (f"{bits} bits", "dense", {"bits": bits, "group_size": 32}) for bits in (2, 3, 4, 5, 6, 8)
    ]
    stated = json.loads((root / "moe" / "config.json").read_text(encoding="utf-8"))
    stated |= {"num_experts": EXPERTS["num_experts"], "rope_theta": 10_000.0}
    (root / "moe" / "config.json").write_text(json.dumps(stated), encoding="utf-8")
    cases += [
        ("4 bits of experts", "moe", {"bits": 4, "group_size": 32}),
        ("4 bits in 64 of experts", "moe", {"bits": 4, "group_size": 64}),
        ("4 bits in 64", "dense", {"bits": 4, "group_size": 64}),
        ("4 bits tied", "tied", {"bits": 4, "group_size": 32}),
        ("mxfp4", "dense", {"bits": 4, "group_size": 32, "mode": "mxfp4"}),
        ("nvfp4", "dense", {"bits": 4, "group_size": 16, "mode": "nvfp4"}),
        ("mxfp8", "dense", {"bits": 8, "group_size": 32, "mode": "mxfp8"}),
        ("mixture", "dense", {"bits": 4, "group_size": 32, "quant_predicate": mixture}),
    ]
    for name, source, settings in cases:
        model, config = load_model(root / source, lazy=False)
        model, config = quantize_model(model, config, **settings)
        path = root / f"mlx-{name.replace(' ', '-')}"
        path.mkdir()
        save_model(path, model)
        save_config(config, path / "config.json")
        yield name, path


TOOLS: dict[str, Callable[[Path], Any]] = {
    "transformers": transformers,
    "bitsandbytes": bitsandbytes,
    "torchao": torchao,
    "compressed-tensors": compressed_tensors,
    "nvidia-modelopt": modelopt,
    "amd-quark": quark,
    "auto-round": auto_round,
    "mlx-lm": mlx_lm,
}


if __name__ == "__main__":
    main()
