"""Random errors in core, and the share that tests catch, by module.

    python -m tests.mutations                      every planted error of planted.csv
    python -m tests.mutations --name               and write there which test catches each
    python -m tests.mutations --random 200         200 random ones over all formulas
    python -m tests.mutations --random 40 --module spot,cost --seed 7

An error that the tests of its module (and its doctests) miss is tried again with the tests of the
whole core; what survives these is printed with its line.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.mutations.copies import ROOT, Copy, path_of, tests_of
from tests.mutations.planted import PLANTED, write_names
from tests.mutations.random_errors import Error, errors_of

# Tables of facts, readers of foreign text and records hold no formulas.
NO_FORMULAS = re.compile(
    r"presets|preset_rows|hf_|\w*fields|types|errors|plan|offer|units|published_claims"
)
# Of modules without a test file of their name, and of those that others test as well.
TESTED_BY = {
    "bounds": ("brute_force", "search"), "calibration": ("measured_shapes", "calibration_fit"),
    "cluster": ("facts", "links"),
    "joined_search": ("search_memory",), "kernels": ("gemm", "layer"), "knobs": ("changes",),
    "monte_carlo": ("goodput", "policies"), "numeric": ("units",), "other_costs": ("price_book",),
    "owned": ("price_book",), "fastest": ("search", "brute_force"), "scaling": ("scale",),
    "space": ("search", "layouts"), "candidates": ("search_limits", "search"),
    "workload": ("memory", "step"), "accelerator": ("facts",),
}  # fmt: skip
# The tests of the whole core that end soon, for what the module's own tests let pass.
WIDER = ("golden_links", "step", "memory", "traffic", "memory_phases")


def files_of(module: str) -> tuple[str, ...]:
    """The test files of a module, its doctests among them."""
    names = TESTED_BY.get(module, (module,))
    files = [file for name in names for file in tests_of(name)]
    path = path_of(module)
    dotted = path.removesuffix(".py").replace("/", ".")
    doctests = f"tests/whole/test_doctests.py::test_examples[{dotted}]"
    text = (ROOT / path).read_text(encoding="utf-8")
    return (*([doctests] if re.search(r"^ +>>> ", text, re.MULTILINE) else []), *files)


def main() -> None:
    """Plant, test, and say what was caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", action="store_true", help="write which tests catch planted ones")
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", default="", help="of these modules of core only: a,b")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Copy(Path(folder)) as copy:
        if given.random:
            _random(copy, given.random, given.seed, [m for m in given.module.split(",") if m])
        else:
            names = _planted(copy)
            if given.name:
                write_names(names)


def _planted(copy: Copy) -> list[str]:
    """The first test that fails for each planted error; '' where none does."""
    names = []
    for error in PLANTED:
        text = copy.source(error.module).read_text(encoding="utf-8")
        caught, said = copy.caught(
            error.module, text.replace(error.original, error.planted), error.files
        )
        failed = re.search(r"^FAILED (tests/\S+?::[\w:]+)", said, re.MULTILINE)
        names.append(failed[1] if failed else "")
        print(f"{'caught  ' if caught else 'SURVIVES'} {error.module}: {error.kind}: {names[-1]}",
              flush=True)  # fmt: skip
    return names


def _random(copy: Copy, count: int, seed: int, modules: list[str]) -> None:
    every: list[tuple[str, Error]] = []
    for path in sorted((ROOT / "core").rglob("*.py")):
        if path.stem in modules or not (modules or NO_FORMULAS.match(path.stem)):
            if path.stem.startswith("_") or not files_of(path.stem):
                continue
            every += [(path.stem, e) for e in errors_of(path.read_text(encoding="utf-8"))]
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    found: dict[str, list[bool]] = defaultdict(list)
    begin = time.monotonic()
    for module, error in sorted(chosen, key=lambda c: (c[0], c[1].line)):
        caught, _ = copy.caught(module, error.text, files_of(module))
        if not caught:
            wider = tuple(file for name in WIDER for file in tests_of(name))
            caught, _ = copy.caught(module, error.text, wider)
        found[module].append(caught)
        if not sum(map(len, found.values())) % 10:
            print(f"{sum(map(len, found.values()))} planted", flush=True)
        if not caught:
            print(f"survives {path_of(module)}:{error.line}: {error.says}", flush=True)
    total = [c for of in found.values() for c in of]
    print(f"\n{sum(total)} of {len(total)} caught ({sum(total) / max(len(total), 1):.0%}) of "
          f"{len(every):,} possible ones, in {time.monotonic() - begin:.0f} s")  # fmt: skip
    for module, of in sorted(found.items(), key=lambda item: sum(item[1]) / len(item[1])):
        print(f"{sum(of):4} of {len(of):3}  {path_of(module)}")


if __name__ == "__main__":
    main()
