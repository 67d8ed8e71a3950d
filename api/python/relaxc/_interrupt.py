"""Ctrl-C during a run or a compilation in the main thread.

A handler of Python only runs between bytecodes, so it would wait for the library. But the interpreter writes the number
of a signal to a descriptor as the signal comes; a thread that reads it cancels what the main thread is doing, which
returns to the handler, and that raises KeyboardInterrupt. The descriptor is the process's one: where the program uses
it itself, or handles SIGINT in another way, nothing is changed, and Ctrl-C acts after the run.

The thread may be late: the handler has run, and the main thread is in its next call, which is then cancelled in error.
That call ends, no handler is pending, so no KeyboardInterrupt comes, and it is made again (was_late)."""
from __future__ import annotations

import os
import signal
import threading
from typing import Any

main_thread = threading.main_thread().ident
_state = {"watched": False}
_working: list[Any] = []  # what the main thread has called; the method cancel() ends it
_cancelled: list[Any] = [None]  # the last of them that the thread has cancelled
_lock = threading.Lock()


def push(owner: Any) -> None:
    """Says whose call the main thread is about to make; owner.cancel() ends it."""
    if not _state["watched"]:
        _watch()
    _working.append(owner)


pop = _working.pop


def was_late(owner: Any) -> bool:
    """Returns whether the call of `owner` was cancelled for an interrupt that was handled before. Where its
    handler is pending, that runs as this function begins, and raises KeyboardInterrupt."""
    with _lock:
        is_late = _cancelled[0] is owner
        _cancelled[0] = None
        return is_late


def _watch() -> None:
    _state["watched"] = True
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writer, False)
    try:
        previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    except ValueError:  # the main thread of a subinterpreter
        previous = -1
    if previous != -1:
        signal.set_wakeup_fd(previous)
        os.close(reader)
        os.close(writer)
        return
    threading.Thread(target=_read, args=(reader,), name="relaxc interrupts", daemon=True).start()


def _read(descriptor: int) -> None:
    while True:
        numbers = os.read(descriptor, 64)
        if not numbers:
            return
        if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            for owner in _working[-1:]:
                with _lock:  # was_late() must not come between the two
                    _cancelled[0] = owner
                    owner.cancel()


def _after_fork() -> None:  # the thread is the parent's, and so is the pipe
    if _state["watched"]:
        signal.set_wakeup_fd(-1)
    _state["watched"] = False
    _working.clear()


os.register_at_fork(after_in_child=_after_fork)
