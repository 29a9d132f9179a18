#!/usr/bin/env python3
"""test_doors.py - how writes come in and who is turned away: saturation, the Unix socket, sizes,
reversals, the operator; TAP.

    test_doors.py PROGRAM [NAME...]
"""
import http.client
import json
import os
import re
import socket
import sys
import threading

from apilib import Ledger, mint, refused, run, transfer


def metric(ledger, name, labels):
    text = ledger.ask("GET", "/metrics", admin=True).body.decode()
    found = re.search(rf"^{name}{{{labels}}} (\d+)$", text, re.M)
    assert found, f"{name}{{{labels}}} is not on the page"
    return int(found.group(1))


ENTRIES = 50  # of a request that is no small one: those do not wait in the ingress queue


def pipeline(ledger, first, count, replies):
    """So many batches of Mints on one connection, sent before the first reply is read."""
    host, port = ledger.api.removeprefix("http://").split(":")
    asked = b""
    for number in range(first, first + count):
        body = json.dumps({"batch": [mint(f"m{number}-{i}", "acct", 1)
                                     for i in range(ENTRIES)]}).encode()
        asked += (b"POST /ingest HTTP/1.1\r\nHost: ron\r\nContent-Type: application/json\r\n"
                  b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                  % (ledger.all.encode(), len(body), body))
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        sender = threading.Thread(target=connection.sendall, args=(asked,))
        sender.start()
        reader = connection.makefile("rb")
        for _ in range(count):
            status = int(reader.readline().split()[1])
            fields = http.client.parse_headers(reader)
            body = json.loads(reader.read(int(fields["Content-Length"])))
            replies.append((status, fields, body))
        sender.join()


