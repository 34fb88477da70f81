"""What lives as long as the server is left out of garbage collections."""

import gc
import weakref

from app.web.collection import spare_what_stays


class Node:
    """An object that may refer to itself."""


def test_what_exists_is_spared_once():
    """A full collection that looks at libraries and tables takes 0.1 s and more."""
    spare_what_stays.cache_clear()
    gc.unfreeze()
    try:
        spare_what_stays()
        spared = gc.get_freeze_count()
        assert spared > 100_000
        later = Node()
        later.itself = later
        gone = weakref.ref(later)
        del later
        spare_what_stays()  # once a server: what came later is collected as ever
        gc.collect()
        assert gc.get_freeze_count() <= spared
        assert gone() is None
    finally:
        gc.unfreeze()
