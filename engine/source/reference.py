"""What a person may type or paste to mean a model, as typed values. Touches nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from engine.errors import SourceError
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from urllib.parse import SplitResult

MAX_LENGTH = 4096
_HUB_HOSTS = {"huggingface.co", "www.huggingface.co", "hf.co", "hf-mirror.com"}
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"(?:{_PART}/)?{_PART}")
_SUFFIXES = (".json", ".gguf", ".safetensors")
_QUANT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TAG = r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,94})"
# A single letter before the colon is a drive.
_OLLAMA_TAG = re.compile(rf"(?![A-Za-z]:){_TAG}:(?P<tag>[A-Za-z0-9][A-Za-z0-9._-]{{0,94}})")
_OLLAMA_PAGE = re.compile(
    r"(?:https?://)?(?:www\.)?(?:registry\.)?ollama\.(?:com|ai)/library/"
    rf"{_TAG}(?::(?P<tag>[A-Za-z0-9._-]{{1,95}}))?/?"
)
_OLLAMA_RUN = re.compile(r"^ollama\s+(?:run|pull|show)\s+(?=\S+$)")
_REVISION = re.compile(r"[A-Za-z0-9_./-]{1,128}")


@dataclass(frozen=True, slots=True)
class HubReference:
    """A repository on the Hub, perhaps with a revision and one of its files."""

    repo_id: str
    revision: str | None = None
    file: str = ""
    """Path of a file in the repository, or the name of a quantisation (``Q4_K_M``)."""


@dataclass(frozen=True, slots=True)
class OllamaReference:
    """A model of Ollama's library, by its name there."""

    name: str
    tag: str


@dataclass(frozen=True, slots=True)
class PathReference:
    """A file or folder of this computer."""

    path: str


def parse(text: str, endpoint: str = "") -> HubReference | OllamaReference | PathReference | None:
    """What ``text`` refers to by its form; None for a plain name, which may mean anything.

    Args:
        text: as typed: a path, a ``file:`` URL, a Hub id or URL, ``org/repo:quant``, a tag or a
            page of Ollama's library, the command that runs it.
        endpoint: a Hub of one's own, whose URLs are understood like huggingface.co's.

    Raises:
        SourceError: nothing that could be meant by it.
    """
    cleaned = _OLLAMA_RUN.sub("", text.strip().strip("\"'").strip())
    if not cleaned:
        raise SourceError(tr("No model was named."))
    if len(cleaned) > MAX_LENGTH:
        raise SourceError(tr("The name of the model is too long to be one."))
    if printable(cleaned) != cleaned:
        shown = printable(cleaned, 80)
        raise SourceError(
            tr("The name '{shown}' holds invisible characters; type it again.").format(shown=shown)
        )
    if cleaned.lower().startswith("file:"):
        return _file_url(cleaned)
    tag = _OLLAMA_TAG.fullmatch(cleaned) or _OLLAMA_PAGE.fullmatch(cleaned)
    if tag:
        return OllamaReference(tag["name"], tag["tag"] or "latest")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", cleaned):
        return _url(cleaned, endpoint)
    host = cleaned.split("/", 1)[0].lower()
    if host in _HUB_HOSTS:
        return _url("https://" + cleaned, endpoint)
    if _looks_like_a_path(cleaned):
        return PathReference(cleaned)
    return _hub_id(cleaned) if "/" in cleaned else None


def is_web_address(text: str) -> bool:
    """Whether ``text`` names a server: ``https://host``, perhaps with a port and a path."""
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_elsewhere(path: str) -> bool:
    r"""Whether ``path`` leads to another computer (``\\host\share``) or a device."""
    return path[:1] in {"/", "\\"} and path[1:2] in {"/", "\\"}


def is_hub_name(text: str) -> bool:
    """Whether the Hub could have a model of this name, with or without an organisation."""
    return bool(_REPO.fullmatch(text)) and "--" not in text and ".." not in text


def one_spelling(reference: str) -> str:
    """What all spellings of a reference have in common: the Hub tells no capitals in its ids.

    The name of a file behind the id, a tag and a path stay as they are.
    """
    name, colon, rest = reference.partition(":")
    return f"{name.casefold()}{colon}{rest}" if is_hub_name(name) else reference


