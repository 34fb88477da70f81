"""What joins the machines of an offer, and by which authority.

In this order: what the offer's row states; what its product is documented to have; what machines of
this accelerator usually have, if the product is sold as a cluster (an assumption); else nothing:
the offer is of one machine.
"""

from __future__ import annotations

from typing import Any

from core.machine.accelerator import Accelerator, Source
from core.machine.offer import Offer
from core.machine.rented import Network
from hardware.cluster_products import Product, product_of
from hardware.instances import Instance, find_instance

UNKNOWN_KIND = "infiniband"  # its latency is used where a rate is stated and no kind of network
DIFFERENCE = 0.1  # two statements further apart contradict each other


def network_of(
    offer: Offer, accelerator: Accelerator, *, is_private: bool = False, is_on_no_list: bool = False
) -> Network:
    """The network of an offer. `is_private`: an own cluster or a quote, so that no public product
    describes it and the usual network of its accelerator is assumed. `is_on_no_list`: it is not
    one of the single machines that its seller lists."""
    known = find_instance(offer.provider, offer.instance_type)
    listed, apart = product_of(offer.provider, offer.instance_type, offer.accelerator)
    if is_on_no_list and listed is not None and not listed.is_clustered:
        listed = None
    clustered = listed if listed is not None and listed.is_clustered else None
    printed = listed.gpus_per_machine if listed is not None else None
    is_size_assumed = offer.gpu_count == 1 and printed is None and known is None and not is_private
    per_machine = max(
        offer.gpu_count, printed or 0, accelerator.gpus_per_node if is_size_assumed else 0
    )
    documented = _documented(known, clustered)
    fabric = (known and known.fabric) or (clustered and clustered.fabric) or UNKNOWN_KIND
    about: dict[str, Any] = {
        "product": listed.product if listed else "",
        "apart": apart.product if apart else "",
        "is_size_assumed": is_size_assumed,
        "is_private": is_private,
    }
    if offer.scale_out_gbit_per_s is not None:
        gbit = offer.scale_out_gbit_per_s
        return Network(
            basis="offer", gpus_per_machine=offer.gpu_count, gbit_per_s=gbit, fabric=fabric,
            source=Source(ref=offer.source, date=offer.observed_at, printed=f"{gbit:g} Gbit/s"),
            conflict=_conflict(gbit / offer.gpu_count, documented, per_machine),
            **about | {"is_size_assumed": False},
        )  # fmt: skip
    if documented is not None:
        return Network(
            basis="product", gpus_per_machine=per_machine, gbit_per_s=documented[0],
            fabric=fabric, source=documented[1], **about,
        )  # fmt: skip
    usual = accelerator.scale_out_bytes_per_s
    if usual is not None and (clustered is not None or (is_private and listed is None)):
        return Network(
            basis="usual", gpus_per_machine=per_machine, gbit_per_s=usual * 8e-9 * per_machine,
            fabric=fabric, source=accelerator.sources["scale_out_bytes_per_s"], **about,
        )  # fmt: skip
    nothing = Source(ref="", date="", printed="no source prints a network between its machines")
    return Network(
        basis="none", gpus_per_machine=per_machine, gbit_per_s=None, fabric=fabric,
        source=listed.source if listed else nothing, **about,
    )  # fmt: skip


def _documented(known: Instance | None, of: Product | None) -> tuple[float, Source] | None:
    """Gbit/s of a whole machine by its instance type, else by its product, with the source."""
    if known is not None and known.scale_out_gbit_per_s is not None:
        gbit = known.scale_out_gbit_per_s
        return gbit, Source(ref=known.source, date=known.source_date, printed=f"{gbit:g} Gbit/s")
    if of is not None and of.scale_out_gbit_per_s is not None:
        return of.scale_out_gbit_per_s, of.source
    return None


def _conflict(per_gpu: float, documented: tuple[float, Source] | None, per_machine: int) -> str:
    """The sentence on an offer that states another network than its product has; '' if none."""
    if documented is None:
        return ""
    other = documented[0] / per_machine
    if abs(per_gpu - other) <= DIFFERENCE * other:
        return ""
    return (
        f"The offer states a network of {per_gpu:g} Gbit/s a GPU, its product is documented with "
        f"{other:g} ({documented[1].ref}): the offer's statement is used."
    )
