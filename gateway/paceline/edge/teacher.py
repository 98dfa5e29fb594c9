"""The replay teacher: finished exchanges go to a child process, what they teach comes back.

The gateway's own loop only keeps references to the bytes of an exchange and hands them over a pipe.
The child (`teacher_child`) reads and replays them. It may use `share` of one core: it says what CPU
time each exchange took, and gets the next no sooner than that allows. Meanwhile exchanges wait in a
short queue, and when that is full requests are not kept at all: that is how busy gateways sample.
They wait for one another as well (`TOGETHER`).

Nothing depends on it. A child that dies is started again after a growing pause, one that does not
answer is killed, and the exchange it had is dropped. It ends with the gateway.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sys
import time
import weakref
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import orjson

from paceline.core.replayable import Replayable, Replayed, frame_of
from paceline.core.sampling import TOGETHER, TOGETHER_S
from paceline.edge.teacher_child import LENGTH

log = logging.getLogger(__name__)

KEPT_BYTES = 2**20
"""Kept of one answer; a stream of vLLM's takes about 250 bytes a token."""
REQUEST_BYTES = 2**20
"""Longer requests, most of them with images, are not handed over."""
WRITE_BYTES = 64 * 2**10
"""Given to the pipe at a time: what a pipe holds, so that the loop never copies much at once."""
REPLY_BYTES = 2**20
OWED_S = 1.0
"""A child that owes less rest than this goes on: it would have to be woken for little."""
CHILD = (sys.executable, "-P", "-m", "paceline.edge.teacher_child")

Key = TypeVar("Key")


