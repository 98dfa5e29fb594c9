"""The replay teacher with its real child process: taught, dropped, killed, hung, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import uvloop

from harness import eventually
from paceline.core.replayable import Replayable, Replayed, study
from paceline.core.types import Endpoint, Speculation
from paceline.edge.teacher import KEPT_BYTES, REQUEST_BYTES, Kept, Teacher, TeacherLimits

NGRAM = Speculation(method="ngram", num_speculative_tokens=5)
LIMITS = TeacherLimits(share=1.0, gather_s=0.0, hang_s=10.0, pauses_s=(0.01, 0.02))
SECRET = "the quick brown fox jumps over the lazy dog and then sleeps in the sun all day"


def exchange(answer: str = SECRET, **more: Any) -> Replayable:
    """The prompt asks for `SECRET` again."""
    body = {"model": "m", "messages": [{"role": "user", "content": f"Repeat: {SECRET}"}]}
    said = {"choices": [{"index": 0, "message": {"role": "assistant", "content": answer}}]}
    given = {
        "endpoint": Endpoint.CHAT_COMPLETIONS,
        "request": orjson.dumps(body),
        "answer": orjson.dumps(said),
        "is_stream": False,
        "lookups": {"ngram": NGRAM},
    }
    return Replayable(**{**given, **more})


class Running:
    """A teacher at work, and what it taught."""

    def __init__(self, **more: Any) -> None:
        self.taught: list[tuple[int, Replayed]] = []
        self.it: Teacher[int] = Teacher(
            lambda key, replayed: self.taught.append((key, replayed)), **{"limits": LIMITS, **more}
        )


@contextlib.asynccontextmanager
async def teaching(**more: Any) -> AsyncIterator[Running]:
    running = Running(**more)
    task = asyncio.create_task(running.it.run())
    try:
        yield running
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_exchange_is_taught_by_a_process_of_low_priority_that_ends_with_us():
    async with teaching() as running:
        assert running.it.child_pid is None  # none before it is needed
        assert running.it.offer(exchange(), 7)
        await eventually(lambda: bool(running.taught), within_s=20)
        pid = running.it.child_pid
        assert pid is not None
        assert os.getpriority(os.PRIO_PROCESS, pid) == 19
    assert running.taught == [(7, study(exchange()))]
    (_, replayed), *_ = running.taught
    assert replayed.copy_ratio == 1.0
    assert replayed.lookups["ngram"].num_tokens == replayed.num_output_tokens
    assert is_gone(pid)


async def test_a_process_teaches_many_exchanges_and_its_time_is_counted():
    async with teaching() as running:
        for key in range(8):
            assert running.it.offer(exchange(), key)
        await eventually(lambda: len(running.taught) == 8, within_s=20)
        counts = running.it.counts
        assert [key for key, _ in running.taught] == list(range(8))
        assert (counts.taught, counts.child_starts, counts.dropped) == (8, 1, {})
        assert 0 < counts.child_cpu_s < 10


async def test_exchanges_wait_for_one_another():
    limits = TeacherLimits(share=1.0, enough=2, gather_s=60.0)
    async with teaching(limits=limits) as running:
        running.it.offer(exchange(), 1)
        await asyncio.sleep(0.3)
        assert running.it.counts.child_starts == 0
        running.it.offer(exchange(), 2)
        await eventually(lambda: len(running.taught) == 2, within_s=20)


async def test_an_exchange_that_stays_alone_does_not_wait_for_ever():
    async with teaching(limits=TeacherLimits(share=1.0, gather_s=0.1)) as running:
        running.it.offer(exchange(), 1)
        await eventually(lambda: bool(running.taught), within_s=20)


async def test_a_killed_process_is_replaced_and_loses_no_exchange_that_waits():
    async with teaching() as running:
        running.it.offer(exchange(), 1)
        await eventually(lambda: bool(running.taught), within_s=20)
        pid = running.it.child_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: is_gone(pid))
        running.it.offer(exchange(), 2)
        await eventually(lambda: len(running.taught) == 2, within_s=20)
        assert running.it.child_pid != pid
        assert running.it.counts.child_starts == 2


def is_gone(pid: int) -> bool:
    """Reaped, by the loop's own watching."""
    return not Path(f"/proc/{pid}").exists()


