#!/usr/bin/env python3
"""ledger.py - `./dev bench ledger`: the ledger as a server, beside what bounds it and its rival.

The server is `ron serve --roles ledger` with a data directory below the current one; the generator
is a process of its own. Cases take turns, 5 rounds in one sitting; the table shows the median by
rate with its spread. The probe that bounds them runs while the server rests. Afterwards the server
is killed, started again and stopped, and everything it wrote is verified from disk. With --grow N
it is filled to N million entries first, a row for each. Prints tables for docs/benchmarks.md; plots
go to BUILD/bench-ledger.svg.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ledger_postgres  # noqa: E402
from ledger_past import Past  # noqa: E402
from ledger_server import (Ledger, Load, NoOp, cpu_s, disk_bytes, rss_mb,  # noqa: E402
                           stored_bytes)
from plot import page, plot  # noqa: E402

ROUNDS = 5
FRAME_BYTES = 8000 * 147  # what a batch of 8,000 comes to in the log, about
HASH_NS = 273  # of an entry: RFC 6962 leaf and node with OpenSSL, on one core
PROBE = "probe: apply, hash, durable, two threads"
WRITES_PER_S = 100000  # beside reads
REST_S, REST_MAX_S = 3, 120  # files that have not changed for so long rest
IDLE_S, IDLE_CORES = 0.5, 0.02  # so does a server that takes no more than that


def oap(name, batch, inflight, **more):
    return dict(name=name, mode="oap", batch=batch, connections=4, inflight=inflight, **more)


def http(name, batch, connections, **more):
    return dict(name=name, mode="http", batch=batch, connections=connections, **more)


def get(name, path):
    return dict(name=name, mode="get", batch=1, connections=64, path=path)


READS = [get("GET /healthz", "/healthz"),
         get("GET /balance", f"/balance?account=acct:{0:019}&asset=roc")]
WRITES = dict(name="writes beside reads", mode="oap", batch=1000, connections=1, inflight=1,
              per_s=WRITES_PER_S)
NO_OP = http("no-op durable loop, HTTP, 64 connections", 1, 64, path="/durable", server="no-op")
SINGLE = http("HTTP, one transfer, 64 connections", 1, 64)
PROOF = http("the same with ?proof=1", 1, 64, path="/ingest?proof=1")
LARGE = oap("OAP/1, batches of 8,000, 4 × 2 in flight", 8000, 2)
CASES = [
    LARGE,
    oap("the same, one hot pair", 8000, 2, hot=True),
    oap("OAP/1, batches of 1,000, 4 connections", 1000, 1),
    oap("OAP/1, batches of 200, 4 × 8 in flight", 200, 8),
    oap("OAP/1, batches of 10, 4 × 32 in flight", 10, 32),
    oap("OAP/1, one transfer, 4 × 64 in flight", 1, 64),
    http("JSON /ingest of 1,000, 4 connections", 1000, 4),
    NO_OP, SINGLE, PROOF,
]
HEADINGS = ["", "transfers/s", "min .. max", "p50 µs", "p99 µs", "longest µs", "silence µs",
            "server µs/transfer", "generator, cores", "syncs/s", "requests a sync",
            "log bytes/transfer"]


def print_table(headings, rows):
    print("| " + " | ".join(headings) + " |")
    print("|" + "---|" * len(headings))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def in_turn(number, cases):
    """Who is first in one round is last in the next."""
    return cases if number % 2 == 0 else reversed(cases)


def raw_disk(home, size, seconds):
    """Blocks of one size written in place and synced, one after the other: how many a second, and
    the longest of them in microseconds."""
    path = os.path.join(home, "raw")
    block = os.urandom(size)
    places = max(4, (8 << 20) // size)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    for i in range(places):
        os.pwrite(file, block, i * size)
    os.fdatasync(file)
    begin = time.monotonic()
    count = 0
    longest = 0
    last = begin
    while last - begin < seconds:
        os.pwrite(file, block, count % places * size)
        os.fdatasync(file)
        count += 1
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    os.close(file)
    os.unlink(path)
    return count / (last - begin), longest * 1e6


class Bench:
    def __init__(self, options, home):
        self.options, self.home = options, home
        self.load = Load(os.path.join(options.build, "bench", "ledger_load"))
        self.ledger = Ledger(os.path.abspath(os.path.join(options.build, "ron")), home,
                             options.accounts)
        self.no_op = None
        self.entries = 0  # of the ledger
        self.raw_transfers = 0.0  # a second, frames of 8,000 written and synced
        self.runs = {}

    def run_case(self, case, seconds, transfers=0):
        of_ledger = case.get("server") != "no-op"
        server = self.ledger if of_ledger else self.no_op
        url = self.ledger.serve.api if of_ledger else self.no_op.api
        before = self.ledger.log_counts() if of_ledger else None
        cpu = cpu_s(server.pid)
        report = self.load.run(url, self.ledger.token, case, self.options.accounts, seconds,
                               transfers)
        report["server_us"] = (cpu_s(server.pid) - cpu) * 1e6 / report["transfers"]
        report["rate"] = report["transfers"] / report["seconds"]
        report["generator"] = report["cpu_s"] / report["seconds"]
        if of_ledger:
            syncs, records, size = (b - a for a, b in zip(before, self.ledger.log_counts()))
            report["syncs"] = syncs / report["seconds"]
            report["group"] = records / max(1, syncs)
            report["bytes"] = size / report["transfers"]
            self.entries += report["transfers"]
        return report

    def open_accounts(self):
        report = self.run_case({"mode": "open", "batch": 8000, "connections": 1}, 0)
        print(f"{self.options.accounts:,} accounts opened and filled in {report['seconds']:.1f} s; "
              f"memory {rss_mb(self.ledger.pid):,.0f} MB\n", flush=True)

    def stored(self):
        """Entries, bytes of the log so far, and bytes of files by part, once they rest: indexes,
        books and snapshots are made behind the writes."""
        path = os.path.join(self.ledger.data, "ledger")
        sizes, until = None, time.monotonic() + REST_MAX_S
        while sizes != (now := stored_bytes(path)) and time.monotonic() < until:
            sizes = now
            time.sleep(REST_S)
        return self.entries, self.ledger.log_counts()[2], now

    def print_bytes(self, what, before):
        """Bytes on disk for each entry since `before`. Index and books count for what they are of:
        the last segment gets its own when it is sealed, the last entries are booked in memory."""
        entries, log, sizes = self.stored()
        added = {part: size - before[2].get(part, 0) for part, size in sizes.items()}
        parts = {"log": (log - before[1]) / (entries - before[0])}
        if sizes["segments"] > 0:
            parts["index"] = parts["log"] * sizes["index"] / sizes["segments"]
        parts["tiles"] = added["tiles"] / (entries - before[0])
        parts["books"] = added["books"] / max(1, added["booked"])
        print(f"bytes on disk a transfer, {what}: " +
              ", ".join(f"{part} {size:.1f}" for part, size in parts.items()) +
              f", together {sum(parts.values()):.1f}; apart from them snapshots and states, "
              f"{sizes['snapshots'] / 1e6:,.0f} MB in all\n", flush=True)

    def grow(self):
        rows = []
        raw_us = 0
        before = self.stored()
        for million in range(1, self.options.grow + 1):
            raw_us = max(raw_us, raw_disk(self.home, FRAME_BYTES, 1)[1])
            report = self.run_case(LARGE, 3600, 1000000)
            sizes = disk_bytes(os.path.join(self.ledger.data, "ledger"))
            rows.append([f"{self.entries / 1e6:.1f} M", f"{report['rate']:,.0f}",
                         f"{report['server_us']:.2f}", f"{report['p99_us']:,}",
                         f"{report['longest_us']:,}", f"{report['silence_us']:,}",
                         f"{rss_mb(self.ledger.pid):,.0f}",
                         f"{sum(sizes.values()) / 1e6:,.0f}"])
            self.runs.setdefault("grow", []).append(
                (self.entries, report["rate"], rss_mb(self.ledger.pid), report["silence_us"]))
            print(f"  grown to {million} M transfers", file=sys.stderr)
        print_table(["entries", "transfers/s", "server µs/transfer", "p99 µs", "longest µs",
                     "silence µs", "memory MB", "disk MB"], rows)
        silence = max(run[3] for run in self.runs["grow"])
        print(f"longest time without an answer: {silence:,} µs; longest write and sync of a frame "
              f"by the disk alone, before each row: {raw_us:,.0f} µs\n", flush=True)
        self.print_bytes("while it grew", before)

    def read_beside_writes(self, case):
        """One case of READS while WRITES_PER_S are written; the writer goes on a little longer."""
        seconds, written = self.options.seconds, []
        writer = threading.Thread(target=lambda: written.append(
            self.load.run(self.ledger.serve.api, self.ledger.token, WRITES, self.options.accounts,
                          seconds + 1)))
        writer.start()
        time.sleep(0.5)  # the writer has opened its connection
        report = self.load.run(self.ledger.serve.api, self.ledger.token, case,
                               self.options.accounts, seconds)
        writer.join()
        self.entries += written[0]["transfers"]
        report["rate"] = report["transfers"] / report["seconds"]
        report["written"] = written[0]["transfers"] / written[0]["seconds"]
        return report

    def reads(self):
        found = {case["name"]: [] for case in READS}
        for number in range(ROUNDS):  # the first of a round finds more tasks still at work
            for case in in_turn(number, READS):
                found[case["name"]].append(self.read_beside_writes(case))
        ratios = [b["rate"] / a["rate"] for a, b in zip(*found.values())]
        print_table(["reads, 64 connections, beside writes", "replies/s", "min .. max", "p50 µs",
                     "p99 µs", "written/s"],
                    [[name, f"{self.middle(runs)['rate']:,.0f}",
                      f"{min(r['rate'] for r in runs):,.0f} .. "
                      f"{max(r['rate'] for r in runs):,.0f}", f"{self.middle(runs)['p50_us']:,}",
                      f"{self.middle(runs)['p99_us']:,}",
                      f"{statistics.median(r['written'] for r in runs):,.0f}"]
                     for name, runs in found.items()])
        print(f"balance to healthz, round by round: {statistics.median(ratios):.2f} "
              f"({min(ratios):.2f} .. {max(ratios):.2f})\n", flush=True)

    def past(self):
        past = Past(self.ledger.serve.api, self.ledger.token, self.options.accounts, self.entries)
        print_table(["questions about the past, one after the other", "median ms", "p99 ms",
                     "longest ms"],
                    [[name, *(f"{took_ms:.2f}" for took_ms in times)]
                     for name, *times in past.rows()])

    def rest(self):
        """Until the server has done what it does behind the writes: the probe is to be alone."""
        until, taken, before = time.monotonic() + REST_MAX_S, IDLE_S, cpu_s(self.ledger.pid)
        while taken > IDLE_S * IDLE_CORES and time.monotonic() < until:
            time.sleep(IDLE_S)
            now = cpu_s(self.ledger.pid)
            taken, before = now - before, now

    def run_probe(self):
        self.rest()
        report = self.load.probe(self.home, self.options.accounts, self.options.seconds)
        report["rate"] = report["transfers"] / report["seconds"]
        return report

    def probe_rows(self):
        found = self.runs[PROBE]
        middle = self.middle(found)
        bound = min(self.raw_transfers, 1e9 / HASH_NS)
        print(f"{PROBE}: {middle['rate']:,.0f} transfers/s "
              f"({min(r['rate'] for r in found):,.0f} .. {max(r['rate'] for r in found):,.0f}); "
              f"processor {middle['apply_ns']:.0f} ns to apply, {middle['durable_ns']:.0f} to hash "
              f"and write; {middle['rate'] / bound:.2f} of min(disk, 1 / {HASH_NS} ns) = "
              f"{bound:,.0f}\n", flush=True)

    def rounds(self):
        cases = [case for case in CASES if self.options.only in case["name"]]
        self.runs[PROBE] = []
        self.no_op = NoOp(os.path.join(self.options.build, "bench", "bench_durable"))
        runs = {case["name"]: [] for case in cases}
        try:
            for number in range(ROUNDS):
                for case in in_turn(number, [None] + cases):  # the probe beside what it bounds
                    if case is None:
                        self.runs[PROBE].append(self.run_probe())
                    else:
                        runs[case["name"]].append(self.run_case(case, self.options.seconds))
                print(f"  round {number + 1} of {ROUNDS}", file=sys.stderr)
        finally:
            self.no_op.stop()
        self.runs.update(runs)
        self.probe_rows()
        print_table(HEADINGS, [self.row(name, found) for name, found in runs.items()])

    @staticmethod
    def middle(found):
        return sorted(found, key=lambda run: run["rate"])[len(found) // 2]

    def row(self, name, found):
        run = self.middle(found)
        rates = [one["rate"] for one in found]
        longest, silence = (max(one[what] for one in found) for what in
                            ("longest_us", "silence_us"))
        server = statistics.median(one["server_us"] for one in found)
        return [name, f"{run['rate']:,.0f}", f"{min(rates):,.0f} .. {max(rates):,.0f}",
                f"{run['p50_us']:,}", f"{run['p99_us']:,}", f"{longest:,}", f"{silence:,}",
                f"{server:.2f}", f"{run['generator']:.2f}",
                *([f"{run['syncs']:,.0f}", f"{run['group']:.1f}", f"{run['bytes']:.0f}"]
                  if "syncs" in run else ["", "", ""])]

    def ratios(self):
        rows = []

        def add(what, ratios, late=""):
            rows.append([what, f"{statistics.median(ratios):.2f}",
                         " ".join(f"{ratio:.2f}" for ratio in ratios), late])

        for one, other, what in ((SINGLE, NO_OP, "one transfer to the no-op durable loop"),
                                 (PROOF, SINGLE, "with proof to without"),
                                 (CASES[1], LARGE, "one hot pair to uniform")):
            if one["name"] in self.runs and other["name"] in self.runs:
                pairs = list(zip(self.runs[one["name"]], self.runs[other["name"]]))
                late = statistics.median(a["p99_us"] / b["p99_us"] for a, b in pairs)
                add(what, [a["rate"] / b["rate"] for a, b in pairs], f"{late:.2f}")
        if LARGE["name"] in self.runs:
            large = self.runs[LARGE["name"]]
            bound = min(self.raw_transfers, 1e9 / HASH_NS)
            add("batches of 8,000 to the probe",
                [a["rate"] / b["rate"] for a, b in zip(large, self.runs[PROBE])])
            add(f"the same to the probe's bound, {bound:,.0f}",
                [run["rate"] / bound for run in large])
        if rows:
            print_table(["ratio, round by round", "median", "rounds", "p99"], rows)

    def postgres(self):
        if self.options.no_postgres or ledger_postgres.find_programs() is None:
            print("PostgreSQL: left out\n")
            return
        rival = ledger_postgres.Postgres(self.options.accounts)
        try:
            ways = {"one transfer, prepared function, 64 clients": rival.single,
                    "batches of 8,000 with limit checks, 1 client":
                        lambda seconds: rival.batch(seconds, clients=1),
                    "batches of 8,000 with limit checks, 4 clients": rival.batch}
            found = {name: [] for name in ways}
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    found[name].append(way(self.options.seconds))
            print(f"PostgreSQL: {rival.settings()}\n")
            print_table(["PostgreSQL", "transfers/s", "min .. max", "mean µs"],
                        [[name, f"{statistics.median(r for r, _ in runs):,.0f}",
                          f"{min(r for r, _ in runs):,.0f} .. {max(r for r, _ in runs):,.0f}",
                          f"{statistics.median(l for _, l in runs):,.0f}"]
                         for name, runs in found.items()])
            print(f"PostgreSQL: {rival.check():,} entries, balances sum to what was issued\n")
        finally:
            rival.stop()

    def ending(self):
        """What is on disk; the way back after a crash; all of it verified."""
        print(f"{self.entries:,} entries; memory {rss_mb(self.ledger.pid):,.0f} MB")
        self.print_bytes("all cases and the accounts", (0, 0, {}))
        self.ledger.kill()
        seconds = self.ledger.start()
        print(f"start after kill -9: {seconds:.2f} s, {cpu_s(self.ledger.pid):.2f} s of processor, "
              f"memory {rss_mb(self.ledger.pid):,.0f} MB")
        self.ledger.stop()
        begin = time.monotonic()
        subprocess.run([self.ledger.ron, "ledger", "replay", "--data", self.ledger.data],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - begin
        print(f"`ron ledger replay`: {seconds:.1f} s, {self.entries / seconds:,.0f} entries/s")
        report = self.load.verify(self.ledger.data)
        if report["entries"] < self.entries or report["tiles_size"] > report["entries"]:
            raise RuntimeError(f"{self.entries} entries were answered, {report} are there")
        print(f"verified from disk: {report['entries']:,} entries, {report['batches']:,} batches, "
              f"every link and the sum of balances, in {report['seconds']:.1f} s "
              f"({report['entries'] / report['seconds']:,.0f} entries/s)\n")

    def draw(self):
        plots = []
        sizes = [(case["batch"], self.middle(self.runs[case["name"]])["rate"]) for case in CASES
                 if case["mode"] == "oap" and not case.get("hot") and case["name"] in self.runs]
        if sizes:
            plots.append(plot("Rate against batch size (OAP/1)", "transfers in a batch",
                              "transfers/s", [("ron", sorted(sizes))], (True, True)))
        over_time = []
        for case in (SINGLE, NO_OP):
            slots = [slot for run in self.runs.get(case["name"], []) for slot in run["slots"]]
            points = [(i / 10, slot) for i, slot in enumerate(slots) if slot[0] > 0]
            name = case["name"].split(",")[0]
            over_time += [(f"{name}, mean", [(x, slot[1]) for x, slot in points]),
                          (f"{name}, longest", [(x, slot[2]) for x, slot in points])]
        if any(points for _, points in over_time):
            plots.append(plot("Latency of one request over time, in tenths of a second",
                              "seconds of all rounds", "µs", over_time, (False, True)))
        if "grow" in self.runs:
            plots.append(plot("Rate while it grows", "entries", "transfers/s",
                              [("ron", [(n, rate) for n, rate, *_ in self.runs["grow"]])]))
        if plots:
            path = os.path.join(self.options.build, "bench-ledger.svg")
            with open(path, "w", encoding="utf-8") as file:
                file.write(page(plots))
            print(f"plots: {path}")

    def all(self):
        rate, longest_us = raw_disk(self.home, FRAME_BYTES, self.options.seconds)
        self.raw_transfers = rate * 8000
        print(f"memory of an idle server: {rss_mb(self.ledger.pid):,.0f} MB\n"
              f"the disk alone: {raw_disk(self.home, 4096, self.options.seconds)[0]:,.0f} syncs/s "
              f"of 4 KiB, {self.raw_transfers:,.0f} transfers/s in frames of 8,000, the longest "
              f"{longest_us:,.0f} µs\n")
        self.open_accounts()
        if self.options.grow:
            self.grow()
        self.rounds()
        self.ratios()
        self.reads()
        self.past()
        self.ending()
        self.postgres()
        self.draw()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--quick", action="store_true", help="shows that it works, not how fast")
    parser.add_argument("--accounts", type=int, default=1000000)
    parser.add_argument("--seconds", type=float, default=3, help="of each run")
    parser.add_argument("--grow", type=int, default=0, metavar="N", help="to N million entries")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with it in their name")
    parser.add_argument("--no-postgres", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.accounts, options.seconds = min(options.accounts, 20000), 0.3
    home = os.path.abspath(tempfile.mkdtemp(prefix="bench-ledger-", dir="."))
    bench = None
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {ROUNDS} rounds of "
          f"{options.seconds} s, {options.accounts:,} accounts, settings as delivered but "
          "max_accounts and reads_per_s", flush=True)
    try:
        bench = Bench(options, home)
        bench.all()
    finally:
        if bench is not None:
            bench.ledger.stop()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
