"""Transformers' rules that changed between releases.

Read in the wheels of 4.36.2 to 4.51.3 (one of each), 4.53.3, 4.55.4, 4.56.0, 4.57.6, 5.0.0, 5.10.0,
5.12.0 to 5.15.0, 5.20.0 to 5.24.0: a rule holds from the first of them that has it.
"""

from __future__ import annotations

import re

from engine.errors import DeploymentError
from engine.words import tr

Version = tuple[int, ...]

NEWEST = "5.24.0"
VERSIONS = (NEWEST, "4.57.6", "4.49.0", "4.44.2", "4.41.2")
"""One release of each set of rules that weighs, newest first."""
LATENT_CACHE: Version = (5, 15)
"""``models/deepseek_v3``: the latent vector is cached; before, keys and values of every head."""
SPLIT_TABLES: Version = (5, 15)
"""``configuration_utils.py``: a table that is the head too is cut over tensor-parallel ranks."""
CUT_WINDOWS: Version = (4, 56)
"""``cache_utils.py``: a dynamic cache keeps the window only; before, every token."""
CACHE_OBJECTS: Version = (4, 42)
"""``generation/utils.py``: the cache is one object that every step adds to, and a pass's outputs
are let go of before the next; before, keys and values were passed as tuples."""
LAST_LOGITS: Version = (4, 45)
"""``generation/utils.py``: most classes make the logits of a prompt's last token only."""
EVERY_LAST_LOGITS: Version = (5, 0)
"""``models``: all but a few classes do."""
AUTO_COMPILE: Version = (4, 47)
"""``generation/utils.py :: get_compiled_call``: decoding over a static cache is compiled."""
WARM_UP: Version = (4, 50)
"""``caching_allocator_warmup`` appeared."""
GPTQMODEL: Version = (4, 49)
"""``quantizers/quantizer_gptq.py``: GPTQ may run on GPTQModel's kernels; before, on AutoGPTQ's."""
FP8_CACHE: Version = (5, 21)
"""``cache_utils.py :: Fp8QuantizedLayer``."""
GPTQMODEL_FOR_AWQ: Version = (5, 0)
"""``integrations/awq.py``: AWQ runs on GPTQModel's kernels; before, on AutoAWQ's."""
WHOLE_WARM_UP: Version = (5, 0)
"""``caching_allocator_warmup``: one allocation for all weights; before, half if quantised."""
JOINED_EXPERTS: Version = (5, 0)
"""``core_model_loading.py``: experts are joined on loading, and compute all at once."""
_OLDEST: Version = (4, 36)
"""``cache_utils.py`` appeared."""
_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[.\-+a-z].*)?", re.IGNORECASE)


def parse(text: str | None) -> Version:
    """The version as numbers; the newest that is known where none is stated.

    Raises:
        DeploymentError: it is no version of Transformers, or one whose rules are not known.
    """
    match = _VERSION.fullmatch(text or NEWEST)
    if match is None:
        message = tr("{text!r:.40} is not a Transformers version such as {newest}.").format(
            text=text, newest=NEWEST
        )
        raise DeploymentError(message, field="runtime_version")
    version = tuple(int(part) for part in match.groups() if part is not None)
    if version < _OLDEST:
        message = tr(
            "Transformers {text} kept its caches in another form; rules are known from 4.36."
        ).format(text=text)
        raise DeploymentError(message, field="runtime_version")
    return version
