"""A probe for tests that kill calibrations: the real one's command line, files and progress, and a
whole result that was made up before (MADE_UP_RESULT). Standard library only: it is copied."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

GROUPS = 8


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", required=True)
    parser.add_argument("--out", required=True)
    options, _ = parser.parse_known_args()
    run_id = json.loads(Path(options.plan).read_text())["run_id"]
    out = Path(options.out)
    part = out.with_name(out.name + ".part")
    done = int(part.read_text()) if part.exists() else 0
    for group in range(1, GROUPS + 1):
        print(f"runcast: group g{group} {group}/{GROUPS} 0.0 s", file=sys.stderr, flush=True)
        if group > done:
            time.sleep(0.04)
            _write(part, str(group))
    result = json.loads(Path(os.environ["MADE_UP_RESULT"]).read_text())
    _write(out, json.dumps({**result, "run_id": run_id}))
    part.unlink(missing_ok=True)
    return 0


def _write(file: Path, text: str) -> None:
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(text)
    new.replace(file)


if __name__ == "__main__":
    sys.exit(main())
