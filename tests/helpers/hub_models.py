"""Repositories for the stand-in Hub, and the client that asks it."""

from __future__ import annotations

import json
import struct

from engine.cancel import CancelToken
from engine.source.access import Access
from engine.source.hub import HubClient
from tests.helpers.fake_hub import Repo

CONFIG = {"model_type": "llama", "hidden_size": 64}
SIZEABLE = {
    "model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 256,
    "intermediate_size": 512, "vocab_size": 1024, "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}  # fmt: skip
"""A small model that can be sized."""


def client(hub, *, access_token=None, **settings):
    made = HubClient(hub.url, timeout_s=settings.pop("timeout_s", 5), **settings)
    if access_token is not None:
        made.access = Access(made.endpoint)
        made.access.keep(access_token)
    return made


def fetch(hub, repo_id="org/model", revision=None, file="", progress=None, **settings):
    return client(hub, **settings).fetch(repo_id, CancelToken(), revision, progress, file)


def safetensors(names, pad=0, dtype="BF16"):
    table, end = {}, 0
    for name in names:
        table[name] = {"dtype": dtype, "shape": [8, 4], "data_offsets": [end, end + 64]}
        end += 64
    header = json.dumps(table).encode() + b" " * pad
    return struct.pack("<Q", len(header)) + header + b"\0" * end


def gguf(names=("token_embd.weight",), words=0, pairs=()):
    entries = list(pairs)
    if words:
        key = b"tokenizer.ggml.tokens"
        texts = b"".join(struct.pack("<Q6s", 6, b"%06d" % n) for n in range(words))
        entries.append(struct.pack("<Q", len(key)) + key + struct.pack("<IIQ", 9, 8, words) + texts)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(names), len(entries)) + b"".join(entries)
    for n, name in enumerate(names):
        raw = name.encode()
        head += struct.pack("<Q", len(raw)) + raw + struct.pack("<IQIQ", 1, 32, 0, 128 * n)
    return head + b"\0" * (-len(head) % 32) + b"\0" * 128 * len(names)


def plain(hub, **more):
    return hub.add(
        Repo(
            "org/model",
            {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": safetensors("ab")},
            **more,
        )
    )


def split(hub, parts=5, **more):
    names = [f"model-{n:05d}-of-{parts:05d}.safetensors" for n in range(1, parts + 1)]
    found = {name: safetensors([f"layers.{n}.w"]) for n, name in enumerate(names)}
    weight_map = {f"layers.{n}.w": name for n, name in enumerate(names)}
    found["model.safetensors.index.json"] = json.dumps({"weight_map": weight_map}).encode()
    found["config.json"] = json.dumps(CONFIG).encode()
    repo = hub.add(Repo("org/model", found, **more))
    headers = {n: json.loads(found[n][8:-64]) for n in names}
    repo.headers_at_once = {"index": {"metadata": {}}, "headers": headers}
    return repo
