"""CPU time and memory of a process and all its descendants, from Linux's /proc."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """One line of /proc/PID/stat (proc_pid_stat(5)); CPU is of all its threads, user and system, by
    the process's own clock, which knows nanoseconds where the line knows hundredths of a second."""

    pid: int
    parent: int
    cpu_s: float
    reaped_cpu_s: float  # of children that ended and were waited for
    rss_bytes: int

    @classmethod
    def read(cls, pid: int) -> ProcessStat | None:
        """None if there is no such process any more."""
        try:
            text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
            cpu_s = time.clock_gettime(_cpu_clock(pid))
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()  # a process's name may hold spaces and brackets
        cutime, cstime = map(int, fields[13:15])
        return cls(
            pid=pid,
            parent=int(fields[1]),
            cpu_s=cpu_s,
            reaped_cpu_s=(cutime + cstime) / TICKS_PER_S,
            rss_bytes=int(fields[21]) * PAGE_BYTES,
        )


def _cpu_clock(pid: int) -> int:
    """The id of a process's CPU clock: what clock_getcpuclockid(3) makes of it, on Linux."""
    return ~pid << 3 | 2


def tree(root: int) -> list[ProcessStat]:
    """A process and its descendants as they are now, the process first; empty if it has ended."""
    top = ProcessStat.read(root)
    return [top, *descendants(root)] if top else []


def descendants(root: int) -> list[ProcessStat]:
    """The descendants of a process, nearest first."""
    by_parent: dict[int, list[ProcessStat]] = {}
    for entry in os.listdir(PROC):
        if entry.isdigit() and (stat := ProcessStat.read(int(entry))):
            by_parent.setdefault(stat.parent, []).append(stat)
    found = list(by_parent.get(root, ()))
    for stat in found:  # grows while it is walked through
        found.extend(by_parent.get(stat.pid, ()))
    return found


def cpu_s(processes: list[ProcessStat]) -> float:
    """Their CPU time so far, with that of children that have come and gone."""
    return sum(process.cpu_s + process.reaped_cpu_s for process in processes)


def rss_bytes(processes: list[ProcessStat]) -> int:
    """Their resident memory; pages that they share count for each."""
    return sum(process.rss_bytes for process in processes)


def machine_cpu_s() -> float:
    """CPU time that all processes of the machine have used: what is not idle nor waiting."""
    with contextlib.suppress(OSError, ValueError):
        line = (PROC / "stat").read_text(encoding="utf-8").partition("\n")[0]
        user, nice, system, _idle, _iowait, *rest = map(int, line.split()[1:])
        return (user + nice + system + sum(rest[:2])) / TICKS_PER_S
    return 0.0
