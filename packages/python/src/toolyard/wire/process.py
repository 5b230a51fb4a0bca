"""The program as a process of this one."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, cast

from ..errors import ProgramNotFound

_LOG = logging.getLogger("toolyard.program")
TAIL_LINES = 40
LOG_LINE_MAX = 64 * 1024


class Process:
    """A running program: two pipes for lines, and its log, of which the last lines are kept for errors."""

    def __init__(self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str] | None) -> None:
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._own = os.getpid()
        try:
            self._popen = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=cwd,
                env=None if env is None else {**os.environ, **env},
                # Ctrl-C in a terminal is for this program to act on, which then ends that one in good order.
                start_new_session=sys.platform != "win32",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as reason:
            raise ProgramNotFound(f"{command[0]!r} cannot be started: {reason}") from reason
        _PROCESSES.add(self)
        self._logger = threading.Thread(target=self._read_log, name="toolyard-log", daemon=True)
        self._logger.start()

    @property
    def writes(self) -> IO[bytes]:
        assert self._popen.stdin is not None
        return self._popen.stdin

    @property
    def reads(self) -> io.RawIOBase:
        """Closed by whoever reads it to its end."""
        return cast(io.RawIOBase, self._popen.stdout)

    @property
    def is_ours(self) -> bool:
        """Whether it was started by this very process, and not by one that has forked this one."""
        return os.getpid() == self._own

    def let_go(self) -> None:
        """This process was forked: it holds no ends of pipes that are for the program to see close."""
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def wait(self, timeout: float) -> int | None:
        """Its exit code, or None if it is still running then."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def tail(self) -> str:
        """The last lines of its log, complete if it has ended."""
        self._logger.join(1)
        return "\n".join(self._tail)

    def end(self, patience: float) -> None:
        """Waits for its end; then asks it to end, and then ends it."""
        if self.wait(patience) is None:
            self._popen.terminate()
        if self.wait(patience) is None:
            self._popen.kill()
            self._popen.wait()

    def _read_log(self) -> None:
        with io.BufferedReader(cast(io.RawIOBase, self._popen.stderr)) as pipe:
            # Bounded, so that what is no line does not fill the memory.
            for line in iter(lambda: pipe.readline(LOG_LINE_MAX), b""):
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                self._tail.append(text)
                _LOG.log(_level(text), "%s", text)


_PROCESSES: weakref.WeakSet[Process] = weakref.WeakSet()


def _let_go() -> None:
    for process in list(_PROCESSES):
        process.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _level(text: str) -> int:
    """The level that the line itself names among its first words."""
    words = text.split(maxsplit=3)[:3]
    named = {"ERROR": logging.ERROR, "WARN": logging.WARNING, "error:": logging.ERROR, "DEBUG": logging.DEBUG}
    return next((named[word] for word in words if word in named), logging.INFO)
