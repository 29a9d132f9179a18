#!/usr/bin/env python3
"""test_reads.py - what was written, read back over HTTP: entries, holds, limits, streams, proofs;
TAP.

    test_reads.py PROGRAM [NAME...]
"""
import base64
import hashlib
import http.client
import json
import os
import sys
import time
import urllib.parse

from apilib import FAR, Ledger, WAIT_S, mint, refused, run, transfer, until

DIGEST = "b3:" + "55" * 32


def fill(ledger):
    """Something of everything; ten entries."""
    ledger.must(mint("m1", "alice", 1000), mint("m2", "pool/0/main", 50), key="first")
    ledger.must(transfer("t1", "alice", "bob", 40, nonce=1, memo="rent", meta={"b": 1, "a": 2}))
    ledger.must({"id": "h1", "kind": "Hold", "from": "alice", "hold_id": "H1", "payee": "shop",
                 "expires_at": FAR, "asset": "roc", "amount": "30", "nonce": 2},
                {"id": "c1", "kind": "Capture", "hold_id": "H1", "asset": "roc", "amount": "10"})
    assert ledger.post("/assets", {"asset": "usd", "decimals": 2,
                                   "max_supply": "500"}).status == 200
    ledger.must(mint("m3", "bob", 7, "usd"),
                {"id": "a1", "kind": "Anchor", "stream": "mine", "ref": "r1", "digest": DIGEST})
    ledger.must({"id": "v1", "kind": "Reverse", "ref": "t1", "asset": "roc", "amount": "15"})
    assert ledger.post("/accounts", {"account": "bob", "asset": "roc", "daily": "9",
                                     "maximum": "500"}).status == 200


def entries(home):
    """One by one, by account, by asset, by number; pages. covers: LED-V13"""
    with Ledger(home) as ledger:
        fill(ledger)
        entry = ledger.get("/entries/t1").json()
        assert (entry["seq"], entry["kind"], entry["debit"], entry["credit"], entry["asset"],
                entry["amount"], entry["nonce"], entry["memo"], entry["meta"]) == \
            (3, "Transfer", "alice", "bob", "roc", "40", 1, "rent", {"a": 2, "b": 1})
        assert entry["tenant"] == "0" and entry["caller"] == "direct"
        leaf = bytes.fromhex(entry["leaf"])
        assert len(leaf) > 128 and leaf[80:88] == (3).to_bytes(8, "little")
        assert leaf[120:128].hex() == entry["capability_ref"]
        reverse = ledger.get("/entries/v1").json()
        assert reverse["link"] == leaf[:16].hex() and reverse["debit"] == "bob"
        assert reverse["ref"] == "t1" and "ref" not in entry and "hold_id" not in entry
        hold, capture = (ledger.get("/entries/" + name).json() for name in ("h1", "c1"))
        assert (hold["hold_id"], hold["payee"], hold["expires_at"]) == (
            "H1", "shop", FAR.replace("Z", ".000Z"))
        assert capture["hold_id"] == "H1" and "payee" not in capture
        anchor = ledger.get("/entries/a1").json()
        assert (anchor["digest"], anchor["stream"], anchor["ref"]) == (DIGEST, "mine", "r1")
        assert ledger.get("/entries/asset/usd").json()["terms"]["asset"] == "usd"
        refused(ledger.get("/entries/none"), 404, "NotFound")
        whole = ledger.get("/entries").json()
        assert [row["seq"] for row in whole["entries"]] == list(range(1, 11))
        assert whole["next"] == 10
        for name in ("h1", "c1", "v1"):  # a page says of an entry what it says alone
            alone = ledger.get("/entries/" + name).json()
            del alone["leaf"]
            assert [row for row in whole["entries"] if row["id"] == name] == [alone]
        page = ledger.get("/entries?from=4&limit=3").json()
        assert [row["seq"] for row in page["entries"]] == [4, 5, 6] and page["next"] == 6
        assert ledger.get("/entries?after=10").json() == {"entries": [], "next": 10}
        alice = ledger.get("/entries?account=alice").json()
        assert [row["id"] for row in alice["entries"]] == ["m1", "t1", "h1", "v1"]
        page = ledger.get("/entries?account=alice&after=1&limit=1").json()
        assert [row["id"] for row in page["entries"]] == ["t1"] and page["next"] == 3
        bob = ledger.get("/entries?account=bob&asset=usd").json()
        assert [row["id"] for row in bob["entries"]] == ["m3"]
        refused(ledger.get("/entries?account=bob&asset=eur"), 404, "NotFound")
        for query in ("limit=0", "limit=1001", "limit=x", "from=-1", "account=a%20b", "more=1",
                      "limit=1&limit=2", "from=3&after=9"):
            refused(ledger.get("/entries?" + query), 400, "Malformed")


