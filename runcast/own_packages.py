"""Import the five packages of this installation under their own names.

They are app, core, hardware, pricing and runners, and a folder that Python is started in may have
an app.py or a core/ of its own, which would be found first: `import runcast` in a notebook and
`python -m runcast` must work there. Only the five names are looked up here, and only next to the
package runcast; what is inside them is then found by Python as usual. One name is one module in a
process: after this, `import app` is Runcast's.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

NAMES = ("app", "core", "hardware", "pricing", "runners")
ROOT = Path(__file__).resolve().parents[1]


def import_all() -> None:
    """Import those that are not imported yet.

    ImportError, with the file, if a module of another origin has one of the names already.
    """
    for name in NAMES:
        if name in sys.modules:
            _check(name)
            continue
        spec = PathFinder.find_spec(name, [str(ROOT)])
        if spec is None or spec.loader is None:
            raise ImportError(f"Runcast is not installed whole: {ROOT / name} is missing.")
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)


def _check(name: str) -> None:
    """ImportError unless the imported module of that name is of this installation."""
    module = sys.modules[name]
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), "")
    if Path(str(file)).resolve().is_relative_to(ROOT / name):
        return
    raise ImportError(
        f"A module {name!r} of another origin is imported already ({file}), and Runcast has a "
        f"package of that name: import runcast before it, or rename it."
    )
