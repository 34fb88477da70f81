"""Schema of a result: its rows, and how FLOPs and bytes are counted."""

from __future__ import annotations

from typing import Any

SCHEMA = "calib-result/1"
PROBE_VERSION = 1  # increased when the method changes: results of two methods are never mixed

Row = dict[str, Any]

FLOP_CONVENTIONS = {
    "matmul": "2 m n k",
    "attention": "4 b h s^2 d forward, half of it where causal; backward 2.5 times forward",
    "block": "2 per weight and token, causal attention once; backward twice forward",
}
BYTE_CONVENTIONS = {
    "memory_bound": "inputs read and outputs written once",
    "copy": "read and written: twice the size of the buffer",
    "transfer": "the size of the buffer",
    "optimizer": "28 per parameter: weight, gradient, two moments read; all but gradient written",
    "collective": "size of the larger of a rank's input and output buffer, as nccl-tests",
}