def balances(home):
    """Now, at a past seq, of an asset that was registered meanwhile."""
    with Ledger(home) as ledger:
        fill(ledger)
        assert ledger.balance("bob", "usd")["amount"] == "7"
        for seq, amount in ((2, 0), (3, 40), (9, 25), (10, 25)):
            reply = ledger.get(f"/balance?account=bob&asset=roc&at_seq={seq}")
            assert reply.status == 200, reply.body
            assert int(reply.json()["amount"]) == amount, (seq, reply.body)
            assert reply.json()["as_of_seq"] == seq
        refused(ledger.get("/balance?account=bob&asset=roc&at_seq=11"), 404, "NotFound")
        error = refused(ledger.get("/balance?account=bob&asset=roc&at_seq=0"), 400, "Malformed")
        assert "at_seq is 1 or more" in error["message"], error
        refused(ledger.get("/balance?account=bob&asset=eur"), 404, "NotFound")
        for query in ("account=bob", "asset=roc", "account=b%20b&asset=roc",
                      "account=bob&asset=R", "account=bob&asset=roc&at_seq=x",
                      "account=bob&asset=roc&x=1", "account=bob&asset=roc&asset=roc",
                      "account=bob&account=bob&asset=roc", "account=bob&asset=",
                      "account=&asset=roc", "account=bob&asset", "account=bob=&asset=roc",
                      "account=bob&asset=ro=c", "account=" + 161 * "a" + "&asset=roc",
                      "account=bob&asset=" + 33 * "a"):
            refused(ledger.get("/balance?" + query), 400, "Malformed")
        for query in ("asset=roc&account=bob", "account=b%6fb&asset=roc",
                      "account=bob&asset=%72oc"):
            reply = ledger.get("/balance?" + query)
            assert reply.json()["amount"] == ledger.balance("bob")["amount"], (query, reply.body)
        assert ledger.post("/accounts", {"account": "alice", "asset": "roc",
                                         "credit_line": "100"}).status == 200
        ledger.must(transfer("t9", "alice", "carol", 1010))
        balance = ledger.balance("alice")
        assert (balance["amount"], balance["debt"]) == ("0", "65"), balance


def balances_together(home):
    """Many connections ask at once: each is answered with its own account."""
    count = 100  # more than are answered together
    with Ledger(home) as ledger:
        ledger.must(*(mint(f"m{i}", f"user{i}", 1000 + i) for i in range(count)))
        url = urllib.parse.urlsplit(ledger.api)
        connections = [http.client.HTTPConnection(url.hostname, url.port, timeout=WAIT_S)
                       for _ in range(count)]
        fields = {"Authorization": f"Bearer {ledger.all}"}
        try:
            for turn in range(5):
                for i, connection in enumerate(connections):
                    asset = "roc" if i % 9 != 8 else "R"  # those are refused
                    who = f"user{(i + turn) % count}" if i % 7 != 6 else "nobody"
                    connection.request("GET", f"/balance?account={who}&asset={asset}",
                                       headers=fields)
                for i, connection in enumerate(connections):
                    reply = connection.getresponse()
                    body = json.loads(reply.read())
                    if i % 9 == 8:
                        assert reply.status == 400, (reply.status, body)
                        continue
                    number = (i + turn) % count
                    who, amount = (f"user{number}", 1000 + number) if i % 7 != 6 else ("nobody", 0)
                    assert reply.status == 200, body
                    assert (body["account"], body["amount"]) == (who, str(amount)), body
                    assert body["as_of_seq"] == count and body["next_nonce"] == 1, body
        finally:
            for connection in connections:
                connection.close()


