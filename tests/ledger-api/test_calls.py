#!/usr/bin/env python3
"""test_calls.py - the routes of the API over OAP/1, by TCP and by the Unix socket: what a call is
answered is what HTTP answers, status and bytes; TAP.

    test_calls.py PROGRAM [NAME...]
"""
import json
import os
import socket
import struct
import sys
import urllib.parse

from apilib import FAR, Ledger, WAIT_S, mint, run, transfer, until

REQ, START = 1, 8
HEAD = struct.Struct(">IHHHH16sHQ")
LEDGER, CALL = 1, 3
NUMBERS = {"GET": 1, "POST": 2, "PUT": 3, "DELETE": 4}


class Calls:
    """A connection of OAP/1 under one capability."""

    def __init__(self, address, token=None):
        self.token, self.corr, self.told = (token or "").encode(), 0, False
        if isinstance(address, tuple):
            self.connection = socket.create_connection(address, timeout=WAIT_S)
        else:
            self.connection = socket.socket(socket.AF_UNIX)
            self.connection.settimeout(WAIT_S)
            self.connection.connect(address)
        self.reader = self.connection.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reader.close()
        self.connection.close()

    def frame(self, body, tenant=0):
        """The status and body that a frame of code 3 is answered."""
        self.corr += 1
        start = not self.told and self.token
        token = self.token if start else b""
        self.told = True
        self.connection.sendall(HEAD.pack(
            HEAD.size + len(token) + len(body), 1, REQ | (START if start else 0), CALL, LEDGER,
            tenant.to_bytes(16, "big"), len(token), self.corr) + token + body)
        size, _, _, status, proto, _, _, corr = HEAD.unpack(self.reader.read(HEAD.size))
        assert (proto, corr) == (LEDGER, self.corr)
        return status, self.reader.read(size - HEAD.size)

    def call(self, method, target, body=None, tenant=0):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        target = target.encode()
        number = NUMBERS.get(method, method)
        return self.frame(struct.pack("<BH", number, len(target)) + target + (body or b""), tenant)


def doors(ledger, path):
    url = urllib.parse.urlsplit(ledger.api)
    return [(url.hostname, url.port), path]


def serve(home, **env):
    path = os.path.join(home, "api.sock")
    return Ledger(home, env={"RON_SERVER__UNIX": path, **env}), path


def is_same(ledger, peer, method, target, body=None):
    """Over HTTP, with the corr id of the frame that comes next; then as a call."""
    token = peer.token.decode() or None
    fields = {"X-Corr-ID": f"{peer.corr + 1:016x}"}
    reply = ledger.ask(method, target, body, token, fields)
    found = peer.call(method, target, body)
    assert found == (reply.status, reply.body), (method, target, found, reply.status, reply.body)
    return found


def refused(found, status, code):
    error = json.loads(found[1])["error"]
    assert (found[0], error["code"]) == (status, code), found


def same_as_http(home):
    """Writes and reads, good and refused, byte for byte."""
    ledger, path = serve(home)
    with ledger:
        for number, door in enumerate(doors(ledger, path)):
            with Calls(door, ledger.all) as peer:
                who = f"alice{number}"
                batch = {"idem_id": f"key{number}", "batch": [
                    mint(f"m{number}", who, 100),
                    {"id": f"h{number}", "kind": "Hold", "from": who, "hold_id": f"H{number}",
                     "payee": "shop", "expires_at": FAR, "asset": "roc", "amount": "30"}]}
                first = peer.call("POST", "/ingest", batch)  # each door writes once
                assert first[0] == 200 and json.loads(first[1])["seq_end"], first
                assert is_same(ledger, peer, "POST", "/ingest", batch) == first
                asset = {"asset": f"usd{number}", "decimals": 2, "max_supply": "500"}
                assert peer.call("POST", "/assets", asset)[0] == 200
                is_same(ledger, peer, "POST", "/assets", {**asset, "decimals": 3})
                status, body = peer.call("POST", "/ingest?proof=1", batch)
                assert status == 200 and len(json.loads(body)["proofs"]) == 2, body
                assert peer.call("POST", "/accounts", {"account": who, "asset": "roc",
                                                       "maximum": "500"})[0] == 200
                poor = {"batch": [transfer(f"t{number}", "nobody", "bob", 5)]}
                is_same(ledger, peer, "POST", "/ingest", poor)
                is_same(ledger, peer, "POST", "/intents", {"run_key": "r"})
                is_same(ledger, peer, "POST", "/ingest", b"{")
                is_same(ledger, peer, "POST", "/ingest?nothing=1", batch)
                is_same(ledger, peer, "PUT", "/slices/0/clicks/1", {"shed": {}})
                seq = json.loads(first[1])["seq_end"]
                at = f"account={who}&asset=roc"
                status, body = peer.call("GET", "/balance?" + at)
                assert status == 200 and json.loads(body)["amount"] == "70", body
                until(lambda: ledger.ask("GET", "/checkpoint").body.split(b"\n")[1] ==
                      str(ledger.head()[0]).encode(), "the newest head is signed")
                for target in (f"/balance?{at}&at_seq={seq}", "/balance?account=", "/balance",
                               f"/entries/m{number}", "/entries/none", f"/entries?account={who}",
                               "/entries?from=1&limit=2", f"/idem/key{number}", "/idem/none",
                               f"/holds/H{number}", f"/holds?account={who}", "/holds/none",
                               f"/accounts/{who}", "/assets", "/roots", "/roots?since=1&limit=1",
                               f"/proof/inclusion?seq={seq}", "/proof/inclusion?seq=99999",
                               "/proof/consistency?from=1", "/proof/inclusion", "/checkpoint",
                               "/checkpoint/vkey", "/tile/0/000.p/1", "/tile/entries/000.p/1",
                               "/slices/0/clicks/head", "/recovery", "/nothing", "/",
                               "/admin/ledger/export", "/openapi.json"):
                    is_same(ledger, peer, "GET", target)
                for method, target in (("POST", "/balance"), ("DELETE", "/ingest")):
                    refused(is_same(ledger, peer, method, target), 405, "MethodNotAllowed")
                assert peer.call("GET", "/recovery")[0] == 200
        assert ledger.head()[0] == 8


