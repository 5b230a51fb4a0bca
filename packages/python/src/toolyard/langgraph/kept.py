"""Results of calls with a key, for when the engine gives what a call has given before."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

KEPT = 4_096


class KeptResults:
    """What tools have given by their keys: artifacts and commands, of which the engine knows only the text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: OrderedDict[tuple[str, str, str], Any] = OrderedDict()

    def keep(self, session: str, tool: str, key: str | None, result: Any) -> None:
        if key is None:
            return
        with self._lock:
            self._results[session, tool, key] = result
            if len(self._results) > KEPT:
                self._results.popitem(last=False)

    def find(self, session: str, tool: str, key: str | None) -> Any:
        with self._lock:
            return None if key is None else self._results.get((session, tool, key))
