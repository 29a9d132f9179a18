#!/usr/bin/env python3
"""test_balances.py - proofs of balances, checked from the text of docs/formats.md and the RFCs it
names with nothing of ron: row, state root, Anchor, log, signature; TAP.

    test_balances.py PROGRAM [NAME...]
"""
import base64
import glob
import hashlib
import json
import os
import subprocess
import sys

from apilib import RON, Ledger, mint, refused, run, transfer, until

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "model"))
sys.path.insert(0, os.path.join(HERE, "..", "interop", "tlog"))
from blake3 import blake3  # noqa: E402
from check import ed25519  # noqa: E402

OFTEN = {"RON_LEDGER__SNAPSHOT__PERIOD": "50ms", "RON_LEDGER__SNAPSHOT__MIN_INTERVAL": "50ms"}
USERS = 600  # rows in three blocks


def account_id(name):
    return blake3(b"ron:account:v1\0" + name.encode())[:16]


def sha(data):
    return hashlib.sha256(data).digest()


def row(name, asset, balance, nonce):
    return (account_id(name) + asset.to_bytes(4, "little") + balance.to_bytes(16, "little") +
            nonce.to_bytes(8, "little"))


def order(leaf):
    return leaf[:16] + leaf[16:20][::-1]


def root_of(hashes):
    """RFC 6962, 2.1."""
    if not hashes:
        return sha(b"")
    if len(hashes) == 1:
        return hashes[0]
    k = 1
    while 2 * k < len(hashes):
        k *= 2
    return sha(b"\1" + root_of(hashes[:k]) + root_of(hashes[k:]))


def climb(leaf_hash, index, size, path):
    """RFC 9162, 2.1.3.2: the root that the path leads to; None if it is too long or too short."""
    if index >= size:
        return None
    node, last, value = index, size - 1, leaf_hash
    for hash_ in path:
        if last == 0:
            return None
        if node % 2 == 1 or node == last:
            value = sha(b"\1" + hash_ + value)
            while node % 2 == 0 and node != 0:
                node, last = node // 2, last // 2
        else:
            value = sha(b"\1" + value + hash_)
        node, last = node // 2, last // 2
    return value if last == 0 else None


def checkpoint_of(note, vkey):
    """Size and root of a signed note, if this key signed it."""
    text, _, signatures = note.partition("\n\n")
    text += "\n"
    name, key_id, key = vkey.split("+", 2)
    key = base64.b64decode(key)
    assert key[0] == 1 and sha(name.encode() + b"\n" + key)[:4].hex() == key_id
    for line in signatures.splitlines():
        dash, signer, blob = line.split(" ")
        blob = base64.b64decode(blob)
        if dash == "\u2014" and signer == name and blob[:4].hex() == key_id:
            assert ed25519(key[1:], text.encode(), blob[4:]), "signature"
            lines = text.splitlines()
            assert lines[0] == name
            return int(lines[1]), base64.b64decode(lines[2])
    raise AssertionError("nobody signed")


def anchored(anchor, vkey):
    """(seq, root) of the state, by the Anchor's leaf and its tlog-proof."""
    leaf = bytes.fromhex(anchor["leaf"])
    assert leaf[116:118] == (10).to_bytes(2, "little"), "an Anchor"
    assert leaf[118] & 7 == 7, "a SHA-256 digest and an ext, by the ledger itself"
    assert leaf[128] == 4, "its first part is stream and ref"
    size = int.from_bytes(leaf[129:131], "little")
    stream, ref = leaf[131:131 + size].split(b"\0")
    assert stream == b"state"
    head, _, rest = anchor["proof"].partition("\n")
    assert head == "c2sp.org/tlog-proof@v1"
    lines, note = rest.split("\n\n", 1)
    index, *hashes = lines.split("\n")
    tree_size, root = checkpoint_of(note, vkey)
    seq = int.from_bytes(leaf[80:88], "little")
    assert index == f"index {seq - 1}" and seq == anchor["seq"] and int(ref) < seq
    assert climb(sha(b"\0" + leaf), seq - 1, tree_size,
                 [base64.b64decode(text) for text in hashes]) == root, "the Anchor is in the log"
    return int(ref), leaf[16:48]


