"""One process: a request comes in, an outcome goes out, and nothing of it lives on.

Knows no engine and no log line; the only room that starts, stops and sweeps processes.
"""
