"""Where calls are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """A session, and the agent in it; ``root`` is that of the session itself."""

    session: str
    agent: str = "root"

    def fields(self) -> dict[str, Any]:
        return {"session": self.session, "agent": None if self.agent == "root" else self.agent}
