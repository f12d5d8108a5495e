"""Build a model without weights on torch's meta device and write its parameters as JSON.

Run by another Python than Plimsoll's own, one that has torch and transformers: the config comes
on stdin, one JSON object leaves on stdout. Only classes of transformers itself are built.
"""

import importlib
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

MAPPINGS = (
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_MAPPING_NAMES",
)
RENAMED = {"kimi_k2": "deepseek_v3", "phi4": "phi3", "minimax_m3": "minimax_m3_vl_text"}
UNWANTED = ("auto_map", "quantization_config")


def class_of(config, stated):
    """The class that ``architectures`` names, else the first that is made for this config."""
    import transformers
    from transformers.models.auto import modeling_auto

    names = [name for name in stated or () if isinstance(name, str)]
    for mapping in MAPPINGS:
        found = getattr(modeling_auto, mapping, {}).get(config.model_type)
        names += [found] if isinstance(found, str) else list(found or ())
    for name in names:
        found = getattr(transformers, name, None)
        if found is not None and getattr(found, "config_class", None) is type(config):
            return found
    # The text part of a multimodal model has no entry of its own.
    home = type(config).__module__.replace(".configuration_", ".modeling_")
    for name, found in vars(importlib.import_module(home)).items():
        is_own = isinstance(found, type) and getattr(found, "config_class", None) is type(config)
        if is_own and name.endswith(("ForCausalLM", "ForConditionalGeneration", "TextModel")):
            return found
    return None


def without(stated):
    """The config less what would ask for code of a repository or a quantizer, at any depth."""
    return {
        key: without(value) if isinstance(value, dict) else value
        for key, value in stated.items()
        if key not in UNWANTED
    }


def build(stated):
    """The answer for one config."""
    import torch
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    versions = {"torch": str(torch.__version__), "transformers": transformers.__version__}
    given = without(stated)
    named = str(given.pop("model_type", "") or "")
    model_type = named if named in CONFIG_MAPPING else RENAMED.get(named, named)
    if model_type not in CONFIG_MAPPING:
        return {"error": "no_class", "named": named, **versions}
    config = CONFIG_MAPPING[model_type].from_dict(given)
    made = class_of(config, given.get("architectures"))
    if made is None:
        return {"error": "no_class", "named": named, **versions}
    with torch.device("meta"):
        model = made(config)
    model.tie_weights()
    tensors = [[name, list(tensor.shape)] for name, tensor in model.named_parameters()]
    return {"class": made.__name__, "tensors": tensors, **versions}


def main():
    """Answer on the real stdout; whatever the libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        found = build(json.load(sys.stdin))
    except Exception as error:  # noqa: BLE001 - the caller turns it into a sentence
        found = {"error": "failed", "named": f"{type(error).__name__}: {error}"[:400]}
    json.dump(found, answers)
    answers.flush()


if __name__ == "__main__":
    main()
