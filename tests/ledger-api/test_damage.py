#!/usr/bin/env python3
"""test_damage.py - a ledger whose log was damaged, from start to acknowledgement; and what stands
beside the log: snapshots, its figures, remote ports, spans; TAP.

    test_damage.py PROGRAM [NAME...]
"""
import glob
import hashlib
import os
import re
import shutil
import signal
import sys

from apilib import RON, Ledger, mint, refused, run, transfer, unless_busy, until
from servelib import Collector, refused as refused_start

SEGMENT = "ledger/log/seg-0000000000000001"
HEAD = 4096  # of a segment, before its first frame
WRITES = 6


def segment_of(home):
    return os.path.join(home, "data", *SEGMENT.split("/"))


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x40]))


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()


def used(path):
    with open(path, "rb") as file:
        return len(file.read().rstrip(b"\0"))


def metric(ledger, name):
    text = ledger.ask("GET", "/metrics", admin=True).body.decode()
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
    assert found, (name, text)
    return float(found.group(1))


def reasons(ledger):
    reply = ledger.ask("GET", "/readyz?role=ledger")
    if reply.status == 200:
        return []
    return reply.json()["error"]["details"]["roles"][0]["reasons"]


def acknowledge(ledger, token=None):
    return unless_busy(lambda: ledger.post("/admin/ledger/acknowledge", {"ack": "INC-12"},
                                           token=token, admin=True), "the log was read")


def fill(ledger):
    """Some batches; the roots behind each."""
    ledger.must(mint("m0", "alice", 1000), key="m0")
    for i in range(1, WRITES):
        ledger.must(transfer(f"t{i}", "alice", "bob", 10), key=f"t{i}")
    return ledger.ask("GET", "/roots").json()["roots"]


def check_damaged(ledger, roots, offset):
    """Reads go on up to the last good batch, writes do not; how far is it?"""
    def replayed():
        said = ledger.get("/recovery").json()
        known = said["damage"] and said["damage"]["last_good_seq"] == said["last_good_seq"]
        return said if known else None

    recovery = until(replayed, "what lies before the damage is replayed")
    damage, good = recovery["damage"], recovery["last_good_seq"]
    assert recovery["safe_mode"] is True and recovery["state"] == "SafeMode", recovery
    assert damage["file"] == SEGMENT and damage["offset"] <= offset, recovery
    assert damage["over"] is False and SEGMENT in damage["message"], recovery
    assert 0 < good < WRITES and damage["last_good_seq"] == good, recovery
    assert recovery["last_good_root"] == damage["last_good_root"] == roots[good - 1]["root"]
    assert reasons(ledger) == ["damaged"]
    assert ledger.ask("GET", "/readyz?role=ledger&plane=read").status == 200
    assert metric(ledger, "ledger_safe_mode") == 1
    assert ledger.amount("alice") == 1000 - 10 * (good - 1)
    assert ledger.ask("GET", "/roots").json()["roots"] == roots[:good]
    until(lambda: len(ledger.get("/entries?account=bob").json()["entries"]) == good - 1,
          "the books have what is good")
    error = refused(ledger.ingest(transfer("n1", "alice", "bob", 1)), 503, "SafeMode",
                    reason="damaged")
    assert error["retryable"] is False, error
    refused(acknowledge(ledger), 409, "Conflict")
    refused(ledger.post("/admin/ledger/safe-mode", {"on": False, "ack": "INC-12"}, admin=True),
            409, "Conflict")
    refused(ledger.ingest(transfer("n1", "alice", "bob", 1)), 503, "SafeMode", reason="damaged")
    return good


