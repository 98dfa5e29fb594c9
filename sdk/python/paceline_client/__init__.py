"""Paceline's Python SDK: server-sent events read from bytes, at any split."""

from paceline_client.sse import SseError, SseEvent, SseParser, SseSplitter, event_data

__all__ = ["SseError", "SseEvent", "SseParser", "SseSplitter", "event_data"]
