"""checks.py - what must be true of a ledger after everything that happened to it.

The bytes of every committed entry come from the model of tests/model, fed with what clients sent;
proofs and signatures are checked by tests/interop/tlog/check.py, written from the RFC texts.
"""
import base64
import collections
import concurrent.futures
import datetime
import json
import os
import random
import subprocess
import sys

from clients import FAR, HERE, HttpPeer, OapPeer
from apilib import RON, until

sys.path.insert(0, os.path.join(HERE, "..", "interop", "tlog"))
import check  # noqa: E402
from ledger_model import Ledger as Model  # noqa: E402

PAGE = 200      # a page of 1,000 takes a sanitized ledger seconds
SAMPLE = 40     # of what costs a round trip or a signature each
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def milliseconds(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment - EPOCH) // datetime.timedelta(milliseconds=1)


def all_entries(ledger):
    """Every entry there is, by number: no gap, no double."""
    rows, after = [], 0
    while True:
        reply = ledger.get(f"/entries?after={after}&limit={PAGE}")
        assert reply.status == 200, reply.body
        page = reply.json()
        rows += page["entries"]
        if not page["entries"]:
            break
        after = page["next"]
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    ids = collections.Counter((row["tenant"], row["id"]) for row in rows if not row["by_ledger"])
    assert not ids or max(ids.values()) == 1, ids.most_common(3)
    return rows


def wait_for_expiry(ledger, operations):
    """Until every hold that runs out was given back: then the ledger writes nothing by itself."""
    for operation in operations:
        for entry in operation.entries:
            if entry["kind"] == "Hold" and entry["expires_at"] != FAR:
                until(lambda path=f"/holds/{entry['hold_id']}": ledger.get(path).status == 404
                      or ledger.get(path).json()["rest"] == "0", "a hold runs out")


def all_roots(ledger):
    roots, since = [], 0
    while True:
        page = ledger.ask("GET", f"/roots?since={since}&limit={PAGE}").json()
        if not page["roots"]:
            break
        roots += page["roots"]
        since = page["next"]
    assert [root["batch_no"] for root in roots] == list(range(1, len(roots) + 1))
    for before, after in zip(roots, roots[1:]):
        assert before["seq"] < after["seq"] and before["ts"] <= after["ts"], (before, after)
    return roots


def fates(operations, rows):
    """Acknowledged: there, once, where the answer says. Refused: not there. Open ones: whole or
    not at all. Returns those that are there."""
    at = {row["id"]: row for row in rows if not row["by_ledger"]}
    there = []
    for operation in operations:
        found = [at.get(entry["id"]) for entry in operation.entries]
        if operation.state == "refused":
            assert found == [None] * len(found), (operation.reply, found)
            continue
        if operation.state == "left" and found == [None] * len(found):
            continue
        assert None not in found, (operation.state, operation.reply, operation.entries, found)
        seqs = [row["seq"] for row in found]
        assert seqs == list(range(found[0]["batch_seq_start"], found[0]["batch_seq_end"] + 1))
        assert len({row["batch_no"] for row in found}) == 1, found
        if operation.state == "acked":
            told = answered(operation)
            assert told == (seqs[0], seqs[-1], seqs[-1], found[0]["batch_root"]), (told, found)
        there.append(operation)
    own = sum(len(operation.entries) for operation in there)
    assert own == len(at), ("entries that nobody sent", own, len(at))
    return there


def answered(operation):
    """First and last seq, tree size and root of an acknowledgement."""
    if operation.binary:
        numbers = [int.from_bytes(operation.reply[i:i + 8], "little") for i in (0, 8, 16)]
        return (*numbers, operation.reply[24:].hex())
    reply = json.loads(operation.reply)
    return reply["seq_start"], reply["seq_end"], reply["tree_size"], reply["new_root"]


def repetitions(ledger, operations, there, token):
    """Every key again, over connections of four threads."""
    present = {id(operation) for operation in there}
    shares = [operations[i::4] for i in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda share: repeat_share(ledger, share, present, token), shares))


def repeat_share(ledger, operations, present, token):
    http, oap = HttpPeer(ledger.api, token), OapPeer(ledger.api, token)
    for number, operation in enumerate(operations):
        if operation.state != "refused":
            repeat_one(http, oap if operation.binary else http, operation, id(operation) in present)
        if operation.state == "acked" and operation.key is not None and number % 3 == 0:
            conflict(http, oap, operation)
    http.close()
    oap.close()


def repeat_one(http, peer, operation, is_there):
    if operation.key is not None:
        stored = http.ask("GET", f"/idem/{operation.key}")
        assert stored.status == (200 if is_there else 404), (operation.state, stored.body)
    if not is_there:
        return  # to send it now would make it happen
    again = peer.send(operation)
    assert again.status == 200, again.body
    if operation.state == "acked":
        assert again.body == operation.reply, (again.body, operation.reply)
    if not operation.binary:
        assert again.fields["Idempotent-Replay"] == "true", again.fields
        assert operation.key is None or stored.body == again.body