def damaged_log(home):
    """covers: LED-V27, LED-F15, LED-V10"""
    with Ledger(home) as ledger:
        roots = fill(ledger)
        head = until(lambda: ledger.get("/checkpoint").body.decode().split("\n")[1] == str(WRITES)
                     and ledger.get("/checkpoint").body, "the head is signed")
        assert ledger.stop() == 0
    offset = (HEAD + used(segment_of(home))) // 2
    flip(segment_of(home), offset)
    before = digest(segment_of(home))
    with Ledger(home, safe=True) as ledger:
        good = check_damaged(ledger, roots, offset)
        assert metric(ledger, 'log_damaged{log="ledger"}') == 1
        reply = ledger.get("/checkpoint")  # what was signed stays true
        assert reply.status == 200 and reply.body.split(b"\n\n")[0] == head.split(b"\n\n")[0]
    with Ledger(home, safe=True) as ledger:  # a restart changes nothing
        assert check_damaged(ledger, roots, offset) == good
    assert digest(segment_of(home)) == before, "a damaged log was written to"
    flip(segment_of(home), offset)
    with Ledger(home, safe=True) as ledger:
        until(lambda: (ledger.get("/recovery").json()["damage"] or {}).get("over"),
              "the log replays")
        recovery = ledger.get("/recovery").json()
        assert recovery["safe_mode"] is True and recovery["last_good_seq"] == WRITES
        assert recovery["damage"]["file"] == SEGMENT and recovery["damage"]["last_good_seq"] == good
        assert reasons(ledger) == ["damaged"]
        refused(ledger.ingest(transfer("n1", "alice", "bob", 1)), 503, "SafeMode")
        refused(acknowledge(ledger, ledger.mint("scope = ledger.read")), 403, "Forbidden")
        refused(ledger.post("/admin/ledger/safe-mode", {"on": False, "ack": "x"}, admin=True), 409,
                "Conflict")
        refused(ledger.post("/admin/ledger/acknowledge", {}, admin=True), 400, "Malformed")
        assert reasons(ledger) == ["damaged"]
        assert acknowledge(ledger).json() == {"safe_mode": False}
        refused(acknowledge(ledger), 404, "NotFound")
        assert reasons(ledger) == [] and metric(ledger, "ledger_safe_mode") == 0
        assert ledger.get("/recovery").json()["damage"] is None
        assert ledger.ask("GET", "/roots").json()["roots"] == roots
        for i in range(1, WRITES):  # nothing was lost, nothing happens twice
            reply = ledger.must(transfer(f"t{i}", "alice", "bob", 10), key=f"t{i}")
            assert reply["seq_start"] == i + 1
        ledger.must(transfer("n1", "alice", "bob", 1))
        ledger.wait_log("INC-12")
    with Ledger(home) as ledger:
        assert ledger.amount("bob") == 10 * (WRITES - 1) + 1
        assert ledger.get("/recovery").json()["safe_mode"] is False


def a_kill_needs_no_operator(home):
    """covers: LED-F15"""
    with Ledger(home) as ledger:
        fill(ledger)
        ledger.send(signal.SIGKILL)
        ledger.end()
    with Ledger(home) as ledger:
        assert ledger.get("/recovery").json()["clean_start"] is False
        ledger.must(transfer("n1", "alice", "bob", 1))
        assert not os.path.exists(os.path.join(home, "data", "ledger", "damaged"))


def snapshots(home):
    """One is taken, and the next start begins there."""
    often = {"RON_LEDGER__SNAPSHOT__PERIOD": "50ms", "RON_LEDGER__SNAPSHOT__MIN_INTERVAL": "50ms"}
    with Ledger(home, env=often) as ledger:
        roots = fill(ledger)
        pattern = os.path.join(home, "data", "ledger", "snapshots", "snap-" + 16 * "[0-9a-f]")
        until(lambda: any(int(path[-16:], 16) >= WRITES for path in glob.glob(pattern)),
              "a snapshot of all of them is taken")
        until(lambda: ledger.get("/entries").json()["entries"][-1]["kind"] == "Anchor",
              "and anchored, with nothing new behind it")
        assert ledger.stop() == 0
    with Ledger(home) as ledger:
        assert ledger.get("/recovery").json()["replayed_batches"] < WRITES
        assert ledger.amount("bob") == 10 * (WRITES - 1)
        assert ledger.ask("GET", "/roots").json()["roots"][:len(roots)] == roots
        assert metric(ledger, 'log_last_durable{log="ledger"}') >= WRITES
        ledger.must(transfer("n1", "alice", "bob", 1))


def smaller_segments(home):
    """What a segment holds is known again after a start with smaller ones, from a snapshot and from
    the log alone: the ledger makes room for it."""
    count, size = 6, 5000  # more than a segment of 1 MiB takes, twice
    batches = [[mint(f"m{batch}-{i}", "alice", 1) for i in range(size)] for batch in range(count)]
    often = {"RON_LEDGER__SNAPSHOT__PERIOD": "50ms", "RON_LEDGER__SNAPSHOT__MIN_INTERVAL": "50ms",
             "RON_LEDGER__LOG__SEGMENT": "64MiB"}
    with Ledger(home, env=often) as ledger:
        for batch in batches:
            ledger.must(*batch)
        until(lambda: ledger.head()[0] > count * size, "a snapshot of all is taken and anchored")
    assert len(glob.glob(os.path.join(home, "data", "ledger", "log", "seg-*"))) == 1
    for where in ("snapshot", "log"):
        if where == "log":
            shutil.rmtree(os.path.join(home, "data", "ledger", "snapshots"))
        with Ledger(home, env={"RON_LEDGER__LOG__SEGMENT": "1MiB"}) as ledger:
            assert ledger.amount("alice") == count * size
            for batch in (batches[0], batches[-1]):
                refused(ledger.ingest(batch[7]), 409, "Conflict", 0)
            ledger.must(mint(f"n-{where}", "bob", 1))


