"""Where other programs keep their models on this computer, whether the places exist or not.

Sources: huggingface_hub's, LM Studio's, llama.cpp's, Jan's and GPT4All's documents on where models
lie; LM Studio's ``settings.json`` and GPT4All's ``GPT4All.ini`` name a folder that was chosen.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_SETTINGS_BYTES = 2**20
_MODEL_PATH = re.compile(r"^modelPath=(.+)$", re.MULTILINE)


def folders() -> Iterator[tuple[str, Path]]:
    """Program and folder of every store that is a plain folder of models."""
    yield from (("LM Studio", folder) for folder in _lm_studio())
    yield "llama.cpp", _llama_cpp()
    for data in (_data("Jan", roaming=True) / "data", Path("~/jan").expanduser()):
        for below in ("llamacpp/models", "mlx/models", "models"):
            yield "Jan", data / below
    yield from (("GPT4All", folder) for folder in _gpt4all())


def _llama_cpp() -> Path:
    """llama.cpp ``common.cpp :: fs_get_cache_directory``."""
    if os.environ.get("LLAMA_CACHE"):
        return Path(os.environ["LLAMA_CACHE"]).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches/llama.cpp").expanduser()
    return _cache() / "llama.cpp"


def _lm_studio() -> Iterator[Path]:
    home = Path("~/.lmstudio").expanduser()
    chosen = _lm_studio_folder(home / "settings.json")
    if chosen is not None:
        yield chosen
    yield home / "models"
    yield _cache() / "lm-studio" / "models"


def _lm_studio_folder(settings: Path) -> Path | None:
    try:
        parsed: object = json.loads(_text(settings))
    except (ValueError, RecursionError):
        return None
    fields = cast("dict[str, object]", parsed) if isinstance(parsed, dict) else {}
    return _folder(fields.get("downloadsFolder"))


def _gpt4all() -> Iterator[Path]:
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    settings = _text(Path(config).expanduser() / "nomic.ai" / "GPT4All.ini")
    match = _MODEL_PATH.search(settings)
    chosen = _folder(match[1].strip().strip('"')) if match else None
    if chosen is not None:
        yield chosen
    yield _data("nomic.ai") / "GPT4All"
    yield _cache() / "gpt4all"


def _folder(stated: object) -> Path | None:
    """A folder that a settings file names, if it is a whole path."""
    if not isinstance(stated, str) or "\0" in stated:
        return None
    path = Path(stated)
    return path if path.is_absolute() else None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_SETTINGS_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def _data(name: str, *, roaming: bool = False) -> Path:
    """A program's own folder, by the rules of this platform."""
    if sys.platform == "darwin":
        return Path("~/Library/Application Support").expanduser() / name
    if sys.platform == "win32":
        variable = "APPDATA" if roaming else "LOCALAPPDATA"
        return Path(os.environ.get(variable) or "~").expanduser() / name
    if roaming:
        return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / name
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / name
