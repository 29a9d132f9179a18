"""ledger_server.py - the processes of `./dev bench ledger`: server, no-op loop, generator."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "serve"))
from servelib import Serve, token_command  # noqa: E402

START_S = 600
SCOPES = "ledger.ingest,ledger.mint,ledger.read"
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """Processor time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) / 1024


def disk_bytes(path):
    """Blocks that are taken, by directory below the path."""
    sizes = {}
    for root, _, names in os.walk(path):
        below = os.path.relpath(root, path).split(os.sep)[0]
        for name in names:
            try:
                blocks = os.lstat(os.path.join(root, name)).st_blocks
            except FileNotFoundError:
                continue
            sizes[below] = sizes.get(below, 0) + blocks * 512
    return sizes


def stored_bytes(path):
    """Bytes of a ledger's files by part. Of segments only those with an index: the open one and the
    one ahead of it are zeros for the most. "booked" is how many entries the books have files of."""
    sizes = dict.fromkeys(("segments", "index", "tiles", "books", "booked", "snapshots"), 0)
    for root, _, names in os.walk(path):
        below = os.path.relpath(root, path).split(os.sep)[0]
        for name in names:
            part = {"state": "snapshots"}.get(below, below)
            if below == "books" and name.endswith(".run"):
                sizes["booked"] = max(sizes["booked"], int(name[17:33], 16))
            if below == "log":
                part = "index" if name.startswith("idx-") else "segments"
                if part == "segments" and name.replace("seg-", "idx-") not in names:
                    continue
            if part in sizes:
                try:
                    sizes[part] += os.lstat(os.path.join(root, name)).st_size
                except FileNotFoundError:
                    continue
    return sizes


class Load:
    """The generator: one run is one process."""

    def __init__(self, program):
        self.program = program

    def run(self, url, token, case, accounts, seconds, transfers=0):
        words = [self.program, case["mode"], url, accounts, case["batch"], case["connections"],
                 case.get("inflight", 1), round(seconds * 1000), transfers,
                 "hot" if case.get("hot") else "uniform", case.get("path", "/ingest"),
                 case.get("per_s", 0)]
        done = subprocess.run([str(word) for word in words], input=token, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{case.get('name', case['mode'])}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def probe(self, home, accounts, seconds):
        """What two threads can do at best: apply, hash, make durable (bench/ledger_probe.c)."""
        program = os.path.join(os.path.dirname(self.program), "ledger_probe")
        done = subprocess.run([program, os.path.join(home, "probe"), str(accounts),
                               str(round(seconds * 1000))], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"probe: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def verify(self, data):
        done = subprocess.run([self.program, "verify", data], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"verify: {done.stderr.strip()}")
        return json.loads(done.stdout)


class Ledger:
    """`ron serve --roles ledger` as a child."""

    def __init__(self, ron, home, accounts):
        self.ron, self.data = ron, os.path.join(home, "data")
        # Room for accounts and no bound on reads a second: the rest is as delivered.
        room = accounts + accounts // 10 + 100
        self.environment = {"RON_LEDGER__LIMITS__MAX_ACCOUNTS": str(room),
                            "RON_LEDGER__READS_PER_S": "0", "RON_SERVER__READS_PER_S": "0"}
        self.token = None
        self.serve = None
        self.start()

    def start(self):
        """Seconds until it takes writes."""
        begin = time.monotonic()
        self.serve = Serve(self.ron, self.data, "--roles", "ledger", env=self.environment)
        while not self.is_ready():
            if time.monotonic() - begin > START_S or self.serve.process.poll() is not None:
                raise RuntimeError("the ledger does not start: " + self.serve.log())
            time.sleep(0.005)
        if self.token is None:
            self.token = token_command(self.ron, "mint", "--keyring", self.data, "--caveat",
                                       f"scope = {SCOPES}")
        return time.monotonic() - begin

    def is_ready(self):
        url = self.serve.api + "/readyz?role=ledger"
        try:
            with urllib.request.urlopen(url, timeout=60) as reply:
                return reply.status == 200
        except OSError:
            return False

    @property
    def pid(self):
        return self.serve.process.pid

    def log_counts(self):
        """Syncs, records and bytes of the log so far."""
        with urllib.request.urlopen(self.serve.admin + "/metrics", timeout=60) as reply:
            text = reply.read().decode()
        found = dict(re.findall(r'^(log_\w+_total)\{log="ledger"\} (\d+)', text, re.MULTILINE))
        return tuple(int(found[f"log_{what}_total"]) for what in ("syncs", "records", "bytes"))

    def kill(self):
        self.serve.send(signal.SIGKILL)
        self.serve.end()
        self.serve.log_file.close()

    def stop(self):
        if self.serve is not None and self.serve.process.poll() is None:
            self.serve.stop()
            self.serve.log_file.close()


class NoOp:
    """The durable no-op loop (bench_durable --serve), asked by the same generator."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.api = self.process.stdout.readline().split()[1]
        self.pid = self.process.pid

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
