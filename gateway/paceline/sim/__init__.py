"""A worker's engine under a clock that is handed in: pure, seeded, and the same every time."""
