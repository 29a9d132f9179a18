#!/usr/bin/env python3
"""test_copies.py - the operator's copies over HTTP: export in every form, at the reader's pace;
backups that verify and are restored; snapshots by order; TAP.

    test_copies.py PROGRAM [NAME...]
"""
import csv
import http.client
import io
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.parse

from apilib import RON, WAIT_S, Ledger, Serve, mint, refused, run, transfer, until
from servelib import ask

EXPORT, BACKUP, SNAPSHOT = ("/admin/ledger/" + verb for verb in ("export", "backup", "snapshot"))


def fill(ledger, count):
    """More than a page of an export, with memos long enough for many pieces."""
    ledger.must(mint("m", "alice", 10 ** 9))
    for first in range(0, count, 500):
        ledger.must(*[transfer(f"t{i}", "alice", f"b/{i % 7}", 1, memo=f"{i} \"q\", " + "x" * 150)
                      for i in range(first, min(count, first + 500))])


def entries(ledger):
    found, after = [], 0
    while True:
        page = ledger.get(f"/entries?after={after}").json()
        if not page["entries"]:
            return found
        found += page["entries"]
        after = page["next"]


def export(ledger, query="", token=None):
    return ledger.ask("GET", EXPORT + query, token=token or ledger.all, admin=True)


def ron(*words, status=0):
    done = subprocess.run([RON, "ledger", *words], capture_output=True, text=True, check=False,
                          timeout=WAIT_S)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done


def export_is_all_of_it(home):
    """Every entry once, in order, in each form; `since` leaves out what one has. covers: LED-C21"""
    with Ledger(home) as ledger:
        assert export(ledger).body == b""
        fill(ledger, 1700)
        known = entries(ledger)
        reply = export(ledger)
        assert reply.status == 200 and reply.fields["Transfer-Encoding"] == "chunked"
        assert reply.fields["Content-Type"] == "application/x-ndjson"
        assert [json.loads(line) for line in reply.body.splitlines()] == known
        assert len(known) == 1701 and len(reply.body) > 8 * 65536
        for since in (1, 256, 1700, 1701, 5000):
            lines = export(ledger, f"?since={since}&format=jsonl").body.splitlines()
            assert [json.loads(line) for line in lines] == known[since:], since
        reply = export(ledger, "?format=csv")
        assert reply.fields["Content-Type"] == "text/csv"
        rows = list(csv.DictReader(io.StringIO(reply.body.decode(), newline="")))
        assert [(row["seq"], row["memo"], row["debit"]) for row in rows] == \
            [(str(row["seq"]), row.get("memo", ""), row["debit"]) for row in known]
        url = ("--url", ledger.api, "--data", ledger.data)
        for form in ("csv", "journal", "jsonl"):
            out = os.path.join(home, form)
            ron("export", "--format", form, "--out", out, *url)
            with open(out, "rb") as file:
                assert export(ledger, "?format=" + form).body == file.read(), form
        assert "the ledger's operator acted" in ledger.log() and "export" in ledger.log()


def export_is_refused(home):
    with Ledger(home) as ledger:
        fill(ledger, 10)
        for query in ("?format=xml", "?since=x", "?from=1", "?format=csv&format=csv",
                      "?format=" + "x" * 50):
            refused(export(ledger, query), 400, "Malformed")
        assert ledger.get(EXPORT).status == 404  # the admin listener's alone
        refused(ledger.ask("GET", EXPORT, admin=True), 401, "Unauthorized")
        refused(export(ledger, token=ledger.mint("scope = ledger.read")), 403, "Forbidden")
        refused(export(ledger, token=ledger.mint("scope = ledger.admin", "account = a*")), 403,
                "Forbidden")
        refused(ledger.ask("POST", EXPORT, b"", token=ledger.all, admin=True), 405,
                "MethodNotAllowed")


def open_export(ledger):
    """An export whose reader takes almost nothing."""
    url = urllib.parse.urlsplit(ledger.admin)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(WAIT_S)
    plain.connect((url.hostname, url.port))
    plain.sendall((f"GET {EXPORT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ledger.all}"
                   "\r\n\r\n").encode())
    assert plain.recv(12) == b"HTTP/1.1 200"
    return plain


