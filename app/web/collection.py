"""Garbage collection of the server: what lives as long as it does is left out.

Some 200,000 objects of libraries, tables and caches live as long as the server. A full collection
looks at each of them, which takes 0.1 to 0.2 s in the middle of somebody's edit and frees nothing.
"""

from __future__ import annotations

import gc
from functools import cache


@cache
def spare_what_stays() -> None:
    """Leave all that exists now out of later collections, once a server: after its first answer,
    when tables are read and caches are filled (docs.python.org/3/library/gc.html, gc.freeze)."""
    gc.freeze()
