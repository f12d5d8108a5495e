"""What is kept or passed on names neither secrets nor people nor their computers."""

from __future__ import annotations

import getpass
import platform
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import redaction


@pytest.fixture(autouse=True)
def _names(monkeypatch):
    redaction._names.cache_clear()
    monkeypatch.setattr(getpass, "getuser", lambda: "annika")
    monkeypatch.setattr(platform, "node", lambda: "tower7.example.org")
    monkeypatch.setattr(Path, "home", lambda: Path("/data/people/annika"))
    yield
    redaction._names.cache_clear()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('File "/data/people/annika/a.py", line 3', 'File "~/a.py", line 3'),
        ('File "/home/someone else/a.py"', 'File "~ else/a.py"'),
        (r"C:\Users\Annika\a.py", r"~\a.py"),
        ("annika@tower7: no", "<user>@<host>: no"),
        ("tower7.example.org", "<host>"),
        ("annikas towers", "annikas towers"),
        ("Authorization: Bearer abc.def and on", "Authorization: *** and on"),
        ("https_proxy=http://me:pw@proxy:80/ x", "https_proxy=http://***@proxy:80/ x"),
        ("{'password': 'a b', 'x': 1}", "{'password': ***, 'x': 1}"),
        ("HF_TOKEN=abc; max_tokens=4096", "HF_TOKEN=***; max_tokens=4096"),
        ("told hf_AbCdEfGhIjKl twice", "told *** twice"),
    ],
)
def test_that_secrets_and_names_are_masked_and_the_rest_stays(text, expected):
    assert redaction.redacted(text) == expected


@pytest.mark.parametrize("name", ["root", "me", ""])
def test_that_a_name_that_stands_in_every_other_line_is_no_name(monkeypatch, name):
    monkeypatch.setattr(getpass, "getuser", lambda: name)
    assert redaction.redacted("the root of me") == "the root of me"