def verify(proof, vkey, name, asset):
    """(as_of_seq, balance, next_nonce); balance None: there is no such row."""
    as_of, root = anchored(proof["anchor"], vkey)
    key = account_id(name) + asset.to_bytes(4, "big")
    size, rows = proof["state_size"], []
    for item in proof["rows"]:
        leaf = bytes.fromhex(item["leaf"])
        assert len(leaf) == 44
        assert climb(sha(b"\0" + leaf), item["index"], size,
                     [bytes.fromhex(text) for text in item["hashes"]]) == root, "row"
        rows.append((item["index"], leaf))
    if len(rows) == 1 and order(rows[0][1]) == key:
        leaf = rows[0][1]
        return (as_of, int.from_bytes(leaf[20:36], "little"),
                int.from_bytes(leaf[36:44], "little"))
    if len(rows) == 2:
        assert rows[0][0] + 1 == rows[1][0], "neighbours"
        assert order(rows[0][1]) < key < order(rows[1][1]), "around it"
    elif len(rows) == 1:
        index, leaf = rows[0]
        assert (index == 0 and key < order(leaf)) or \
               (index == size - 1 and order(leaf) < key), "at an end"
    else:
        assert size == 0 and root == sha(b"")
    return as_of, None, None


def fill(ledger):
    assert ledger.post("/assets", {"asset": "usd", "decimals": 2,
                                   "max_supply": str(2 ** 100)}).status == 200
    ledger.must(*[mint(f"m{i}", f"user/{i}", 1000 + i) for i in range(USERS)])
    ledger.must(*[mint(f"u{i}", f"user/{i}", 5 * i + 1, "usd") for i in range(0, USERS, 3)])
    for i in range(1, 20):
        ledger.must(transfer(f"t{i}", "user/7", "user/8", 3, nonce=i))


def settled(ledger):
    """A proof as of the newest entry but Anchors of states."""
    def newest():
        head = ledger.get("/entries?after=0&limit=1000").json()["entries"]
        last = [entry["seq"] for entry in head if entry.get("stream") != "state"][-1]
        reply = ledger.get("/proof/balance?account=user/7&asset=roc")
        return reply.status == 200 and reply.json()["as_of_seq"] >= last
    until(newest, "a state is anchored")


def model(ledger, as_of):
    """Every row, by the balances the ledger had then."""
    rows = [row("sys/mint/roc", 1, sum(1000 + i for i in range(USERS)), 1),
            row("sys/mint/usd", 2, sum(5 * i + 1 for i in range(0, USERS, 3)), 1)]
    for i in range(USERS):
        for asset, number in (("roc", 1), ("usd", 2)):
            if number == 2 and i % 3 != 0:
                continue
            said = ledger.get(f"/balance?account=user/{i}&asset={asset}&at_seq={as_of}").json()
            rows.append(row(f"user/{i}", number, int(said["amount"]), said["next_nonce"]))
    return sorted(rows, key=order)


def proven(home):
    """Every kind of row, and what is not there; the root is that of the rows as the text says."""
    with Ledger(home, env=OFTEN) as ledger:
        refused(ledger.get("/proof/balance?account=user/1&asset=roc"), 503, "NotReady")
        fill(ledger)
        settled(ledger)
        vkey = ledger.ask("GET", "/checkpoint/vkey").body.decode().strip()
        proof = ledger.get("/proof/balance?account=user/7&asset=roc").json()
        assert verify(proof, vkey, "user/7", 1) == (proof["as_of_seq"], 1007 - 57, 20)
        assert proof["balance"] == "950" and proof["next_nonce"] == 20 and proof["present"]
        rows = model(ledger, proof["as_of_seq"])
        assert proof["state_size"] == len(rows) > 512
        assert root_of([sha(b"\0" + leaf) for leaf in rows]).hex() == proof["state_root"]
        for index in (0, 1, 255, 256, 257, 511, 512, len(rows) - 2, len(rows) - 1):
            name, number = {order(row(name, number, 0, 0)): (name, number)
                            for name in [f"user/{i}" for i in range(USERS)] +
                            ["sys/mint/roc", "sys/mint/usd"]
                            for number in (1, 2)}[order(rows[index])]
            proof = ledger.get(f"/proof/balance?account={name}&asset="
                               f"{'roc' if number == 1 else 'usd'}").json()
            assert [item["index"] for item in proof["rows"]] == [index]
            assert verify(proof, vkey, name, number)[1] == \
                int.from_bytes(rows[index][20:36], "little")
        ends = set()
        for name, asset in [(f"nobody/{i}", "roc") for i in range(700)] + [("user/1", "usd")]:
            if len(ends) < 3 or name == "user/1":
                proof = ledger.get(f"/proof/balance?account={name}&asset={asset}").json()
                assert not proof["present"] and "balance" not in proof
                assert verify(proof, vkey, name, 1 if asset == "roc" else 2)[1] is None
                indexes = [item["index"] for item in proof["rows"]]
                ends.add("first" if indexes == [0] else
                         "last" if indexes == [len(rows) - 1] else "between")
        assert "between" in ends, ends


