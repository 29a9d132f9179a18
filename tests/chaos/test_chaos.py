#!/usr/bin/env python3
"""test_chaos.py PROGRAM [NAME...] - a ledger in a bad world: a disk that fails, fills or lies,
clients that stall or are too many, memory that is not there; TAP.

Method: the real program; strace delays and fails its syncs, a tmpfs is full, a byte of the log is
turned over. No case sleeps: each waits for the state it needs.
"""
import contextlib
import glob
import json
import os
import resource
import socket
import ssl
import sys
import threading
import time
import urllib.parse

from chaoslib import (Born, acknowledge, addresses_of, figures, injected, is_over, is_sanitized,
                      is_syncing, kill, need_strace, open_sockets, resident_kib, small_disk)
from apilib import STRANGER, WAIT_S, Ledger, Skip, mint, refused, run, transfer, until
from servelib import certificate
from clients import OAP_HEAD, REQ, START, Operation, account_id
import checks

DELAY_US = 700_000
OVERLOAD_S = float(os.environ.get("RON_CHAOS_SECONDS", "3"))
RSS_MORE_KIB = 4 * 1024     # buffers that are made once
TRANSFERS_MAX = 2000        # beside what lasts a while: a fast machine is done before


class Asked(threading.Thread):
    """A write that somebody waits for."""

    def __init__(self, ledger, *entries, key):
        super().__init__(daemon=True)
        self.ledger, self.entries, self.key = ledger, entries, key
        self.reply, self.error = None, None
        self.start()

    def run(self):
        try:
            self.reply = self.ledger.ingest(*self.entries, key=self.key)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error


def fill(ledger, count=20):
    for i in range(count):
        ledger.must(mint(f"m{i}", "alice", 100), key=f"k{i}")


def segment_of(ledger):
    path, = glob.glob(os.path.join(ledger.data, "ledger", "log", "seg-*"))
    return path


def resolved(ledger, key, *entries):
    """What had no answer: there as a whole or not at all, and the same when it is sent again."""
    stored = ledger.get(f"/idem/{key}")
    again = ledger.ingest(*entries, key=key)
    assert again.status == 200, again.body
    assert stored.status in (200, 404), stored.body
    assert (again.fields["Idempotent-Replay"] == "true") == (stored.status == 200), stored.body
    if stored.status == 200:
        assert stored.body == again.body
    return again.json()


def kill_inside_a_sync(home):
    """No answer before the sync is over; the next life is in safe mode until it has read the log,
    leaves it by itself, and goes on where the last one was. covers: LED-V24"""
    need_strace()
    with Ledger(home) as first:
        fill(first)
    with Ledger(home) as ledger:
        assert ledger.get("/recovery").json()["clean_start"] is True
        before = checks.all_roots(ledger)
        with injected(ledger, "fdatasync:delay_enter=20000000") as tracer:
            write = Asked(ledger, mint("late", "alice", 5), key="late")
            until(lambda: is_syncing(ledger.process.pid), "a sync begins")
            assert write.reply is None, "answered before its sync"
            assert ledger.amount("alice") == 2000 and ledger.get("/idem/late").status == 404
            assert checks.all_roots(ledger) == before
            kill(ledger, tracer)
            write.join(WAIT_S)
            assert write.error and write.reply is None, write.reply
    with Born(home, ledger.all, inject=f"fdatasync:delay_enter={DELAY_US}") as again:
        until(lambda: figures(again)["ledger_safe_mode"] == 1, "safe mode while it recovers")
        early = again.ingest(mint("early", "alice", 1), key="early")
        assert refused(early, 503, "SafeMode", reason="recovering")["retryable"] is True, early.body
        assert early.fields["Retry-After"]
        again.wait_ready()
        assert figures(again)["ledger_safe_mode"] == 0
        recovery = again.get("/recovery").json()
        assert recovery["clean_start"] is False and recovery["safe_mode"] is False, recovery
        kill(again)  # its syncs are slow
    with Born(home, ledger.all) as again:
        again.wait_ready()
        assert checks.all_roots(again)[:len(before)] == before
        assert again.get("/entries/early").status == 404
        resolved(again, "late", mint("late", "alice", 5))
        assert again.amount("alice") == 2005
        assert checks.all_roots(again)[:len(before)] == before


