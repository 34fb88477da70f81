"""Open the store of this installation, its tables made or brought forward."""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from sqlalchemy import make_url

from pricing.disk import make_private, private_folder
from pricing.store.engine import Store, StoreError, lowered, store_at, url_of


def open_store(*, folder: Path | None = None, environ: Mapping[str, str] | None = None) -> Store:
    """The store of this installation, its tables made or brought forward.

    `folder` is that of the prices; RUNCAST_DATABASE_URL goes before it.
    """
    url = url_of(folder=folder, environ=environ)
    return _opened(url.render_as_string(hide_password=False), os.getpid())


@lru_cache(maxsize=8)
def _opened(address: str, process: int) -> Store:
    """One engine a process: connections must not be shared with a fork."""
    from pricing.store.upgrade import upgrade

    store = store_at(make_url(address))
    if (file := store.file) is not None:
        try:
            private_folder(file.parent)
            make_private(file)
        except OSError as e:
            sentence = f"The store {store.name} cannot be made: {lowered(e.strerror)}."
            raise StoreError(sentence) from None
    atexit.register(store.close)  # a connection that nobody closed is warned of
    upgrade(store)
    return store