def tampered(home):
    """What is changed anywhere is not proven, by this check and by ron's own."""
    with Ledger(home, env=OFTEN) as ledger:
        fill(ledger)
        settled(ledger)
        vkey = ledger.ask("GET", "/checkpoint/vkey").body.decode().strip()
        proof = ledger.get("/proof/balance?account=user/7&asset=roc").json()
        absent = ledger.get("/proof/balance?account=nobody&asset=roc").json()
        other = ledger.get("/proof/balance?account=user/9&asset=roc").json()

        def turned(text, at):
            digit = "0" if text[at] != "0" else "1"
            return text[:at] + digit + text[at + 1:]

        def change(edit, of=proof):
            copy = json.loads(json.dumps(of))
            edit(copy)
            return copy

        first = proof["rows"][0]
        bad = [
            (change(lambda p: p["rows"][0].update(leaf=turned(first["leaf"], 41))), "user/7"),
            (change(lambda p: p["rows"][0].update(index=first["index"] ^ 1)), "user/7"),
            (change(lambda p: p["rows"][0]["hashes"].pop()), "user/7"),
            (change(lambda p: p["anchor"].update(leaf=turned(p["anchor"]["leaf"], 33))), "user/7"),
            (change(lambda p: p.update(anchor={**p["anchor"], "proof":
                                               p["anchor"]["proof"].replace("index ", "index 1")})),
             "user/7"),
            (other, "user/7"),
            (change(lambda p: p["rows"].pop(), absent), "nobody"),
            (change(lambda p: p.update(rows=first and [first]), absent), "nobody"),
        ]
        for number, (text, name) in enumerate(bad):
            try:
                verify(text, vkey, name, 1)
            except AssertionError:
                continue
            raise AssertionError(f"{number} was believed")


def rights(home):
    """Who may see what: an absence shows the rows of others."""
    with Ledger(home, env=OFTEN) as ledger:
        fill(ledger)
        settled(ledger)
        bound = ledger.mint("scope = ledger.read", "account = user/7*")
        assert ledger.get("/proof/balance?account=user/7&asset=roc", bound).status == 200
        refused(ledger.get("/proof/balance?account=user/8&asset=roc", bound), 403, "Forbidden")
        refused(ledger.get("/proof/balance?account=user/7x&asset=roc", bound), 403, "Forbidden")
        refused(ledger.get("/proof/balance?account=user/7&asset=eur"), 404, "NotFound")
        for query in ("", "?account=user/7", "?asset=roc", "?account=user/7&asset=roc&at_seq=1"):
            refused(ledger.get("/proof/balance" + query), 400, "Malformed")


def files(home):
    """A restart proves by what is on disk; what is damaged there is not believed."""
    with Ledger(home, env=OFTEN) as ledger:
        fill(ledger)
        settled(ledger)
        until(lambda: len(glob.glob(os.path.join(home, "data", "ledger", "state", "snap-*"))) <= 2,
              "two are kept")
        assert ledger.stop() == 0
    for round_ in range(3):
        with Ledger(home) as ledger:
            reply = ledger.get("/proof/balance?account=user/7&asset=roc")
            vkey = ledger.ask("GET", "/checkpoint/vkey").body.decode().strip()
            if reply.status == 200:
                as_of, balance, nonce = verify(reply.json(), vkey, "user/7", 1)
                said = ledger.get(f"/balance?account=user/7&asset=roc&at_seq={as_of}").json()
                # The older one may be of before the account was.
                assert (int(said["amount"]), said["next_nonce"]) == (balance or 0, nonce or 1), \
                    (round_, said, as_of, balance, nonce)
            else:
                refused(reply, 503, "NotReady")
                assert round_ > 0
            assert ledger.stop() == 0
        paths = sorted(glob.glob(os.path.join(home, "data", "ledger", "state", "snap-*")))
        if paths:
            with open(paths[-1], "r+b") as file:
                rows = min(100, (os.path.getsize(paths[-1]) - 4096) // 44 - 1)
                file.seek(4096 + 44 * max(0, rows) + 25)
                byte = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte[0] ^ 1]))
            os.rename(paths[-1], os.path.join(home, f"damaged-{round_}"))
            if round_ == 0 and len(paths) > 1:  # the damaged one is passed over
                os.rename(os.path.join(home, "damaged-0"), paths[-1])
                with Ledger(home) as ledger:
                    proof = ledger.get("/proof/balance?account=user/7&asset=roc").json()
                    assert proof["as_of_seq"] < as_of
                    verify(proof, ledger.ask("GET", "/checkpoint/vkey").body.decode().strip(),
                           "user/7", 1)
                    assert ledger.stop() == 0
                os.rename(paths[-1], os.path.join(home, "damaged-0"))


