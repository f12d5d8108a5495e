"""``plimsoll completion``: the scripts work in the shells that are here."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from engine.cli.options import COMMANDS, SHELLS

if TYPE_CHECKING:
    from pathlib import Path


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers for the last of ``words``."""
    line = " ".join(f"'{word}'" for word in words)
    asked = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _shtab_plimsoll"
    done = subprocess.run(
        ["bash", "-c", f"{asked}; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


@pytest.fixture
def bash(plimsoll, tmp_path: Path) -> Path:
    script = tmp_path / "plimsoll.bash"
    script.write_text(plimsoll("completion", "bash").output)
    return script


def test_that_bash_completes_commands_and_the_options_of_each(bash):
    assert completed(bash, "plimsoll", "") >= set(COMMANDS)
    assert completed(bash, "plimsoll", "pars") == {"parse-log"}
    offered = completed(bash, "plimsoll", "size", "--gpu")
    assert {"--gpu", "--gpu-total-bytes", "--gpu-count"} <= offered
    assert "--learn" in completed(bash, "plimsoll", "parse-log", "--le")


@pytest.mark.parametrize("shell", SHELLS)
def test_that_every_shell_has_a_script_that_names_every_command(plimsoll, shell: str):
    ran = plimsoll("completion", shell)
    assert ran.status == 0
    assert all(command in ran.output for command in COMMANDS)
    if shell != "powershell" and shutil.which(shell):
        subprocess.run([shell, "-n"], input=ran.output, text=True, check=True)


def test_that_tab_completes_a_word_in_an_interactive_bash(bash):
    pid, terminal = pty.fork()
    if not pid:
        os.execve("/bin/bash", ["bash", "--norc", "-i"], {"TERM": "dumb", "PS1": "> "})
    with os.fdopen(terminal, "r+b", buffering=0) as typed:
        typed.write(f"source '{bash}'; plimsoll() {{ echo \"ran $*.\"; }}\n".encode())
        typed.write(b"plimsoll pars\t--lea\t; exit\n")
        shown = b""
        with contextlib.suppress(OSError):  # what reading ends with once the shell has left
            while part := typed.read(4096):
                shown += part
    os.waitpid(pid, 0)
    assert b"ran parse-log --learn." in shown


def test_that_an_unknown_shell_is_named_with_those_that_are_known(plimsoll):
    ran = plimsoll("completion", "cmd")
    assert ran.status == 2
    assert "fish" in ran.complaint
