#!/usr/bin/env python3
"""ledger_turns.py - builds of the ledger in turn: what a change saves, and where.

    ledger_turns.py BUILD... [--seconds S] [--rounds N] [--grow N] [--batch N] [--inflight N]

One `ron serve --roles ledger` of each build, all up at once, take turns as the target of one
generator (that of the first build), so that a machine that drifts does so for all. Shown: the rate,
and microseconds of processor for each transfer by thread, kernel included. For a profile of one
build name it alone.
"""
import argparse
import os
import shutil
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ledger_server import Ledger, Load  # noqa: E402

GENERATOR = "generator"


def threads_ns(pid):
    """Processor time of each thread so far, summed by name."""
    sums = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm", encoding="ascii") as file:
                name = file.read().strip()
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                sums[name] = sums.get(name, 0) + int(file.read().split()[0])
        except FileNotFoundError:
            continue
    return sums


class Contestant:
    def __init__(self, build, home, options):
        self.build, self.options = build, options
        os.mkdir(home)
        self.ledger = Ledger(os.path.abspath(os.path.join(build, "ron")), home, options.accounts)
        self.rates, self.threads, self.entries = [], [], 0

    def run(self, load, case, seconds, transfers=0):
        before = threads_ns(self.ledger.pid)
        report = load.run(self.ledger.serve.api, self.ledger.token, case, self.options.accounts,
                          seconds, transfers)
        after = threads_ns(self.ledger.pid)
        count = report["transfers"]
        self.entries += count
        found = {name: (ns - before.get(name, 0)) / 1e3 / count for name, ns in after.items()}
        found[GENERATOR] = report["cpu_s"] * 1e6 / count
        return count / report["seconds"], found

    def measure(self, load, case):
        rate, found = self.run(load, case, self.options.seconds)
        self.rates.append(rate)
        self.threads.append(found)

    def us(self, name):
        return statistics.median(found.get(name, 0) for found in self.threads)

    def sums(self):
        return [sum(found.values()) for found in self.threads]


def print_rows(contestants):
    names = {name for one in contestants for found in one.threads for name in found}
    width = max(len(one.build) for one in contestants) + 22

    def row(what, cells):
        print(f"{what:18}" + "".join(f"{cell:>{width}}" for cell in cells))

    def spread(values, form):
        return f"{statistics.median(values):{form}} ({min(values):{form}} .. {max(values):{form}})"

    row("", [one.build for one in contestants])
    row("transfers/s", [spread(one.rates, ",.0f") for one in contestants])
    row("us a transfer", [spread(one.sums(), ".3f") for one in contestants])
    for name in sorted(names, key=lambda name: -contestants[0].us(name)):
        if max(one.us(name) for one in contestants) >= 0.0005:
            row("  " + name, [f"{one.us(name):.3f}" for one in contestants])
    row("entries, million", [f"{one.entries / 1e6:.1f}" for one in contestants])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="BUILD")
    parser.add_argument("--accounts", type=int, default=1000000)
    parser.add_argument("--seconds", type=float, default=1, help="of each run")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--grow", type=int, default=2, metavar="N",
                        help="to N million entries first")
    parser.add_argument("--batch", type=int, default=8000)
    parser.add_argument("--inflight", type=int, default=1)
    parser.add_argument("--hot", action="store_true", help="one pair of accounts")
    options = parser.parse_args()
    case = dict(mode="oap", batch=options.batch, connections=4, inflight=options.inflight,
                hot=options.hot)
    home = tempfile.mkdtemp(prefix="bench-turns-", dir=".")
    load = Load(os.path.join(options.builds[0], "bench", "ledger_load"))
    contestants = []
    try:
        for number, build in enumerate(options.builds):
            contestants.append(Contestant(build, os.path.join(home, str(number)), options))
        for one in contestants:
            one.run(load, dict(mode="open", batch=8000, connections=1), 0)
            for _ in range(options.grow):
                one.run(load, case, 3600, 1000000)
        for number in range(options.rounds):
            for one in contestants if number % 2 == 0 else reversed(contestants):
                one.measure(load, case)
        print_rows(contestants)
    finally:
        for one in contestants:
            one.ledger.kill()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
