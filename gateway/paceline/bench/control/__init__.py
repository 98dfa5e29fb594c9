"""`make bench-control`: the adaptive choice beside what can be set once, under Poisson load.

Simulated throughout (`sim/fleet.py`). For each mix, the highest rate that the best static
configuration bears is found, then every policy runs at shares of that rate, on the same arrivals.
"""