def export_goes_at_the_readers_pace(home):
    """Readers that stall take nothing but their turn; one that leaves gives it back; one that goes
    on gets everything; a stop does not wait for them."""
    with Ledger(home) as ledger:
        fill(ledger, 40000)
        expected = export(ledger).body
        assert len(expected) > 16 << 20  # beyond what sockets hold
        for _ in range(3):
            stalled = [open_export(ledger) for _ in range(2)]
            ledger.must(transfer(f"w{_}", "alice", "bob", 1))  # nobody else waits
            for connection in stalled:
                connection.close()
        slow = open_export(ledger)
        other = open_export(ledger)
        parts = [b"HTTP/1.1 200"]
        while parts[-1]:
            parts.append(slow.recv(1 << 20))
        text = io.BytesIO(b"".join(parts))

        class Fake:  # what http.client reads from
            def makefile(self, *_args, **_more):
                return text
        reply = http.client.HTTPResponse(Fake())
        reply.begin()
        body = reply.read()
        assert body.startswith(expected) and body.count(b"\n") == 40004
        assert ledger.stop() == 0, ledger.log()  # with one that never reads
        cut = b""
        while True:
            piece = other.recv(1 << 20)
            if not piece:
                break
            cut += piece
        assert not cut.endswith(b"0\r\n\r\n"), "a cut export looks whole"
        slow.close()
        other.close()


def backup(ledger, name, token=None, **more):
    return ledger.post(BACKUP, dict(more, name=name), token, admin=True)


def backup_is_restored(home):
    """Made while others write; it has all that was there when it was asked for, verifies, and what
    is restored from it is served."""
    env = {"RON_LEDGER__LOG__SEGMENT": "1MiB"}
    with Ledger(home, env=env) as ledger:
        fill(ledger, 14000)
        stop = threading.Event()

        def write():
            for i in range(10 ** 6):
                if stop.is_set():
                    return
                ledger.must(transfer(f"w{i}", "alice", "bob", 1))
        writer = threading.Thread(target=write)
        writer.start()
        try:
            before = ledger.head()[0]
            made = backup(ledger, "one", with_key=True)
        finally:
            stop.set()
            writer.join(WAIT_S)
        assert made.status == 200, made.body
        made = made.json()
        assert made["directory"] == "backups/one" and made["key"] is True
        assert before <= made["entries"] <= ledger.head()[0]
        one = os.path.join(ledger.data, "backups", "one")
        found = json.loads(ron("verify", one, "--json").stdout)
        assert found["sound"] and found["entries"] == made["entries"]
        assert found["root"] == made["root"] and found["segments"] > 2
        with open(os.path.join(one, "backup.json"), encoding="ascii") as file:
            note = json.load(file)
        assert note == {name: made[name] for name in ("entries", "root", "made_at", "key")}
        bare = backup(ledger, "two").json()
        assert bare["key"] is False
        assert not os.path.exists(os.path.join(ledger.data, "backups/two/ledger/log.key"))
        assert ledger.amount("alice") + 14000 + ledger.amount("bob") == 10 ** 9
        expected = {name: ledger.get(f"/balance?account={name}&asset=roc&at_seq={made['entries']}"
                                     ).json()["amount"] for name in ("alice", "bob", "b/3")}
    new = os.path.join(home, "new", "data")
    os.mkdir(os.path.dirname(new))
    ron("restore", one, "--data", new)
    with Ledger(os.path.dirname(new), env=env) as ledger:
        assert ledger.head() == (made["entries"], made["root"])
        for name, amount in expected.items():
            assert ledger.balance(name)["amount"] == amount
        ledger.must(transfer("after", "alice", "bob", 1))
        # What the note says and the log has not is a broken link.
        log = os.path.join(one, "ledger", "log")
        segments = sorted(name for name in os.listdir(log) if name.startswith("seg-"))
        lost = os.path.join(home, "lost")
        subprocess.run(["cp", "-r", one, lost], check=True)
        for name in segments[-2:]:
            os.unlink(os.path.join(lost, "ledger", "log", name))
        done = ron("verify", lost, status=3)
        assert "broken link" in done.stderr, done.stderr
        with open(os.path.join(lost, "backup.json"), "w", encoding="ascii") as file:
            json.dump(dict(note, entries=10 ** 6), file)
        subprocess.run(["cp", "-r", os.path.join(one, "ledger"), lost], check=True)
        done = ron("verify", lost, status=3)
        assert "broken link: backup" in done.stderr, done.stderr
        done = ron("restore", lost, "--data", os.path.join(home, "third"), status=3)
        assert "broken link: backup" in done.stderr


