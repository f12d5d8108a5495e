"""A plan read from lines of Python that load a model with Transformers. Nothing of them is run."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from engine.launch import weights
from engine.launch.dialect import Heard
from engine.launch.transformers import GENERATING, LOADING, ON_ONE_GPU
from engine.runtimes.transformers.placement import NOT_SPREAD
from engine.words import tr

if TYPE_CHECKING:
    from engine.launch.flags import Flag

_ELSEWHERE = (None, "quantization_config", "cache_config", "token", "use_auth_token")
"""Arguments that are read in another place, or change no memory; None is one like ``**inputs``."""

_PROMPT = re.compile(
    r"^[ \t]*(?:>>>|\.\.\.|In \[\d{0,5}\]:)[ ]?|^[ \t]*(?:[!%][^\n]*|>>>$|\.\.\.$)", re.MULTILINE
)
"""Signs of a Python that is talked to; and a notebook's commands, which are none of Python's."""
_NO_MODELS = ("Tokenizer", "TokenizerFast", "Processor", "Config", "FeatureExtractor")
_MOST_BITS = 16
_MOST_PROMPTS = 2**31


def heard(text: str) -> Heard | None:
    """The plan of lines that load a model; None where they don't, or aren't Python."""
    lines = _PROMPT.sub("", text)
    try:
        tree = ast.parse(lines)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    loads = [node for node in calls if _is_load(node)]
    return _Lines(lines, tree, calls, loads[-1]).heard() if loads else None


class _Lines:
    """The calls of one text."""

    def __init__(self, text: str, tree: ast.Module, calls: list[ast.Call], load: ast.Call) -> None:
        self._text, self._tree, self._calls, self._load = text, tree, calls, load
        self._names = {
            target.id: node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self._values: dict[str, Any] = {}
        self._lost: list[str] = []

    def heard(self) -> Heard:
        """What they say of the plan."""
        self._take(self._load, LOADING)
        values = self._values
        for node in self._calls:
            if isinstance(node.func, ast.Attribute) and node.func.attr == "generate":
                self._take(node, GENERATING)
                self._take_cache(node)
            if isinstance(node.func, ast.Name) and node.func.id == "BitsAndBytesConfig":
                values["quantization"] = _quantised(node)
        if values.pop("tp_plan", None):
            self._lost.append(tr("tp_plan: say over how many devices as tensor_parallel_size."))
        if values.get("device_map") in (ON_ONE_GPU, "cuda:0"):
            values["device_map"] = NOT_SPREAD
        prompts = self._prompts()
        if prompts is not None:
            values["concurrency"] = prompts
        name = weights.heard(values)
        if name:
            values["weight_format"] = name
        return Heard(values, self._model(), lost=tuple(self._lost))

    def _model(self) -> str:
        first = self._load.args[0] if self._load.args else None
        said = self._names.get(first.id) if isinstance(first, ast.Name) else _constant(first)
        return said if isinstance(said, str) else ""

    def _prompts(self) -> int | None:
        """How many prompts ``["…"] * 4`` are."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.BinOp) and isinstance(node.left, ast.List):
                said = _constant(node.right)
                return said if isinstance(said, int) and 0 < said < _MOST_PROMPTS else None
        return None

    def _take(self, node: ast.Call, flags: tuple[Flag, ...]) -> None:
        rows = {name: flag for flag in flags for name in flag.names}
        for keyword in node.keywords:
            if keyword.arg in _ELSEWHERE:
                continue
            if not self._read(rows.get(keyword.arg or ""), keyword.value):
                word = (ast.get_source_segment(self._text, keyword) or "")[:80]
                self._lost.append(tr("{word} isn’t understood.").format(word=word))

    def _read(self, flag: Flag | None, value: ast.expr) -> bool:
        """Whether the argument of ``flag`` was understood."""
        if flag is None or flag.codec is None:
            return False
        try:
            self._values[flag.setting] = flag.codec.read(self._said(value))
        except (ValueError, OverflowError):
            return False
        return True

    def _said(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return node.attr  # torch.bfloat16
        return str(self._names.get(node.id) if isinstance(node, ast.Name) else _constant(node))

    def _take_cache(self, node: ast.Call) -> None:
        config = next((k.value for k in node.keywords if k.arg == "cache_config"), None)
        if not isinstance(config, ast.Dict):
            return
        for key, value in zip(config.keys, config.values, strict=True):
            bits = _constant(value)
            if _constant(key) == "nbits" and isinstance(bits, int) and 0 < bits <= _MOST_BITS:
                self._values["kv_bits"] = float(bits)


def _is_load(node: ast.Call) -> bool:
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr != "from_pretrained":
        return False
    owner = function.value
    while isinstance(owner, ast.Attribute) and not owner.attr.endswith(_NO_MODELS):
        owner = owner.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return not name.endswith(_NO_MODELS)


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _quantised(node: ast.Call) -> str:
    said = {keyword.arg: _constant(keyword.value) for keyword in node.keywords}
    if said.get("load_in_8bit"):
        return "int8"
    return "nf4" if said.get("bnb_4bit_use_double_quant") else "nf4-plain"
