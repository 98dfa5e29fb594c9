"""Paceline's Python SDK: a stream's bursts re-paced into a smooth stream."""

from paceline_client.cutting import Piece
from paceline_client.options import PRESETS, PacerOptions, Unit
from paceline_client.pacer import Hint, Pacer, PacerStats
from paceline_client.sse import SseError, SseEvent, SseParser, SseSplitter, event_data

__all__ = [
    "PRESETS",
    "Hint",
    "Pacer",
    "PacerOptions",
    "PacerStats",
    "Piece",
    "SseError",
    "SseEvent",
    "SseParser",
    "SseSplitter",
    "Unit",
    "event_data",
]
