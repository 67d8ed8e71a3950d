"""Where the time of a run goes."""
from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Iterator, Sequence


@dataclass(frozen=True)
class KernelCall:
    """One call of a kernel."""

    kernel: str
    """The name of the kernel, such as "fused_conv2d_relu"."""
    node: str
    """The ONNX nodes that it computes; "" where they are not known."""
    rule: str
    """How it was scheduled."""
    start_ns: int
    """Nanoseconds of the steady clock."""
    duration_ns: int
    """Nanoseconds."""
    operations: float | None
    """Arithmetic operations; None where they are not known."""
    bytes: int
    """Bytes of its tensors, each counted once."""


class Profile(Sequence[KernelCall]):
    """The kernel calls of one run, in order. It prints as a table, the slowest kernels first.

    `total_ns` is the time of the whole run in nanoseconds, `kernel_ns` that of its kernels."""

    def __init__(self, calls: Sequence[KernelCall], total_ns: int) -> None:
        self.calls = tuple(calls)
        self.total_ns = total_ns

    @property
    def kernel_ns(self) -> int:
        return sum(call.duration_ns for call in self.calls)

    def __len__(self) -> int:
        return len(self.calls)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.calls[index]

    def __iter__(self) -> Iterator[KernelCall]:
        return iter(self.calls)

    def by_kernel(self) -> list[tuple[str, str, int, int, float | None]]:
        """Returns kernel, nodes, calls, nanoseconds and operations of each kernel, the slowest first."""
        table: dict[tuple[str, str], tuple[int, int, float | None]] = {}
        for call in self.calls:
            count, time, operations = table.get((call.kernel, call.node), (0, 0, 0.0))
            of_both = None if operations is None or call.operations is None else operations + call.operations
            table[call.kernel, call.node] = (count + 1, time + call.duration_ns, of_both)
        rows = [(kernel, node, *figures) for (kernel, node), figures in table.items()]
        return sorted(rows, key=lambda row: -row[3])

    def _cells(self) -> list[tuple[str, ...]]:
        total = max(1, self.total_ns)
        cells: list[tuple[str, ...]] = [("time", "share", "calls", "gigaops/s", "kernel", "nodes")]
        for kernel, node, count, time, operations in self.by_kernel():
            rate = "" if not operations or not time else f"{operations / time:.1f}"
            cells.append((f"{time / 1000:.1f} us", f"{100 * time / total:.1f} %", str(count), rate, kernel, node))
        outside = self.total_ns - self.kernel_ns
        cells.append((f"{outside / 1000:.1f} us", f"{100 * outside / total:.1f} %", "", "", "(between kernels)", ""))
        cells.append((f"{self.total_ns / 1000:.1f} us", "", str(len(self)), "", "(the whole run)", ""))
        return cells

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[column]) for row in cells) for column in range(5)]
        lines = []
        for row in cells:
            numbers = [row[column].rjust(widths[column]) for column in range(4)]
            lines.append("  ".join([*numbers, row[4].ljust(widths[4]), row[5]]).rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self._cells()]
        return (f"<table><thead><tr>{head}</tr></thead><tbody>" + "".join(f"<tr>{row}</tr>" for row in rows) +
                "</tbody></table>")
