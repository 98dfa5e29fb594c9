"""Shipped helpers: workers of our own to run a gateway against, real and simulated."""
