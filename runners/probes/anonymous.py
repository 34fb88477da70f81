"""Removal of names and secrets of a machine from a result."""

from __future__ import annotations

import hashlib
import re

from runners.probes.rows import Row

_ENV_KEPT = re.compile(
    r"(NCCL|RCCL|GLOO|CUDA|HIP|HSA|ROCR|OMP|MKL|OPENBLAS|TORCH|PYTORCH|TORCHINDUCTOR)_\w+"
)
_ENV_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)


def kept_environment(environment: dict[str, str]) -> dict[str, str]:
    """Variables that affect a measurement; never one whose name or value may hold a secret."""
    return {
        name: value[:200]
        for name, value in sorted(environment.items())
        if _ENV_KEPT.fullmatch(name) and not _ENV_SECRET.search(name) and "@" not in value
    }


def digest(text: str) -> str:
    """8 hexadecimal digits that stand for a name."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def anonymised(result: Row) -> Row:
    """A result without host names, serial numbers, paths and command lines."""
    made = result["provenance"]
    hosts = {made["host"], *(node["host"] for node in result["nodes"])}
    hosts |= {host.partition(".")[0] for host in hosts}
    named = re.compile(r"\b(" + "|".join(sorted(map(re.escape, hosts), key=len)[::-1]) + r")\b")

    def hidden(text: str) -> str:
        return re.sub(r"/[^\s'\":,]+", "(path)", named.sub(lambda m: digest(m[0]), text))

    def unless_none(text: str | None) -> str | None:
        return text and digest(text)

    device = {**made["device"], "uuid": unless_none(made["device"].get("uuid"))}
    return {
        **result,
        "provenance": {
            **made, "anonymised": True, "argv": [], "host": digest(made["host"]), "device": device,
            "env": {name: hidden(value) for name, value in made["env"].items()},
        },
        "nodes": [
            {**node, "host": digest(node["host"]), "uuid": unless_none(node["uuid"])}
            for node in result["nodes"]
        ],
        "skipped": [{**one, "reason": hidden(one["reason"])} for one in result["skipped"]],
    }  # fmt: skip
