"""PI0: a vision-language model, and a smaller decoder that acts on its keys and values.

Source:
    transformers 5.24.0, ``pi0/modeling_pi0.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.heads import first_class
from engine.architecture.spec import ModuleClass
from engine.architecture.towers.encoders import encoder
from engine.architecture.towers.parts import Tower, vision_of
from engine.architecture.towers.stacks import stack
from engine.config.facts import Facts

if TYPE_CHECKING:
    from engine.architecture.spec import Tensor

_ABSENT = {"intermediate_size": 4304}
"""Where PI0's encoder differs from PaliGemma's, if the config leaves the whole model out."""
_PROJECTED = 2048
"""Width that PaliGemma projects to where its config does not say."""


def pi0(root: Facts, text: Facts) -> list[Tensor]:
    """PI0: PaliGemma without its head, Gemma as the expert of actions, and what joins them."""
    seen = root.sub("vlm_config") or root.empty("vlm_config")
    vision = vision_of(seen)
    if root.raw("vlm_config") is None:
        vision = Facts(_ABSENT, vision.model_type, vision.defaults, vision.path)
    tower = encoder(vision)
    tower.path = "multi_modal_projector."
    out = seen.integer("projection_dim", _PROJECTED)
    tower.linear("linear", out, vision.integer("hidden_size"))
    stated = root.sub("dit_config") or root.empty("dit_config")
    shared = {**stated.stated, "vocab_size": text.integer("vocab_size")}
    expert = Facts(shared, stated.model_type, stated.defaults, stated.path)
    expert.asked = stated.asked
    whole = [*tower.tensors, *stack(expert, "dit.")]
    if first_class(root.stated) == "PI0Model":
        return whole
    joined = Tower("", ModuleClass.OTHER)
    hidden, actions = expert.integer("hidden_size"), root.integer("max_action_dim")
    joined.linear("embed_action_time.action_in_proj", hidden, actions)
    joined.linear("embed_action_time.state_proj", hidden, root.integer("max_state_dim"))
    joined.linear("embed_action_time.action_time_mlp_in", hidden, 2 * hidden)
    joined.linear("embed_action_time.action_time_mlp_out", hidden, hidden)
    joined.linear("action_out_proj", actions, hidden)
    return whole + joined.tensors


TOWERS = {"pi0": pi0}
