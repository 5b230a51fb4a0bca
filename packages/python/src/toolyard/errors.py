"""What this package raises.

::

    ToolyardError
    ├── ToolError            raised by a tool's function: what the model is told
    ├── CallError            a call has failed
    │   ├── ToolNotFound  PermissionDenied  FsDenied  InvalidArgs  ToolFailed
    ├── Refused              the engine has refused a request that is no call
    ├── ProgramNotFound      there is no program `toolyard`
    └── Disconnected         nothing can be sent any more
        ├── ProgramDied  ProtocolError  Closed
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

Kind = Literal[
    "execution_error",
    "transient",
    "rate_limited",
    "invalid_input",
    "permission_denied",
    "output_invalid",
    "cancelled",
    "timeout",
    "internal",
]
"""What a failure of a function is; ``transient`` and ``rate_limited`` are tried again where the tool may be."""


class ToolyardError(Exception):
    """Everything that this package raises, except for wrong use of the package itself."""


class ToolError(ToolyardError):
    """Raised by a tool's function to say what went wrong; the message is what the model reads.

    ::

        @tool(side_effects="network")
        def fetch(url: str) -> str:
            answer = http.get(url)
            if answer.status == 503:
                raise ToolError("the server is busy", kind="transient", retry_after=2)
            return answer.text

    ``retry_after`` is in seconds. ``outcome`` says whether the tool may have changed something: ``"failed"`` if it has
    not, ``"unknown"`` if it may have, so that it is not tried again.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Kind = "execution_error",
        retry_after: float | None = None,
        outcome: Literal["failed", "unknown"] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.retry_after = retry_after
        self.outcome = outcome


class CallError(ToolyardError):
    """A call has failed. ``str(error)`` is written for a model to read.

    ::

        try:
            session.call("Read", path="/etc/passwd")
        except toolyard.FsDenied as error:
            print(error.slug, error.code, error)
    """

    slug: str = "tool_failed"
    """One of five words; each has a subclass. A later word is a :class:`ToolFailed`."""

    def __init__(
        self, message: str, *, slug: str, tool: str, call_id: str, meta: Mapping[str, Any], note: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.slug = slug
        self.tool = tool
        self.call_id = call_id
        self.note = note
        """What a model has to be told beside the message: that a person has changed the arguments."""
        self.meta = dict(meta)
        """What the engine knows of the call: times, and the fields below."""
        self.code: str | None = meta.get("code")
        """The precise error code, such as ``timeout``."""
        self.outcome: str | None = meta.get("outcome")
        """Whether the call has had an effect: ``not_started``, ``failed`` or ``unknown``."""
        self.retryable = bool(meta.get("retryable", False))
        """Whether the same call may succeed later."""
        wait = meta.get("retry_after_ms")
        self.retry_after: float | None = None if wait is None else wait / 1000
        """Seconds after which it may."""
        self.attempts: int = meta.get("attempts", 0)

    def __reduce__(self) -> tuple[Any, ...]:
        about = {name: getattr(self, name) for name in ("slug", "tool", "call_id", "meta", "note")}
        return partial(type(self), **about), (self.message,)


class ToolNotFound(CallError):
    """There is no tool of this name."""

    slug = "tool_not_found"


class PermissionDenied(CallError):
    """The tool may not be used, or policy, a budget or a person has refused the call."""

    slug = "permission_denied"


class FsDenied(CallError):
    """That path may not be used."""

    slug = "fs_denied"


class InvalidArgs(CallError):
    """The arguments are not what the tool takes."""

    slug = "invalid_args"


class ToolFailed(CallError):
    """The tool said no, timed out, was cancelled, or broke."""

    slug = "tool_failed"


class Refused(ToolyardError):
    """The engine has refused a request, which did nothing: a name that is taken, a definition that is wrong."""

    def __init__(self, message: str, *, code: str = "", errors: list[dict[str, Any]] | None = None) -> None:
        details = [f"{one.get('pointer', '')}: {one.get('detail', '')}" for one in errors or []]
        super().__init__("; ".join([message, *(one for one in details if one.split(": ", 1)[1] not in message)]))
        self.code = code
        """A stable word, such as ``session_open``."""
        self.errors = errors or []
        """Each field that is wrong: ``pointer`` and ``detail``."""


def is_gone(error: ToolyardError) -> bool:
    """Whether what was to be closed is closed already, or has gone with its engine."""
    return isinstance(error, Disconnected) or (isinstance(error, Refused) and error.code == "not_found")


class ProgramNotFound(ToolyardError):
    """There is no program ``toolyard`` to be started."""


class Disconnected(ToolyardError, ConnectionError):
    """Nothing can be sent any more, and no answer comes. A call that was waiting may have had its effect."""


class ProgramDied(Disconnected):
    """The program has ended although nobody told it to."""

    def __init__(self, message: str, *, returncode: int | None, stderr: str) -> None:
        super().__init__(message)
        self.returncode = returncode
        self.stderr = stderr
        """The last lines that it wrote to standard error."""

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), returncode=self.returncode, stderr=self.stderr), self.args


class ProtocolError(Disconnected):
    """What came from the other side is none of the protocol; nothing more of it is read."""


class Closed(Disconnected):
    """The engine, or the session, was closed."""


_BY_SLUG: dict[str, type[CallError]] = {
    one.slug: one for one in (ToolNotFound, PermissionDenied, FsDenied, InvalidArgs, ToolFailed)
}


def call_error(
    slug: str, message: str, *, tool: str, call_id: str, meta: Mapping[str, Any], note: str | None = None
) -> CallError:
    """The exception of a call that has failed."""
    return _BY_SLUG.get(slug, ToolFailed)(message, slug=slug, tool=tool, call_id=call_id, meta=meta, note=note)