def assets(home):
    with Ledger(home) as ledger:
        fill(ledger)
        rows = ledger.get("/assets").json()["assets"]
        assert [(row["asset"], row["number"], row["decimals"], row["max_supply"]) for row in rows] \
            == [("roc", 1, 6, str(2 ** 128 - 1)), ("usd", 2, 2, "500")]


def keys(home):
    """/idem answers as the write did, in its scope."""
    with Ledger(home) as ledger:
        fill(ledger)
        first = ledger.ingest(mint("m1", "alice", 1000), mint("m2", "pool/0/main", 50), key="first")
        assert ledger.get("/idem/first").body == first.body
        refused(ledger.get("/idem/none"), 404, "NotFound")
        refused(ledger.get("/idem/a%20b"), 400, "Malformed")
        seven = ledger.mint("scope = ledger.read", "tenant = 7", "account = alice")
        refused(ledger.get("/idem/first", seven), 404, "NotFound")


def daily_ceiling_spares_repetitions(home):
    """What filled max_daily itself is still answered by its key, and by its ids."""
    with Ledger(home) as ledger:
        ledger.must(mint("m0", "alice", 1000))
        token = ledger.mint("scope = ledger.ingest", "max_daily = 100", "account = alice")
        first = ledger.ingest(transfer("t1", "alice", "bob", 60), key="k", token=token)
        second = ledger.ingest(transfer("t2", "alice", "bob", 40), token=token)
        assert (first.status, second.status) == (200, 200)
        again = ledger.ingest(transfer("t1", "alice", "bob", 60), key="k", token=token)
        assert again.body == first.body and again.fields["Idempotent-Replay"] == "true"
        again = ledger.ingest(transfer("t2", "alice", "bob", 40), token=token)
        assert again.body == second.body
        refused(ledger.ingest(transfer("t1", "alice", "bob", 61), key="k", token=token), 409,
                "IdempotencyConflict")
        refused(ledger.ingest(transfer("t3", "alice", "bob", 1), key="n", token=token), 403,
                "LimitExceeded", 0, reason="max_daily")


def holds(home):
    with Ledger(home) as ledger:
        fill(ledger)
        hold = ledger.get("/holds/H1").json()
        assert (hold["from"], hold["payee"], hold["asset"], hold["amount"], hold["rest"],
                hold["state"], hold["id"]) == ("alice", "shop", "roc", "30", "20", "open", "h1")
        assert hold["expires_at"].startswith("2099-01-01T00:00:00")
        refused(ledger.get("/holds/none"), 404, "NotFound")
        rows = ledger.get("/holds?account=alice").json()
        assert [row["id"] for row in rows["holds"]] == ["h1"]
        shop = ledger.mint("scope = ledger.read", "account = sh*")
        assert ledger.get("/holds/H1", shop).status == 200
        refused(ledger.get("/holds/H1", ledger.mint("scope = ledger.read", "account = bob")), 403,
                "Forbidden")
        refused(ledger.get("/holds"), 400, "Malformed")


def accounts(home):
    with Ledger(home) as ledger:
        fill(ledger)
        bob = ledger.get("/accounts/bob").json()
        assert bob["frozen"] is False and bob["complete"] is True
        assert bob["limits"] == [{"asset": "roc", "maximum": "500", "daily": "9"}]
        assert ledger.post("/accounts", {"account": "bob", "asset": "roc",
                                         "minimum": "3"}).status == 200
        assert ledger.post("/accounts", {"account": "bob", "frozen": True}).status == 200
        bob = ledger.get("/accounts/bob").json()
        assert bob["limits"] == [{"asset": "roc", "minimum": "3"}] and bob["frozen"] is True
        assert ledger.get("/accounts/pool/0/main").json()["limits"] == []


