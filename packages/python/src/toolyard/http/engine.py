"""An engine on a server."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from ..place import Place
from ..question import Answer, Question, decision, read_question
from ..session import Session
from .backend import HttpBackend
from .client import Client


class RemoteEngine:
    """The engine of a ``toolyard serve``. Made by :func:`connect`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def session(
        self,
        name: str | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        confirmations: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        role: str | None = None,
        workspace: str | None = None,
    ) -> Session:
        """Opens a session; each of its bounds can only narrow what the token may."""
        bounds = {"capabilities": capabilities, "confirmations": confirmations, "limits": limits}
        fields = {"id": name, "role": role, "workspace": workspace, **bounds}
        opened = self._client.post("sessions", body={name: one for name, one in fields.items() if one is not None})
        return Session(HttpBackend(self._client), Place(opened["id"]))

    def questions(self, session: str | None = None) -> list[Question]:
        """The questions that wait for an answer, each whole; for a token that may approve."""
        found: list[Question] = []
        cursor: str | None = None
        while True:
            page = self._client.get("confirmations", session=session, cursor=cursor)
            for short in page["confirmations"]:
                path = ("sessions", short["session"], "confirmations", short["request_id"])
                found.append(read_question(self._client.get(*path)))
            cursor = page.get("next")
            if cursor is None:
                return found

    def answer(self, question: Question, answer: Answer) -> dict[str, Any]:
        """Answers a question as ``approve`` would; raises :class:`toolyard.Refused` if that does not count.

        ::

            for question in engine.questions():
                print(question)
                engine.answer(question, Deny("not on a Friday"))
        """
        path = ("sessions", question.session, "turns", str(question.turn), "confirmations", question.request_id)
        given = {name: one for name, one in decision(answer).items() if one is not None}
        taken: dict[str, Any] = self._client.post(*path, body={**given, "digest": question.digest})
        return taken

    def close(self) -> None:
        """Nothing is kept open here; sessions live on the server until they are closed."""

    def __enter__(self) -> RemoteEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(url: str, token: str | None = None) -> RemoteEngine:
    """The engine of a server, with the same sessions over HTTP.

    ::

        engine = toolyard.connect("http://127.0.0.1:8080", token=os.environ["TOKEN"])
        with engine.session() as session:
            turn = session.dispatch(response)
    """
    return RemoteEngine(Client(url, token))
