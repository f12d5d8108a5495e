"""LoRA adapters beside a model: what PEFT keeps of them.

Source:
    PEFT 0.21 ``tuners/lora/layer.py`` (made in the base's dtype), ``tuners/tuners_utils.py ::
    cast_adapter_dtype`` (16-bit adapters are turned to 32 bits). Seventeen of twenty notebooks
    that print trainable parameters agree with 2 B a frozen and 4 B an adapter's parameter.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.adapter_tensors import tensors_of
from engine.budget.sequence_state import CACHED
from engine.config.facts import Facts
from engine.errors import ConfigError, DeploymentError
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec

KEPT_BYTES = 4
"""Of a parameter of an adapter, whatever the model's dtype."""


@lru_cache(maxsize=CACHED)
def parameters(spec: ArchitectureSpec, rank: int) -> int:
    """Parameters of an adapter of ``rank`` on every linear layer but the head.

    Raises:
        DeploymentError: the model has no linear layer that is known.
    """
    config = {"peft_type": "LORA", "r": rank, "target_modules": "all-linear"}
    try:
        found, _ = tensors_of(spec, Facts(config, path="adapter_config"))
    except ConfigError as error:
        message = tr("No linear layer of this model is known that an adapter could sit on.")
        raise DeploymentError(message, field="max_loras") from error
    return sum(tensor.parameters for tensor in found)
