"""What a pacer can be told. Times are in milliseconds, as in the TypeScript SDK."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What is shown at a time: tokens where their number is known (else graphemes), or words."""

    GRAPHEME = "grapheme"
    TOKEN = "token"
    WORD = "word"


@dataclass(frozen=True, slots=True, kw_only=True)
class PacerOptions:
    """Raises ValueError for values that no pacer could keep.

    `max_delay_ms` bounds the delay that is ever added; the pacer spends what the stream's bursts
    ask for, between `min_delay_ms` and that. `drain_ms` after the finish all is shown. `hold_ms`
    bounds how long an unfinished character, escape sequence or fence waits for its rest.
    `enabled=False` passes everything on as it comes.
    """

    max_delay_ms: float = 400.0
    min_delay_ms: float = 100.0
    drain_ms: float = 150.0
    hold_ms: float = 100.0
    unit: Unit = Unit.TOKEN
    enabled: bool = True

    def __post_init__(self) -> None:
        for name in ("max_delay_ms", "min_delay_ms", "drain_ms", "hold_ms"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} must be 0 or more milliseconds, not {value!r}")
        if self.unit not in list(Unit):
            raise ValueError(f"no unit {self.unit!r}; there are {', '.join(Unit)}")
        object.__setattr__(self, "unit", Unit(self.unit))


PRESETS: dict[str, PacerOptions] = {
    "realtime": PacerOptions(max_delay_ms=150, min_delay_ms=50),
    "balanced": PacerOptions(),
    "silky": PacerOptions(max_delay_ms=600, min_delay_ms=200),
    "off": PacerOptions(enabled=False),
}


def options_for(preset: str | PacerOptions | None) -> PacerOptions:
    """Options by name, or as they are. Raises ValueError for a name that is none."""
    if isinstance(preset, PacerOptions):
        return preset
    name = preset or "balanced"
    if name not in PRESETS:
        raise ValueError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]
