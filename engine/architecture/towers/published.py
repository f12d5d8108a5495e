"""Roots whose code is published with their weights, each proved by a published total.

Source:
    ``modeling_*.py`` beside the weights of OpenGVLab/InternVL2-2B, deepseek-ai/deepseek-vl2-tiny,
    deepseek-ai/deepseek-vl-1.3b-chat, nvidia/Eagle2-2B, nvidia/LocateAnything-3B and
    moonshotai/Kimi-VL-A3B-Instruct.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.towers.documents import unlimited_vision
from engine.architecture.towers.encoders import encoder, tower_of
from engine.architecture.towers.further import moonvit
from engine.architecture.towers.parts import number, vision_of
from engine.architecture.towers.registry import UnknownTowerError
from engine.architecture.towers.tokens import writing
from engine.config.defaults import class_defaults
from engine.config.facts import Facts
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor
    from engine.architecture.towers.parts import Tower

_SIGLIPS = {
    "siglip_large_patch16_384": (1024, 24, 4.0, 16),
    "siglip_so400m_patch14_384": (1152, 27, 3.7362, 14),
}
"""timm's names -> width, layers, the MLP's ratio, sides of a patch; images are 384 across."""


def _project(tower: Tower, widths: tuple[int, ...], *, norm: int = 0) -> None:
    """Linear layers from each width to the next, behind a norm where there is one."""
    tower.path = "mlp1."
    if norm:
        tower.norm("0", norm)
    for index in range(1, len(widths)):
        tower.linear(str(index), widths[index], widths[index - 1])


def internvl_chat(root: Facts, text: Facts) -> list[Tensor]:
    """InternVL: InternViT, and a norm and two linear layers over unshuffled patches."""
    if root.count("use_backbone_lora") or root.count("use_llm_lora"):
        raise UnknownTowerError(tr("with adapters of low rank"))
    tower, out = tower_of(root), text.integer("hidden_size")
    together = int(1 / number(root, "downsample_ratio", 0.5)) ** 2
    width = vision_of(root).integer("hidden_size") * together
    _project(tower, (width, out, out), norm=width)
    return tower.tensors


def eagle(root: Facts, text: Facts) -> list[Tensor]:
    """Eagle 2 and 2.5: as InternVL, over SigLIP."""
    if root.integer("mlp_connector_layers", 2) != 2:
        raise UnknownTowerError(tr("with another connector"))
    return internvl_chat(root, text)


def locateanything(root: Facts, text: Facts) -> list[Tensor]:
    """LocateAnything: MoonViT, and a norm and two linear layers over merged patches."""
    if root.integer("mlp_connector_layers") != 2:
        raise UnknownTowerError(tr("with another connector"))
    tower, merged = moonvit(vision_of(root))
    out = text.integer("hidden_size")
    _project(tower, (merged, out, out), norm=merged)
    return tower.tensors


def kimi_vl(root: Facts, text: Facts) -> list[Tensor]:
    """Kimi-VL: MoonViT, a norm of each patch and two linear layers over merged ones."""
    vision = vision_of(root)
    tower, merged = moonvit(vision)
    norm = vision.integer("hidden_size")
    _project(tower, (merged, merged, text.integer("hidden_size")), norm=norm)
    return tower.tensors


def ovis(root: Facts, text: Facts) -> list[Tensor]:
    """Ovis: AIMv2 or SigLIP, a head over visual words without the indicators, their embedding."""
    tokenizer = root.sub("visual_tokenizer_config")
    backbone = tokenizer.sub("backbone_config") if tokenizer is not None else None
    if tokenizer is None or backbone is None:
        raise UnknownTowerError(tr("without a backbone"))
    kind = _BACKBONES.get(backbone.model_type)
    if kind is None:
        raise UnknownTowerError(backbone.model_type)
    given = {"mlp_bias": backbone.flag("use_bias"), "use_head": False, **backbone.stated}
    vision = Facts(given, kind, class_defaults(kind), backbone.path)
    vision.asked = backbone.asked
    tower = encoder(vision)
    tower.path = "visual_tokenizer.head."
    words, side = tokenizer.integer("vocab_size"), tokenizer.integer("hidden_stride", 1)
    seen = max(words - _INDICATORS, 1)
    tower.linear("0", seen, vision.integer("hidden_size") * side * side, bias=False)
    tower.norm("1", seen)
    tower.path = ""
    tower.weight("vte.weight", words, text.integer("hidden_size"))
    return tower.tensors


_BACKBONES = {"aimv2": "aimv2_vision_model", "siglip_vision_model": "siglip_vision_model"}
_INDICATORS = 5


def _siglip(name: str, vision: Facts) -> Tower:
    """A SigLIP of timm, with its pooling head."""
    usual = _SIGLIPS.get(name)
    if usual is None:
        raise UnknownTowerError(name)
    width = vision.integer("width", usual[0])
    stated = {
        "hidden_size": width,
        "intermediate_size": int(width * number(vision, "mlp_ratio", usual[2])),
        "num_hidden_layers": vision.integer("layers", usual[1]),
        "image_size": vision.integer("image_size", 384),
        "patch_size": vision.integer("patch_size", usual[3]),
        "vision_use_head": True,
    }
    kind = "siglip_vision_model"
    return encoder(Facts(stated, kind, class_defaults(kind), vision.path))


def _ocr() -> Tower:
    """DeepSeek-OCR's encoders, whose sizes its code fixes: CLIP keeps the patches it never uses."""
    kind = "unlimited_ocr_vision"
    tower, width = unlimited_vision(Facts({}, kind, class_defaults(kind)))
    tower.linear("vision_model.patch_embedding", width // 2, 3 * 14 * 14, bias=False)
    return tower


def deepseek_vl_v2(root: Facts, text: Facts) -> list[Tensor]:
    """DeepSeek-VL2: SigLIP and two linear layers over merged patches; DeepSeek-OCR: SAM, CLIP."""
    text.settle("lm_head", "rm_head")
    vision, projector = vision_of(root), root.sub("projector_config") or Facts({})
    name, out = vision.word("model_name"), projector.integer("n_embed", 2048)
    kind = projector.word("projector_type", "downsample_mlp_gelu")
    if root.word("tile_tag", "2D") != "2D":
        raise UnknownTowerError(tr("{name} with tiles in a row").format(name=name))
    if name == "deeplip_b_l" and kind == "linear":
        vision.settle("width", "image_size", "mlp_ratio")
        tower = _ocr()
        _project(tower, (2 * 1024, out))
    elif kind == "downsample_mlp_gelu":
        tower = _siglip(name, vision)
        side = projector.integer("downsample_ratio", 2)
        inner = int(out * number(projector, "mlp_ratio", 1))
        merged = vision.integer("width", _SIGLIPS[name][0]) * side * side
        middle = (inner,) * (projector.integer("depth", 2) - 1)
        _project(tower, (merged, *middle, out))
    else:
        raise UnknownTowerError(tr("{name} behind {kind}").format(name=name, kind=kind))
    tower.path = ""
    tower.weight("image_newline", out)
    tower.weight("view_seperator", out)
    return tower.tensors


def multi_modality(root: Facts, _text: Facts) -> list[Tensor]:
    """DeepSeek-VL and Janus as first published; only Janus writes images."""
    vision, aligner = _params(root, "vision_config"), _params(root, "aligner_config")
    if vision is None or aligner is None:
        raise UnknownTowerError(tr("without parameters"))
    tower = _siglip(vision.word("model_name"), vision)
    _project(tower, _aligned(aligner))
    codes, head = _params(root, "gen_vision_config"), _params(root, "gen_head_config")
    aligned = _params(root, "gen_aligner_config")
    if codes is None or head is None or aligned is None:
        return tower.tensors
    codes.settle("n_embed")
    head.settle("n_embed")
    width, *inner = _aligned(aligned)
    stated = {
        "embed_dim": width,
        "num_embeddings": codes.integer("image_token_size"),
        "projection_dim": inner[0],
        "num_hidden_layers": len(inner),
        "image_token_embed_dim": head.integer("image_token_embed"),
    }
    kind = "janus_vqgan"
    return tower.tensors + writing(Facts(stated, kind, class_defaults(kind)))


def _params(root: Facts, key: str) -> Facts | None:
    found = root.sub(key)
    return found.sub("params") if found is not None else None


def _aligned(aligner: Facts) -> tuple[int, ...]:
    """Widths before, between and behind the layers of an aligner."""
    kind = aligner.word("projector_type")
    if kind != "mlp_gelu":
        raise UnknownTowerError(tr("behind {value}").format(value=kind or tr("no projector")))
    depth = aligner.integer("depth", 1)
    if depth > _DEEPEST:
        raise aligner.bad(
            "depth", depth, tr("at most {deepest} layers are plausible").format(deepest=_DEEPEST)
        )
    return (aligner.integer("input_dim"), *((aligner.integer("n_embed"),) * depth))


_DEEPEST = 64

TOWERS = {
    "deepseek_vl_v2": deepseek_vl_v2, "eagle_2_5_vl": eagle, "internvl_chat": internvl_chat,
    "kimi_vl": kimi_vl,
    "locateanything": locateanything, "multi_modality": multi_modality, "ovis": ovis,
}  # fmt: skip
