"""YAML in the style of a person: no anchors, scripts as blocks."""

from __future__ import annotations

from collections.abc import Iterable

import yaml  # type: ignore[import-untyped, unused-ignore]


class _Dumper(yaml.SafeDumper):  # type: ignore[misc, unused-ignore]
    def ignore_aliases(self, data: object) -> bool:
        """Write a table that occurs twice twice, without an alias."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write several lines as a block; text that a block cannot hold is quoted."""
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dumped(objects: Iterable[object]) -> str:
    """YAML documents, with keys in their order.

    >>> print(dumped([{"run": "a\\nb\\n"}]), end="")
    run: |
      a
      b
    """
    return str(yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=100))