def _short(text: str) -> str:
    return repr(printable(text, 80))


def _looks_like_a_path(text: str) -> bool:
    starts = text.startswith(("/", "./", "../", "~", "\\", ".\\", "..\\")) or text in {".", ".."}
    drive = re.match(r"[A-Za-z]:[\\/]", text)
    return bool(starts or drive or (text.lower().endswith(_SUFFIXES) and ":" not in text))


def _file_url(text: str) -> PathReference:
    parts = urlsplit(text)
    if parts.netloc not in {"", "localhost"}:
        raise SourceError(tr("{short} is a file on another computer.").format(short=_short(text)))
    path = unquote(parts.path)
    if re.match(r"/[A-Za-z]:/", path):
        path = path[1:]
    if not path or "\0" in path:
        raise SourceError(tr("{short} names no file.").format(short=_short(text)))
    return PathReference(path)


def _url(text: str, endpoint: str) -> HubReference:
    """A Hub URL: ``/org/name``, ``/org/name/tree/rev``, ``/org/name/blob/rev/file``.

    Raises:
        SourceError: another site, or a page that is no model.
    """
    try:
        parts = urlsplit(text)
        own = urlsplit(endpoint).netloc.lower() if endpoint else ""
        is_hub = _is_hub(parts, own)
    except ValueError:
        raise SourceError(tr("{short} is no address.").format(short=_short(text))) from None
    if not is_hub:
        raise SourceError(
            tr("{short} is not on the Hugging Face Hub; download its files.").format(
                short=_short(text)
            )
        )
    path = parts.netloc + parts.path if parts.scheme == "hf" else parts.path
    steps = [unquote(step) for step in path.strip("/").split("/") if step]
    if steps[:1] == ["models"]:
        steps = steps[1:]
    if not steps or steps[0] in {"datasets", "spaces", "api", "docs", "papers", "collections"}:
        raise SourceError(tr("{short} is no page of a model.").format(short=_short(text)))
    pages = {"tree", "blob", "resolve", "raw", "commit", "discussions", "edit"}
    cut = next((n for n, step in enumerate(steps) if step in pages and n), len(steps))
    reference = _hub_id("/".join(steps[: min(cut, 2)]))
    if cut + 1 >= len(steps) or steps[cut] == "discussions":
        return reference
    revision, file = steps[cut + 1], "/".join(steps[cut + 2 :])
    if steps[cut + 1 : cut + 3] == ["refs", "pr"] and len(steps) > cut + 3:
        revision, file = "/".join(steps[cut + 1 : cut + 4]), "/".join(steps[cut + 4 :])
    return HubReference(reference.repo_id, _revision(revision), _model_file(file))


def _is_hub(parts: SplitResult, own: str) -> bool:
    host = (parts.hostname or "").lower()
    is_own = bool(own) and parts.netloc.lower() == own
    return parts.scheme == "hf" or (
        parts.scheme in {"http", "https"} and (is_own or host in _HUB_HOSTS)
    )


def _model_file(path: str) -> str:
    """``path`` where it chooses a model; the page of a README or config chooses none."""
    return path if path.lower().endswith((".gguf", ".safetensors")) else ""


def _revision(text: str) -> str | None:
    if not _REVISION.fullmatch(text) or ".." in text:
        raise SourceError(
            tr("{short} is no name of a revision.").format(short=_short(text)), field="revision"
        )
    return None if text == "main" else text


def _hub_id(text: str) -> HubReference:
    """``org/name``, with ``@revision`` or ``:quant`` or ``:path/to/file.gguf`` after it.

    Raises:
        SourceError: no name that the Hub would take.
    """
    head, _, file = text.partition(":")
    repo, _, revision = head.partition("@")
    repo = repo.removesuffix(".git")
    if not is_hub_name(repo):
        raise SourceError(
            tr("{short} is no name of a model, and no such file is here.").format(
                short=_short(text)
            )
        )
    is_file = file.lower().endswith(".gguf") and ".." not in file and not file.startswith("/")
    if file and not is_file and not _QUANT.fullmatch(file):
        raise SourceError(
            tr("{short} is no quantisation or file of {repo}.").format(
                short=_short(file), repo=repo
            ),
            field="file",
        )
    return HubReference(repo, _revision(revision) if revision else None, file)
