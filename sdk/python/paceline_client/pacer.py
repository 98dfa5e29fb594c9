"""Bursts in, a smooth stream out: the pacer, a pure class that is told the time.

    pacer = Pacer()
    pacer.push("Hello wor", now_ms)       # as it arrives
    for piece in pacer.take(now_ms): …    # what may be shown by now
    pacer.next_due_ms                     # when to come again
    pacer.finish(now_ms)                  # no more will come

What holds, whatever arrives: per lane the text that comes out is the text that went in, in order;
parts keep their place between texts; the first unit is out at once; nothing is held longer than
`max_delay_ms`, and nothing longer than `drain_ms` after the finish. All lanes share one queue and
one clock. Times are milliseconds of any clock that does not go back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf

from paceline_client.bursts import Bursts
from paceline_client.cutting import Cutter, Piece
from paceline_client.options import PacerOptions, Unit
from paceline_client.playout import Playout


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What a Paceline gateway says before an event: `: pace n=3 t=18233 next=44`.

    Tokens in the event (None if unknown), the gateway's clock at reading it, and the time it
    expects to the next one, both in milliseconds.
    """

    num_tokens: int | None = None
    server_ms: float | None = None
    next_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PacerStats:
    """What a pacer has done so far. Delays are those it added, over the pieces shown."""

    num_pieces: int
    num_chars: int
    waiting_chars: int
    mean_added_delay_ms: float
    max_added_delay_ms: float
    delay_target_ms: float
    gap_ms: float
    units_per_burst: float


