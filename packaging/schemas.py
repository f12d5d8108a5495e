"""Write the published JSON Schemas to ``resources/schema``: ``python packaging/schemas.py``."""

from __future__ import annotations

import json
from pathlib import Path

from engine.contract.schema import schemas

FOLDER = Path(__file__).resolve().parent.parent / "resources" / "schema"


def main() -> int:
    """Write one file a schema."""
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.schema.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
