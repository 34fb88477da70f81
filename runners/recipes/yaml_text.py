"""YAML as a person would write it: no anchors, scripts as blocks."""

from __future__ import annotations

from collections.abc import Iterable

import yaml  # type: ignore[import-untyped, unused-ignore]


class _Dumper(yaml.SafeDumper):  # type: ignore[misc, unused-ignore]
    def ignore_aliases(self, data: object) -> bool:
        """A table that occurs twice is written twice."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Several lines as a block; the writer quotes what a block cannot hold."""
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dumped(objects: Iterable[object]) -> str:
    """Documents of YAML, keys in their order.

    >>> print(dumped([{"run": "a\\nb\\n"}]), end="")
    run: |
      a
      b
    """
    return str(yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=100))
