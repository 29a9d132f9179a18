"""clients.py - clients of a ledger that keeps dying: what they sent, and what they were told.

A client draws one operation after another, sends it over HTTP or OAP/1 and keeps it with its
answer. An operation whose connection ends before the answer is *open*: it is sent again with the
same key, or left as it is. Nothing here knows how the ledger works.
"""
import http.client
import json
import os
import random
import socket
import struct
import sys
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "ledger-api"))
sys.path.insert(0, os.path.join(HERE, "..", "model"))
from apilib import FAR, WAIT_S, Reply, mint, transfer  # noqa: E402
from blake3 import blake3  # noqa: E402

SHARED = [f"shared_{i}" for i in range(6)]
FUNDS = 10 ** 12
OAP_HEAD = struct.Struct(">IHHHH16sHQ")
REQ, RESP, START = 1, 2, 8
INGEST, NAMES = 1, 2
KINDS = {"Mint": 1, "Burn": 2, "Transfer": 3}


class Gone(Exception):
    """The connection ended before the answer."""


class HttpPeer:
    """One connection, kept."""

    def __init__(self, address, token):
        url = urllib.parse.urlsplit(address)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=WAIT_S)
        self.token = token

    def ask(self, method, path, body=None):
        fields = {"Authorization": f"Bearer {self.token}"}
        if body is not None:
            fields["Content-Type"] = "application/json"
        try:
            self.connection.request(method, path, body=body, headers=fields)
            reply = self.connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())
        except (OSError, http.client.HTTPException) as error:
            raise Gone(repr(error)) from error

    def send(self, operation):
        return self.ask("POST", "/ingest", operation.body)

    def close(self):
        self.connection.close()