async def test_a_process_that_does_not_answer_is_killed_and_its_exchange_dropped():
    sleeper = (sys.executable, "-c", "import time; time.sleep(60)")
    limits = TeacherLimits(share=1.0, gather_s=0.0, hang_s=0.2, pauses_s=(0.01, 0.02))
    async with teaching(limits=limits, command=sleeper) as running:
        running.it.offer(exchange(), 1)
        await eventually(lambda: running.it.counts.dropped["child"] == 1)
        running.it.offer(exchange(), 2)
        await eventually(lambda: running.it.counts.child_starts == 2)
    assert not running.taught
    assert running.it.counts.child_cpu_s > 0.15  # it may have been busy all the time


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit",
        "print('what?', flush=True)",
        "import sys; sys.stdout.buffer.write(bytes([0,0,0,2]) + b'{}'); sys.stdout.flush()",
        r"import sys; sys.stdout.buffer.write(b'\xff' * 4); sys.stdout.flush(); input()",
    ],
    ids=["ends", "chatters", "says nothing", "says too much"],
)
async def test_whatever_a_process_says_the_gateway_goes_on(program: str):
    async with teaching(command=(sys.executable, "-c", program)) as running:
        running.it.offer(exchange(), 1)
        counts = running.it.counts
        await eventually(lambda: counts.child_starts + counts.dropped["child"] >= 2)
        assert not running.taught


async def test_a_program_that_is_not_there_is_tried_again(caplog: pytest.LogCaptureFixture):
    async with teaching(command=("/nowhere/python",)) as running:
        running.it.offer(exchange(), 1)
        await eventually(lambda: caplog.text.count("process failed") >= 2)
        assert running.it.counts.child_starts == 0
        assert running.it.counts.dropped == {}  # it waits for a child that works


def test_it_teaches_under_the_gateways_own_loop():
    async def taught() -> list[tuple[int, Replayed]]:
        async with teaching() as running:
            running.it.offer(exchange(), 1)
            await eventually(lambda: bool(running.taught), within_s=20)
        return running.taught

    assert uvloop.run(taught()) == [(1, study(exchange()))]


def test_the_process_ends_with_a_gateway_that_is_killed():
    """It sees its stdin end."""
    program = f"""
import asyncio, os, signal
from paceline.core.replayable import Replayable
from paceline.edge.teacher import Teacher

async def main():
    teacher = Teacher(lambda key, replayed: None)
    task = asyncio.create_task(teacher.run())
    teacher.offer(Replayable(endpoint="chat_completions", request={exchange().request!r},
                         answer={exchange().answer!r}, is_stream=False, lookups={{}}), 1)
    while not teacher.counts.taught:
        await asyncio.sleep(0.005)
    print(teacher.child_pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30)
    assert ran.returncode == -signal.SIGKILL
    pid = int(ran.stdout)

    async def ended() -> None:
        await eventually(lambda: not is_at_work(pid))

    asyncio.run(ended())


def is_at_work(pid: int) -> bool:
    """Neither gone nor waiting for whoever adopted it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_what_cannot_be_read_is_dropped_and_the_next_one_taught():
    async with teaching() as running:
        running.it.offer(exchange(answer=""), 1)
        running.it.offer(exchange(request=b"{"), 2)
        broken = Speculation(
            method="ngram", num_speculative_tokens=5, options={"prompt_lookup_min": 0}
        )
        running.it.offer(exchange(lookups={"ngram": broken}), 3)
        running.it.offer(exchange(), 4)
        await eventually(lambda: bool(running.taught), within_s=20)
    assert [key for key, _ in running.taught] == [4]
    assert running.it.counts.dropped == {"unread": 2, "error": 1}
    assert running.it.counts.child_starts == 1