def saturation(home):
    """A full ingress queue: 429 Busy with Retry-After, each counted; the rest is done.

    covers: LED-C52 LED-V09
    """
    env = {"RON_LEDGER__QUEUES__INGRESS": "1", "RON_LEDGER__CONCURRENCY__PREVALIDATORS": "1",
           "RON_LEDGER__WRITES_PER_S": "0"}
    with Ledger(home, env=env) as ledger:
        replies, sent = [], 0
        while not [reply for reply in replies if reply[0] == 429]:
            assert sent < 20000, "never busy"
            threads = [threading.Thread(target=pipeline,
                                        args=(ledger, sent + i * 100, 100, replies))
                       for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            sent += 400
        assert len(replies) == sent
        busy = [reply for reply in replies if reply[0] == 429]
        for status, fields, body in busy:
            assert body["error"]["code"] == "Busy" and body["error"]["retryable"] is True, body
            assert int(fields["Retry-After"]) >= 1
        good = [reply for reply in replies if reply[0] == 200]
        assert len(good) + len(busy) == sent, {reply[0] for reply in replies}
        assert metric(ledger, "busy_rejections_total",
                      'role="ledger",endpoint="",queue="ingress",q="ingress"') == len(busy)
        assert (sorted(reply[2]["seq_start"] for reply in good) ==
                list(range(1, len(good) * ENTRIES + 1, ENTRIES)))
        assert ledger.amount("acct") == len(good) * ENTRIES


class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("ron", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def both_doors(home):
    """TCP and the Unix socket: the user that the kernel names is not enough without a capability; a
    body above the cap is refused before it is read.

    covers: LED-C14 LED-C48 LED-C49
    """
    path = os.path.join(home, "api.sock")
    with Ledger(home, env={"RON_SERVER__UNIX": path}) as ledger:
        def ask(token, body, **fields):
            connection = Local(path)
            if token:
                fields["Authorization"] = f"Bearer {token}"
            connection.request("POST", "/ingest", body=body,
                               headers={"Content-Type": "application/json", **fields})
            reply = connection.getresponse()
            found = reply.status, json.loads(reply.read())
            connection.close()
            return found

        body = json.dumps({"batch": [mint("m1", "acct", 5)]})
        assert ask(None, body)[0] == 401
        status, reply = ask(ledger.mint("scope = ledger.read"), body)
        assert (status, reply["error"]["code"]) == (403, "Forbidden")
        assert ledger.head() == (0, None)
        assert ask(ledger.all, body)[0] == 200
        assert ledger.must(mint("m1", "acct", 5))["seq_start"] == 1  # the same, by TCP
        status, reply = ask(ledger.all, None, **{"Content-Length": str((1 << 20) + 1)})
        assert (status, reply["error"]["code"]) == (413, "TooLarge"), reply
        refused(ledger.post("/ingest", b" " * ((1 << 20) + 1)), 413, "TooLarge")
        assert ledger.head()[0] == 1 and ledger.amount("acct") == 5


def reversals(home):
    """With its own scope only, linked to the entry, back where it came from, never beyond it.

    covers: LED-F27
    """
    with Ledger(home) as ledger:
        ledger.must(mint("m0", "alice", 100), transfer("t0", "alice", "bob", 50))

        def reverse(entry_id, amount, **more):
            return ledger.ingest({"id": entry_id, "kind": "Reverse", "ref": "t0", "asset": "roc",
                                  "amount": str(amount)}, **more)

        refused(reverse("r0", 50, token=ledger.mint("scope = ledger.ingest,ledger.mint")), 403,
                "Forbidden", 0)
        right = ledger.mint("scope = ledger.ingest,ledger.reverse")
        assert reverse("r1", 30, token=right).status == 200
        refused(reverse("r2", 21, token=right), 409, "Conflict", 0)
        assert reverse("r2", 20, token=right).status == 200
        refused(reverse("r3", 1, token=right), 409, "Conflict", 0)
        refused(ledger.ingest({"id": "r4", "kind": "Reverse", "ref": "nothing", "asset": "roc",
                               "amount": "1"}, token=right), 404, "NotFound", 0)
        assert (ledger.amount("alice"), ledger.amount("bob")) == (100, 0)
        links = {ledger.get(f"/entries/{name}").json()["link"] for name in ("r1", "r2")}
        assert links == {ledger.get("/entries/t0").json()["leaf"][:32]}, links  # its 16-byte id


def operator(home):
    """Safe-mode and drain are the operator's; each act is logged; a drain answers what it took.

    covers: LED-C21
    """
    with Ledger(home) as ledger:
        plain = ledger.mint("scope = ledger.ingest,ledger.read")
        ledger.must(mint("m0", "alice", 1))
        body = {"on": True, "ack": "INC-1"}
        refused(ledger.post("/admin/ledger/safe-mode", body, token=plain, admin=True), 403,
                "Forbidden")
        refused(ledger.ask("POST", "/admin/ledger/safe-mode", body, admin=True), 401,
                "Unauthorized")
        assert ledger.post("/admin/ledger/safe-mode", body, admin=True).status == 200
        assert ledger.ask("GET", "/readyz?role=ledger&plane=write").status == 503
        assert ledger.ask("GET", "/readyz?role=ledger&plane=read").status == 200
        ledger.wait_log("the ledger's operator acted")
        assert ledger.post("/admin/ledger/safe-mode", {"on": False, "ack": "INC-1"},
                           admin=True).status == 200
        assert ledger.ask("GET", "/readyz?role=ledger&plane=write").status == 200
        ledger.must(mint("m1", "alice", 1))
        reply = ledger.post("/admin/server/drain", {}, token=plain, admin=True)
        refused(reply, 403, "Forbidden")
        reply = ledger.ask("POST", "/admin/server/drain", token=ledger.token(), admin=True)
        assert reply.status == 202, reply.body
        assert ledger.end() == 0
    with Ledger(home) as ledger:
        assert ledger.amount("alice") == 2 and ledger.head()[0] == 2


if __name__ == "__main__":
    sys.exit(run([saturation, both_doors, reversals, operator]))
