"""What a record of the corpora says in words: the model it means, settings, what to leave out."""

from __future__ import annotations

from typing import Any

READINGS: dict[str, dict[str, Any]] = {}
"""Record -> ``model`` and ``request`` as meant, figures ``left_out`` with the reason."""

LEFT_OUT: dict[str, str] = {}
"""Record -> why none of it is scored."""
