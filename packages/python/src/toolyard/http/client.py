"""Requests to a server."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ..errors import Disconnected, ProtocolError, Refused

TIMEOUT_S = 90.0
"""Beyond the longest wait that is asked for."""


class _NoRedirects(HTTPRedirectHandler):
    """A token is for the server that it was given for."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """Speaks to one server. May be used by all threads."""

    def __init__(self, url: str, token: str | None) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url!r} is no address of a server, such as http://127.0.0.1:8080")
        self._url = url.rstrip("/")
        self._headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._opener = build_opener(_NoRedirects)

    def get(self, *path: str, **query: Any) -> Any:
        return self._ask("GET", path, query)

    def delete(self, *path: str) -> Any:
        return self._ask("DELETE", path, {})

    def post(self, *path: str, body: Any, **query: Any) -> Any:
        return self._ask("POST", path, query, body)

    def post_once(self, *path: str, body: Any, **query: Any) -> Any:
        """A request under a key: if its answer is lost it is repeated, and nothing is done twice."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        try:
            return self._ask("POST", path, query, body, headers)
        except Disconnected:
            return self._ask("POST", path, query, body, headers)

    def _ask(
        self, method: str, path: tuple[str, ...], query: Mapping[str, Any], body: Any = None, headers: Any = None
    ) -> Any:
        url = "/".join([self._url, *(quote(part, safe="") for part in path)])
        given = {name: value for name, value in query.items() if value is not None}
        url += f"?{urlencode(given)}" if given else ""
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        content = {} if data is None else {"Content-Type": "application/json"}
        request = Request(url, data, {**self._headers, **content, **(headers or {})}, method=method)
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                received = answer.read()
        except HTTPError as error:
            with error:
                raise _problem(error.code, error.read()) from None
        except (URLError, HTTPException, OSError) as error:
            raise Disconnected(f"{self._url} does not answer: {getattr(error, 'reason', error)}") from error
        return _read(received)


def _read(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        raise ProtocolError(f"the server has answered with what is no JSON: {data[:200]!r}") from None


def _problem(status: int, data: bytes) -> Refused:
    try:
        problem = json.loads(data)
        return Refused(problem["detail"], code=problem["code"], errors=problem.get("errors"))
    except (ValueError, KeyError, TypeError):
        return Refused(f"the server has answered with the status {status}", code=f"http_{status}")
