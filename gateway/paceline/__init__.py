"""Paceline: an OpenAI-compatible gateway for vLLM workers that use speculative decoding."""

__version__ = "0.1.0"
