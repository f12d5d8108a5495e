"""Where the language model's part of a config lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.config.defaults import class_defaults
from engine.config.facts import Facts, facts_for, is_mapping, shown
from engine.config.originals import in_known_words
from engine.errors import ConfigError
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT_KEYS = (
    "text_config", "llm_config", "language_config", "language_model", "thinker_config", "llm_cfg",
    "text_model_config", "decoder_config", "vlm_config", "decoder", "transf_decoder", "config_dict",
)  # fmt: skip
_FLAT = {
    "dots_ocr": "qwen2", "GOT": "qwen2", "moondream1": "phi", "phi4mm": "phi3",
    "llava_llama": "llama", "llava_mistral": "mistral", "llava_qwen": "qwen2",
    "llava_qwen2": "qwen2", "molmo": "molmo_text", "phi3_v": "phi3",
}  # fmt: skip
_MINICPMV: Mapping[float, str] = {2.5: "llama", 2.6: "qwen2", 4.0: "llama", 4.5: "qwen3"}
"""Version of a MiniCPM-V -> the type of its text model."""
_DEEPEST = 3
_MOST_KEYS = 4_000
"""Ten times what any published config has at its root."""
_DIMENSIONS = ("hidden_size", "n_embd", "d_model", "num_hidden_layers", "n_layer", "num_layers")


def root_facts(config: Mapping[str, object]) -> Facts:
    """The whole config with the defaults of its class.

    Raises:
        ConfigError: it is no object, or its ``model_type`` is no word.
    """
    if not is_mapping(config):
        message = tr(
            "config.json holds {shown}; an object with the model's fields is needed."
        ).format(shown=shown(config))
        raise ConfigError(message)
    if len(config) > _MOST_KEYS:
        message = tr("The config has {config} keys; no model's has more than {most_keys}.").format(
            config=grouped(len(config)), most_keys=grouped(_MOST_KEYS)
        )
        raise ConfigError(message)
    config = in_known_words(config)
    if not config.get("model_type"):
        return facts_for(config, _type_of_class(config))
    return facts_for(config)


def _type_of_class(config: Mapping[str, object]) -> str:
    """``minicpm3`` for ``architectures: ["MiniCPM3ForCausalLM"]``, where no type is stated."""
    named = config.get("architectures")
    first: object = cast("list[object]", named)[0] if isinstance(named, list) and named else None
    if not isinstance(first, str):
        return ""
    return first.removesuffix("ForCausalLM").lower() if first.endswith("ForCausalLM") else ""


def text_facts(root: Facts) -> Facts:
    """The language model's own config: ``root`` itself, or the sub-config that holds it.

    A sub-config without a ``model_type`` takes the one its root's class gives it. A config of
    a multimodal class with the text fields at the root (Qwen2-VL as first published) is read
    as the text config of that class.

    Raises:
        ConfigError: a sub-config is no object.
    """
    facts = root
    for _ in range(_DEEPEST):
        inner = _inner(facts)
        if inner is None:
            return facts
        facts = inner
    return facts


def _inner(facts: Facts) -> Facts | None:
    for key in _TEXT_KEYS:
        value = facts.stated.get(key)
        if value is not None and _holds_text(facts, key, value):
            facts.asked.add(key)
            return _under(facts, facts.sub(key), key)
    for key in _TEXT_KEYS:
        sub_type = facts.defaults.sub_types.get(key)
        if sub_type is None:
            continue
        facts.asked.add(key)
        own = facts.defaults.values
        if any(name in facts.stated and name not in own for name in _DIMENSIONS):
            return Facts(facts.stated, sub_type, class_defaults(sub_type), facts.path)
        return _under(facts, facts.empty(key), key)
    kind = _text_type(facts)
    return Facts(facts.stated, kind, class_defaults(kind), facts.path) if kind else None


def _text_type(facts: Facts) -> str:
    """The text model of a published class that has its fields at the root; empty for others."""
    if facts.model_type != "minicpmv":
        return _FLAT.get(facts.model_type, "")
    version = facts.raw("version")
    if version is None and facts.raw("query_num") == 96:
        version = 2.5
    return _MINICPMV.get(version, "") if isinstance(version, int | float) else ""


def _holds_text(facts: Facts, key: str, value: object) -> bool:
    if key == "decoder" and is_mapping(value):
        # Of a class that is not known it is the text model if it has the dimensions of one.
        unknown = not facts.defaults.values and not facts.path
        return key in facts.defaults.sub_types or (
            unknown and any(name in value for name in _DIMENSIONS)
        )
    if key == "config_dict":
        return is_mapping(value) and facts.path.endswith("transf_decoder")
    return is_mapping(value) or key not in ("decoder", "decoder_config", "transf_decoder")


def _under(facts: Facts, found: Facts | None, key: str) -> Facts | None:
    """``found`` with the config it lies in.

    A decoder that was taken from elsewhere may state the class it had there; beside an encoder
    it always has a language model's head.
    """
    if found is not None:
        found.above = facts
        if key == "decoder":
            found.stated = {**found.stated, "architectures": ["AutoModelForCausalLM"]}
    return found
