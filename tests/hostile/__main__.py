"""Run a fuzzer from the command line: `python -m tests.hostile --requests 100000 --seed 1`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time

from duetime import composition
from tests.hostile.drawn import Drawn
from tests.hostile.fuzz import Fuzzer
from tests.hostile.fuzz_report import told
from tests.hostile.grounds import InProcess

_A_DRAWN = 2_000
"""For this many corpus requests, one request per operation and mode is drawn from the OpenAPI document."""


def main() -> int:
    """Run the fuzzer, and return 1 if any response or effect broke a promise."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Send hostile requests to the api function in process.")
    parser.add_argument("--requests", type=int, default=100_000, help="the number of requests")
    parser.add_argument("--seed", type=int, default=0, help="the seed of all random choices")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    # Each attempt that a lease request ended writes a log line, which is of no interest here.
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
    started = time.perf_counter()
    fuzzer = Fuzzer(InProcess())
    fuzzer.lay(asked.requests, asked.seed)
    Drawn(fuzzer).lay(max(1, asked.requests // _A_DRAWN), asked.seed)
    composition.use(None)
    print(f"{time.perf_counter() - started:.0f} s")  # noqa: T201 - its report
    return told(fuzzer)


if __name__ == "__main__":
    sys.exit(main())