def conflict(http, oap, operation):
    if operation.binary:
        reply = oap.ask(1, operation.other_body())
    else:
        reply = http.ask("POST", "/ingest", operation.other_body())
    assert reply.status == 409 and reply.code() == "IdempotencyConflict", reply.body


def replayed(rows, roots, there):
    """The model, fed with what was sent in the order of the log: same numbers, same roots."""
    sent = {operation.entries[0]["id"]: operation for operation in there}
    model = Model()
    at = 0
    for root in roots:
        first = rows[at]
        command = {"tenant": first["tenant"], "caller": first["caller"],
                   "commit_ms": milliseconds(first["committed_at"]),
                   "capability": first["capability_ref"]}
        if first["id"].startswith("expire/"):
            command = {"cmd": "expire", "commit_ms": command["commit_ms"]}
        elif first["id"].startswith("accounts/"):
            command.update(cmd="open", names=there.opened)
            del command["caller"]
        else:
            command.update(cmd="ingest", batch=sent[first["id"]].entries)
        answer = model.execute(command)
        reply = answer.get("ok")
        assert reply, (first, command, answer)
        assert (reply["seq_end"], reply["batch_no"], reply["new_root"]) == \
            (root["seq"], root["batch_no"], root["root"]), (reply, root)
        at = root["seq"]
    assert at == len(rows)
    return model


def balances(ledger, model):
    """Every account; and what was issued is what there is."""
    total = collections.Counter()
    names = model.t.asset_names
    shown = {}
    for (account, number), value in sorted(model.t.balances.items()):
        found = ledger.balance(account, names[number])
        assert int(found["amount"]) - int(found.get("debt") or 0) == value, (account, found, value)
        assert found["next_nonce"] == model.t.next_nonce.get(account, 1), (account, found)
        shown[account, names[number]] = value
        total[number] += -value if account.startswith("sys/mint/") else value
    assert not any(total.values()), total
    return shown


def journal(rows):
    """Plain-text accounting: what hledger reads."""
    lines = []
    for row in rows:
        if row["kind"] in ("Anchor", "Asset"):
            continue
        lines += [f"{row['committed_at'][:10]} {row['kind']} {row['seq']}",
                  f"    {row['credit']}  {row['amount']} {row['asset']}",
                  f"    {row['debit']}  -{row['amount']} {row['asset']}", ""]
    return "\n".join(lines)


def exported(home, ledger):
    """The same as `ron` writes it: of the server, and of its directory."""
    token = os.path.join(home, "all.token")
    with open(os.open(token, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
        file.write(ledger.all)
    for where in (["--url", ledger.api, "--token-file", token],
                  ["--url", "none", "--data", ledger.data]):
        done = subprocess.run([RON, "ledger", "export", "--format", "ledger", *where],
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        yield done.stdout


def hledger(text, shown):
    """The same balances by somebody else's arithmetic."""
    done = subprocess.run(["hledger", "-f", "-", "balance", "--flat", "--no-total", "--empty",
                           "-O", "csv", "--layout=bare"], input=text, capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines()[1:]:
        account, asset, amount = (part.strip('"') for part in line.split(","))
        found[account.replace(":", "/"), asset] = int(amount)  # ron's journals make a tree of it
    wanted = {(account, asset): -value if account.startswith("sys/mint/") else value
              for (account, asset), value in shown.items()}
    assert found == wanted, {key: (found.get(key), wanted.get(key))
                             for key in {*found, *wanted} if found.get(key) != wanted.get(key)}


def checkpoint_of(note, key):
    origin, size, root = check.signed(note, key).decode().split("\n")[:3]
    assert origin == key[0], (origin, key[0])
    return int(size), base64.b64decode(root)


def proofs(ledger, leaves, roots, notes, seed):
    """Heads of all lives, signed, each the beginning of the next; entries under the last one."""
    key = check.key_of(ledger.ask("GET", "/checkpoint/vkey").body.decode().strip())
    by_seq = {root["seq"]: bytes.fromhex(root["root"]) for root in roots}
    heads = [checkpoint_of(note, key) for note in notes]
    for before, after in zip(heads, heads[1:]):
        assert before[0] <= after[0], ("a head went back", before, after)
    for size, root in heads:
        assert by_seq.get(size, root) == root and size <= len(leaves), (size, root)
    pairs = sorted({(a, b) for a, b in zip(heads, heads[1:]) if 0 < a[0] < b[0]})
    for (first, first_root), (second, second_root) in pairs:
        proof = ledger.get(f"/proof/consistency?from={first}&to={second}").json()
        hashes = [bytes.fromhex(text) for text in proof["hashes"]]
        assert check.consistency(first, first_root, second, second_root, hashes), (first, second)
    size, root = heads[-1]
    for seq in random.Random(seed).sample(range(1, size + 1), min(SAMPLE, size)):
        proof = ledger.get(f"/proof/inclusion?seq={seq}&size={size}").json()
        hashes = [bytes.fromhex(text) for text in proof["hashes"]]
        assert check.inclusion(check.leaf_hash(leaves[seq]), seq - 1, size, hashes, root), seq
    return len(pairs)
