"""Lists of a price server that attacks: each is sound row by row, in the shape of Verda's API.

`serving(Feed(routes(ATTACKS["moved down"])))` of tests/feeds/server.py serves one on the loopback
interface. The figures are those of an attack that once changed answers.
"""

from tests.feeds.server import Reply, as_json
from tests.feeds.shapes import verda_type

PATH = "/v1/instance-types"
H200, H100, B200 = "8x H200 SXM5 141GB", "8x H100 SXM5 80GB", "8x B200 SXM6 180GB"
GOOD = [
    verda_type("8H200.141S.88V", H200, 8, 1128, "27.92", None),
    verda_type("1H200.141S.44V", "1x H200 SXM5 141GB", 1, 141, "3.49", None),
    verda_type("8H100.80S.176V", H100, 8, 640, "18.32", "6.41"),
    verda_type("1H100.80S.32V", "1x H100 SXM5 80GB", 1, 80, "2.29", "0.80"),
    verda_type("8B200.180S.248V", B200, 8, 1440, "31.92", "11.17"),
]


def scaled(factor: float) -> list[dict[str, object]]:
    """The list with every price times a factor."""
    names = ("price_per_hour", "spot_price")
    return [
        row | {n: str(float(str(row[n])) * factor) for n in names if row[n] is not None}
        for row in GOOD
    ]


ATTACKS: dict[str, list[dict[str, object]]] = {
    "moved down": scaled(0.4),
    "moved up": scaled(2.99),
    "new and cheapest": [
        *GOOD,
        verda_type("8H200.141S.99V", H200, 8, 1128, "8.0", None),
        verda_type("8H100.80S.999V", H100, 8, 640, "6.0", None),
        verda_type("8B200.180S.999V", B200, 8, 1440, "14.5", None),
    ],
    "shrunk": GOOD[:1],
}


def routes(rows: list[dict[str, object]]) -> dict[str, Reply]:
    """What such a server answers."""
    return {PATH: as_json(rows)}
