"""Presets: named models, found by name.

The models are in core/model/presets_dense.py, presets_moe.py and presets_hybrid.py.
"""

from __future__ import annotations

from functools import cache

from core.errors import unknown_name
from core.model.preset_rows import Preset as Preset
from core.model.presets_dense import dense_models
from core.model.presets_hybrid import hybrid_models
from core.model.presets_moe import moe_models

PRESETS = {p.id: p for p in (*dense_models(), *moe_models(), *hybrid_models())}


def _plain(name: str) -> str:
    """A name without case, '_' and blanks, which do not matter."""
    return name.strip().lower().replace("_", "-").replace(" ", "-")


@cache
def _spellings() -> dict[str, Preset]:
    found: dict[str, Preset] = {}
    for p in PRESETS.values():
        for name in (p.id, p.name, *p.aliases, *(a.rpartition("/")[2] for a in p.aliases)):
            found[_plain(name)] = p
    return found


def preset(name: str) -> Preset:
    """A preset by its id or its Hugging Face repository; case, '_' and '-' do not matter.

    >>> preset("Qwen/Qwen2.5-7B").id
    'qwen2.5-7b'
    """
    found = _spellings().get(_plain(name))
    if found is None:
        raise unknown_name("model", name, PRESETS, guess=_holding(name))
    return found


def _holding(name: str) -> str | None:
    """The first preset, the newest of its family, whose id has every part of a name.

    >>> _holding("70b"), _holding("Llama 70B"), _holding("grok-9")
    ('llama3.1-70b', 'llama3.1-70b', None)
    """
    parts = _plain(name).split("-")
    return next((p for p in PRESETS if all(part in p for part in parts)), None)
