"""Every check and test, fast ones first: ``./plimsoll test``. Arguments run pytest alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
CHECKS = (
    ("ruff", "format", "--check", "--quiet", "."),
    ("ruff", "check", "--quiet", "."),
    ("lint-imports",),
    ("basedpyright", "--warnings"),
)


def main(arguments: list[str]) -> int:
    """Run all checks even if one fails; pytest comes last, and any failure decides."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    failed: list[str] = []
    for command in () if arguments else CHECKS:
        name = " ".join(command[:2])
        print(f"== {name}", flush=True)
        if subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"== failed: {', '.join(failed)}; the tests follow", file=sys.stderr, flush=True)
    print("== pytest", flush=True)
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env=environment, check=False
    )
    return tests.returncode or int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