class Pacer:
    """See the module. `finish`, `flush` and `abort` may each be called again without effect."""

    def __init__(self, options: PacerOptions | None = None) -> None:
        self._options = options or PacerOptions()
        self._bursts = Bursts()
        self._playout: Playout[Piece] = Playout(self._options, self._bursts)
        self._cutters: dict[str, Cutter] = {}
        self._ready: deque[tuple[float, Piece]] = deque()
        self._now_ms = -inf
        self._due_ms: float | None = None  # when the next piece is due, unless something changed
        self._changed = False
        self._counts_tokens: bool | None = None
        self._chars_per_token = 4.0
        self._num_units = 0.0
        self._num_pieces = self._num_chars = self._received_chars = 0
        self._sum_delay_ms = self._max_delay_ms = 0.0

    # -- what arrives ------------------------------------------------------------------------------

    def push(
        self,
        text: str,
        now_ms: float,
        *,
        lane: str = "text",
        num_tokens: int | None = None,
        token_texts: Sequence[str] | None = None,
        cargo: object = None,
        final: bool = False,
    ) -> None:
        """Takes text that arrived, with the number of its tokens and their texts where known.

        Text that completes the lane's last character moves to that piece; if none is left, `cargo`
        goes on in a piece without text, in its place. `final` says that the lane is complete, and
        what begins like it: nothing is held, and all that waits is due within `drain_ms`.
        """
        self._advance(now_ms)
        self._changed = True
        cutter = self._cutter(lane)
        self._received_chars += len(text)
        enabled = self._options.enabled
        rest = cutter.extend(text, now_ms) if enabled else text
        units = self._count(text, num_tokens)
        known = num_tokens or 0
        if rest and enabled:
            texts = token_texts if len(rest) == len(text) else None
            pieces = cutter.cut(rest, units=units, num_tokens=known, token_texts=texts)
            self._arrive(pieces, cutter, now_ms, cargo)
        elif rest or cargo is not None:
            piece = Piece(lane, rest, 0.0, now_ms, cargo, tokens=(0, known))
            self._playout.push((piece,), now_ms)
        if final:
            self._complete(lane)

    def part(self, cargo: object, now_ms: float, *, closes: str | None = "") -> None:
        """Takes what is no text: it keeps its place among the texts.

        `closes` is the beginning of the names of the lanes that it completes; all that waits is
        then due within `drain_ms`. None completes nothing and hurries nothing.
        """
        self._advance(now_ms)
        self._changed = True
        self._playout.push((Piece("", "", 0.0, now_ms, cargo),), now_ms)
        if closes is not None:
            self._complete(closes)

    def hint(self, hint: Hint) -> None:
        """Takes what the server says of its pace; of use before anything was measured."""
        if hint.next_ms is not None and 0 < hint.next_ms < inf:
            units = hint.num_tokens if self._counts_tokens is not False else None
            self._changed = True
            self._bursts.hint(period_ms=hint.next_ms, units=units)

    def finish(self, now_ms: float) -> None:
        """No more will come: all is due within `drain_ms`."""
        self._advance(now_ms)
        self._changed = True
        self._complete("")
        self._playout.end(now_ms)

    # -- what leaves -------------------------------------------------------------------------------

    def take(self, now_ms: float) -> list[Piece]:
        """What is to be shown by `now_ms` and was not taken before, in order."""
        return [piece for _, piece in self.take_timed(now_ms)]

    def take_timed(self, now_ms: float) -> list[tuple[float, Piece]]:
        """The same with the time at which each was due."""
        self._advance(now_ms)
        taken = list(self._ready)
        self._ready.clear()
        return taken

    @property
    def next_due_ms(self) -> float | None:
        """When `take` has something; None while nothing waits."""
        return self._now_ms if self._ready else self._playout.due_ms()

    @property
    def num_waiting(self) -> int:
        """How many pieces have not been taken."""
        return len(self._ready) + len(self._playout)

    def flush(self, now_ms: float) -> list[Piece]:
        """All that waits, at once: what pacing is switched off with, in the middle of a stream."""
        self._advance(now_ms)
        self._changed = True
        while len(self._playout):
            self._show(now_ms)
        return self.take(now_ms)

    def abort(self, now_ms: float) -> list[Piece]:
        """Shows nothing more; what was received and never shown, for who wants to keep it."""
        self._advance(now_ms)
        self._changed = True
        self._complete("")
        unshown = [piece for _, piece in self._ready] + self._playout.clear()
        self._ready.clear()
        self._received_chars = self._num_chars
        return unshown

    @property
    def stats(self) -> PacerStats:
        shown = max(1, self._num_pieces)
        return PacerStats(
            num_pieces=self._num_pieces,
            num_chars=self._num_chars,
            waiting_chars=self._received_chars - self._num_chars,
            mean_added_delay_ms=self._sum_delay_ms / shown,
            max_added_delay_ms=self._max_delay_ms,
            delay_target_ms=self._playout.delay_ms,
            gap_ms=self._bursts.gap_ms,
            units_per_burst=self._num_units / max(1, self._bursts.num_bursts),
        )

    # -- inside ------------------------------------------------------------------------------------

    def _cutter(self, lane: str) -> Cutter:
        cutter = self._cutters.get(lane)
        if cutter is None:
            cutter = self._cutters[lane] = Cutter(self._options.unit, lane)
        return cutter

    def _count(self, text: str, num_tokens: int | None) -> int | None:
        """How many tokens `text` weighs; None where this stream is weighed in graphemes.

        A stream is weighed in one unit for good: tokens if its first text came with their number,
        and then a text without it is taken for tokens of the usual length.
        """
        if self._counts_tokens is None and text:
            known = num_tokens is not None and num_tokens > 0
            self._counts_tokens = known and self._options.unit is not Unit.GRAPHEME
        if not self._counts_tokens:
            return None
        if num_tokens is None or num_tokens <= 0:
            return max(1, floor(len(text) / self._chars_per_token + 0.5))  # no halves to even
        self._chars_per_token += (max(1.0, len(text) / num_tokens) - self._chars_per_token) / 8
        return num_tokens

    def _arrive(self, pieces: list[Piece], cutter: Cutter, now_ms: float, cargo: object) -> None:
        units = 0.0
        for piece in pieces:
            units += piece.weight
            piece.arrival_ms = now_ms
            piece.cargo = cargo
        self._bursts.arrive(now_ms, units)
        self._playout.push(pieces, now_ms)
        # The first unit is never held.
        if cutter.open_piece is not None and (self._num_units or len(pieces) > 1):
            options = self._options
            held_ms = min(options.hold_ms, options.drain_ms, self._playout.delay_ms)
            cutter.open_piece.not_before_ms = now_ms + held_ms
        self._num_units += units

    def _complete(self, lanes: str) -> None:
        """The lanes whose names begin so are complete: nothing is held, and all hurries."""
        for lane, cutter in self._cutters.items():
            if lane.startswith(lanes):
                cutter.close()
        self._playout.hurry(self._now_ms)

    def _advance(self, now_ms: float) -> None:
        """Moves what became due up to `now_ms` to what is ready."""
        if now_ms < self._now_ms:
            raise ValueError(f"time went back from {self._now_ms} to {now_ms} ms")
        self._now_ms = now_ms
        due_ms = self._playout.due_ms() if self._changed else self._due_ms
        while due_ms is not None and due_ms <= now_ms:
            self._show(due_ms)
            due_ms = self._playout.due_ms()
        self._due_ms, self._changed = due_ms, False

    def _show(self, due_ms: float) -> None:
        piece = self._playout.pop(due_ms)
        if piece.last and (cutter := self._cutters.get(piece.lane)) and cutter.open_piece is piece:
            cutter.close()
        self._num_pieces += 1
        self._num_chars += len(piece.text)
        added_ms = due_ms - piece.arrival_ms
        self._sum_delay_ms += added_ms
        if added_ms > self._max_delay_ms:
            self._max_delay_ms = added_ms
        self._ready.append((due_ms, piece))
