"""Figures that guides print: each has our figure, the arithmetic and a reason."""

import csv

import pytest

from core.errors import FactError
from core.evidence.published_claims import ACCOUNTINGS
from core.layout.sharding import INDEX, model_state_bytes_per_param
from hardware.claims import CLAIMS_CSV, load_claims
from hardware.claims import claims as published

# What guides print, as they print it: id -> (low, high, unit). A wrong row refutes nobody.
PRINTED = {
    "selective_time": (1.05, 1.10, "x"), "full_time": (1.3, 1.3, "x"),
    "offload_cpu_times": (2, 5, "x"), "offload_cpu_loss": (30, 70, "%"),
    "offload_vs_ddp": (3, 10, "x"), "offload_ethernet": (20, 20, "x"),
    "offload_nvme_rate": (7, 7, "GB/s"), "ddp_lora": (1, 1, "x"), "ddp_fsdp": (1.1, 1.3, "x"),
    "ddp_zero3": (1.3, 1.6, "x"), "ddp_tp": (1.5, 2, "x"), "ddp_3d": (2, 3, "x"),
    "qlora_rule_7b": (0.5 * 7 + 10, 0.5 * 7 + 10, "GB"),
    "qlora_rule_70b": (0.5 * 70 + 10, 0.5 * 70 + 10, "GB"), "full_tuning_rule": (20, 20, "GB"),
    "fsdp_no_shard": (1, 1, "x"), "fsdp_shard_grad_op": (2, 2, "x"),
    "fsdp_full_shard": (4, 4, "x"), "fsdp_hybrid_shard": (2, 4, "x"),
    "zero1_optimizer": (4, 4, "x"), "zero2_64": (8, 8, "x"),
    "h100_band": (1.99, 3.50, "USD/h"), "b200_band": (4.50, 6.50, "USD/h"),
    "mi300x_band": (1.70, 2.80, "USD/h"), "incidents_per_1000": (1.5, 1.5, "per week"),
    "efa_p5": (3200, 3200, "Gbit/s"), "tcpx_a3": (200, 200, "Gbit/s"),
    "ndr_nd_h100": (3200, 3200, "Gbit/s"), "nvl72_power": (120, 120, "kW"),
    "gaudi3_price": (30, 40, "%"),
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_the_table_holds_what_is_printed(name):
    claim = next(c for c in published() if c.id == name)
    low, high, unit = PRINTED[name]
    assert (claim.low / claim.scale, claim.high / claim.scale) == pytest.approx((low, high))
    assert claim.unit == unit


def test_the_accountings_are_those_of_the_sharding_table():
    sums = {a.name: a.total_bytes for a in ACCOUNTINGS}
    assert sums == {"16 bytes": 16, "16 bytes, all fp32": 16, "18 bytes": 18, "20 bytes": 20}
    for strategy, total in (("zero3", 16), ("ddp", 16), ("zero1", 18)):
        assert float(model_state_bytes_per_param(strategy=INDEX[strategy], shards=1.0)) == total


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("unit", "furlongs", "unit 'furlongs' is not one of"),
        ("rule", "maybe", "has rule 'maybe'"),
        ("verdict", "true", "verdict 'true'"),
        ("why", "", "has no why"),
        ("ours", "", "has no ours"),
        ("source", "", "has no source"),
        ("low", "0", "has no range"),
        ("high", "one", "could not convert"),
    ],
)
def test_a_claim_that_cannot_be_trusted_stops_the_load(tmp_path, column, value, says):
    with CLAIMS_CSV.open(newline="", encoding="utf-8") as file:
        row = next(csv.DictReader(file)) | {column: value}
    table = tmp_path / "claims.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    with pytest.raises(FactError, match=r"claims.csv:2") as e:
        load_claims(table)
    assert says in str(e.value)
