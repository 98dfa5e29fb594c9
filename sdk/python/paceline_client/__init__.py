"""Paceline's Python SDK: a stream's bursts re-paced into a smooth stream.

Start at `smooth`, which paces any asynchronous stream of chunks, such as the `openai` package's, or
at `AsyncClient`, which needs no other package. Below them is `Pacer`, pure, under a clock of yours.
"""

from paceline_client.answers import Route
from paceline_client.client import AsyncClient, ChatStream, Client, chunk_text
from paceline_client.cutting import Piece
from paceline_client.errors import (
    ApiError,
    AuthenticationError,
    BadRequestError,
    BadStreamError,
    ConnectError,
    ConnectionCutError,
    IncompleteStreamError,
    NotFoundError,
    OverloadedError,
    PacelineError,
    ServerError,
    StreamError,
    StreamErrorEvent,
)
from paceline_client.options import PRESETS, PacerOptions, Unit
from paceline_client.pacer import Hint, Pacer, PacerStats
from paceline_client.retries import Retries
from paceline_client.sse import SseError, SseEvent, SseParser, SseSplitter, event_data
from paceline_client.stream import SmoothStream, smooth

__all__ = [
    "PRESETS",
    "ApiError",
    "AsyncClient",
    "AuthenticationError",
    "BadRequestError",
    "BadStreamError",
    "ChatStream",
    "Client",
    "ConnectError",
    "ConnectionCutError",
    "Hint",
    "IncompleteStreamError",
    "NotFoundError",
    "OverloadedError",
    "PacelineError",
    "Pacer",
    "PacerOptions",
    "PacerStats",
    "Piece",
    "Retries",
    "Route",
    "ServerError",
    "SmoothStream",
    "SseError",
    "SseEvent",
    "SseParser",
    "SseSplitter",
    "StreamError",
    "StreamErrorEvent",
    "Unit",
    "chunk_text",
    "event_data",
    "smooth",
]
