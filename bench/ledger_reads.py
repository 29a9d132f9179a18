#!/usr/bin/env python3
"""ledger_reads.py - what reading a ledger costs: pages of entries, an account's history, an export.

    bench/ledger_reads.py RON [ENTRIES [BATCH]]

A server of its own, ENTRIES transfers (default 200,000) in batches of BATCH (default 1,000) between
2,000 accounts, then each kind of read over all of them; processor time of the server and, for the
export, of the client per row, by /proc and getrusage.
"""
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests",
                                "ledger-api"))
import apilib  # noqa: E402

ACCOUNTS = 2000
TICK = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def fill(ledger, entries, batch):
    seq = 0
    ledger.must(*[apilib.mint(f"m{i}", f"user/{i}", 10 ** 9) for i in range(ACCOUNTS // 2)])
    ledger.must(*[apilib.mint(f"m{i}", f"user/{i}", 10 ** 9)
                  for i in range(ACCOUNTS // 2, ACCOUNTS)])
    while seq < entries:
        part = min(batch, entries - seq)
        ledger.must(*[apilib.transfer(f"t{seq + i}", f"user/{(seq + i) * 7919 % ACCOUNTS}",
                                      f"user/{((seq + i) * 7919 + 1) % ACCOUNTS}", 1 + i % 97)
                      for i in range(part)])
        seq += part


def report(what, rows, wall_s, server_s, client_s=None):
    line = f"{what:34} {rows:8} rows: server {server_s / rows * 1e6:7.2f} us of processor each"
    if client_s is not None:
        line += f", client {client_s / rows * 1e6:6.2f} us, {rows / wall_s:9.0f} rows/s"
    print(line, flush=True)


def pages(ledger, query, rows_max):
    connection_rows, after = 0, 0
    while connection_rows < rows_max:
        reply = ledger.get(f"/entries?{query}after={after}&limit=1000").json()
        if not reply["entries"]:
            break
        connection_rows += len(reply["entries"])
        after = reply["next"]
    return connection_rows


def main():
    entries = int(sys.argv[2]) if len(sys.argv) > 2 else 200000
    batch = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    with tempfile.TemporaryDirectory() as home, apilib.Ledger(home) as ledger:
        pid = ledger.process.pid
        fill(ledger, entries, batch)
        ledger.get("/entries?after=0&limit=1")
        for what, query, rows_max in (
                ("pages of 1000", "", entries),
                ("history of one account", "account=" + urllib.parse.quote("user/7") + "&", 10000)):
            wall, server = time.monotonic(), cpu_s(pid)
            rows = pages(ledger, query, rows_max)
            report(what, rows, time.monotonic() - wall, cpu_s(pid) - server)
        wall, server = time.monotonic(), cpu_s(pid)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([apilib.RON, "ledger", "export"], stdout=subprocess.DEVNULL, check=True,
                       env=dict(os.environ, RON_URL=ledger.api, RON_TOKEN_FILE=os.path.join(
                           ledger.data, "operator.token")))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        report("ron ledger export", entries, time.monotonic() - wall, cpu_s(pid) - server,
               after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 0


if __name__ == "__main__":
    sys.exit(main())