class OapPeer:
    """Frames of docs/formats.md over one connection; the first carries the capability."""

    def __init__(self, address, token):
        url = urllib.parse.urlsplit(address)
        try:
            self.socket = socket.create_connection((url.hostname, url.port), timeout=WAIT_S)
        except OSError as error:
            raise Gone(repr(error)) from error
        self.capability, self.number = token.encode(), 0

    def ask(self, code, body):
        self.number += 1
        flags = REQ | (START if self.capability else 0)
        head = OAP_HEAD.pack(OAP_HEAD.size + len(self.capability) + len(body), 1, flags, code, 1,
                             bytes(16), len(self.capability), self.number)
        try:
            self.socket.sendall(head + self.capability + body)
            self.capability = b""
            size, version, flags, status, _, _, _, number = OAP_HEAD.unpack(
                self.read(OAP_HEAD.size))
            assert (version, number) == (1, self.number) and flags & RESP, (version, flags, number)
            return Reply(status, {}, self.read(size - OAP_HEAD.size))
        except OSError as error:
            raise Gone(repr(error)) from error

    def read(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise Gone("the connection ended")
            data += piece
        return data

    def send(self, operation):
        return self.ask(INGEST, operation.body)

    def close(self):
        self.socket.close()


class Operation:
    """One write: its bytes, the entries they mean, and what became of it."""

    def __init__(self, key, entries, binary):
        self.key, self.entries, self.binary = key, entries, binary
        self.body = self.in_binary(entries) if binary else self.in_json(entries)
        self.state = "open"     # then acked, refused (the answer says so) or left
        self.reply = None       # bytes of the answer
        self.lost = False       # a try had no answer

    def in_json(self, entries):
        body = {"batch": entries}
        if self.key is not None:
            body["idem_id"] = self.key
        return json.dumps(body).encode()

    def in_binary(self, entries):
        key = (self.key or "").encode()
        body = struct.pack("<H", len(key)) + key + struct.pack("<I", len(entries))
        for entry in entries:
            sides = [account_id(entry[name]) if name in entry else bytes(16)
                     for name in ("from", "to")]
            body += bytes.fromhex(entry["id"]) + b"".join(sides) + \
                int(entry["amount"]).to_bytes(16, "little") + bytes(16) + \
                struct.pack("<QIHH", entry.get("nonce", 0), 1, KINDS[entry["kind"]], 0)
        return body

    def other_body(self):
        """The same key on something else."""
        changed = [dict(entry, **({"amount": str(int(entry["amount"]) + 1)} if "amount" in entry
                                  else {"digest": "b3:" + "77" * 32})) for entry in self.entries]
        return self.in_binary(changed) if self.binary else self.in_json(changed)


def account_id(name):
    return bytes(blake3(b"ron:account:v1\0" + name.encode()))[:16]


class Town:
    """Where the ledger is at present; clients wait here for its next life."""

    def __init__(self, token):
        self.changed = threading.Condition()
        self.token, self.address = token, None
        self.life, self.ready_life, self.acks = 0, 0, 0
        self.over = False

    def announce(self, address):
        with self.changed:
            self.address, self.life = address, self.life + 1
            self.changed.notify_all()

    def ready(self):
        with self.changed:
            self.ready_life = self.life
            self.changed.notify_all()

    def end(self):
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def wait(self, condition, seconds=WAIT_S):
        with self.changed:
            return self.changed.wait_for(lambda: self.over or condition(), seconds)

    def acknowledged(self):
        with self.changed:
            self.acks += 1
            self.changed.notify_all()


class Client(threading.Thread):
    """Writes until the town is over. `failure` is what it must not have seen."""

    def __init__(self, town, number, seed, binary):
        super().__init__(name=f"client {number}", daemon=True)
        self.town, self.number, self.binary = town, number, binary
        self.random = random.Random(f"{seed}/{number}")
        self.own = f"own_{number}"
        self.nonce, self.count = 1, 0
        self.operations, self.holds, self.moved = [], [], []
        self.peer, self.life, self.failure = None, 0, None
        self.repeated = 0

    def run(self):
        try:
            while not self.town.over:
                self.step()
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error
        finally:
            self.drop()

    def drop(self):
        if self.peer:
            self.peer.close()
            self.peer = None

    def step(self):
        """One operation to its end, or left open."""
        operation, nonces, on_ack = self.draw()
        self.operations.append(operation)
        again = bool(nonces) or self.random.random() < 0.6
        while operation.state == "open" and not self.town.over:
            try:
                self.take(operation, self.connected().send(operation))
            except Gone:
                operation.lost = True
                self.drop()
                life = self.life
                assert self.town.wait(lambda life=life: self.town.life > life), "no next life"
                if not again:
                    operation.state = "left"
        if operation.state == "acked":
            self.nonce += nonces
            on_ack()
            if self.random.random() < 0.1:
                self.repeat(self.random.choice(self.operations[-50:]))
        elif operation.state == "open":
            operation.state = "left"

    def connected(self):
        if self.peer is None:
            assert self.town.wait(lambda: self.town.life > 0), "no ledger"
            self.life = self.town.life
            self.peer = (OapPeer if self.binary else HttpPeer)(self.town.address, self.town.token)
        return self.peer

    def take(self, operation, reply):
        if reply.status == 200:
            operation.state, operation.reply = "acked", reply.body
            self.town.acknowledged()
            return
        error = reply.json()["error"]
        assert error["code"] != "Internal", error
        unknown = (error.get("details") or {}).get("outcome") == "unknown"
        if reply.status >= 500 and (unknown or operation.lost):
            operation.lost = True   # not now; an earlier try may have come through
        else:
            operation.state, operation.reply = "refused", reply.body
        if reply.status == 503:  # recovering, or about to die
            life = self.life
            self.town.wait(lambda: self.town.ready_life >= life or self.town.life > life)

    def repeat(self, operation):
        """In the middle of everything: the same answer."""
        if operation.state != "acked":
            return
        try:
            reply = self.connected().send(operation)
        except Gone:
            self.drop()
            return
        if reply.status == 200:
            assert reply.body == operation.reply, (operation.reply, reply.body)
            self.repeated += 1
        else:
            assert reply.status in (429, 503), reply.body

    # --- What to do next ---

    def id(self, part=0):
        if self.binary:
            return f"{self.number + 1:016x}{self.count:08x}{part:08x}"
        return f"c{self.number}-{self.count}-{part}"

    def other(self):
        return self.random.choice([name for name in SHARED if name != self.own])

    def draw(self):
        """An operation, how many nonces it uses, and what to remember once it is acknowledged."""
        self.count += 1
        kinds = [self.pay, self.pay, self.move, self.move, self.mint, self.burn, self.too_much]
        if not self.binary:
            kinds += [self.hold, self.settle, self.undo, self.clear, self.anchor]
        entries, nonces, on_ack = self.random.choice(kinds)()
        keyless = self.random.random() < 0.1
        key = None if keyless else f"key-{self.number}-{self.count}"
        return Operation(key, entries, self.binary), nonces, on_ack

    def amount(self):
        return self.random.randrange(1, 1000)

    def pay(self):
        entries = [transfer(self.id(i), self.own, self.other(), self.amount(), nonce=self.nonce + i)
                   for i in range(self.random.randrange(1, 4))]
        return entries, len(entries), lambda: self.moved.append(entries[0])

    def move(self):
        source, to = self.random.sample(SHARED, 2)
        entry = transfer(self.id(), source, to, self.amount())
        if not self.binary and self.random.random() < 0.3:
            entry.update(memo=f"no. {self.count}", meta={"z": self.count, "a": ["ü", 1]})
        return [entry], 0, lambda: self.moved.append(entry)

    def mint(self):
        return [mint(self.id(), self.own, self.amount())], 0, lambda: None

    def burn(self):
        return [{"id": self.id(), "kind": "Burn", "from": self.other(), "asset": "roc",
                 "amount": str(self.amount())}], 0, lambda: None

    def too_much(self):
        """Refused as a whole: the first entry alone would do."""
        source, to = self.random.sample(SHARED, 2)
        return [transfer(self.id(), source, to, 1),
                transfer(self.id(1), self.own, to, FUNDS * 1000)], 0, lambda: None

    def hold(self):
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
        expires = self.random.choice([FAR, soon])
        payee = self.random.choice(["*", self.other()])
        entry = {"id": self.id(), "kind": "Hold", "from": self.own, "hold_id": f"H{self.id()}",
                 "payee": payee, "expires_at": expires, "asset": "roc", "amount": "900"}
        return [entry], 0, lambda: self.holds.append(entry)

    def settle(self):
        if not self.holds:
            return self.hold()
        held = self.holds.pop(0)
        capture = {"id": self.id(), "kind": "Capture", "hold_id": held["hold_id"], "asset": "roc",
                   "amount": "300"}
        if held["payee"] == "*":
            capture["to"] = self.other()
        release = {"id": self.id(1), "kind": "Release", "hold_id": held["hold_id"], "asset": "roc",
                   "amount": "600"}
        return [capture, release], 0, lambda: None

    def undo(self):
        if not self.moved:
            return self.move()
        target = self.moved.pop(self.random.randrange(len(self.moved)))
        return [{"id": self.id(), "kind": "Reverse", "ref": target["id"], "asset": "roc",
                 "amount": target["amount"]}], 0, lambda: None

    def clear(self):
        amount = str(self.amount())
        return [{"id": self.id(), "kind": "Debit", "account": self.other(), "asset": "roc",
                 "amount": amount},
                {"id": self.id(1), "kind": "Credit", "account": self.own, "asset": "roc",
                 "amount": amount}], 0, lambda: None

    def anchor(self):
        return [{"id": self.id(), "kind": "Anchor", "stream": f"mine/{self.number}",
                 "ref": str(self.count), "digest": "b3:" + f"{self.count:064x}"}], 0, lambda: None