def by_command(home):
    """`ron ledger proof --balance` checks it; a key of another log is not believed."""
    with Ledger(home, env=OFTEN) as ledger:
        fill(ledger)
        settled(ledger)
        env = dict(os.environ, RON_URL=ledger.api,
                   RON_TOKEN_FILE=os.path.join(ledger.data, "operator.token"))

        def cli(*words, status=0):
            done = subprocess.run([RON, "ledger", "proof", *words], env=env, cwd=home, text=True,
                                  capture_output=True, timeout=60, check=False)
            assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
            return done.stdout

        said = json.loads(cli("--balance", "user/7", "--json", "--save", "kept"))
        assert said["proven"] and said["present"] and said["balance"] == "950", said
        assert said["next_nonce"] == 20 and said["anchor_seq"] > said["as_of_seq"]
        with open(os.path.join(home, "kept"), encoding="utf-8") as file, \
                open(os.path.join(home, "kept.vkey"), encoding="ascii") as key:
            assert verify(json.load(file), key.read().strip(), "user/7", 1) == \
                (said["as_of_seq"], 950, 20)
        said = json.loads(cli("--balance", "user/3", "--asset", "usd", "--json"))
        assert said["balance"] == "16" and said["asset_no"] == 2
        said = json.loads(cli("--balance", "nobody", "--json"))
        assert said["proven"] and not said["present"] and said["balance"] == "0"
        assert "had nothing" in cli("--balance", "nobody", "--vkey", "kept.vkey")
        os.mkdir(os.path.join(home, "other"))
        with Ledger(os.path.join(home, "other")) as stranger:
            with open(os.path.join(home, "other.vkey"), "wb") as file:
                file.write(stranger.ask("GET", "/checkpoint/vkey").body)
        cli("--balance", "user/7", "--vkey", "other.vkey", status=3)
        cli("m1", "--asset", "usd", status=2)


def owed(home):
    """A drawn credit line is 2^128 less what is owed in the row, and said as a debt."""
    with Ledger(home, env=OFTEN) as ledger:
        ledger.must(mint("m", "user/7", 10), mint("n", "poor", 5))
        assert ledger.post("/accounts", {"account": "poor", "asset": "roc",
                                         "credit_line": "500"}).status == 200
        ledger.must(transfer("t", "poor", "user/7", 45))
        settled(ledger)
        vkey = ledger.ask("GET", "/checkpoint/vkey").body.decode().strip()
        proof = ledger.get("/proof/balance?account=poor&asset=roc").json()
        assert (proof["balance"], proof["debt"]) == ("0", "40"), proof
        assert verify(proof, vkey, "poor", 1)[1] == 2 ** 128 - 40
        said = ledger.get("/balance?account=poor&asset=roc").json()
        assert (said["amount"], said["debt"]) == ("0", "40"), said
        proof = ledger.get("/proof/balance?account=user/7&asset=roc").json()
        assert proof["balance"] == "55" and "debt" not in proof
        env = dict(os.environ, RON_URL=ledger.api,
                   RON_TOKEN_FILE=os.path.join(ledger.data, "operator.token"))
        words = [RON, "ledger", "proof", "--balance", "poor"]
        text = subprocess.check_output(words + ["--json"], env=env, cwd=home, timeout=60)
        said = json.loads(text)
        assert (said["balance"], said["debt"]) == ("0", "40"), said
        text = subprocess.check_output(words, env=env, cwd=home, text=True, timeout=60)
        assert "owed 40 of asset 1" in text, text


TESTS = [proven, tampered, rights, files, by_command, owed]

if __name__ == "__main__":
    sys.exit(run(TESTS))
