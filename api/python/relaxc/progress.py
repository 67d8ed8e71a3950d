"""What a compilation is doing."""
from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass
from typing import Callable, TextIO


@dataclass(frozen=True)
class Progress:
    """The state of a compilation."""

    stage: str
    """"import", "passes", "programs" or "kernels"."""
    at_work: str
    """The piece that is at work the longest; at the end of a stage the one that took longest."""
    done: int
    """Pieces of the stage that are done."""
    total: int
    """Pieces of the stage, which has ended when as many are done."""
    seconds: float
    """How long the piece has been at work."""


class Line:
    """One line of a terminal or notebook that shows what a compilation is doing; nothing in a pipe."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._last, self._width = stream, 0.0, 0
        self._start = time.monotonic()
        self._is_kept = type(stream).__module__.startswith("ipykernel")  # a notebook saves a wiped line as blanks
        self.is_shown = stream.isatty() or self._is_kept

    def __call__(self, now: Progress) -> None:
        time_now = time.monotonic()
        if not self.is_shown or (time_now - self._last < 0.1 and now.done != now.total):
            return
        self._last = time_now
        at_work = f": {now.at_work}" if now.at_work else ""
        seconds = f" ({now.seconds:.0f} s)" if now.seconds >= 1 else ""
        line = f"{now.stage} {now.done}/{now.total}{at_work}"
        room = shutil.get_terminal_size().columns - 1 - len(seconds)
        line = (line if len(line) <= room else line[:max(1, room - 3)] + "...") + seconds
        self._write(line)

    def close(self) -> None:
        """Wipes the line; in a notebook, says in its place how long the work took."""
        if self._width and self._is_kept:
            self._write(f"the compiler worked for {time.monotonic() - self._start:.1f} s")
            self._stream.write("\n")
            self._stream.flush()
        elif self._width:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)


def reporter(progress: bool | Callable[[Progress], None]) -> tuple[Callable[[Progress], None] | None, Callable[[], None]]:
    """Returns what to call with each state, if anything, and what to call at the end."""
    if callable(progress):
        return progress, lambda: None
    line = Line(sys.stderr)
    if not progress or not line.is_shown:
        return None, lambda: None
    return line, line.close
