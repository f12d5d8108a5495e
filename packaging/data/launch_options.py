"""Record which options a release of a runtime takes, for ``tests/evidence/launch_options.jsonl``.

    python packaging/data/launch_options.py vllm 0.33.0 FOLDER      an unpacked wheel
    python packaging/data/launch_options.py sglang 0.5.23 FOLDER    the same
    python packaging/data/launch_options.py mlx_lm.server 0.32.2 FOLDER     the same
    python packaging/data/launch_options.py mlx_lm.generate 0.32.2 FOLDER   the same
    python packaging/data/launch_options.py llama.cpp b11549 FILE   what llama-server --help prints

Prints one line. The sources are read, not run: vLLM and SGLang need a GPU's libraries to start.
Only names that ``engine/launch`` knows are kept, so that a line stays one that can be read.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.launch import dialects, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCES = {
    "vllm": (
        "vllm/engine/arg_utils.py",
        "vllm/entrypoints/openai/cli_args.py",
        "vllm/entrypoints/common/cli_args.py",
    ),
    "sglang": ("sglang/srt/server_args.py", "sglang/srt/arg_groups"),
    "mlx_lm.server": ("mlx_lm/server.py",),
    "mlx_lm.generate": ("mlx_lm/generate.py",),
}
_LISTS = {
    "CacheDType": "--kv-cache-dtype",
    "QUANTIZATION_METHODS": "--quantization",
    "QuantizationMethods": "--quantization",
    "QUANTIZATION_CHOICES": "--quantization",
}
"""Lists of words that an option takes, where they stand apart from it."""


def main(runtime: str, release: str, where: str) -> int:
    """Print the record of one release."""
    path = Path(where)
    found: dict[str, list[str] | None] = {}
    if runtime == "llama.cpp":
        found |= dict.fromkeys(_of_help(path.read_text(encoding="utf-8")))
        sources = ["llama-server --help"]
    else:
        files = [file for source in _SOURCES[runtime] for file in _files(path / source)]
        for file in [*files, *_files(path / runtime / "config"), *_quantisers(path)]:
            for name, words in _of_source(ast.parse(file.read_text(encoding="utf-8"))).items():
                found[name] = words or found.get(name)
        sources = list(_SOURCES[runtime])
    dialect = dialects.of(runtime.replace("mlx_lm.server", "mlx").replace("mlx_lm.generate", "mlx"))
    flags = (*dialect.flags, *(nodes.FLAGS if runtime == "vllm" else ()))
    known = {name for flag in flags for name in (*flag.names, *flag.opposite)}
    record = {
        "runtime": runtime,
        "release": release,
        "source": ", ".join(sources),
        "options": {name: found[name] for name in sorted(found) if name in known},
    }
    print(json.dumps(record))
    return 0


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []


def _quantisers(path: Path) -> list[Path]:
    return [
        file
        for name in ("vllm/model_executor/layers/quantization/__init__.py", "vllm/config.py")
        if (file := path / name).is_file()
    ]


def _of_help(text: str) -> Iterator[str]:
    """The names at the start of each line; those that are only kept to say so are left out."""
    for line in text.splitlines():
        if line.startswith("-") and "has been removed" not in line:
            yield from takewhile(lambda word: word.startswith("-"), re.split(r"[,\s]+", line))


def _of_source(tree: ast.Module) -> dict[str, list[str] | None]:
    found: dict[str, list[str] | None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
            found |= dict.fromkeys([n for n in names if str(n).startswith("-")], _choices(node))
        elif isinstance(node, ast.AnnAssign) and _is_field(node):
            found |= _of_field(node)
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id in _LISTS and getattr(node, "value", None):
            words = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
            if len(words) > 2:
                found[_LISTS[target.id]] = words
    return found


def _choices(node: ast.Call) -> list[str] | None:
    given = next((k.value for k in node.keywords if k.arg == "choices"), None)
    if not isinstance(given, ast.List | ast.Tuple):
        return None
    words = [e.value for e in given.elts if isinstance(e, ast.Constant)]
    return words if len(words) == len(given.elts) else None


def _is_field(node: ast.AnnAssign) -> bool:
    """Whether it is a field of SGLang that makes an option: ``name: A[type, Arg(…)]``."""
    made = isinstance(node.annotation, ast.Subscript) and isinstance(node.target, ast.Name)
    return made and ast.unparse(node.annotation.value) == "A" and "no_cli" not in ast.unparse(node)


def _of_field(node: ast.AnnAssign) -> dict[str, list[str] | None]:
    names = ["--" + node.target.id.replace("_", "-")]
    choices: list[str] | None = None
    for call in ast.walk(node.annotation):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "Arg":
            choices = _choices(call)
            aliases = next((k.value for k in call.keywords if k.arg == "aliases"), None)
            names += [e.value for e in aliases.elts] if isinstance(aliases, ast.List) else []
    return dict.fromkeys(names, choices)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
