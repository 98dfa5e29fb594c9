"""`make bench-proxy`: what a request and a streamed event cost in a proxy, ours beside others.

A worker of canned bytes (`mock`) and a client at a fixed rate (`load`), each a process of its own,
with a proxy in between or none. `targets` are what can be in between, `cells` what is measured,
`runner` measures it, `figures` draws ratios from it, `page` shows them.
"""
