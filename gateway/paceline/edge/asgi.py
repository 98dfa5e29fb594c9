"""An ASGI application as a handler of requests: how the admin plane is served."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from paceline.edge.client import Client, ClientGone

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class AsgiHandler:
    """Serves each request with `app`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, client: Client) -> None:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": client.http_version,
            "method": client.method,
            "scheme": "http",
            "path": client.path,
            "raw_path": None,
            "query_string": client.query,
            "root_path": "",
            "headers": client.headers,
            "client": None,
            "server": None,
        }
        await self._app(scope, _receiver(client), _sender(client))


def _receiver(client: Client) -> Receive:
    ended = False

    async def receive() -> Message:
        nonlocal ended
        try:
            while ended and not client.answered:
                await client.changed()
            if client.answered:
                return {"type": "http.disconnect"}
            data = await client.read()
        except ClientGone:
            return {"type": "http.disconnect"}
        ended = client.request_complete
        return {"type": "http.request", "body": data, "more_body": not ended}

    return receive


def _sender(client: Client) -> Send:
    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [tuple(pair) for pair in message.get("headers", ())]
            length = dict(headers).get(b"content-length")
            headers = [pair for pair in headers if pair[0] != b"content-length"]
            client.start(message["status"], headers, length=None if length is None else int(length))
            return
        await client.drained()
        body = message.get("body", b"")
        if message.get("more_body", False):
            client.write(body)
        else:
            client.finish(body)

    return send