def coverage(home):
    """A capability reads what its account caveat covers, and nothing else."""
    with Ledger(home) as ledger:
        fill(ledger)
        bob = ledger.mint("scope = ledger.read", "account = bob")
        assert ledger.get("/balance?account=bob&asset=roc", bob).status == 200
        for path in ("/balance?account=alice&asset=roc", "/entries/m1", "/entries?account=alice",
                     "/entries", "/accounts/alice", "/holds?account=alice", "/holds/H1",
                     "/tile/entries/000.p/2"):
            refused(ledger.get(path, bob), 403, "Forbidden")
        assert ledger.get("/entries/t1", bob).json()["credit"] == "bob"
        rows = ledger.get("/entries?account=bob", bob).json()["entries"]
        assert [row["id"] for row in rows] == ["t1", "m3", "v1"]
        seven = ledger.mint("scope = ledger.read", "tenant = 7")
        refused(ledger.get("/balance?account=bob&asset=roc", seven), 403, "Forbidden")
        write = ledger.mint("scope = ledger.ingest")
        for path in ("/balance?account=bob&asset=roc", "/entries/t1", "/idem/first", "/assets",
                     "/proof/inclusion?seq=1", "/roots/stream", "/recovery"):
            refused(ledger.get(path, write), 403, "Forbidden")
            refused(ledger.ask("GET", path), 401, "Unauthorized")
        for path in ("/roots", "/checkpoint", "/checkpoint/vkey", "/tile/0/000.p/10"):
            assert ledger.ask("GET", path).status == 200, path


def tenants(home):
    """A token of another tenant than 0 reads what its account caveat covers, and ids, keys and
    slices of its own tenant."""
    with Ledger(home) as ledger:
        fill(ledger)
        read = "scope = ledger.read"
        nobody = ledger.mint(read, "tenant = 7")
        everybody = ledger.mint(read, "tenant = 7", "account = *")
        seven = ledger.mint("scope = ledger.read,ledger.ingest", "tenant = 7", "account = alice")
        for path in ("/balance?account=bob&asset=roc", "/balance?asset=roc&account=bob",
                     "/entries?account=bob", "/accounts/bob", "/holds?account=bob", "/holds/H1",
                     "/proof/balance?account=bob&asset=roc", "/entries", "/tile/entries/000.p/10"):
            assert ledger.get(path).status == 200 or "/proof" in path, path
            refused(ledger.get(path, nobody), 403, "Forbidden")
            if path not in ("/holds/H1",):
                refused(ledger.get(path, seven), 403, "Forbidden")
        for path in ("/entries", "/tile/entries/000.p/10"):  # every account, but of one tenant
            refused(ledger.get(path, everybody), 403, "Forbidden")
        for token in (nobody, everybody, seven):
            refused(ledger.get("/entries/t1", token), 404, "NotFound")
            refused(ledger.get("/entries/a1", token), 404, "NotFound")
            refused(ledger.get("/idem/first", token), 404, "NotFound")
        slicer = ledger.mint("scope = ledger.slice", "tenant = 7")
        assert ledger.get("/slices/7/bytes/head", slicer).status == 200
        refused(ledger.get("/slices/0/bytes/head", slicer), 403, "Forbidden")
        refused(ledger.get("/slices/7/bytes/head"), 403, "Forbidden")
        assert ledger.get("/balance?account=alice&asset=roc", seven).json()["amount"] == "945"
        ledger.must(transfer("t1", "alice", "bob", 3), token=seven, key="first")
        entry = ledger.get("/entries/t1", seven).json()
        assert (entry["tenant"], entry["amount"]) == ("7", "3")
        entry = ledger.get("/entries/t1").json()
        assert (entry["tenant"], entry["amount"]) == ("0", "40")
        mine = ledger.get("/idem/first", seven)
        assert mine.status == 200 and mine.body != ledger.get("/idem/first").body
        refused(ledger.get("/entries/t1", nobody), 403, "Forbidden")


def public_log(home):
    """ledger.public_log opens reads, and no write."""
    with Ledger(home, env={"RON_LEDGER__PUBLIC_LOG": "true"}) as ledger:
        fill(ledger)
        for path in ("/balance?account=bob&asset=roc", "/entries/t1", "/entries", "/assets",
                     "/proof/inclusion?seq=1", "/tile/entries/000.p/10", "/idem/first"):
            assert ledger.ask("GET", path).status == 200, path
        refused(ledger.ask("POST", "/ingest", {"batch": [mint("x", "y", 1)]}), 401, "Unauthorized")


