"""Stay or move: from how many tokens on that are left a move to other machines pays.

Every token that is left costs `here` where the run is and `there` after a move, in dollars or in
seconds alike; a move costs `once` beside, whatever is left.
"""

from __future__ import annotations


def break_even_tokens(*, here: float, there: float, once: float) -> float | None:
    """Tokens that must be left for a move to pay; None: it never does.

    >>> break_even_tokens(here=3.0, there=2.0, once=100.0), break_even_tokens(
    ...     here=2e-9, there=2e-9, once=0.0)
    (100.0, None)
    """
    saved = here - there
    return once / saved if saved > 0 else None
