#!/usr/bin/env python3
"""test_bad_input.py - bad input over HTTP and OAP/1: each its code and index, and not a trace of it
in state, log or root; TAP.

    test_bad_input.py PROGRAM [NAME...]
"""
import json
import os
import socket
import struct
import sys
import urllib.parse

from apilib import FAR, Ledger, mint, refused, run, transfer

GOOD = transfer("g1", "alice", "bob", 1)
REQ, RESP, START = 1, 2, 8


class Unchanged:
    """Nothing inside changes head, balances or the bytes of the log."""

    def __init__(self, ledger):
        self.ledger = ledger

    def look(self):
        log = os.path.join(self.ledger.data, "ledger", "log")
        used = {name: open(os.path.join(log, name), "rb").read().rstrip(b"\0")
                for name in sorted(os.listdir(log)) if os.path.isfile(os.path.join(log, name))}
        return (self.ledger.head(), [self.ledger.amount(name) for name in ("alice", "bob")],
                self.ledger.balance("alice")["next_nonce"], used)

    def __enter__(self):
        self.before = self.look()

    def __exit__(self, *failure):
        if failure[0] is None:
            assert self.look() == self.before


def start(home):
    ledger = Ledger(home)
    ledger.must(mint("m1", "alice", 1000), mint("m2", "bob", 1000), key="start")
    ledger.must(transfer("t1", "alice", "bob", 1, nonce=1), key="one")
    return ledger


def bad_entries(home):
    """Kinds, members, amounts, names. covers: LED-V05 LED-F05 LED-S08"""
    changes = [
        ({"kind": "Gift"}, "kind"), ({"kind": "transfer"}, "kind"), ({"kind": 3}, "kind"),
        ({"kind": None}, "kind"), ({"kind": "Asset"}, "kind"), ({"extra": 1}, "extra"),
        ({"account": "alice"}, "member"), ({"hold_id": "h"}, "member"), ({"ref": "t1"}, "member"),
        ({"stream": "x"}, "member"), ({"asset": "ROC"}, "asset"), ({"asset": ""}, "asset"),
        ({"asset": 1}, "asset"), ({"amount": "0"}, "amount"), ({"amount": "-1"}, "amount"),
        ({"amount": "1.5"}, "amount"), ({"amount": 1}, "amount"), ({"amount": 1.5}, "amount"),
        ({"amount": "1e3"}, "amount"), ({"amount": "01"}, "amount"), ({"amount": " 1"}, "amount"),
        ({"amount": ""}, "amount"), ({"amount": "1" + "0" * 39}, "amount"),
        ({"amount": str(2 ** 128)}, "amount"), ({"from": "bob"}, "same account"),
        ({"from": "a b"}, "from"), ({"from": ""}, "from"), ({"to": "x" * 161}, "to"),
        ({"to": "a.b"}, "to"), ({"id": ""}, "id"), ({"id": "x" * 65}, "id"), ({"id": "a/b"}, "id"),
        ({"nonce": 0}, "nonce"), ({"nonce": -1}, "nonce"), ({"nonce": "1"}, "nonce"),
        ({"nonce": 2 ** 64}, "nonce"), ({"nonce": 1.0}, "nonce"), ({"ts": "now"}, "ts"),
        ({"memo": "x" * 257}, "memo"), ({"memo": 1}, "memo"), ({"meta": []}, "meta"),
        ({"meta": {"a": "x" * 1100}}, "meta"), ({"meta": {"a": 2 ** 60}}, "meta"),
        ({"meta": "{}"}, "meta"),
    ]
    with start(home) as ledger, Unchanged(ledger):
        for change, word in changes:
            bad = {**transfer("x1", "alice", "bob", 1), **change}
            error = refused(ledger.ingest(GOOD, GOOD, bad), 400, "Malformed", 2)
            assert word in error["message"], (change, error)
        for missing in ("id", "kind", "from", "to", "asset", "amount"):
            bad = {name: value for name, value in GOOD.items() if name != missing}
            refused(ledger.ingest(bad), 400, "Malformed", 0)
        hold = {"id": "h", "kind": "Hold", "from": "alice", "hold_id": "H", "payee": "*",
                "expires_at": FAR, "asset": "roc", "amount": "1"}
        for change in ({"hold_id": "a.b"}, {"payee": ""}, {"expires_at": "tomorrow"},
                       {"expires_at": 5}, {"to": "bob"}):
            refused(ledger.ingest({**hold, **change}), 400, "Malformed", 0)
        anchor = {"id": "a", "kind": "Anchor", "stream": "s", "digest": "b3:" + "0" * 64}
        for change in ({"digest": "b3:00"}, {"digest": "md5:" + "0" * 64}, {"amount": "1"},
                       {"digest": "b3:" + "A" * 64}, {"stream": ""}, {"ref": ""}):
            refused(ledger.ingest({**anchor, **change}), 400, "Malformed", 0)


