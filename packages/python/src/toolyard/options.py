"""How an engine is started."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from .events import OnEvent
from .functions.tool import Tool
from .question import Approve
from .wire.program import find_program

StrPath = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Options:
    """What :class:`toolyard.Engine` and :class:`toolyard.AsyncEngine` take."""

    tools: Sequence[Tool[Any]] = ()
    config: StrPath | None = None
    workspace: StrPath | None = None
    approve: Approve | None = None
    on_event: OnEvent | None = None
    events: bool | Sequence[str] = True
    program: StrPath | Sequence[StrPath] | None = None
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    threads: int = 32

    def command(self) -> list[str]:
        """The program and its arguments."""
        if self.program is None or isinstance(self.program, (str, os.PathLike)):
            first, rest = self.program, []
        else:
            first, *rest = self.program
        command = [find_program(first), *(os.fspath(one) for one in rest), "serve", "--stdio"]
        if self.config is not None:
            command += ["--config", os.fspath(self.config)]
        if self.workspace is not None:
            command += ["--workspace", os.fspath(self.workspace)]
        return [*command, *self.args]

    def greeting(self, deltas: bool) -> dict[str, Any]:
        """The fields of a ``hello``."""
        events = False if self.on_event is None else self.events if isinstance(self.events, bool) else list(self.events)
        return {"protocol": 1, "meta": True, "confirm": self.approve is not None, "deltas": deltas, "events": events}