def failed_sync(home):
    """A sync that fails is final: safe mode, writes refused, reads go on; a restart reads the log
    again, and an operator who knows of it opens it. covers: LED-V24"""
    need_strace()
    with Ledger(home) as ledger:
        fill(ledger)
        before = checks.all_roots(ledger)
        with injected(ledger, "fdatasync:error=EIO", segment_of(ledger)):
            error = refused(ledger.ingest(mint("bad", "alice", 5), key="bad"), 503, "SafeMode")
            assert error["details"]["outcome"] == "unknown", error
        now = figures(ledger)
        assert now["ledger_safe_mode"] == 1 and now["wal_fsync_fail_total"] >= 1
        assert now['log_broken{log="ledger"}'] == 1
        for i in range(3):  # the disk is well again; the log is not trusted
            refused(ledger.ingest(mint(f"x{i}", "alice", 1)), 503, "SafeMode")
        assert ledger.ask("GET", "/readyz?role=ledger&plane=write").status == 503
        assert ledger.ask("GET", "/readyz?role=ledger&plane=read").status == 200
        assert ledger.amount("alice") == 2000 and checks.all_roots(ledger) == before
        refused(ledger.post("/admin/ledger/safe-mode", {"on": False, "ack": "INC-1"}, admin=True),
                409, "Conflict")
        refused(acknowledge(ledger), 409, "Conflict")
        recovery = ledger.get("/recovery").json()
        assert recovery["safe_mode"] is True and recovery["last_good_seq"] == 20, recovery
        ledger.stop()
    with Born(home, ledger.all) as again:
        until(lambda: is_over(again), "the log was read again")
        refused(again.ingest(mint("x", "alice", 1)), 503, "SafeMode")
        assert acknowledge(again).status == 200
        again.wait_ready()
        assert checks.all_roots(again)[:len(before)] == before
        resolved(again, "bad", mint("bad", "alice", 5))
        assert again.amount("alice") == 2005


def no_memory_for_a_prevalidator(home):
    """A write that gets no memory is refused, and the next one finds nothing of it.
    covers: LED-V25"""
    with Ledger(home) as ledger:
        pid = ledger.process.pid
        if is_sanitized(ledger):
            raise Skip("a sanitizer has taken all addresses: no limit of memory can be set")
        used = addresses_of(ledger)
        limits = resource.prlimit(pid, resource.RLIMIT_AS)
        # Enough for the request, not for the 14 MiB a prevalidator works in.
        resource.prlimit(pid, resource.RLIMIT_AS, (used + (4 << 20), limits[1]))
        batch = [mint(f"m{i}", f"account_{i}", 1) for i in range(5000)]
        for _ in range(5):
            refused(ledger.ingest(*batch, key="big"), 429, "Busy")
        assert figures(ledger)['ledger_rejects_total{reason="no_memory"}'] == 5
        assert ledger.head()[0] == 0 and ledger.get("/idem/big").status == 404
        resource.prlimit(pid, resource.RLIMIT_AS, limits)
        until(lambda: ledger.ask("GET", "/readyz?role=ledger").status == 200, "ready again")
        assert ledger.must(*batch, key="big")["seq_end"] == 5000
        ledger.must(transfer("t", "account_1", "bob", 1), key="t")
        assert [row["id"] for row in ledger.get("/entries?account=bob").json()["entries"]] == ["t"]
        assert figures(ledger)['tasks_gave_up_total{role="ledger",kind="prevalidator"}'] == 0


