"""A process of its own that uses the store: `python -m tests.support.store_process WHAT FOLDER
[...]`.

open            opens the store, says 'open' or the sentence
hold SECONDS    takes the lease for terms of so many seconds, says its token, sleeps until a line
                comes in, then writes and says 'written' or the sentence
"""

import sys
from pathlib import Path

from core.errors import RuncastError
from pricing.store.lease import store_lease
from pricing.store.opening import open_store
from pricing.store.recording import record
from tests.support.recorded import found, offer, run_of


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    try:
        store = open_store(folder=folder)
        if what == "open":
            print("open", flush=True)
            return
        with store_lease(store, term_s=float(sys.argv[3])) as held:
            print(held.token, flush=True)
            sys.stdin.readline()
            with held.writing() as connection:
                record(connection, run_of(found("oci", [offer(13.0)]), token=held.token))
            print("written", flush=True)
    except RuncastError as e:
        print(e, flush=True)


if __name__ == "__main__":
    main()
