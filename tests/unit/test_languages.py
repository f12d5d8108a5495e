"""Every text goes to the translator whole, at use, with the fields that are filled in."""

from __future__ import annotations

import ast
import string
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
TRANSLATOR = ROOT / "engine" / "words.py"
AT_USE = {"tr", "tr_count"}
TEXTS = {"tr": 1, "tr_later": 1, "tr_count": 2}
"""How many of the first arguments are texts."""


@cache
def sources() -> tuple[tuple[Path, ast.Module], ...]:
    """The product's modules but the one that translates."""
    files = sorted(f for folder in ("engine", "gui") for f in (ROOT / folder).rglob("*.py"))
    return tuple((f, ast.parse(f.read_text("utf-8"))) for f in files if f != TRANSLATOR)


def called(node: ast.AST) -> str:
    """The translating function that ``node`` calls; empty where it calls none."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return node.func.id if is_call and node.func.id in TEXTS else ""


def is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated when a module is imported; an annotation isn't, nor a function's body."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Lambda):
            yield from (default for default in child.args.defaults)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            outside = (*child.decorator_list, *child.args.defaults, *child.args.kw_defaults)
            for part in filter(None, outside):
                yield part
                yield from at_import(part)
        else:
            yield child
            yield from at_import(child)


def translated_early(tree: ast.Module) -> list[int]:
    return [node.lineno for node in at_import(tree) if called(node) in AT_USE]


def unreadable(tree: ast.Module) -> list[int]:
    """Texts that no catalogue can hold, since they are put together where they are used."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if (name := called(node))
        for text in node.args[: TEXTS[name]]
        if not (is_plain(text) or (name == "tr" and is_kept(text)))
    ]


def is_kept(text: ast.expr) -> bool:
    """Whether ``text`` names what went in through ``tr_later``, or picks one of several."""
    match text:
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return True
        case ast.Call(func=ast.Name() | ast.Attribute(attr="get")):
            return True
        case ast.IfExp(body=one, orelse=other):
            return is_kept(one) and is_kept(other)
        case ast.BoolOp(values=several):
            return all(map(is_kept, several))
        case _:
            return False


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def misfilled(tree: ast.Module) -> list[tuple[int, set[str]]]:
    """Where ``tr("…").format(…)`` fills in other fields than the text has."""
    found: list[tuple[int, set[str]]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="format")):
                texts = inner.args[: TEXTS.get(called(inner), 0)]
            case _:
                continue
        if not texts or not all(map(is_plain, texts)):
            continue
        filled = {keyword.arg for keyword in node.keywords}
        if None in filled:  # ``**figures`` may hold anything
            continue
        wanted = set[str]().union(*(fields(text.value) for text in texts))
        if node.args or filled != wanted:
            found.append((node.lineno, filled ^ wanted))
    return found


@pytest.mark.parametrize("check", [translated_early, unreadable, misfilled])
def test_that_every_text_reaches_the_translator(check):
    found = {
        str(path.relative_to(ROOT)): wrong for path, tree in sources() if (wrong := check(tree))
    }
    assert not found


@pytest.mark.parametrize(
    ("check", "code", "is_wrong"),
    [
        (translated_early, 'A = tr("Fits")', True),
        (translated_early, 'class A:\n    b = {1: tr_count("{n} model", "{n} models", 2)}', True),
        (translated_early, 'def f(a=tr("Fits")): pass', True),
        (translated_early, 'A = lambda: tr("Fits")', False),
        (translated_early, 'class A:\n    def f(self): return tr("Fits")', False),
        (unreadable, 'tr(f"{n} models")', True),
        (unreadable, 'tr("a" if b else "c")', True),
        (unreadable, 'tr("{n} models".format(n=n))', True),
        (unreadable, 'tr("a" + b)', True),
        (unreadable, 'tr_count(a, "{n} models", n)', True),
        (unreadable, "tr_later(a)", True),
        (unreadable, 'tr("a " "b"); tr(a); tr(a.b); tr(A[b]); tr(A if b else C); tr(f(a))', False),
        (misfilled, 'tr("{a} of {b}").format(a=1)', True),
        (misfilled, 'tr("{a}").format(a=1, b=2)', True),
        (misfilled, 'tr("{}").format(1)', True),
        (misfilled, 'tr_count("one of {b}", "{n} of {b}", n).format(n=n, b=b)', False),
        (misfilled, 'tr("{{a}} {b:,}").format(b=1)', False),
    ],
)  # fmt: skip
def test_that_the_checks_see_what_is_wrong(check, code, is_wrong):
    assert bool(check(ast.parse(code))) is is_wrong


def test_that_qts_own_translation_is_not_mixed_in():
    mixed = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "tr"
    ]
    assert not mixed
