"""What is inside the packaged program, as a bill of materials (CycloneDX 1.6, JSON)."""

from __future__ import annotations

import json
import platform
import uuid
from email.parser import HeaderParser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE_NAME = "bill-of-materials.json"


def write(bundle: Path, packages: Iterable[Path], version: str) -> Path:
    """Write the bill into ``bundle``.

    Args:
        bundle: the program's folder.
        packages: the ``.dist-info`` folders of the Python packages inside.
        version: of the program.
    """
    components = [_python(), *(_package(info) for info in sorted(packages))]
    text = json.dumps(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            # The same contents have the same number, so that builds can be compared.
            "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, repr(components))}",
            "version": 1,
            "metadata": {
                "component": {
                    "type": "application",
                    "name": "plimsoll",
                    "version": version,
                    "licenses": [{"license": {"id": "Apache-2.0"}}],
                }
            },
            "components": components,
        },
        indent=1,
    )
    target = bundle / FILE_NAME
    target.write_text(text + "\n", encoding="utf-8")
    return target


def _python() -> dict[str, Any]:
    return {
        "type": "platform",
        "name": "CPython",
        "version": platform.python_version(),
        "licenses": [{"license": {"id": "PSF-2.0"}}],
    }


def _package(info: Path) -> dict[str, Any]:
    stated = HeaderParser().parsestr((info / "METADATA").read_text(encoding="utf-8"))
    name, version = str(stated["Name"]), str(stated["Version"])
    found: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
    }
    expression = stated["License-Expression"]
    if expression:
        found["licenses"] = [{"expression": str(expression)}]
    else:
        stated_licence = str(stated["License"] or "").strip().partition("\n")[0]
        if stated_licence:
            found["licenses"] = [{"license": {"name": stated_licence[:100]}}]
    return found