def unusable_entries(home):
    """Right in form, wrong in fact: unknown asset, foreign hold, used nonce and key.
    covers: LED-V04"""
    with start(home) as ledger:
        ledger.must({"id": "h1", "kind": "Hold", "from": "bob", "hold_id": "H", "payee": "shop",
                     "expires_at": FAR, "asset": "roc", "amount": "5"})
        with Unchanged(ledger):
            refused(ledger.ingest(GOOD, dict(GOOD, id="g2", asset="gold")), 404, "NotFound", 1)
            alice = ledger.mint("scope = ledger.ingest", "account = alice")
            for kind in ("Capture", "Release"):
                refused(ledger.ingest({"id": "c1", "kind": kind, "hold_id": "H", "asset": "roc",
                                       "amount": "1"}, token=alice), 403, "Forbidden", 0)
            refused(ledger.ingest({"id": "c1", "kind": "Capture", "hold_id": "none",
                                   "asset": "roc", "amount": "1"}), 404, "NotFound", 0)
            refused(ledger.ingest(GOOD, transfer("x", "alice", "bob", 2, nonce=1)), 409,
                    "NonceConflict", 1, expected_nonce=2)
            refused(ledger.ingest(transfer("x", "alice", "bob", 2, nonce=3)), 409,
                    "NonceConflict", 0, expected_nonce=2)
            refused(ledger.ingest(GOOD, key="one"), 409, "IdempotencyConflict")
            refused(ledger.ingest(GOOD, {"id": "l", "kind": "Credit", "account": "bob",
                                         "asset": "roc", "amount": "1"}), 400, "Malformed", 1)
            refused(ledger.ingest({"id": "v", "kind": "Reverse", "ref": "none", "asset": "roc",
                                   "amount": "1"}), 404, "NotFound", 0)
            refused(ledger.ingest({"id": "a", "kind": "Anchor", "stream": "state",
                                   "digest": "b3:" + "0" * 64}), 403, "Forbidden", 0)