class Kept:
    """The bytes of one answer, by reference, as they come; the first `KEPT_BYTES` or so of them."""

    __slots__ = ("__weakref__", "_parts", "is_cut", "num_bytes")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.num_bytes = 0
        self.is_cut = False

    def add(self, data: bytes) -> None:
        if self.num_bytes < KEPT_BYTES:
            self._parts.append(data)
            self.num_bytes += len(data)
        else:
            self.is_cut = True

    def joined(self) -> bytes:
        return b"".join(self._parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherLimits:
    """`sample` of the requests are kept, at most `max_kept` at a time; at most `max_queued` wait,
    until `enough` are there or the first has waited `gather_s`. The child has `share` of a core,
    enough for two usual answers a second; long ones teach no more for taking longer. One that has
    not answered after `hang_s` hangs. The pause before a new one is the first of `pauses_s` and
    doubles up to the second; after an exchange that went well it is the first again.
    """

    share: float = 0.02
    sample: float = 1.0
    max_kept: int = 64
    max_queued: int = 2 * TOGETHER
    enough: int = TOGETHER
    gather_s: float = TOGETHER_S
    hang_s: float = 60.0
    pauses_s: tuple[float, float] = (5.0, 300.0)

    def __post_init__(self) -> None:
        shares = 0 < self.share <= 1 and 0 <= self.sample <= 1
        if not shares or min(self.max_kept, self.max_queued, self.enough) < 1 or self.hang_s <= 0:
            raise ValueError(f"not limits of a teacher: {self}")


@dataclass(slots=True)
class TeacherCounts:
    """Since the start. `dropped` is by reason: `queue` (full, or too many kept), `size`, `child`
    (it died or hung), `error` (it could not study it), `unread` (no text to be found)."""

    taught: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    child_starts: int = 0
    child_cpu_s: float = 0.0


class _ChildFailed(Exception):
    """It died, hung, or does not speak as it should."""


class Teacher(Generic[Key]):
    """`run` is its loop, a task of the gateway's; `keep` and `offer` are for requests."""

    def __init__(
        self,
        on_replayed: Callable[[Key, Replayed], object],
        *,
        limits: TeacherLimits | None = None,
        rng: random.Random | None = None,
        now_s: Callable[[], float] = time.monotonic,
        command: Sequence[str] = CHILD,
    ) -> None:
        """`on_replayed` is called on the loop, with the key that came with the exchange."""
        self.counts = TeacherCounts()
        self.child_pid: int | None = None
        self._on_replayed = on_replayed
        self._limits = limits or TeacherLimits()
        self._rng = rng or random.Random()
        self._now_s = now_s
        self._command = tuple(command)
        self._kept: weakref.WeakSet[Kept] = weakref.WeakSet()
        self._queue: deque[tuple[Replayable, Key]] = deque()
        self._is_offered = asyncio.Event()
        self._are_enough = asyncio.Event()
        self._free_s = 0.0  # when the share of the core is had again
        self._pause_s = self._limits.pauses_s[0]

    # -- for requests ----------------------------------------------------------------------------

    def keep(self) -> Kept | None:
        """Where a request's answer is to be kept; None if this one is not for the teacher."""
        limits = self._limits
        if limits.sample < 1.0 and self._rng.random() >= limits.sample:
            return None
        if len(self._queue) >= limits.max_queued or len(self._kept) >= limits.max_kept:
            self.counts.dropped["queue"] += 1
            return None
        kept = Kept()
        self._kept.add(kept)
        return kept

    def offer(self, exchange: Replayable, key: Key) -> bool:
        """Takes an exchange if there is room for it; never waits."""
        if len(exchange.request) > REQUEST_BYTES or (exchange.is_cut and not exchange.is_stream):
            return self._drop("size")
        if len(self._queue) >= self._limits.max_queued:
            return self._drop("queue")
        self._queue.append((exchange, key))
        self._is_offered.set()
        if len(self._queue) >= self._limits.enough:
            self._are_enough.set()
        return True

    def _drop(self, reason: str) -> bool:
        self.counts.dropped[reason] += 1
        return False

    @property
    def wait_s(self) -> float:
        """How long the next exchange must wait for the child's share of the core."""
        return max(0.0, self._free_s - self._now_s())

    # -- its loop --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until it is cancelled. The first child starts with the first exchange."""
        while True:
            await self._gathered()
            try:
                async with _child(self._command) as child:
                    self.counts.child_starts += 1
                    self.child_pid = child.pid
                    await self._teach(child)
            except (_ChildFailed, OSError) as failure:
                self.child_pid = None
                log.warning("the replay teacher's process failed: %s", failure)
                await asyncio.sleep(self._pause_s)
                self._pause_s = min(2 * self._pause_s, self._limits.pauses_s[1])

    async def _gathered(self) -> None:
        """Until there is something to study, and with it as much as comes meanwhile."""
        while not self._queue:
            self._is_offered.clear()
            await self._is_offered.wait()
        if len(self._queue) < self._limits.enough:
            self._are_enough.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.gather_s):
                await self._are_enough.wait()

    async def _teach(self, child: Process) -> None:
        """One exchange after the other. Raises _ChildFailed."""
        cpu_before_s = 0.0
        while True:
            while self._queue:
                if self.wait_s > OWED_S:
                    await asyncio.sleep(self.wait_s)
                cpu_before_s += await self._study(child, cpu_before_s)
            await self._gathered()

    async def _study(self, child: Process, cpu_before_s: float) -> float:
        """The next exchange, and what CPU time it took; the child has taken `cpu_before_s` so far.
        Raises _ChildFailed."""
        if child.returncode is not None:
            raise _ChildFailed("it has ended")
        exchange, key = self._queue.popleft()
        begun_s = self._now_s()
        try:
            said = await self._asked(child, exchange)
            cpu_s = float(said["cpu_s"]) - cpu_before_s
            replayed = said["replayed"] and Replayed.of(said["replayed"])
        except Exception as failure:
            self._drop("child")
            self._charge(begun_s, self._now_s() - begun_s)  # at worst it ran all the time
            raise _ChildFailed(type(failure).__name__) from failure
        self._charge(begun_s, cpu_s)
        self._pause_s = self._limits.pauses_s[0]
        if replayed:
            self._tell(key, replayed)
        else:
            self._drop("error" if said.get("error") else "unread")
        return cpu_s

    def _tell(self, key: Key, replayed: Replayed) -> None:
        self.counts.taught += 1
        try:
            self._on_replayed(key, replayed)
        except Exception:
            log.exception("a replay was not learned from")

    async def _asked(self, child: Process, exchange: Replayable) -> Any:
        """The child's reply. Raises TimeoutError, OSError, EOFError, ValueError."""
        assert child.stdin is not None
        assert child.stdout is not None
        async with asyncio.timeout(self._limits.hang_s):
            for part in frame_of(exchange):
                for start in range(0, len(part), WRITE_BYTES):
                    child.stdin.write(part[start : start + WRITE_BYTES])
                    await child.stdin.drain()
            (length,) = LENGTH.unpack(await child.stdout.readexactly(LENGTH.size))
            if length > REPLY_BYTES:
                raise ValueError(f"a reply of {length} bytes")
            return orjson.loads(await child.stdout.readexactly(length))

    def _charge(self, begun_s: float, cpu_s: float) -> None:
        self.counts.child_cpu_s += cpu_s
        self._free_s = max(self._free_s, begun_s) + cpu_s / self._limits.share


@contextlib.asynccontextmanager
async def _child(command: Sequence[str]) -> AsyncIterator[Process]:
    """The process, killed at the end: it holds nothing worth a farewell.

    In a session of its own, so that a terminal's signals reach it through the gateway alone.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
    )
    try:
        yield await asyncio.shield(starting)  # cancelled half-way it would be left behind
    finally:
        ending = asyncio.ensure_future(_end(starting))
        try:
            await asyncio.shield(ending)
        finally:
            await ending  # cancelled or not, nothing of it is left behind


async def _end(starting: asyncio.Future[Process]) -> None:
    """Kills it, and waits for its end and that of its pipes: the loop may be closed after it."""
    try:
        child = await starting
    except OSError:
        return
    assert child.stdin is not None
    assert child.stdout is not None
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    await child.wait()
    child.stdin.close()
    with contextlib.suppress(OSError):
        await child.stdin.wait_closed()
    while await child.stdout.read(WRITE_BYTES):
        pass
    await asyncio.sleep(0)  # uvloop closes the process's own handle in its next turn