# --- Proofs ---------------------------------------------------------------------------------------

def sha(data):
    return hashlib.sha256(data).digest()


def node(left, right):
    return sha(b"\1" + left + right)


def root_of(hashes):
    """RFC 6962, from the definition."""
    if len(hashes) == 1:
        return hashes[0]
    split = 1
    while split * 2 < len(hashes):
        split *= 2
    return node(root_of(hashes[:split]), root_of(hashes[split:]))


def inclusion_root(leaf, index, size, path):
    """RFC 9162, 2.1.3.2."""
    first, last, result = index, size - 1, leaf
    for part in path:
        if first & 1 or first == last:
            result = node(part, result)
            while first and not first & 1:
                first, last = first >> 1, last >> 1
        else:
            result = node(result, part)
        first, last = first >> 1, last >> 1
    assert last == 0
    return result


def proofs(home):
    """Inclusion, consistency, tiles and checkpoint, all against roots that writes were answered
    with. covers: LED-F26"""
    with Ledger(home) as ledger:
        fill(ledger)
        last = ledger.must(*[mint(f"x{i}", "z", 1) for i in range(290)])
        size, root = last["tree_size"], last["new_root"]
        assert size == 300
        leaves = []
        for tile, count in (("000", 256), ("001.p/44", 44)):
            reply = ledger.get("/tile/entries/" + tile)
            assert reply.status == 200, reply.body
            data = reply.body
            for _ in range(count):
                length = int.from_bytes(data[:2], "big")
                leaves.append(sha(b"\0" + data[2:2 + length]))
                data = data[2 + length:]
            assert not data
        assert root_of(leaves).hex() == root
        assert ledger.ask("GET", "/tile/0/000").body == b"".join(leaves[:256])
        assert "immutable" in ledger.ask("GET", "/tile/0/000").fields["Cache-Control"]
        assert ledger.ask("GET", "/tile/0/001.p/44").body == b"".join(leaves[256:])
        assert ledger.ask("GET", "/tile/1/000.p/1").body == root_of(leaves[:256])
        for seq in (1, 2, 150, 256, 257, 300):
            proof = ledger.get(f"/proof/inclusion?seq={seq}&size={size}").json()
            path = [bytes.fromhex(text) for text in proof["hashes"]]
            assert inclusion_root(leaves[seq - 1], seq - 1, size, path).hex() == root
            assert proof["root"] == root
        earlier = ledger.get("/proof/consistency?from=7&to=300").json()
        assert earlier["from_root"] == root_of(leaves[:7]).hex() and earlier["to_root"] == root
        entry = ledger.get("/entries/t1").json()
        assert sha(b"\0" + bytes.fromhex(entry["leaf"])) == leaves[2]

        def signed():
            lines = ledger.ask("GET", "/checkpoint").body.decode().split("\n")
            return lines if lines[1] == "300" else None

        note = until(signed, "a checkpoint of 300 leaves")
        assert base64.b64decode(note[2]).hex() == root
        vkey = ledger.ask("GET", "/checkpoint/vkey").body.decode().strip()
        assert vkey.startswith(note[0] + "+"), (vkey, note)
        for path in ("/tile/0/002.p/1", "/proof/inclusion?seq=301", "/tile/entries/001",
                     "/proof/inclusion?seq=5&size=900"):
            refused(ledger.get(path), 404, "NotFound")
        for path in ("/tile/0", "/tile/x/000", "/tile/0/0", "/tile/0/x000/001", "/tile/9/000",
                     "/tile/0/000.p/0", "/tile/0/000.p/256", "/tile/0/000.p/01", "/tile/0/000/",
                     "/proof/inclusion", "/proof/inclusion?seq=0",
                     "/proof/consistency?from=9&to=3"):
            refused(ledger.get(path), 400, "Malformed")
        refused(ledger.get("/proof/balance?account=z&asset=roc"), 503, "NotReady")


