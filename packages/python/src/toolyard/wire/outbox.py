"""Lines on their way to the program, written by a thread of their own."""

from __future__ import annotations

import threading
from collections import deque
from typing import IO

ROOM = 64 * 1024 * 1024
"""Bytes that may wait to be written. Who sends one more line waits."""


class Outbox:
    """Writes lines in the order in which they were put, many at once if many wait."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._closing = False
        self._gone = False
        self._thread = threading.Thread(target=self._write_all, name="toolyard-writer", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        return self._bytes > ROOM and not self._gone

    def put(self, line: bytes) -> None:
        """Never waits; what is put after the end is dropped."""
        with self._changed:
            if self._gone or self._closing:
                return
            self._lines.append(line)
            self._bytes += len(line)
            if len(self._lines) == 1:
                self._changed.notify_all()

    def wait_for_room(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self.is_full or self._closing)

    def close(self) -> None:
        """Closes the pipe when everything is written; does not wait for that."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def _write_all(self) -> None:
        try:
            with self._pipe:
                while True:
                    lines = self._take()
                    if not lines:
                        return
                    self._write(lines)
        except (OSError, ValueError):
            # The program reads no more. Who reads what it writes hears of its end.
            pass
        finally:
            with self._changed:
                self._gone = True
                self._lines.clear()
                self._changed.notify_all()

    def _take(self) -> list[bytes]:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._closing)
            lines = list(self._lines)
            self._lines.clear()
            return lines

    def _write(self, lines: list[bytes]) -> None:
        data = memoryview(b"".join(lines))
        size = len(data)
        while data:
            data = data[self._pipe.write(data) :]
        with self._changed:
            self._bytes -= size
            self._changed.notify_all()