async def test_one_who_does_not_learn_does_not_end_the_teaching(
    caplog: pytest.LogCaptureFixture,
):
    learned: list[int] = []

    def learn(key: int, replayed: Replayed) -> None:
        if key == 1:
            raise ZeroDivisionError
        learned.append(key)

    teacher: Teacher[int] = Teacher(learn, limits=LIMITS)
    task = asyncio.create_task(teacher.run())
    teacher.offer(exchange(), 1)
    teacher.offer(exchange(), 2)
    await eventually(lambda: learned == [2], within_s=20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert "was not learned from" in caplog.text
    assert SECRET not in caplog.text


def test_offers_beyond_the_queue_are_dropped():
    teacher = Running(limits=TeacherLimits(max_queued=2)).it
    assert [teacher.offer(exchange(), key) for key in range(4)] == [True, True, False, False]
    assert teacher.keep() is None  # what is kept now would find the queue full
    assert teacher.counts.dropped == {"queue": 3}


def test_what_is_too_large_is_dropped():
    teacher = Running().it
    assert not teacher.offer(exchange(request=b" " * (REQUEST_BYTES + 1)), 1)
    assert not teacher.offer(exchange(is_cut=True), 2)  # half of a JSON value
    assert teacher.offer(exchange(is_cut=True, is_stream=True), 3)
    assert teacher.counts.dropped == {"size": 2}


def test_only_so_many_answers_are_kept_at_a_time():
    teacher = Running(limits=TeacherLimits(max_kept=2)).it
    kept = [teacher.keep(), teacher.keep(), teacher.keep()]
    assert [one is None for one in kept] == [False, False, True]
    del kept
    assert teacher.keep() is not None


def test_a_share_of_the_requests_is_sampled():
    teacher = Running(limits=TeacherLimits(sample=0.25), rng=random.Random(3)).it
    kept = sum(teacher.keep() is not None for _ in range(1000))
    assert 200 < kept < 300
    assert not teacher.counts.dropped


def test_an_answer_is_kept_up_to_a_bound():
    kept = Kept()
    kept.add(b"ab")
    kept.add(b"cd")
    assert (kept.joined(), kept.is_cut) == (b"abcd", False)
    for _ in range(3):
        kept.add(b"x" * KEPT_BYTES)
    assert kept.is_cut
    assert kept.num_bytes == 4 + KEPT_BYTES


async def test_an_exchange_waits_until_the_share_of_the_core_is_had_again():
    """A child that says it took 2 s, at half a core: the next one is due 4 s after the first."""
    program = (
        "import sys, struct\n"
        "read, cpu_s = sys.stdin.buffer.read, 0\n"
        "while lengths := read(12):\n"
        "    for length in struct.unpack('>III', lengths): read(length)\n"
        "    cpu_s += 2\n"
        '    said = b\'{"cpu_s": %d, "replayed": null}\' % cpu_s\n'
        "    sys.stdout.buffer.write(struct.pack('>I', len(said)) + said)\n"
        "    sys.stdout.flush()\n"
    )
    now = [100.0]
    naps: list[float] = []
    async with teaching(
        limits=TeacherLimits(share=0.5, gather_s=0.0),
        command=(sys.executable, "-c", program),
        now_s=lambda: now[0],
    ) as running:
        counts = running.it.counts
        running.it.offer(exchange(), 1)
        await eventually(lambda: counts.dropped["unread"] == 1)
        naps.append(running.it.wait_s)
        now[0] += 1.5
        naps.append(running.it.wait_s)
        now[0] += 2.6
        running.it.offer(exchange(), 2)
        await eventually(lambda: counts.dropped["unread"] == 2)
        assert counts.child_cpu_s == 4.0
    assert naps == [4.0, 2.5]
