"""A stand-in for the Hugging Face Hub on 127.0.0.1, for the real client to talk to.

It follows the Hub's interface as clients see it: lists with ``Link`` pages and ``expand``,
model info (``revision``, ``blobs``), ``safetensors-metadata``, ``resolve`` with HEAD, GET,
ranges and a redirect to another host name, and the errors with their codes. Trouble is
switched on per server: ``hub.trouble = "slow"``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHARED_CATALOGUE = (
    Path(__file__).resolve().parents[2].parent / "shared" / "configs" / "hub_catalogue.jsonl"
)
GOOD_TOKEN = "hf_goodtoken"
UNGRANTED_TOKEN = "hf_ungranted"
_LIMITS = {"RateLimit-Policy": '"fixed window";"api";q=500;w=300'}


@dataclass
class Repo:
    """One repository: files by path, and the facts a list shows."""

    id: str
    files: dict[str, bytes] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    gated: str | bool = False
    commit: str = COMMIT
    stated_sizes: dict[str, int | None] = field(default_factory=dict)
    """Sizes to lie about in the list of files."""
    headers_at_once: Any = None
    """Answer of ``safetensors-metadata``; 404 where None."""
    disabled: bool = False

    def info(self) -> dict[str, Any]:
        return {
            "_id": hashlib.sha1(self.id.encode()).hexdigest()[:24],
            "id": self.id, "modelId": self.id, "private": False, "gated": self.gated,
            "downloads": 0, "likes": 0, "tags": [], "sha": self.commit,
            "lastModified": "2026-01-02T00:00:00.000Z", "createdAt": "2025-01-02T00:00:00.000Z",
            **self.facts,
        }  # fmt: skip

    def siblings(self, *, blobs: bool) -> list[dict[str, Any]]:
        if not blobs:
            return [{"rfilename": name} for name in self.files]
        found = []
        for name, data in self.files.items():
            item = {"rfilename": name, "blobId": hashlib.sha1(data).hexdigest()}
            size = self.stated_sizes.get(name, len(data))
            found.append(item if size is None else {**item, "size": size})
        return found


class FakeHub:
    """The server's content and behaviour, and what it was asked."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.scheme = "http" if certificate is None else "https"
        self.repos: dict[str, Repo] = {}
        self.renamed: dict[str, str] = {}
        self.trouble = ""
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.signatures = itertools.count()
        self.used: set[str] = set()
        """Signed addresses that were asked once, after which ``runs out`` refuses them."""
        self.sent: list[tuple[str, int]] = []
        """The path of each answer and the bytes of its body."""
        self.release = threading.Event()
        """Ends a stalled answer, so that no thread outlives its test."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self._server.server_port}"

    @property
    def other_host(self) -> str:
        """The same server under a second host name: the Hub's file servers."""
        return f"{self.scheme}://localhost:{self._server.server_port}"

    def add(self, repo: Repo) -> Repo:
        self.repos[repo.id] = repo
        return repo

    def paths(self) -> list[str]:
        return [f"{method} {path}" for method, path, _ in self.requests]

    def serve(self) -> threading.Thread:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[FakeHub]:
    hub = FakeHub(certificate)
    thread = hub.serve()
    try:
        yield hub
    finally:
        hub.close()
        thread.join(5)


def fill(hub: FakeHub, count: int = 120) -> None:
    """Repositories for lists: the known ones of the shared table, else plausible ones."""
    if SHARED_CATALOGUE.is_file():
        with SHARED_CATALOGUE.open(encoding="utf-8") as lines:
            rows = [json.loads(next(lines)) for _ in range(count)]
        for row in rows:
            facts = {
                "downloads": row["hf_downloads"], "likes": row["hf_likes"],
                "pipeline_tag": row["pipeline_tag"],
                "config": {"model_type": row["architecture"]},
                "safetensors": {
                    "parameters": {"BF16": row["parameters_raw"]}, "total": row["parameters_raw"]
                },
            }  # fmt: skip
            hub.add(Repo(row["name"], facts=facts))
        return
    for n in range(count):
        facts = {
            "downloads": 10**6 - n, "likes": n, "pipeline_tag": "text-generation",
            "config": {"model_type": "llama"},
            "safetensors": {"parameters": {"BF16": 10**9 + n}, "total": 10**9 + n},
        }  # fmt: skip
        hub.add(Repo(f"org{n % 7}/model-{n:03d}", facts=facts))


