"""One repository at one commit: which of its files make up the model, and their headers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import urlsplit

from engine.errors import (
    ConfigError,
    HeaderError,
    HubError,
    HubNotFoundError,
    HubOfflineError,
    HubRateLimitedError,
    HubTimeoutError,
)
from engine.source import adapters, companions, files, gguf, local, safetensors, shards
from engine.source.bounded_json import parse_object
from engine.source.gguf_cursor import FileSource
from engine.source.hub_models import HubFile
from engine.source.hub_ranges import Fetched, RemoteFile, safetensors_header
from engine.source.raw import RawAdapter, RawModel
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sized
    from pathlib import Path

    from engine.cancel import CancelToken
    from engine.source.raw import HeaderTensor
    from engine.source.reference import HubReference

    Get = Callable[[str, Mapping[str, str], int], Fetched]

_Header = TypeVar("_Header", bound="Sized")
_CONNECTIONS = 16
_DEFAULT_QUANT = "Q4_K_M"
"""What llama.cpp takes from a repository when nothing is asked for (``common/arg.cpp``)."""


@dataclass(frozen=True, slots=True)
class Repository:
    """What the Hub lists, and the way to read it."""

    asked: HubReference
    repo_id: str
    """As the Hub calls it now."""
    commit: str
    sizes: Mapping[str, int | None]
    """Bytes by path of every file, where stated."""
    endpoint: str
    get: Get
    """Fetches an address with headers, and at most so many bytes of the body."""
    token: CancelToken

    def read(  # noqa: PLR0911 - one for each kind of repository
        self, progress: Callable[[int, int], None] | None = None
    ) -> RawModel:
        """The model, by its config and headers.

        Raises:
            HubError: one of its kinds says why there is no answer.
            ConfigError: a config that is no JSON object.
            HeaderError: a weights file whose header is truncated or lies.
        """
        file = self.asked.file
        top = [name for name in self.sizes if "/" not in name]
        if shards.ADAPTER_CONFIG in top and (
            file in (shards.ADAPTER_CONFIG, shards.ADAPTER_WEIGHTS)
            or (not file and shards.is_adapter(top))
        ):
            return self._adapter()
        if file.lower().endswith(".safetensors"):
            self._require(file)
            return self._from_safetensors((file,), None, progress)
        if file or (not any(map(shards.is_weights, top)) and self.gguf_models):
            return self._from_gguf(self._chosen(file), progress)
        if not any(map(shards.is_weights, top)):
            return self._from_config()
        if shards.INDEX not in top:
            return self._from_safetensors(shards.wanted(top, None), None, progress)
        tables = self._all_headers_at_once() if self.asked.revision is None else None
        if tables is not None:
            return self._model(tables, None)
        index = shards.parse_index(self._whole(shards.INDEX, files.MAX_INDEX_BYTES))
        return self._from_safetensors(shards.wanted(top, index), index, progress)

    @property
    def gguf_models(self) -> tuple[HubFile, ...]:
        """GGUF models, parts joined, smallest first."""
        found: list[HubFile] = []
        for first in shards.gguf_models(self.sizes):
            parts = gguf.parts_of(first)
            found.append(HubFile(first, self._total(parts), parts))
        return tuple(sorted(found, key=lambda f: (f.size_bytes is None, f.size_bytes or 0, f.path)))

    @property
    def projectors(self) -> tuple[HubFile, ...]:
        """Parts for images or sound that lie beside the GGUF models."""
        found = sorted(
            n for n in self.sizes if n.lower().endswith(".gguf") and shards.is_projector(n)
        )
        return tuple(HubFile(n, self.sizes[n], (n,), is_projector=True) for n in found)

    @property
    def _source(self) -> str:
        return urlsplit(self.endpoint).netloc

    @property
    def _revision(self) -> str | None:
        return self.commit or self.asked.revision

    @property
    def _notes(self) -> tuple[str, ...]:
        """A word where the Hub led to another name than was asked for."""
        if self.repo_id == self.asked.repo_id:
            return ()
        return (
            tr("{repo_id} is now called {repo_id_2}.").format(
                repo_id=self.asked.repo_id, repo_id_2=self.repo_id
            ),
        )

    def _total(self, names: Iterable[str]) -> int | None:
        """Bytes of all files together; None where the Hub leaves one out."""
        sizes = [self.sizes.get(name) for name in names]
        return sum(size or 0 for size in sizes) if None not in sizes else None

    def _require(self, name: str) -> None:
        if name not in self.sizes:
            raise HubNotFoundError(
                tr("{repo_id} has no file {name}.").format(repo_id=self.repo_id, name=name),
                field="file",
            )

    def _chosen(self, wanted: str) -> HubFile:
        """The GGUF model that a path or the name of a quantisation means.

        Raises:
            HubNotFoundError: none, or several.
        """
        models = self.gguf_models
        if wanted.lower().endswith(".gguf"):
            fitting = [m for m in models if wanted in m.parts]
            if not fitting and wanted in self.sizes:
                fitting = [HubFile(wanted, self.sizes[wanted], (wanted,))]
        else:
            named = shards.matching([m.path for m in models], wanted or _DEFAULT_QUANT)
            fitting = [m for m in models if m.path in named]
            if not wanted and len(fitting) != 1:
                fitting = list(models[:1])
        if len(fitting) == 1:
            return fitting[0]
        offered = ", ".join(m.path for m in (fitting or models)[:6]) or tr("no GGUF at all")
        few = tr("several files") if fitting else tr("no file")
        raise HubNotFoundError(
            tr("{repo_id} has {few} for {wanted}; there is {offered}.").format(
                repo_id=self.repo_id, few=few, wanted=wanted, offered=offered
            ),
            field="file",
        )

    def _from_config(self) -> RawModel:
        config = self._config()
        if config is None:
            raise HubNotFoundError(
                tr("{repo_id} has no config.json, safetensors or GGUF file to size it by.").format(
                    repo_id=self.repo_id
                ),
                field="model",
            )
        note = tr(
            "The repository has no safetensors, so the weights are computed from config.json."
        )
        return RawModel(
            self.repo_id, self._source, self._revision, config, notes=(*self._notes, note)
        )

    def _adapter(self) -> RawModel:
        """An adapter, whose base is still to be found where no config lies beside it."""
        name = shards.ADAPTER_WEIGHTS
        tensors = self._header(name) if name in self.sizes else ()
        adapter = RawAdapter(
            self._object(shards.ADAPTER_CONFIG), tensors, self.sizes.get(name) or 0
        )
        return RawModel(
            self.repo_id, self._source, self._revision, self._config(), notes=self._notes,
            adapter=adapter,
        )  # fmt: skip

    def _config(self) -> Mapping[str, object] | None:
        config = self._object("config.json") if "config.json" in self.sizes else None
        return companions.completed(config, self.sizes, self._object)

    def _object(self, name: str) -> dict[str, object]:
        data = self._whole(name, files.MAX_CONFIG_BYTES)
        return parse_object(
            data, tr("{name} of {repo_id}").format(name=name, repo_id=self.repo_id), ConfigError
        )

    def _whole(self, name: str, limit_bytes: int) -> bytes:
        """A small file, from the user's Hub cache where it is there at this commit."""
        cached = self._cached(name)
        if cached is not None:
            with files.opened(cached) as (file, _):
                data = file.read(limit_bytes + 1)
        else:
            data = self.get(self._url(name), {}, limit_bytes + 1).body
        if len(data) > limit_bytes:
            raise ConfigError(
                tr("{name} of {repo_id} is far larger than any such file.").format(
                    name=name, repo_id=self.repo_id
                )
            )
        return data

    def _cached(self, name: str) -> Path | None:
        folder = local.snapshot(self.repo_id, self.commit)
        return folder / name if folder is not None and (folder / name).is_file() else None

    def _url(self, name: str) -> str:
        from huggingface_hub import hf_hub_url

        return hf_hub_url(
            self.repo_id, name, revision=self.commit or self.asked.revision, endpoint=self.endpoint
        )

    def _remote(self, name: str) -> RemoteFile:
        return RemoteFile(name, self._url(name), self.sizes.get(name), self.get)

    def _from_safetensors(
        self,
        names: tuple[str, ...],
        index: Mapping[str, str] | None,
        progress: Callable[[int, int], None] | None,
    ) -> RawModel:
        for name in names:
            self._require(name)
        return self._model(self._headers(names, self._header, progress), index)

    def _header(self, name: str) -> tuple[HeaderTensor, ...]:
        cached = self._cached(name)
        if cached is not None:
            with files.opened(cached) as (file, size):
                return safetensors.read(file, size, name)
        return safetensors_header(self._remote(name))

    def _headers(
        self,
        names: tuple[str, ...],
        read: Callable[[str], _Header],
        progress: Callable[[int, int], None] | None,
    ) -> dict[str, _Header]:
        """What ``read`` says of each file, a few at a time, in the order of ``names``."""
        found: dict[str, _Header] = {}
        with ThreadPoolExecutor(min(_CONNECTIONS, len(names))) as pool:
            waiting = {pool.submit(read, name): name for name in names}
            try:
                for done, future in enumerate(as_completed(waiting), 1):
                    found[waiting[future]] = future.result()
                    shards.bounded(found)
                    if progress is not None:
                        progress(done, len(names))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return {name: found[name] for name in names}

    def _all_headers_at_once(self) -> dict[str, tuple[HeaderTensor, ...]] | None:
        """Headers of all shards in one answer, which the Hub gives for the default branch.

        None where it doesn't (mirrors need not), or where what it says isn't what it lists.
        """
        url = f"{self.endpoint}/api/models/{self.repo_id}/safetensors-metadata/{shards.INDEX}"
        try:
            data = self.get(url, {}, files.MAX_INDEX_BYTES).body
            answer = parse_object(
                data, tr("The index of {repo_id}").format(repo_id=self.repo_id), HeaderError
            )
            headers = answer.get("headers")
            if not isinstance(headers, dict) or not headers:
                return None
            tables: dict[str, tuple[HeaderTensor, ...]] = {}
            for name, header in cast("dict[str, object]", headers).items():
                if not isinstance(header, dict) or name not in self.sizes:
                    return None
                table = safetensors.tensors(cast("dict[str, object]", header), None, name)
                size = self.sizes[name]
                rest = None if size is None else size - sum(t.size_bytes for t in table)
                if rest is not None and not 8 < rest <= 8 + safetensors.MAX_HEADER_BYTES:
                    return None
                tables[name] = table
        except (HubOfflineError, HubTimeoutError, HubRateLimitedError):
            raise
        except (HubError, HeaderError):
            return None
        parts = shards.wanted([n for n in tables if shards.SHARD.search(n)] or tables, None)
        return tables if set(parts) == set(tables) else None

    def _model(
        self, tables: Mapping[str, tuple[HeaderTensor, ...]], index: Mapping[str, str] | None
    ) -> RawModel:
        return RawModel(
            self.repo_id,
            self._source,
            self._revision,
            self._config(),
            tensors=shards.joined(tables, index),
            tensors_source=shards.header_count(len(tables)),
            file_bytes=self._total(tables) or 0,
            notes=self._notes,
        )

    def _from_gguf(self, chosen: HubFile, progress: Callable[[int, int], None] | None) -> RawModel:
        for part in chosen.parts:
            self._require(part)

        def read(name: str) -> gguf.GgufHeader:
            cached = self._cached(name)
            if cached is not None:
                with files.opened(cached) as (file, size):
                    return gguf.read(FileSource(file, size, name), self.token)
            return gguf.read(self._remote(name).known(), self.token)

        headers = self._headers(chosen.parts, read, progress)
        adapters.refuse(headers[chosen.parts[0]].metadata, chosen.path)
        others = len(self.gguf_models) - 1
        is_default = not self.asked.file and others > 0
        note = tr("{path} was taken; the repository has {others} more GGUF models.").format(
            path=chosen.path, others=others
        )
        return RawModel(
            f"{self.repo_id}:{chosen.path}",
            self._source,
            self._revision,
            tensors=gguf.joined(headers),
            tensors_source=tr("tensor table of {path}").format(path=chosen.path),
            file_bytes=chosen.size_bytes or 0,
            gguf_metadata=headers[chosen.parts[0]].metadata,
            notes=(*self._notes, note) if is_default else self._notes,
        )
