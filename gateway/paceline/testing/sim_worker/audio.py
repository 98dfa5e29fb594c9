"""An uploaded recording → how long it is, and what is heard in it.

Nothing is listened to: the words follow from the bytes, so that the same file has the same
transcript, and as many of them as somebody speaks in that time.
"""

from __future__ import annotations

import io
import math
import random
import wave
import zlib

from paceline.sim.writer import dictate

BYTES_PER_S = 16_000  # of a file that is no WAV: 128 kbit/s, the usual rate of MP3
TOKENS_PER_S = 3  # 150 words a minute, and their punctuation
FRAMES_PER_S = 100  # of Whisper's spectrogram, which vLLM counts as the audio's prompt tokens


def duration_s(recording: bytes) -> float:
    """Seconds: what a WAV file says of itself, else by its size."""
    try:
        with wave.open(io.BytesIO(recording)) as file:
            return float(file.getnframes() / file.getframerate())
    except (wave.Error, EOFError, ZeroDivisionError):
        return len(recording) / BYTES_PER_S


def heard(recording: bytes, seconds: float) -> str:
    """The transcript."""
    rng = random.Random(zlib.crc32(recording))
    return dictate(rng, max(1, math.ceil(seconds * TOKENS_PER_S)))


def num_audio_tokens(seconds: float) -> int:
    return math.ceil(seconds * FRAMES_PER_S)
