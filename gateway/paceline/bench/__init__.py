"""Benches: each prints its table and writes `bench-results/NAME.json` with its headline figures."""
