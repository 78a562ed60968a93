"""Lay a siege from the command line: `python -m tests.hostile --requests 100000 --seed 1`."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter

import boto3
from moto import mock_aws

from duetime import composition
from tests.hostile.drawn import Drawn
from tests.hostile.siege import BUCKET, Siege

SHOWN = 20
_A_DRAWN = 2_000
"""For so many requests of the corpus, one is drawn from the document for each operation and mode."""


def main() -> int:
    """Lay the siege; 1 if anything was not as promised."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Send hostile requests to the api function in process.")
    parser.add_argument("--requests", type=int, default=100_000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of all chance")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    started = time.perf_counter()
    with mock_aws():
        session = boto3.Session("testing", "testing", region_name="us-east-1")
        session.client("s3").create_bucket(Bucket=BUCKET)
        siege = Siege(session)
        siege.lay(asked.requests, asked.seed)
        Drawn(siege).lay(max(1, asked.requests // _A_DRAWN), asked.seed)
    composition.use(None)
    took = time.perf_counter() - started
    print(f"{sum(siege.answers.values())} requests in {took:.0f} s, {len(siege.broken)} not answered as promised")  # noqa: T201 - its report
    print("by status:", ", ".join(f"{status}: {count}" for status, count in sorted(siege.answers.items())))  # noqa: T201 - same
    print("by code:", ", ".join(f"{code}: {count}" for code, count in siege.codes.most_common()))  # noqa: T201 - same
    for wrong, number in Counter(wrong for wrong, _ in siege.broken).most_common(SHOWN):
        request = next(request for reason, request in siege.broken if reason == wrong)
        print(f"{number} x {wrong}: {request!r}"[:1_000])  # noqa: T201 - same
    return 1 if siege.broken else 0


if __name__ == "__main__":
    sys.exit(main())
