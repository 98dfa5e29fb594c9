"""Benchmarks: what was published or measured, predicted and compared; figures to bench-results/."""
