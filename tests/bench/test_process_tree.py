"""CPU and memory of processes whose use is known."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from paceline.bench import process_tree

SPIN = """
import os, subprocess, sys, time
def spin(seconds):
    while time.process_time() < seconds: pass
if sys.argv[1] == "child":
    spin(0.2)
    print("spun", flush=True)
    sys.stdin.read()
elif sys.argv[1] == "parent":
    spin(0.1)
    child = subprocess.Popen([sys.executable, "-c", sys.argv[2], "child"], stdin=subprocess.PIPE)
    sys.stdin.readline()
    child.stdin.close()
    child.wait()
    print("reaped", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process that spins for 0.1 s, with a child that spins for 0.2 s."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", SPIN, "parent", SPIN],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()


def test_the_cpu_of_a_child_counts_while_it_lives_and_after(parent: subprocess.Popen[str]) -> None:
    assert parent.stdin is not None
    assert parent.stdout is not None
    assert parent.stdout.readline() == "spun\n"
    both = process_tree.tree(parent.pid)
    assert [one.parent for one in both][1:] == [parent.pid]
    assert 0.28 <= process_tree.cpu_s(both) <= 0.6
    assert process_tree.rss_bytes(both) > 2 * 2**20

    parent.stdin.write("\n")
    parent.stdin.flush()
    assert parent.stdout.readline() == "reaped\n"
    alone = process_tree.tree(parent.pid)
    assert [one.pid for one in alone] == [parent.pid]
    tick_s = 1 / process_tree.TICKS_PER_S  # in which a child's time is told once it is gone
    assert process_tree.cpu_s(alone) >= process_tree.cpu_s(both) - 2 * tick_s


def test_a_process_that_is_gone_has_no_tree() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    assert process_tree.tree(process.pid) == []


def test_the_machine_has_used_more_than_any_process(parent: subprocess.Popen[str]) -> None:
    assert process_tree.machine_cpu_s() > process_tree.cpu_s(process_tree.tree(parent.pid))