def full_disk(home):
    """Refused as a whole while there is no room, told to the operator, and taken again when there
    is; what was acknowledged stays. covers: LED-V26"""
    with small_disk(home) as mount:
        ballast = os.path.join(mount, "ballast")
        with open(ballast, "wb") as file:
            file.write(bytes(3 << 20))
        acked, more = [], 0
        quiet = {"RON_LEDGER__LOG__SEGMENT": "1MiB", "RON_LEDGER__SNAPSHOT__PERIOD": "1h"}
        with Ledger(mount, env=quiet) as ledger:  # no Anchor between the batches
            while True:
                number = len(acked)
                batch = [mint(f"m{number}-{i}", f"a{i % 50}", 1) for i in range(400)]
                reply = ledger.ingest(*batch, key=f"k{number}")
                if reply.status != 200:
                    break
                acked.append((batch, reply.body))
            assert len(acked) > 3, (len(acked), reply.body)
            assert reply.status == 503 and reply.code() == "PersistenceFull", reply.body
            head = checks.all_roots(ledger)
            assert len(head) == len(acked), (len(head), len(acked))
            until(lambda: figures(ledger)["disk_pressure"] == 1, "disk_pressure is told")
            for i in range(5):
                refused(ledger.ingest(*batch, key=f"full-{i}"), 503, "PersistenceFull")
            assert ledger.get(f"/entries/m{len(acked)}-0").status == 404
            assert checks.all_roots(ledger) == head
            assert ledger.amount("a1") == 8 * len(acked)  # reads go on
            os.unlink(ballast)

            def taken():
                answer = ledger.ingest(*batch, key=f"k{len(acked)}")
                assert answer.status in (200, 503), answer.body
                return answer.status == 200 and answer.body

            acked.append((batch, until(taken, "there is room again")))
            until(lambda: figures(ledger)["disk_pressure"] == 0, "disk_pressure is over")
            until(lambda: ledger.ask("GET", "/readyz?role=ledger").status == 200, "ready again")
            more = len(acked)
            ledger.stop()
        with Born(mount, ledger.all) as again:
            again.wait_ready()
            assert len(checks.all_roots(again)) == more, more
            for number, (batch, body) in enumerate(acked):
                reply = again.ingest(*batch, key=f"k{number}")
                assert reply.body == body and reply.fields["Idempotent-Replay"] == "true"
        print(f"# {more} batches of 400 entries, one of them after the disk was full")


def turned_byte(home):
    """Damage before the tail: safe mode from the start, told where; what lies before it is read,
    nothing can be written, whatever the operator says. With the byte back it takes his word to be a
    ledger again. covers: LED-V27"""
    with Ledger(home) as ledger:
        fill(ledger)
        roots = checks.all_roots(ledger)
    segment = segment_of(ledger)

    def turn():
        with open(segment, "r+b") as file:
            data = file.read()
            at = data.index(b"RLF1", data.index(b"RLF1", 4096) + 4) + 200  # in the second frame
            file.seek(at)
            file.write(bytes([data[at] ^ 1]))

    turn()
    with Born(home, ledger.all) as again:
        until(lambda: again.get("/recovery").json()["damage"], "the damage is found")
        recovery = again.get("/recovery").json()
        assert recovery["safe_mode"] is True and recovery["last_good_seq"] == 1, recovery
        assert recovery["damage"]["file"].endswith(os.path.basename(segment)), recovery
        assert figures(again)["ledger_safe_mode"] == 1
        assert again.ask("GET", "/readyz?role=ledger&plane=write").status == 503
        assert checks.all_roots(again) == roots[:1] and again.amount("alice") == 100
        refused(again.ingest(mint("x", "alice", 1)), 503, "SafeMode")
        refused(again.post("/admin/ledger/safe-mode", {"on": False, "ack": "INC-2"}, admin=True),
                409, "Conflict")
        refused(acknowledge(again), 409, "Conflict")
        refused(again.ingest(mint("x", "alice", 1)), 503, "SafeMode")
        again.stop()
    turn()
    with Born(home, ledger.all) as again:
        until(lambda: is_over(again), "the log was read again")
        assert checks.all_roots(again) == roots
        refused(again.ingest(mint("x", "alice", 1)), 503, "SafeMode")
        assert acknowledge(again).status == 200
        again.wait_ready()
        again.must(mint("x", "alice", 1))
        assert checks.all_roots(again)[:-1] == roots


