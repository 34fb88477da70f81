"""What lives as long as the server is left out of garbage collections."""

import gc

from app.web.collection import spare_what_stays


def test_what_exists_is_spared_once():
    """A full collection that looks at libraries and tables takes 0.1 s and more."""
    spare_what_stays.cache_clear()
    gc.unfreeze()
    try:
        spare_what_stays()
        spared = gc.get_freeze_count()
        assert spared > 100_000
        later = [[] for _ in range(1000)]
        spare_what_stays()
        assert gc.get_freeze_count() <= spared
        assert gc.collect() >= 0
        assert later
    finally:
        gc.unfreeze()