def bad_bodies(home):
    """The body as a whole: no index. covers: LED-S08"""
    with start(home) as ledger, Unchanged(ledger):
        good = json.dumps(GOOD)
        for body in ("", "{", "[]", "7", "null", "{}", '{"batch":7}', '{"batch":[]}',
                     '{"batch":null}', f'{{"batch":[{good}],"more":1}}',
                     f'{{"batch":[{good}],"idem_id":""}}', f'{{"batch":[{good}],"idem_id":"a b"}}',
                     f'{{"batch":[{good}],"idem_id":"{"x" * 129}"}}',
                     f'{{"batch":[{good}]}} x', f'\ufeff{{"batch":[{good}]}}',
                     f'{{"batch":[{good}],"batch":[{good}]}}'):
            refused(ledger.post("/ingest", body), 400, "Malformed")
        refused(ledger.post("/ingest", f'{{"batch":[{good},{good}'), 400, "Malformed", 2)
        refused(ledger.post("/ingest", b'{"batch":[{"id":"\xff"}]}'), 400, "Malformed", 0)
        refused(ledger.post("/ingest", '{"batch":[{"id":"a","id":"b"}]}'), 400, "Malformed", 0)
        deep = '{"batch":[{"id":"a","kind":"Mint","meta":' + '{"a":' * 40 + "1" + "}" * 41 + "]}"
        refused(ledger.post("/ingest", deep), 400, "Malformed", 0)
        refused(ledger.ingest(*[mint(f"b{i}", "z", 1) for i in range(8001)]), 413, "TooLarge")
        refused(ledger.post("/ingest", " " * (1 << 20) + "{}"), 413, "TooLarge")
        refused(ledger.ingest(GOOD, headers={"Content-Type": "text/plain"}), 415,
                "UnsupportedMedia")
        refused(ledger.ingest(GOOD, headers={"Idempotency-Key": "a b"}), 400, "Malformed")
        refused(ledger.ingest(GOOD, query="?proof=2"), 400, "Malformed")
        refused(ledger.ingest(GOOD, query="?prove=1"), 400, "Malformed")


def a_full_batch(home):
    """8,000 entries are one batch. covers: LED-F04"""
    with start(home) as ledger:
        body = ledger.must(*[mint(f"b{i}", "z", 1) for i in range(8000)])
        assert body["seq_end"] - body["seq_start"] == 7999
        assert ledger.amount("z") == 8000


def bad_tokens(home):
    """Tokens that do not fit. covers: LED-S01"""
    with start(home) as ledger, Unchanged(ledger):
        refused(ledger.ask("POST", "/ingest", {"batch": [GOOD]}), 401, "Unauthorized")
        for token in ("x", ledger.all[:-4], ledger.all + "AAAA"):
            refused(ledger.ingest(GOOD, token=token), 401, "Unauthorized")
        past = ledger.mint("scope = ledger.ingest", "before = 2020-01-01T00:00:00Z")
        refused(ledger.ingest(GOOD, token=past), 401, "Unauthorized")
        for caveat in ("aud = wallet", "method = GET", "path = /assets", "ip = 10.0.0.0/8"):
            token = ledger.mint("scope = ledger.ingest", caveat)
            refused(ledger.ingest(GOOD, token=token), 403, "Forbidden")
        for caveat, code in (("account = bob", "Forbidden"), ("asset = usd", "Forbidden"),
                             ("tenant = 9", "Forbidden"), ("max_amount = 0", "LimitExceeded")):
            token = ledger.mint("scope = ledger.ingest", caveat)
            refused(ledger.ingest(GOOD, token=token), 403, code, 0)


def bad_slices(home):
    with start(home) as ledger, Unchanged(ledger):
        def put(path, body, token=None):
            return ledger.ask("PUT", path, body, token or ledger.all)

        for path in ("/slices/x/bytes/0", "/slices/0/by.tes/0", "/slices/0/bytes/x",
                     "/slices/00/bytes/0"):
            refused(put(path, "{}"), 400, "Malformed")
        for body in ("", "{}", '{"shed":{}}', "[]"):
            refused(put("/slices/0/bytes/0", body), 400, "Malformed")
        refused(put("/slices/5/bytes/0", "{}"), 403, "Forbidden")
        refused(put("/slices/0/bytes/0", "{}", ledger.mint("scope = ledger.ingest")), 403,
                "Forbidden")


# --- OAP/1 ----------------------------------------------------------------------------------------

def frame(code, body, flags=REQ, capability=b"", tenant=0, app_proto=1, corr=7):
    size = 38 + len(capability) + len(body)
    return struct.pack(">IHHHH", size, 1, flags, code, app_proto) + tenant.to_bytes(16, "big") + \
        struct.pack(">HQ", len(capability), corr) + capability + body


