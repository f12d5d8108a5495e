"""The house rules that a program can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("engine", "gui", "resources")
LONGEST_MODULE = 500

# Assembled from pieces, so that this file does not hold what it looks for.
FORBIDDEN = [
    "/wor" + "k/", "/ro" + "ot/", "pypi" + ".org", "python" + "hosted.org",
    "deb." + "debian.org", "registry." + "npmjs",
]  # fmt: skip
FORBIDDEN_WORDS = re.compile(
    "|".join(rf"\b{re.escape(p)}" if p[0].isalpha() else re.escape(p) for p in FORBIDDEN)
)
TEXT = {".py", ".md", ".toml", ".txt", ".json", ".sh", ".qss", ".c", ".spec", ".cfg", ".in", ""}


@cache
def sources(*folders: str) -> tuple[Path, ...]:
    """Python files below ``folders``."""
    return tuple(sorted(f for folder in folders for f in (ROOT / folder).rglob("*.py")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def own_files() -> list[Path]:
    """What belongs to the project: tracked files, or all but the usual by-products."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def test_that_no_module_is_longer_than_the_hard_limit():
    long = {
        name(path): lines
        for path in sources(*PRODUCT, "tests", "packaging")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_MODULE
    }
    assert not long


def test_that_every_module_says_what_it_is_for():
    silent = [
        name(path)
        for path in sources(*PRODUCT, "packaging")
        if not ast.get_docstring(tree(path))
    ]  # fmt: skip
    assert not silent


def test_that_the_project_names_no_machine_registry_or_workplace():
    found = {}
    for path in own_files():
        if path.suffix not in TEXT or name(path).startswith(("resources/licences/", "LICENSE")):
            continue
        match = FORBIDDEN_WORDS.search(path.read_text(encoding="utf-8", errors="replace"))
        if match:
            found[name(path)] = match[0]
    assert not found


def test_that_no_signal_carries_a_plain_integer():
    # Signal(int) has 32 bits and loses bytes without a word; only rows and percentages may use it.
    counts = re.compile(r"\b(\w+)\s*(?::[^=]+)?=\s*Signal\(([^)]*)\bint\b")
    innocent = re.compile(r"row|index|percent|count|step|page|tab|current", re.IGNORECASE)
    found = [
        f"{name(path)}: {match[1]}"
        for path in sources("gui")
        for match in counts.finditer(path.read_text(encoding="utf-8"))
        if not innocent.search(match[1])
    ]
    assert not found


def test_that_no_test_sleeps():
    found = [
        f"{name(path)}:{node.lineno}"
        for path in sources("tests")
        if not name(path).startswith(("tests/benchmarks/", "tests/helpers/"))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr == "sleep" or (node.func.attr == "wait" and _is(node.func, "qtbot")))
    ]
    assert not found


def _is(attribute: ast.Attribute, owner: str) -> bool:
    return isinstance(attribute.value, ast.Name) and attribute.value.id == owner


def test_that_the_engine_and_the_data_know_no_window():
    found = [
        name(path)
        for path in sources("engine", "resources")
        for node in ast.walk(tree(path))
        for module in imported(node)
        if module.split(".")[0] in {"PySide6", "shiboken6", "pyqtgraph", "gui"}
    ]
    assert not found


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


def test_that_sizes_say_that_they_are_bytes():
    amounts = re.compile(r"(?:^|_)(?:capacity|memory|total|used|free|reserved|footprint|pool)$")
    fields = [
        f"{name(path)}: {field.target.id}"
        for path in sources("engine")
        for owner in ast.walk(tree(path))
        if isinstance(owner, ast.ClassDef)
        # A protocol spells a foreign library's names.
        and "Protocol" not in {ast.unparse(base) for base in owner.bases}
        for field in owner.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and ast.unparse(field.annotation) in {"int", "int | None"}
        and amounts.search(field.target.id)
        and not field.target.id.startswith("_")
    ]
    functions = [
        f"{name(path)}: {node.name}"
        for path in sources("engine")
        if name(path) != "engine/units.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
        and (ast.get_docstring(node) or "").startswith("Bytes ")
        and node.returns is not None
        and ast.unparse(node.returns) in {"int", "int | None"}
        and not node.name.endswith("_bytes")
        and not node.name.startswith("_")
    ]
    assert not fields + functions


def test_that_packaging_hides_no_library_of_its_name():
    assert not list((ROOT / "packaging").rglob("__init__.py"))


def test_that_the_top_level_stays_spare():
    documents = {"ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"}
    folders = {".ci", ".github", "docs", "engine", "gui", "packaging", "resources", "tests"}
    files = {".gitignore", "LICENSE", "NOTICE", "plimsoll", "pyproject.toml"}
    allowed = documents | folders | files
    assert {name(path).split("/")[0] for path in own_files()} <= allowed


def test_that_the_terminal_commands_load_no_window_hub_or_big_library():
    program = (
        "import sys, engine.cli.options, engine.cli.size, engine.cli.kv, engine.cli.report\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    heavy = {
        "PySide6",
        "shiboken6",
        "numpy",
        "transformers",
        "huggingface_hub",
        "pydantic",
        "httpx2",
    }
    assert not heavy & set(run.stdout.split())


def test_that_readme_and_licence_notices_point_at_files_that_exist():
    missing = []
    for document in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "NOTICE"):
        text = (ROOT / document).read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)#:]+)\)", text) + re.findall(
            r"resources/licences/\S+?txt", text
        )
        missing += [link for link in links if not (ROOT / link).exists()]
    assert not missing
