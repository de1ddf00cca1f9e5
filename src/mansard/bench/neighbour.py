"""What links two GPUs: the answers of NVML and CUDA, and what may be concluded from them."""

import msgspec

from mansard.units import format_si

#: How the link is called when a source says that it is NVLink, and when none does.
NVLINK = "NVLink"
UNKNOWN = "peer link"


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU that can be reached directly, and what each source says of the way to it.

    Virtual machines pass some of these questions on and refuse others, so each source has its own
    answer, and None where it gives none.

    Attributes:
        index: CUDA index.
        nvlink_p2p: NVML: whether peer access goes over NVLink.
        links_up: NVML: NVLinks of this GPU that are up, asked one by one.
        link_count: NVML: NVLinks that this GPU has.
        said: every answer in words, or why there is none, by source.
    """

    index: int
    nvlink_p2p: bool | None = None
    links_up: int | None = None
    link_count: int | None = None
    said: dict[str, str] = {}

    @property
    def name(self) -> str:
        """``NVLink`` where a source says so, else ``peer link``; never a guess."""
        if self.nvlink_p2p or (self.links_up and self.nvlink_p2p is None):
            return NVLINK
        return UNKNOWN

    @property
    def links(self) -> int | None:
        """NVLinks that carry the traffic; None where they cannot be told."""
        return (self.link_count if self.links_up is None else self.links_up) or None

    def remark(self, byte_per_s: float, pcie_byte_per_s: float | None) -> str:
        """What belongs to a rate of one direction: what the link can be, and who said what.

        Args:
            byte_per_s: best rate that was measured, one direction.
            pcie_byte_per_s: line rate of PCIe, one direction.
        """
        parts = [f"to GPU {self.index}"]
        if self.name == NVLINK:
            links = self.said.get("NVLinks") if self.links_up else None
            return f"{parts[0]}, NVLinks: {links}" if links else parts[0]
        if pcie_byte_per_s:
            limit = format_si(pcie_byte_per_s, "B/s")
            parts.append(
                f"faster than PCIe can carry ({limit}): NVLink, where these GPUs have it"
                if byte_per_s > pcie_byte_per_s
                else f"no faster than PCIe ({limit}): it may be PCIe"
            )
        parts.append("asked: " + ", ".join(f"{who}: {what}" for who, what in self.said.items()))
        return "; ".join(parts)