def _handler_of(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        def __init__(self, *args: Any) -> None:
            self.hub = hub
            super().__init__(*args)

    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, *args: object) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        named = {name.title(): value for name, value in self.headers.items()}
        self.hub.requests.append((self.command, self.path, named))
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        path = unquote(parts.path)
        if self._in_trouble():
            return
        if path == "/api/models":
            self._list(query)
        elif path == "/api/whoami-v2":
            self._whoami()
        elif match := re.fullmatch(
            r"/api/models/([^/]+(?:/[^/]+)?)/safetensors-metadata/(.+)", path
        ):
            self._headers_at_once(match[1])
        elif match := re.fullmatch(r"/api/models/([^/]+(?:/[^/]+)??)(?:/revision/(.+))?", path):
            self._info(match[1], match[2], query)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", path):
            self._tree(match[1])
        elif match := re.fullmatch(r"/cdn/([^/]+/[^/]+)/(.+)", path):
            self._from_file_server(match[1], match[2])
        elif match := re.fullmatch(r"/([^/]+(?:/[^/]+)?)/resolve/([^/]+)/(.+)", path):
            self._resolve(*match.groups())
        else:
            self._send(404, b"Not found")

    def _send(self, status: int, body: bytes | object = b"", **headers: str) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        headers.setdefault("Content-Type", "application/json; charset=utf-8")
        headers.setdefault("Content-Length", str(len(raw)))
        headers.setdefault("RateLimit", '"api";r=489;t=189')
        for name, value in {**_LIMITS, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.hub.sent.append((self.path, len(raw)))
            self.wfile.write(raw)

    def _error(self, status: int, code: str = "", message: str = "", **headers: str) -> None:
        if code:
            headers["X-Error-Code"] = code
        if message:
            headers["X-Error-Message"] = message
        self._send(status, {"error": message or "trouble"}, **headers)

    def _in_trouble(self) -> bool:
        """What this server is told to get wrong on every request."""
        trouble = self.hub.trouble
        if trouble.isdecimal():
            self._error(int(trouble))
            return True
        act = getattr(self, "_trouble_" + trouble.replace("-", "_"), None) if trouble else None
        if act is not None:
            act()
        return act is not None

    def _start(self, **headers: str) -> None:
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.close_connection = True

    def _trouble_limited(self) -> None:
        self._error(429, message="We had to rate limit you", RateLimit='"api";r=0;t=55')

    def _trouble_retry_after(self) -> None:
        self._send(429, b"slow down", RateLimit="", **{"Retry-After": "7"})

    def _trouble_long_wait(self) -> None:
        self._send(429, b"come back tomorrow", RateLimit="", **{"Retry-After": "86400"})

    def _trouble_circle(self) -> None:
        self._send(302, b"", Location=self.path)

    def _trouble_too_short(self) -> None:
        # More comes than was said; the rest is no answer to anything.
        self._send(200, b'{"id": "org/model", "siblings": []}', **{"Content-Length": "9"})
        self.close_connection = True

    def _trouble_no_utf8(self) -> None:
        self._send(200, b'{"id": "caf\xe9"}')

    def _trouble_huge(self) -> None:
        self._send(200, b"[" + b"{}," * 2**22 + b"{}]")

    def _trouble_stall(self) -> None:
        self.hub.release.wait(30)
        self.close_connection = True

    def _trouble_drip(self) -> None:
        self._start(Content_Length="100000")
        while not self.hub.release.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()

    def _trouble_drop(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _trouble_truncated(self) -> None:
        self._start(Content_Length="1000")
        self.wfile.write(b'{"id": "a')

    def _trouble_html(self) -> None:
        self._send(200, b"<html>Sign in to the hotel's network</html>")

    def _trouble_no_http(self) -> None:
        self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        self.close_connection = True

    def _trouble_nonsense(self) -> None:
        self._send(200, {"id": 7, "siblings": "many", "sha": []})

    def _trouble_deep(self) -> None:
        self._send(200, b'{"id":' * 200_000)

    def _trouble_packed(self) -> None:
        self._send(200, b"\x1f\x8b" + b"\0" * 100, **{"Content-Encoding": "gzip"})

    def _trouble_endless(self) -> None:
        self._start(Transfer_Encoding="chunked")
        chunk = b"100000\r\n" + b" " * 2**20 + b"\r\n"
        while not self.hub.release.is_set():
            self.wfile.write(chunk)

    def _repo(self, repo_id: str) -> Repo | None:
        """The repository, or an answer that there is none."""
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if bearer and bearer not in {GOOD_TOKEN, UNGRANTED_TOKEN}:
            self._error(401, message="Invalid credentials in Authorization header")
            return None
        repo = self.hub.repos.get(repo_id)
        if repo is None:
            self._error(404 if bearer else 401, "RepoNotFound", "Repository not found")
        elif repo.disabled:
            self._error(403, message="Access to this resource is disabled.")
            return None
        return repo

    def _whoami(self) -> None:
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if bearer not in {GOOD_TOKEN, UNGRANTED_TOKEN}:
            self._error(401, message="Invalid credentials in Authorization header")
            return
        role = "read" if bearer == GOOD_TOKEN else "write"
        self._send(200, {"name": "tester", "auth": {"accessToken": {"role": role}}})

    def _list(self, query: dict[str, list[str]]) -> None:
        term = query.get("search", [""])[0].casefold()
        author = query.get("author", [""])[0]
        limit = min(int(query.get("limit", ["1000"])[0]), 1000)
        cursor = int(query.get("cursor", ["0"])[0])
        found = [r for r in self.hub.repos.values() if term in r.id.casefold()]
        found = [r for r in found if r.id.startswith(author)]
        if query.get("sort") == ["downloads"]:
            found.sort(key=lambda r: -r.info()["downloads"])
        keep = set(query.get("expand", [])) | {"_id", "id", "modelId"}
        rows = [
            {k: v for k, v in r.info().items() if "expand" not in query or k in keep}
            for r in found[cursor : cursor + limit]
        ]
        headers = {}
        if cursor + limit < len(found):
            again = [(k, v) for k, values in query.items() if k != "cursor" for v in values]
            text = "&".join(f"{k}={quote(v)}" for k, v in again)
            base = self.hub.other_host if self.hub.trouble == "foreign page" else self.hub.url
            headers["Link"] = f'<{base}/api/models?{text}&cursor={cursor + limit}>; rel="next"'
        if self.hub.trouble == "same page":
            headers["Link"] = f'<{self.hub.url}{self.path}>; rel="next"'
        self._send(200, rows, **headers)

    def _info(self, repo_id: str, revision: str | None, query: dict[str, list[str]]) -> None:
        new = self.hub.renamed.get(repo_id)
        if new:
            self._send(307, b"", Location=f"/api/models/{new}?{urlsplit(self.path).query}")
            return
        repo = self._repo(repo_id)
        if repo is None:
            return
        if revision not in {None, "main", repo.commit, "refs/pr/1"}:
            self._error(404, "RevisionNotFound", "Invalid rev id")
            return
        info = repo.info() | {"siblings": repo.siblings(blobs=query.get("blobs") == ["true"])}
        if "expand" in query:
            info = {k: v for k, v in info.items() if k in {*query["expand"], "id", "_id"}}
        self._send(200, info)

    def _tree(self, repo_id: str) -> None:
        repo = self._repo(repo_id)
        if repo is not None:
            entries = [
                {"type": "file", "oid": "0" * 40, "size": len(data), "path": name}
                for name, data in repo.files.items()
            ]
            self._send(200, entries)

    def _headers_at_once(self, repo_id: str) -> None:
        repo = self._repo(repo_id)
        if repo is None:
            return
        if repo.headers_at_once is None:
            self._error(404, message="Not found")
        else:
            self._send(200, repo.headers_at_once)

    def _resolve(self, repo_id: str, revision: str, name: str) -> None:
        repo = self._repo(repo_id)
        if repo is None:
            return
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        page = f"https://huggingface.co/{repo_id}"
        if repo.gated and not bearer:
            text = f"Access to model {repo_id} is restricted. Please log in."
            self._error(401, "GatedRepo", text)
        elif repo.gated == "pending":
            self._error(403, "GatedRepo", "Your request to access is awaiting a review")
        elif repo.gated and bearer != GOOD_TOKEN:
            text = f"Access to model {repo_id} is restricted. Visit {page} to ask for access."
            self._error(403, "GatedRepo", text)
        elif revision not in {"main", repo.commit}:
            self._error(404, "RevisionNotFound", "Invalid rev id")
        elif name not in repo.files:
            self._error(404, "EntryNotFound", "Entry not found", **{"X-Repo-Commit": repo.commit})
        elif name.endswith((".safetensors", ".gguf")):
            signature = f"Signature={next(self.hub.signatures)}"
            place = f"{self.hub.other_host}/cdn/{repo_id}/{quote(name)}?{signature}"
            size = str(len(repo.files[name]))
            headers = {"X-Repo-Commit": repo.commit, "X-Linked-Size": size, "Location": place}
            self._send(302, b"", **headers)
        else:
            self._bytes(repo, name, etag=hashlib.sha1(repo.files[name]).hexdigest())

    def _from_file_server(self, repo_id: str, name: str) -> None:
        if self.hub.trouble == "runs out" and self.path in self.hub.used:
            self._send(403, b"<Error><Code>AccessDenied</Code></Error>")
            return
        self.hub.used.add(self.path)
        self._bytes(self.hub.repos[repo_id], name, etag="xet")

    def _bytes(self, repo: Repo, name: str, etag: str) -> None:
        data = repo.files[name]
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": repo.commit, "Accept-Ranges": "bytes"}
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if match is None or self.hub.trouble == "no ranges":
            self._send(200, data, **headers)
            return
        first, last = int(match[1]), int(match[2] or len(data))
        if first >= len(data):
            self._error(416)
            return
        last = min(last, len(data) - 1)
        shift = 1 if self.hub.trouble == "other range" else 0
        total = len(data) + (7 if self.hub.trouble == "other size" else 0)
        part = data[first : last + 1]
        if self.hub.trouble == "short range":
            part = part[:-1]
        stated = f"bytes {first + shift}-{last + shift}/{total}"
        self._send(206, part, **{**headers, "Content-Range": stated})