def remote_ports(home):
    """A port that does not answer refuses writes, and readiness says which."""
    env = {"RON_LEDGER__PORTS__POLICY": "http://127.0.0.1:1", "RON_LEDGER__RETRIES__POLICY": "0"}
    with Ledger(home, env=env) as ledger:
        refused(ledger.ingest(mint("m0", "alice", 1)), 503, "UpstreamUnavailable")
        assert reasons(ledger) == ["breaker_open:policy"]
        assert metric(ledger, 'breaker_open_total{target="policy"}') == 1
        assert ledger.head() == (0, None)
    for url in ("ftp://127.0.0.1:1", "https://127.0.0.1:1"):
        code, text = refused_start(RON, "--data", os.path.join(home, "data"), env=dict(
            os.environ, RON_LEDGER__PORTS__KMS=url, RON_SERVER__ROLES="ledger"))
        assert code == 3, (code, text)


def spans(home):
    """The stages of a sampled write, below the span of its request. covers: LED-V16"""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    stages = ["ingress", "prevalidator", "sequencer", "committer"]
    with Collector() as collector:
        def named(corr_id, count):
            found = [span for span in collector.spans()
                     if span["attributes"].get("corr_id") == corr_id]
            return len(found) >= count and {span["name"]: span for span in found}

        env = {"RON_OTLP__ENDPOINT": collector.url, "RON_OTLP__SAMPLE_PERMILLE": "1000"}
        with Ledger(home, env=env) as ledger:
            ledger.must(mint("m0", "alice", 100), mint("m1", "bob", 1), headers={
                "traceparent": parent, "X-Corr-ID": "good"})
            refused(ledger.ingest(transfer("t1", "alice", "bob", 1000),
                                  headers={"X-Corr-ID": "poor"}), 409, "InsufficientFunds", 0)
            good = until(lambda: named("good", 5), "the spans of a write")
            poor = until(lambda: named("poor", 4), "the spans of a refused one")
            token = ledger.all
        outer = good[next(name for name in good if name not in stages)]
        assert outer["traceId"] == parent[3:35] and outer["parentSpanId"] == parent[36:52]
        for before, name in zip([None] + stages, stages):
            span = good[name]
            assert span["traceId"] == parent[3:35] and "status" not in span, span
            assert span["parentSpanId"] == outer["spanId"], span
            assert span["attributes"]["role"] == "ledger", span
            assert outer["start"] <= span["start"] <= span["end"] <= outer["end"], (span, outer)
            assert before is None or good[before]["end"] <= span["start"], span
        assert good["committer"]["attributes"]["seq"] == 1
        assert good["committer"]["attributes"]["batch_size"] == 2
        assert "committer" not in poor and poor["sequencer"]["status"] == {"code": 2}
        assert "status" not in poor["prevalidator"]
        assert token.encode() not in b"".join(collector.bodies)


def a_lost_key(home):
    """Without key and tiles a log that is not empty is asked about, not signed anew."""
    data = os.path.join(home, "data")
    with Ledger(home) as ledger:
        fill(ledger)
        vkey, head = ledger.get("/checkpoint/vkey").body, ledger.head()
        assert ledger.stop() == 0
    shutil.rmtree(os.path.join(data, "ledger", "tiles"))
    os.rename(os.path.join(data, "ledger", "log.key"), os.path.join(home, "kept"))
    code, text = refused_start(RON, "--data", data, "--listen", "127.0.0.1:0", "--roles", "ledger")
    assert code and "log.key is missing, and the log has" in text, (code, text)
    assert not os.path.exists(os.path.join(data, "ledger", "log.key"))
    with Ledger(home, env={"RON_LEDGER__NEW_KEY": "true"}) as ledger:
        other = ledger.get("/checkpoint/vkey").body
        assert other != vkey and ledger.head() == head
        assert "lost its key and has a new one" in ledger.log()
        assert other.decode().strip() in ledger.log()
        assert ledger.stop() == 0
    with Ledger(home) as ledger:  # it is the log's key now
        assert ledger.get("/checkpoint/vkey").body == other
        assert ledger.stop() == 0
    shutil.rmtree(os.path.join(data, "ledger", "tiles"))
    os.rename(os.path.join(home, "kept"), os.path.join(data, "ledger", "log.key"))
    with Ledger(home) as ledger:  # and so is the old one, restored: tiles are made from the log
        assert ledger.get("/checkpoint/vkey").body == vkey and ledger.head() == head


TESTS = [damaged_log, a_lost_key, a_kill_needs_no_operator, snapshots, smaller_segments,
         remote_ports, spans]

if __name__ == "__main__":
    sys.exit(run(TESTS))