def backup_is_refused(home):
    with Ledger(home) as ledger:
        fill(ledger, 10)
        for body in ({}, {"name": ""}, {"name": "a/b"}, {"name": ".."}, {"name": "x" * 65},
                     {"name": "a", "more": 1}, {"name": "a", "with_key": "yes"}):
            refused(ledger.post(BACKUP, body, admin=True), 400, "Malformed")
        assert backup(ledger, "a").status == 200
        refused(backup(ledger, "a"), 409, "Conflict")
        refused(backup(ledger, "b", ledger.mint("scope = ledger.read")), 403, "Forbidden")
        assert ledger.post(BACKUP, {"name": "b"}).status == 404
        # Files of an attempt that did not end are in the way; its empty directories are not.
        os.makedirs(os.path.join(ledger.data, "backups/c/ledger/log"), 0o700)
        assert backup(ledger, "c").status == 200
        os.makedirs(os.path.join(ledger.data, "backups/d/ledger/log"), 0o700)
        with open(os.path.join(ledger.data, "backups/d/ledger/log/seg-1"), "wb"):
            pass
        refused(backup(ledger, "d"), 409, "Conflict")
        # No room for it: said so, and nothing stays.
        os.makedirs(os.path.join(ledger.data, "backups/e/ledger"), 0o700)
        os.mkdir(os.path.join(ledger.data, "backups/e/ledger/log"), 0o500)
        if os.getuid() != 0:
            assert backup(ledger, "e").status >= 400
            tiles = os.path.join(ledger.data, "backups/e/ledger/tiles")
            assert os.listdir(tiles) == []
    with Serve(RON, None, "--amnesia", "--roles", "ledger") as server:
        token = server.announced[2].removeprefix("token ")
        reply = ask(server.admin + BACKUP, token, "POST", b'{"name":"a"}')
        refused(reply, 404, "NotFound")


def snapshots_by_order(home):
    """A file, and its Anchor in the log. covers: LED-C21"""
    with Ledger(home) as ledger:
        refused(ledger.post(SNAPSHOT, b"", admin=True), 404, "NotFound")
        fill(ledger, 50)
        made = ledger.post(SNAPSHOT, b"", admin=True).json()
        assert made["seq"] == 51 and made["rows"] > 7 and made["bytes"] > 0
        anchor = entries(ledger)[-1]
        assert (anchor["stream"], anchor["ref"], anchor["by_ledger"]) == ("state", "51", True)
        names = os.listdir(os.path.join(ledger.data, "ledger", "snapshots"))
        assert len([name for name in names if not name.endswith(".new")]) >= 1
        refused(ledger.post(SNAPSHOT, b"", ledger.mint("scope = ledger.read"), admin=True), 403,
                "Forbidden")


def documented(home):
    """The routes stand in the document, with their bodies."""
    with Ledger(home) as ledger:
        paths = ledger.ask("GET", "/openapi.json").json()["paths"]
        assert "requestBody" in paths[BACKUP]["post"]
        names = [one["name"] for one in paths[EXPORT]["get"]["parameters"]]
        assert names == ["format", "since"] and SNAPSHOT in paths
        until(lambda: ledger.ask("GET", "/admin/server/config", token=ledger.token(),
                                 admin=True).status == 200, "the configuration is shown")


if __name__ == "__main__":
    sys.exit(run([export_is_all_of_it, export_is_refused, export_goes_at_the_readers_pace,
                  backup_is_restored, backup_is_refused, snapshots_by_order, documented]))
