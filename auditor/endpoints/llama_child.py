"""The child process of LocalServer: `python -P llama_child.py MODEL ALIAS SLOTS PORT`, nothing of ours imported.

The key comes on the first line of standard input (a command line can be read by every user of the machine; an empty
line means no key), the address goes to standard output, and the end of standard input ends the server.
"""

from __future__ import annotations

import os
import signal
import sys

CONTEXT_PER_SLOT = 4096


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    model, alias, slots, port = sys.argv[1:5]
    key = sys.stdin.readline().strip()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {alias}
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    if key:
        params.api_keys = [key]
    params.n_parallel = int(slots)
    params.n_ctx = CONTEXT_PER_SLOT * int(slots)
    params.cache_ram_mib = 0
    params.cache_prompt = False
    params.ui = False
    params.warmup = False
    params.verbosity = -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _cores()
    try:
        server = xllamacpp.Server(params)
    except Exception as error:  # the binding raises plain exceptions; one line is what the parent reads
        print(" ".join(str(error).split()), flush=True)
        os._exit(1)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
