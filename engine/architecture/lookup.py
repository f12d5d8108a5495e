"""Tables that live in several modules, each loaded when one of its names is first asked for.

A sizing needs one family and at most one tower: loading them all would double the start of the
command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar, cast

_Entry = TypeVar("_Entry")


class Lookup(Mapping[str, _Entry], Generic[_Entry]):
    """Name -> entry of the table ``attribute`` in one of the modules of ``package``."""

    def __init__(
        self,
        package: str,
        attribute: str,
        homes: Mapping[str, str],
        same: Mapping[str, str] | None = None,
    ) -> None:
        """State where the entries are.

        Args:
            package: dotted name of the package.
            attribute: name of each module's own table.
            homes: module -> the names in its table, separated by spaces.
            same: further names of entries -> the name they are found under.
        """
        self._package, self._attribute = package, attribute
        self._same = dict(same or {})
        self._home = {name: module for module, names in homes.items() for name in names.split()}

    def __getitem__(self, name: str) -> _Entry:
        found = self._same.get(name, name)
        module = import_module(f"{self._package}.{self._home[found]}")
        return cast("Mapping[str, _Entry]", getattr(module, self._attribute))[found]

    def __contains__(self, name: object) -> bool:
        return name in self._home or name in self._same

    def __iter__(self) -> Iterator[str]:
        yield from self._home
        yield from self._same

    def __len__(self) -> int:
        return len(self._home) + len(self._same)
