"""A trainer_state.json, which the Hugging Face Trainer writes anew at each save."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runners.imports.log_records import dictionaries, is_trainer_state
from runners.imports.text import ImportFileError, read_text

NAME = "trainer_state.json"


@dataclass(slots=True, kw_only=True)
class History:
    """The dictionaries of the file that were not there before."""

    path: Path
    _seen: int = 0
    _changed: float = 0.0

    def lines(self, *, is_last: bool = False) -> Iterator[str]:
        """One dictionary a line, of those that were added since the last call."""
        with suppress(OSError, ImportFileError):  # is being written
            changed = self.path.stat().st_mtime
            if changed == self._changed:
                return
            lines = read_text(self.path).lines
            if not is_trainer_state(lines) or lines[-1].strip() != "}":
                return
            found = list(dictionaries(lines))
            first = self._seen if len(found) >= self._seen else 0
            self._changed, self._seen = changed, len(found)
            yield from found[first:]

    def close(self) -> None:
        """Nothing stays open."""