def proof_with_a_write(home):
    """?proof=1: one tlog-proof per entry, outside of what is stored."""
    with Ledger(home) as ledger:
        batch = [mint("m1", "alice", 5), mint("m2", "bob", 6)]
        reply = ledger.ingest(*batch, key="k", query="?proof=1")
        assert reply.status == 200, reply.body
        body = reply.json()
        texts = body.pop("proofs")
        assert len(texts) == 2
        for number, text in enumerate(texts):
            assert text.startswith("c2sp.org/tlog-proof@v1\n"), text
            assert f"\nindex {number}\n" in text, text
            assert "\n2\n" in text  # the size of its checkpoint
        plain = ledger.ingest(*batch, key="k")
        assert plain.json() == body and "proofs" not in plain.json()
        again = ledger.ingest(*batch, key="k", query="?proof=1")
        assert again.fields["Idempotent-Replay"] == "true" and len(again.json()["proofs"]) == 2
        assert "proofs" not in ledger.ingest(mint("m3", "a", 1), query="?proof=0").json()


# --- Streams --------------------------------------------------------------------------------------

class Events:
    def __init__(self, ledger, path="/roots/stream", token=None, last=None):
        url = urllib.parse.urlsplit(ledger.api)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        headers = {"Authorization": f"Bearer {token or ledger.all}"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        self.connection.request("GET", path, headers=headers)
        self.reply = self.connection.getresponse()
        assert self.reply.status == 200, self.reply.read()

    def next(self):
        event = {}
        while True:
            line = self.reply.readline().decode()
            assert line, "the stream ended"
            if line == "\n":
                if "data" in event:
                    return int(event["id"]), json.loads(event["data"])
                event = {}
            elif not line.startswith(":"):
                name, value = line.rstrip("\n").split(": ", 1)
                event[name] = value

    def ended(self):
        while True:
            line = self.reply.readline()
            if not line:
                return True

    def close(self):
        self.connection.close()


def stream(home):
    """Every root, from now on or from where one was; touched accounts; the end at a drain.
    covers: LED-F21"""
    with Ledger(home) as ledger:
        fill(ledger)
        live = Events(ledger)
        bound = Events(ledger, token=ledger.mint("scope = ledger.read", "account = bob"))
        body = ledger.must(transfer("s1", "alice", "carol", 2), transfer("s2", "alice", "dan", 2))
        number, event = live.next()
        assert number == event["seq_end"] == event["tree_size"] == 12
        assert event["seq_start"] == 11 and event["root"] == body["new_root"]
        assert sorted(event["touched"]) == [["alice", "roc"], ["carol", "roc"], ["dan", "roc"]]
        assert bound.next()[1]["touched"] is None
        big = ledger.must(*[mint(f"y{i}", f"acct{i}", 1) for i in range(70)])
        assert live.next()[1]["touched"] is None
        back = Events(ledger, last=3)
        seen = [back.next() for _ in range(6)]
        roots = ledger.ask("GET", "/roots?since=3").json()["roots"]
        assert [number for number, _ in seen] == [root["seq"] for root in roots][:6]
        assert [event["root"] for _, event in seen] == [root["root"] for root in roots][:6]
        since = Events(ledger, f"/roots/stream?since={big['seq_end']}")
        ledger.must(transfer("s3", "alice", "carol", 1))
        assert since.next()[1]["seq_end"] == big["seq_end"] + 1
        refused(ledger.get("/roots/stream?since=x"), 400, "Malformed")
        bound.close()
        begin = time.monotonic()
        ledger.send(15)
        assert live.ended() and back.ended() and since.ended()
        assert ledger.end() == 0
        assert time.monotonic() - begin < 50  # streams do not hold the drain up for their minute


def long_way_back(home):
    """A stream from the beginning brings every root, some pages of them at a time."""
    with Ledger(home) as ledger:
        for i in range(400):
            ledger.must(mint(f"m{i}", "alice", 1))
        back = Events(ledger, "/roots/stream?since=0")
        assert [back.next()[0] for _ in range(400)] == list(range(1, 401))
        ledger.must(mint("last", "alice", 1))
        assert back.next()[0] == 401
        back.close()


def roots_page(home):
    with Ledger(home) as ledger:
        for i in range(5):
            ledger.must(mint(f"m{i}", "a", 1), mint(f"n{i}", "b", 1))
        page = ledger.ask("GET", "/roots?since=2&limit=2").json()
        assert [root["seq"] for root in page["roots"]] == [4, 6] and page["next"] == 6
        page = ledger.ask("GET", f"/roots?since={page['next']}").json()
        assert [root["seq"] for root in page["roots"]] == [8, 10]
        assert ledger.ask("GET", "/roots?since=10").json() == {"roots": [], "next": 10}
        for query in ("since=x", "limit=0", "limit=1001", "until=3"):
            refused(ledger.ask("GET", "/roots?" + query), 400, "Malformed")
        before = ledger.ask("GET", "/roots").body
        assert ledger.stop() == 0
    with Ledger(home) as ledger:  # covers: LED-F22
        assert ledger.ask("GET", "/roots").body == before


def recovery(home):
    with Ledger(home) as ledger:
        fill(ledger)
        seen = ledger.get("/recovery").json()
        assert seen["safe_mode"] is False and seen["cause"] is None
        assert (seen["last_good_seq"], seen["last_good_root"]) == ledger.head()


# --- Slices ---------------------------------------------------------------------------------------

def slices(home):
    """In order, kept, acknowledged again; gaps and others in their place refused."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model"))
    from blake3 import blake3  # pylint: disable=import-error,import-outside-toplevel

    def sealed(seq, prev, value):
        text = json.dumps({"id": {"tenant": 0, "dimension": "bytes", "seq": seq},
                           "meta": {"version": 1, "window_start_ms": 1, "window_end_ms": 2,
                                    "sealed_at_ms": 3, "prev_b3": prev, "amnesia": False},
                           "rows": [{"value": value}]}, separators=(",", ":"))
        digest = "b3:" + bytes(blake3(text.encode())).hex()
        return text[:-1] + f',"digest":"{digest}"}}', digest

    with Ledger(home) as ledger:
        def put(seq, body):
            return ledger.ask("PUT", f"/slices/0/bytes/{seq}", body, ledger.all)

        assert ledger.get("/slices/0/bytes/head").json() == {"next_seq": 0, "b3": None}
        first, digest = sealed(0, None, 5)
        reply = put(0, first)
        assert reply.json() == {"ack": "ok", "seq": 0, "b3": digest}, reply.body
        assert put(0, first).json() == {"ack": "dup", "seq": 0, "b3": digest}
        assert ledger.get("/slices/0/bytes/head").json() == {"next_seq": 1, "b3": digest}
        kept = os.path.join(ledger.data, "ledger", "slices", digest[3:])
        assert open(kept, encoding="ascii").read() == first
        refused(put(0, sealed(0, None, 6)[0]), 409, "ChainMismatch")
        refused(put(2, sealed(2, digest, 6)[0]), 409, "OrderOverflow", expected_seq=1)
        refused(put(1, sealed(1, None, 6)[0]), 409, "ChainMismatch")
        refused(put(1, sealed(2, digest, 6)[0]), 400, "Malformed")
        refused(put(1, first.replace("5", "7")), 400, "Malformed")
        shed = {"shed": {"id": {"tenant": 0, "dimension": "bytes", "seq": 1}, "digest": DIGEST,
                         "prev_b3": digest, "rows": 3, "sum": "9", "reason": "lane full"}}
        assert put(1, shed).json() == {"ack": "ok", "seq": 1, "b3": DIGEST}
        second, _ = sealed(2, DIGEST, 6)
        assert put(2, second).json()["ack"] == "ok"
        assert ledger.get("/slices/0/bytes/head").json()["next_seq"] == 3


TESTS = [entries, balances, balances_together, assets, keys, daily_ceiling_spares_repetitions,
         holds, accounts, coverage, tenants, public_log, proofs, proof_with_a_write, stream,
         long_way_back, roots_page, recovery, slices]

if __name__ == "__main__":
    sys.exit(run(TESTS))