def who_may_not(home):
    """No capability, a scope, path or method that does not cover it, another tenant; and what
    needs none."""
    ledger, path = serve(home)
    with ledger:
        ledger.must(mint("m1", "alice", 5))
        body = {"batch": [mint("m2", "alice", 5)]}
        scope = "scope = ledger.read,ledger.ingest,ledger.mint"
        reads = "/balance?account=alice&asset=roc"
        by_path = ledger.mint(scope, "path = /balance")
        by_method = ledger.mint(scope, "method = GET")
        other = ledger.mint(scope, "tenant = 9", "account = *", any_tenant=True)
        for door in doors(ledger, path):
            with Calls(door) as peer:
                refused(peer.call("GET", reads), 401, "Unauthorized")
                refused(peer.call("POST", "/ingest", body), 401, "Unauthorized")
                for target in ("/checkpoint", "/checkpoint/vkey", "/roots", "/tile/0/000.p/1"):
                    assert is_same(ledger, peer, "GET", target)[0] == 200
            with Calls(door, "nonsense") as peer:
                refused(peer.call("GET", reads), 401, "Unauthorized")
            with Calls(door, ledger.mint("scope = ledger.read")) as peer:
                assert peer.call("GET", reads)[0] == 200
                refused(is_same(ledger, peer, "POST", "/ingest", body), 403, "Forbidden")
            with Calls(door, ledger.mint("scope = ledger.read", "account = bob")) as peer:
                refused(is_same(ledger, peer, "GET", reads), 403, "Forbidden")
            with Calls(door, by_path) as peer:
                assert peer.call("GET", reads)[0] == 200
                refused(is_same(ledger, peer, "GET", "/entries/m1"), 403, "Forbidden")
                refused(is_same(ledger, peer, "POST", "/ingest", body), 403, "Forbidden")
            with Calls(door, by_method) as peer:
                assert peer.call("GET", reads)[0] == 200
                refused(is_same(ledger, peer, "POST", "/ingest", body), 403, "Forbidden")
            with Calls(door, other) as peer:
                refused(peer.call("POST", "/ingest", body, tenant=8), 403, "Forbidden")
        assert ledger.head()[0] == 1


def ill_formed(home):
    """Each is answered by its envelope, and the connection goes on."""
    ledger, path = serve(home)
    with ledger:
        for door in doors(ledger, path):
            with Calls(door, ledger.all) as peer:
                for body in (b"", b"\1", b"\1\1\0", b"\1\0\0", b"\1\xff\0/recovery",
                             b"\0\1\0/", b"\5\1\0/", b"\xff\1\0/"):
                    refused(peer.frame(body), 400, "Malformed")
                refused(peer.call("GET", ""), 400, "Malformed")
                for target in ("recovery", "/recovery?%zz", "/re covery", "*"):
                    refused(peer.call("GET", target), 400, "Malformed")
                refused(peer.call("GET", "/" + "x" * 4096), 431, "HeadersTooLarge")
                refused(peer.call("GET", "/roots/stream"), 415, "UnsupportedMedia")
                refused(peer.call("POST", "/admin/ledger/freeze", {"on": True}), 404, "NotFound")
                assert peer.call("GET", "/recovery")[0] == 200
        ledger.must(mint("m1", "alice", 5))


def too_long_for_a_frame(home):
    """A read is refused whole; of a write only the proofs are left out."""
    ledger, path = serve(home, RON_LEDGER__ORIGIN="o" * 200)  # each proof has it twice
    with ledger, Calls(path, ledger.all) as peer:
        meta = {"m": "x" * 900}
        for number in range(4):
            ledger.must(*[{**mint(f"m{number}-{i}", "alice", 1), "meta": meta} for i in range(250)])
        refused(peer.call("GET", "/entries?account=alice"), 413, "TooLarge")
        assert is_same(ledger, peer, "GET", "/entries?account=alice&limit=300")[0] == 200
        batch = {"batch": [mint(f"p{i}", "alice", 1) for i in range(1000)]}
        status, body = peer.call("POST", "/ingest?proof=1", batch)
        reply = ledger.ask("POST", "/ingest?proof=1", batch, ledger.all)
        assert status == 200 and reply.status == 200
        found, wanted = json.loads(body), reply.json()
        assert len(reply.body) > 1 << 20, len(reply.body)
        assert len(wanted.pop("proofs")) == 1000, len(reply.body)
        assert found == wanted, body


if __name__ == "__main__":
    sys.exit(run([same_as_http, who_may_not, ill_formed, too_long_for_a_frame]))