SECRET = "pa55W0rd"
FORMS = [
    "--api-key {}", "--api-key={}", "--api-key '{}'", '--api-key="{}"', "--api-key  \\\n    {}",
    "--api-key `\n  {}", "'--api-key', '{}'", '["--hf-token", "{}"]', "-hft {}", "--token\t{}",
    "HF_TOKEN={}", "HF_TOKEN='{} two'", 'export HF_TOKEN="{}"', "-e HF_TOKEN={}",
    "-e 'HF_TOKEN={}'", "--env=HUGGING_FACE_HUB_TOKEN={}", '$env:HF_TOKEN = "{}"',
    "set HF_TOKEN={}", "ENV HF_TOKEN {}", "ENV HF_TOKEN={}", "  HF_TOKEN: {}",
    "- name: HF_TOKEN\n  value: {}", '{{"name": "HF_TOKEN", "value": "{}"}}',
    "Authorization: Bearer {}", "-H 'authorization: basic {}'", '"Authorization": "Bearer {}"',
    "bearer {}", "Cookie: {}", "x-api-key: {}", "api_key=['{}', '{}']", "'api_key': '{}'",
    "ServerArgs(api_key='{}', tp=1)", "login(token='{}')", "use_auth_token={}", "?token={}&x=1",
    "https://me:{}@host/x", "curl -u me:{} x", "--ssl-keyfile-password {}", "--credentials {}",
    "AWS_SECRET_ACCESS_KEY={}", "private_key={}", "--secret-key {}", "told sk-{}abcdef",
    "eyJhbGciOiJI.{}.{}", "-----BEGIN RSA PRIVATE KEY-----\n{}\n{}\n-----END RSA PRIVATE KEY-----",
    "api_key='it\\'s {}'", "--admin-api-key={}", "API key: {}", "passphrase = {}",
    "--key {}", "--key={}", "'--key', '{}'", "docker login -p {}",
    "docker login -u me -p '{}' r.io",
    "podman login r.io \\\n  -u me -p {}", "docker login -p={}", "['docker', 'login', '-p', '{}']",
    "wandb login {}", "wandb login --relogin {}", "wandb login --host https://w.io '{}'",
    '["wandb", "login", "{}"]', "sshpass -p {} ssh host", "echo {} | docker login --password-stdin",
    "printf '{}' | helm registry login -u me --password-stdin",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_that_a_secret_is_masked_in_every_form_of_a_command(form):
    text = f"vllm serve X/Y --port 80 {form.format(SECRET, SECRET)} --seed 7"
    found = redaction.redacted(text)
    assert SECRET not in found
    assert "two" not in found
    assert redaction.MASK in found
    assert found.startswith("vllm serve X/Y --port 80 ")
    assert found.endswith(" --seed 7")
    assert redaction.redacted(found) == found
    assert SECRET not in redaction.without_secrets(text)


PARTS = st.sampled_from([
    "\n", " ", "--api-key", "HF_TOKEN", "=", ": ", "'", '"', "Authorization", "Bearer", "basic X1",
    "name: ", "value: ", "-----BEGIN PRIVATE KEY-----", "-----END", "\\", "[", "]", "x9", "ENV ",
    "https://a:b@c", "-u a:b", "/home/x", "eyJabcdefg.abc", "cookie", "token", ",",
])  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.text(max_size=80), st.lists(PARTS, max_size=30).map("".join)))
def test_that_a_text_keeps_its_lines_whatever_is_masked(text):
    assert redaction.redacted(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "--max-tokens 4096 --tokenizer x/y --skip-tokenizer-init",
        "GPU KV cache size: 1,933,472 tokens",
        "token_usage=0.4, max_total_num_tokens=454112, image_token_id=151655, token: 5",
        "print_info: BOS token        = 128000 '<|begin_of_text|>'",
        "eos_token='</s>', add_bos_token = true, pad_token: None",
        "ServerArgs(api_key=None, host='127.0.0.1')",
        "-e HF_TOKEN -p 8000:8000 --user 1000:1000",
        "HF_TOKEN=$HF_TOKEN vllm serve X/Y",
        "--api-key-file /etc/key --author me",
        "basic usage of token_embd.weight",
        "HF_TOKEN is not set",
        "docker run --api-key --port 80",
        "docker run -p 8000:8000 --name login x/y && sudo -p prompt ls",
        "docker login; docker run -p 8000:8000 x/y",
        "wandb login\nvllm serve X/Y",
        "cache key: 17, key=value --keys 3",
        "echo $TOKEN | docker login --password-stdin",
        "8168.00 ms / 143 tokens (57.12 ms per token, 17.51 tokens per second)",
    ],
)
def test_that_what_is_no_secret_is_left_as_it_is(text):
    assert redaction.redacted(text) == text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("docker login -u me -p pa55 r.io", "docker login -u me -p *** r.io"),
        ("wandb login --relogin pa55 -v", "wandb login --relogin *** -v"),
        ("wandb login --host https://w.io pa55", "wandb login --host https://w.io ***"),
        ("vllm serve X/Y --key pa55 --port 80", "vllm serve X/Y --key *** --port 80"),
        ("vllm serve X/Y --key=pa55", "vllm serve X/Y --key=***"),
        ("docker run -e HF_TOKEN=pa55 -p 80:80", "docker run -e HF_TOKEN=*** -p 80:80"),
        ("vllm serve X/Y --api-key --port 80", "vllm serve X/Y --api-key --port 80"),
    ],
)
def test_that_a_secret_is_masked_in_a_command_line_of_separate_words(words, expected):
    assert " ".join(redaction.command(words.split(" "))) == expected


def test_that_a_secret_of_several_words_is_masked_whole():
    words = ["curl", "-H", "Authorization: Bearer pa55 w0rd", "--key", "pa55 w0rd"]
    assert not any("pa55" in word for word in redaction.command(words))