def slow_heads(home):
    """500 connections that send a byte now and then: transfers go on, the connections are ended,
    and nothing of them is left. covers: LED-V28"""
    with Ledger(home, env={"RON_SERVER__HEAD_TIMEOUT": "5s"}) as ledger:
        ledger.must(mint("m", "alice", TRANSFERS_MAX))
        sockets, memory = open_sockets(ledger), resident_kib(ledger)
        url = urllib.parse.urlsplit(ledger.api)
        slow = []
        for i in range(500):  # one address may have a quarter of all connections
            slow.append(socket.create_connection((url.hostname, url.port), timeout=WAIT_S,
                                                 source_address=(f"127.0.0.{2 + i % 5}", 0)))
            slow[-1].sendall(b"POST /ingest HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        until(lambda: open_sockets(ledger) > sockets + 250, "the slow ones are taken in")
        done, turn = 0, 0
        while done <= 20 or open_sockets(ledger) > sockets + 250:
            for peer in slow[turn % 50::50]:
                try:
                    peer.sendall(b"z")
                except OSError:
                    pass  # it was ended
            turn += 1
            if done < TRANSFERS_MAX:
                ledger.must(transfer(f"t{done}", "alice", "bob", 1), key=f"t{done}")
                done += 1
            else:
                time.sleep(0.005)
        for peer in slow:
            peer.close()
        until(lambda: open_sockets(ledger) <= sockets, "their sockets are closed")
        assert ledger.amount("bob") == done > 20, done
        grown, touched = (now - then for now, then in zip(resident_kib(ledger), memory))
        assert is_sanitized(ledger) or grown < RSS_MORE_KIB + 500 * 16, (grown, touched)
        print(f"# {done} transfers beside 500 slow connections")


def half_a_hello():
    """The first bytes of a TLS client, from a client that has nobody to talk to."""
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        STRANGER.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    return out.read()


def handshake_storm(home):
    """400 handshakes: whole ones, halves, ones that stall, no TLS at all. Who shook hands properly
    goes on, and nothing is left of the others. covers: LED-V30"""
    pem, key = certificate(home, "storm")
    env = {"RON_SERVER__TLS__CERTIFICATE": pem, "RON_SERVER__TLS__KEY": key,
           "RON_SERVER__HEAD_TIMEOUT": "5s"}
    with Ledger(home, env=env) as ledger:
        fill(ledger, 5)
        sockets, hello = open_sockets(ledger), half_a_hello()
        url = urllib.parse.urlsplit(ledger.api)
        peers, done, shaken = [], 0, 0
        for i in range(400):
            peer = socket.create_connection((url.hostname, url.port), timeout=WAIT_S,
                                            source_address=(f"127.0.0.{2 + i % 5}", 0))
            if i % 4 == 0:
                with STRANGER.wrap_socket(peer) as end:
                    shaken += end.version() is not None
                continue
            peer.sendall((hello, hello[:len(hello) // 2], b"GET / HTTP/1.1\r\n\r\n")[i % 4 - 1])
            peers.append(peer)
            if i % 10 == 0:
                ledger.must(transfer(f"t{done}", "alice", "bob", 1), key=f"t{done}")
                done += 1
        assert shaken == 100
        ledger.must(transfer("last", "alice", "bob", 1), key="last")
        for peer in peers[::2]:
            peer.close()
        until(lambda: open_sockets(ledger) <= sockets, "those that stall are ended")
        for peer in peers:
            peer.close()
        assert ledger.amount("bob") == done + 1
        print(f"# {shaken} handshakes, {len(peers)} that came to nothing, {done + 1} transfers")


def restart_storm(home):
    """Ten starts, each ended as soon as it listens, by turns with TERM and KILL."""
    with Ledger(home) as ledger:
        fill(ledger)
        before = checks.all_roots(ledger)
        kill(ledger)
    for i in range(10):
        with Born(home, ledger.all) as again:
            if i % 2:
                kill(again)
            else:
                assert again.stop() == 0, again.log()
    with Born(home, ledger.all) as again:
        again.wait_ready()
        assert checks.all_roots(again) == before
        again.must(mint("x", "alice", 1))


class Flood(threading.Thread):
    """Sends binary writes as fast as they are taken from it, and reads every answer."""

    def __init__(self, ledger, number):
        super().__init__(daemon=True)
        url = urllib.parse.urlsplit(ledger.api)
        self.socket = socket.create_connection((url.hostname, url.port), timeout=WAIT_S)
        self.token, self.number = ledger.all.encode(), number
        self.sent, self.statuses, self.codes, self.error = 0, {}, set(), None
        self.over = threading.Event()
        self.sender = threading.Thread(target=self.send, daemon=True)

    def send(self):
        try:
            while not self.over.is_set():
                piece = b""
                for _ in range(50):
                    self.sent += 1
                    entry = dict(transfer(f"{self.number + 1:016x}{self.sent:016x}", "alice", "bob",
                                          1))
                    body = Operation(f"f{self.number}-{self.sent}", [entry], True).body
                    piece += OAP_HEAD.pack(OAP_HEAD.size + len(self.token) + len(body), 1,
                                           REQ | (START if self.token else 0), 1, 1, bytes(16),
                                           len(self.token), self.sent) + self.token + body
                    self.token = b""
                self.socket.sendall(piece)
            self.socket.shutdown(socket.SHUT_WR)  # then the other side ends, too
        except OSError as error:
            self.error = error

    def run(self):
        try:
            self.sender.start()
            stream = self.socket.makefile("rb")
            while data := stream.read(OAP_HEAD.size):
                head = OAP_HEAD.unpack(data)
                body = stream.read(head[0] - OAP_HEAD.size)
                self.statuses[head[3]] = self.statuses.get(head[3], 0) + 1
                if head[3] != 200:
                    self.codes.add(json.loads(body)["error"]["code"])
            self.socket.close()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error


def overload(home):
    """Many times what it can take: each refusal is one that says so, memory stays, what was
    accepted is done, and afterwards it is idle at once."""
    need_strace()
    # One prevalidator: it has its buffers from the first request, before memory is looked at.
    bounds = {f"RON_LEDGER__QUEUES__{name}": "16" for name in ("INGRESS", "PREVALIDATOR", "COMMIT")}
    bounds["RON_LEDGER__CONCURRENCY__PREVALIDATORS"] = "1"
    with Ledger(home, env=bounds) as ledger:
        ledger.must(mint("m", "alice", 10 ** 9), mint("n", "bob", 1))
        account_id("alice"), account_id("bob")
        with injected(ledger, "fdatasync:delay_enter=30000"):
            floods = [Flood(ledger, i) for i in range(8)]
            for flood in floods:
                flood.start()
            until(lambda: sum(flood.sent for flood in floods) > 2000, "the flood has come")
            memory, space = resident_kib(ledger), addresses_of(ledger)
            end = time.monotonic() + OVERLOAD_S
            until(lambda: time.monotonic() > end, "the flood goes on")
            grown, touched = (now - then for now, then in zip(resident_kib(ledger), memory))
            space = (addresses_of(ledger) - space) >> 10
            begin = time.monotonic()
            for flood in floods:
                flood.over.set()
            for flood in floods:
                flood.join(WAIT_S)
                assert not flood.is_alive() and not flood.error, flood.error
            until(lambda: figures(ledger)["ledger_backlog_gauge"] == 0, "the backlog is gone")
            drained = time.monotonic() - begin
        sent = sum(flood.sent for flood in floods)
        accepted = sum(flood.statuses.get(200, 0) for flood in floods)
        codes = set().union(*(flood.codes for flood in floods))
        assert sum(sum(flood.statuses.values()) for flood in floods) == sent
        assert codes and codes <= {"Busy", "CommitBackpressure", "PrevalDropOldest"}, codes
        assert accepted and sent > 5 * accepted, (sent, accepted)
        assert ledger.amount("bob") == 1 + accepted
        # Tables of a fixed size, and buffers of the eight connections, are touched for the first
        # time: nothing else grows, and nothing at all in addresses, however much is accepted.
        assert is_sanitized(ledger) or grown < 3 * RSS_MORE_KIB, (grown, touched)
        assert is_sanitized(ledger) or space < RSS_MORE_KIB, space
        assert drained < WAIT_S / 2, drained  # and not the minutes that all of it would take
        until(lambda: ledger.ask("GET", "/readyz?role=ledger").status == 200, "ready again")
        ledger.must(transfer("after", "alice", "bob", 1))
        print(f"# {sent} sent, {accepted} accepted, refused by {sorted(codes)}; {grown} KiB more, "
              f"{touched} in tables; "
              f"idle {drained:.2f} s after")


TESTS = [kill_inside_a_sync, failed_sync, no_memory_for_a_prevalidator, full_disk, turned_byte,
         slow_heads, handshake_storm, restart_storm, overload]

if __name__ == "__main__":
    sys.exit(run(TESTS))
