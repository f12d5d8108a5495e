"""The proxy that a Linux desktop is set to, as GNOME and its relatives keep it.

Python reads the settings of Windows and macOS, and of Linux only the environment. ``gsettings``
is the desktop's own tool; where it isn't, there are no such settings.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

_SCHEMA = "org.gnome.system.proxy"
_KEPT_S = 30
_LONGEST_S = 3


@dataclass(frozen=True, slots=True)
class DesktopProxy:
    """Addresses by scheme, and who is asked without them."""

    proxies: dict[str, str] = field(default_factory=dict[str, str])
    spared: list[str] = field(default_factory=list[str])
    by_script: bool = False
    """Whether a script (PAC) chooses. It isn't followed."""


def settings() -> DesktopProxy:
    """What the desktop is set to now, give or take half a minute."""
    return _asked(int(time.monotonic() // _KEPT_S))


@lru_cache(maxsize=1)
def _asked(_when: int) -> DesktopProxy:
    program = shutil.which("gsettings")
    if program is None:
        return DesktopProxy()
    # A packaged program puts its own libraries before the system's.
    clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    try:
        answer = subprocess.run(  # noqa: S603 - the desktop's own tool
            [program, "list-recursively", _SCHEMA],
            capture_output=True, check=False, text=True, timeout=_LONGEST_S, env=clean,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return DesktopProxy()
    return parsed(answer.stdout)


def parsed(text: str) -> DesktopProxy:
    """What ``gsettings list-recursively`` says: a schema, a key and a value on each line."""
    values: dict[str, object] = {}
    for line in text.splitlines():
        schema, _, rest = line.partition(" ")
        key, _, value = rest.partition(" ")
        # ``@as []`` and ``uint32 80`` carry their type before them.
        value = value.removeprefix("@as ").removeprefix("uint32 ")
        try:
            plain = value == "true" if value in {"true", "false"} else ast.literal_eval(value)
        except (ValueError, SyntaxError):
            continue
        values[f"{schema.removeprefix(_SCHEMA).lstrip('.')}.{key}".lstrip(".")] = plain
    mode = values.get("mode")
    if mode != "manual":
        return DesktopProxy(by_script=mode == "auto")
    proxies = {
        scheme: f"http://{values[f'{scheme}.host']}:{values.get(f'{scheme}.port') or 8080}"
        for scheme in ("http", "https")
        if values.get(f"{scheme}.host")
    }
    if "http" in proxies and values.get("use-same-proxy") is True:
        proxies.setdefault("https", proxies["http"])
    if values.get("socks.host") and not proxies:
        proxies["all"] = f"socks://{values['socks.host']}:{values.get('socks.port')}"
    spared = values.get("ignore-hosts")
    names = cast("list[object]", spared) if isinstance(spared, list) else []
    return DesktopProxy(proxies, [str(name) for name in names])
