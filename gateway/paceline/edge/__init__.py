"""Everything that waits: sockets, clocks, tasks. Decisions are made in `paceline.core`."""