class Oap:
    def __init__(self, ledger, token=None):
        url = urllib.parse.urlsplit(ledger.api)
        self.socket = socket.create_connection((url.hostname, url.port), timeout=60)
        self.token = (token or ledger.all).encode()
        self.first = True

    def ask(self, code, body, **more):
        flags = REQ | (START if self.first else 0)
        self.socket.sendall(frame(code, body, flags, self.token if self.first else b"", **more))
        self.first = False
        return self.answer()

    def read(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            assert piece, "the connection ended"
            data += piece
        return data

    def answer(self):
        head = self.read(38)
        size, _, flags, code, _ = struct.unpack(">IHHHH", head[:12])
        assert flags & RESP, flags
        return code, self.read(size - 38)

    def close(self):
        self.socket.close()


def oap_ingest(entries, key=b""):
    return struct.pack("<H", len(key)) + key + struct.pack("<I", len(entries)) + b"".join(entries)


def oap_entry(number, kind, debit=b"\0" * 16, credit=b"\0" * 16, amount=1, link=b"\0" * 16,
              nonce=0, asset=1, flags=0):
    return number.to_bytes(16, "big") + debit + credit + amount.to_bytes(16, "little") + link + \
        struct.pack("<QIHH", nonce, asset, kind, flags)


def account_ids(ledger, *names):
    """Ids as the ledger makes them: read back from it."""
    from_model = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model")
    sys.path.insert(0, from_model)
    from blake3 import blake3  # pylint: disable=import-error,import-outside-toplevel
    return [bytes(blake3(b"ron:account:v1\0" + name.encode()))[:16] for name in names]


def oap(home):
    """Binary entries: opened, committed, repeated, refused."""
    with start(home) as ledger:
        client = Oap(ledger)
        names = b"".join(struct.pack("<H", len(name)) + name for name in (b"carol", b"dave"))
        code, body = client.ask(2, names)
        assert code == 200 and len(body) == 56, (code, body)
        alice, carol = account_ids(ledger, "alice", "carol")
        batch = oap_ingest([oap_entry(1, 3, alice, carol, 10, nonce=2)], b"bin-1")
        code, first = client.ask(1, batch)
        assert code == 200, first
        seq_start, seq_end, tree_size = struct.unpack("<QQQ", first[:24])
        assert seq_start == seq_end == tree_size == ledger.head()[0]
        assert first[24:].hex() == ledger.head()[1]
        assert ledger.amount("carol") == 10
        assert client.ask(1, batch) == (200, first)
        with Unchanged(ledger):
            code, body = client.ask(1, oap_ingest([oap_entry(1, 3, alice, carol, 11)], b"bin-1"))
            assert code == 409 and b"IdempotencyConflict" in body, body
            for bad, index in ((oap_entry(2, 99, alice, carol), 1), (oap_entry(2, 4), 1),
                               (oap_entry(2, 3, alice, carol, 0), 1),
                               (oap_entry(2, 3, alice, alice), 1),
                               (oap_entry(2, 3, alice, carol, flags=1), 1),
                               (oap_entry(2, 3, alice, carol, asset=0), 1)):
                code, body = client.ask(1, oap_ingest([oap_entry(3, 3, alice, carol), bad]))
                error = json.loads(body)["error"]
                assert code == 400 and error["code"] == "Malformed", body
                assert error["details"]["index"] == index, body
            for bad in (b"", b"\0", batch[:-1], batch + b"\0", oap_ingest([])):
                code, body = client.ask(1, bad)
                assert code == 400 and json.loads(body)["error"]["code"] == "Malformed", body
            code, body = client.ask(1, struct.pack("<HI", 0, 8001) + b"\0" * 96)
            assert code == 413, body
            code, body = client.ask(1, oap_ingest([oap_entry(9, 3, alice, b"\7" * 16)]))
            assert code == 404 and json.loads(body)["error"]["details"]["index"] == 0, body
            code, body = client.ask(2, b"\5\0ab")
            assert code == 400, body
            code, body = client.ask(7, b"")
            assert code == 404, body
            client.close()
            bound = Oap(ledger, ledger.mint("scope = ledger.ingest", "account = carol"))
            code, body = bound.ask(1, oap_ingest([oap_entry(9, 3, alice, carol)]))
            assert code == 403 and json.loads(body)["error"]["details"]["index"] == 0, body
            code, body = bound.ask(1, oap_ingest([oap_entry(9, 3, carol, alice)]), tenant=5)
            assert code == 403, body
            bound.close()
            nobody = Oap(ledger, "x")
            code, body = nobody.ask(1, batch)
            assert code == 401, body
            nobody.close()
        bound = Oap(ledger, ledger.mint("scope = ledger.ingest", "account = carol"))
        code, body = bound.ask(1, oap_ingest([oap_entry(9, 3, carol, alice, 4)]))
        assert code == 200, body
        bound.close()
        assert ledger.amount("carol") == 6


def binary_bounds(home):
    """What a capability allows binds each of many binary entries, and the first is named."""
    with start(home) as ledger:
        alice, bob = account_ids(ledger, "alice", "bob")
        capped = Oap(ledger, ledger.mint("scope = ledger.ingest", "max_amount = 2"))
        entries = [oap_entry(number + 1, 3, alice, bob, 1 + number % 2) for number in range(40)]
        with Unchanged(ledger):
            for at, entry, code, name in (
                    (0, oap_entry(99, 3, alice, bob, 3), 403, "LimitExceeded"),
                    (17, oap_entry(99, 3, alice, bob, 3), 403, "LimitExceeded"),
                    (39, oap_entry(99, 3, alice, bob, 1 << 64), 403, "LimitExceeded"),
                    (21, oap_entry(99, 1, credit=bob), 403, "Forbidden"),
                    (39, oap_entry(99, 2, alice), 403, "Forbidden"),
                    (30, oap_entry(99, 7, link=b"\1" * 16), 403, "Forbidden")):
                wrong = entries[:at] + [entry] + entries[at + 1:]
                if at < 38:  # the second one is not named
                    wrong[at + 1] = entry
                status, body = capped.ask(1, oap_ingest(wrong))
                error = json.loads(body)["error"]
                assert status == code and error["code"] == name, body
                assert error["details"]["index"] == at, body
        status, body = capped.ask(1, oap_ingest(entries))
        assert status == 200, body
        capped.close()


def frozen_by_id(home):
    """A freeze names an account: it binds entries that know it by its id, too."""
    with start(home) as ledger:
        alice, bob = account_ids(ledger, "alice", "bob")
        body = {"on": True, "account": "alice"}
        assert ledger.post("/admin/ledger/freeze", body, admin=True).status == 200
        client = Oap(ledger)
        with Unchanged(ledger):
            for entry in (oap_entry(1, 3, alice, bob), oap_entry(1, 2, alice),
                          oap_entry(1, 1, credit=alice)):
                code, body = client.ask(1, oap_ingest([oap_entry(2, 3, bob, alice), entry]))
                assert code == 503, body
                error = json.loads(body)["error"]
                assert error["code"] == "NotReady", body
                assert error["details"] == {"index": 1, "reason": "frozen"}, body
        code, body = client.ask(1, oap_ingest([oap_entry(2, 3, bob, alice)]))
        assert code == 200, body
        client.close()


def half_a_frame(home):
    """A frame that ends early changes nothing, and nobody waits for its rest."""
    with start(home) as ledger, Unchanged(ledger):
        alice, bob = account_ids(ledger, "alice", "bob")
        whole = frame(1, oap_ingest([oap_entry(1, 3, alice, bob)]), REQ | START,
                      ledger.all.encode())
        for size in (1, 37, 38, 60, len(whole) - 1):
            client = Oap(ledger)
            client.socket.sendall(whole[:size])
            client.close()


TESTS = [bad_entries, unusable_entries, bad_bodies, a_full_batch, bad_tokens, bad_slices, oap,
         binary_bounds, frozen_by_id, half_a_frame]

if __name__ == "__main__":
    sys.exit(run(TESTS))
