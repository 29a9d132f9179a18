#!/usr/bin/env python3
"""selftest.py - the model against constants and against the text, without the driver. TAP.

Hashes: outputs of b3sum and roots of RFC 6962 as constants. Bytes: vectors/ledger/leaves.json,
whose ids were made with b3sum and whose fields were spelled out from the text. Rules: one small
story per sentence of docs/ledger-core.md, each ending in what the text says.
"""
import json
import os
import random
import sys
import traceback

sys.dont_write_bytecode = True

from blake3 import blake3
from generate import Generator, batch_of
from ledger_bytes import Frontier, canonical
from ledger_model import DAY_MS, Ledger
from ledger_shape import LINE_MAX, U64_MAX, U128_MAX
from misuse import rfc3339

T0 = 1_760_000_000_000
VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "ledger",
                       "leaves.json")
CASES = []


def case(function):
    CASES.append(function)
    return function


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


# ---- Hashes and bytes ----

# b3sum of the bytes 0, 1, ... 250, 0, 1, ... of each length.
B3SUM = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    63: "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b",
    64: "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98",
    65: "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee",
    1023: "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
    1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
    1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
    2049: "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030",
    3073: "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3",
    8192: "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63",
}
# The test tree that transparency logs share: leaves and the root at each size.
TREE_LEAVES = ("", "00", "10", "2021", "3031", "40414243", "5051525354555657",
               "606162636465666768696a6b6c6d6e6f")
TREE_ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


@case
def blake3_equals_b3sum():
    for size, want in B3SUM.items():
        equal(blake3(bytes(i % 251 for i in range(size))).hex(), want)


@case
def tree_has_the_known_roots():
    tree = Frontier()
    equal(tree.root().hex(), TREE_ROOTS[0])
    for leaf, want in zip(TREE_LEAVES, TREE_ROOTS[1:]):
        tree = tree.with_leaf(bytes.fromhex(leaf))
        equal(tree.root().hex(), want)


@case
def canonical_json_sorts_by_utf16_and_escapes_little():
    equal(canonical({"\uffee": 1, "\U0001f600": 2, "a": [True, None, -3, "\u0001\n\"\\/\u007fé"]}),
          '{"a":[true,null,-3,"\\u0001\\n\\"\\\\/\u007fé"],"\U0001f600":2,"\uffee":1}')


@case
def leaves_roots_and_state_equal_the_vectors():
    with open(VECTORS, encoding="utf-8") as stream:
        vectors = json.load(stream)
    ledger = Ledger()
    roots = {}
    for command in vectors["commands"]:
        reply = ledger.execute(command)["ok"]
        roots[reply["tree_size"]] = reply["new_root"]
    for leaf in vectors["leaves"]:
        equal("".join(leaf["fields"].values()), leaf["leaf"])
        equal(ledger.execute({"cmd": "leaf", "seq": leaf["seq"]}), {"leaf": leaf["leaf"]})
    equal(roots, {row["tree_size"]: row["root"] for row in vectors["roots"]})
    equal(ledger.execute({"cmd": "state_root"}),
          {"state_root": vectors["state"]["root"], "rows": len(vectors["state"]["rows"])})


# ---- Stories ----

class Story:
    """A ledger with 1,000 roc on a, and short words for commands."""

    def __init__(self):
        self.ledger, self.now, self.count = Ledger(), T0, 0
        self.mint("a", 1000)

    def run(self, cmd, **members):
        command = {"cmd": cmd, "commit_ms": self.now, "tenant": "0", "caller": "direct",
                   "capability": "00" * 8, **members}
        return self.ledger.execute(command)

    def ingest(self, *batch, **members):
        return self.run("ingest", **{"reserved_ok": False, "batch": list(batch), **members})

    def entry(self, kind, amount=None, asset="roc", **members):
        self.count += 1
        entry = {"id": f"e{self.count}", "kind": kind, "asset": asset, "amount": str(amount)}
        if kind == "Anchor":
            entry = {"id": f"e{self.count}", "kind": kind, "digest": "b3:" + "1" * 64}
        if "source" in members:
            members["from"] = members.pop("source")
        return {**entry, **members}

    def mint(self, to, amount, asset="roc", **members):
        return self.ok(self.ingest(self.entry("Mint", amount, asset, to=to), **members))

    def transfer(self, source, to, amount, **members):
        return self.entry("Transfer", amount, source=source, to=to, **members)

    def hold(self, hold_id, amount=100, payee="*", after=1000, source="a", **members):
        return self.entry("Hold", amount, source=source, hold_id=hold_id, payee=payee,
                          expires_at=rfc3339(self.now + after), **members)

    def asset(self, name, supply=10 ** 6):
        return self.ok(self.run("asset", asset=name, decimals=2, max_supply=str(supply)))

    def intents(self, pays, chunk=0, chunks=1, total=100, **members):
        return self.run("intents", **{
            "epoch_id": "ep", "run_key": "rk", "commitment": "b3:" + "2" * 64,
            "funding_source": "main", "asset": "roc", "total": str(total), "chunk": chunk,
            "chunks": chunks, "fingerprint": "%064x" % (chunk + 1),
            "payouts": [{"id": f"p{chunk}-{at}", "to": to, "amount": str(amount)}
                        for at, (to, amount) in enumerate(pays)], **members})

    def slice(self, seq, digest, prev):
        return self.run("slice", dimension="bytes", seq=seq, digest="b3:" + digest * 64,
                        prev="b3:" + prev * 64)

    def balance(self, name, asset="roc"):
        answer = self.ledger.execute({"cmd": "balance", "account": name, "asset": asset})
        return int(answer["balance"]["amount"])

    def last(self):
        return self.ledger.t.entries[self.ledger.t.log["seq"]]

    @staticmethod
    def ok(answer):
        if "ok" not in answer:
            raise AssertionError(f"refused: {answer}")
        return answer["ok"]

    def refused(self, answer, code, index=None, **details):
        error = answer.get("error")
        if error is None:
            raise AssertionError(f"applied: {answer}")
        equal((error["code"], error.get("index"), error.get("details", {})), (code, index, details))


def story(function):
    def run():
        function(Story())
    run.__name__ = function.__name__
    CASES.append(run)
    return run


@story
def refused_command_leaves_no_trace(s):
    def everything():
        return [sorted(map(repr, table.items())) for name, table in vars(s.ledger.t).items()
                if name not in ("journal", "log")]

    before = everything()
    root = s.ledger.t.log["tree"].root()
    s.refused(s.ingest(s.transfer("a", "new", 5, nonce=1), s.hold("h"),
                       s.transfer("a", "b", 5000)), "InsufficientFunds", 2, available="895")
    equal(everything(), before)
    equal(s.ledger.t.log["tree"].root(), root)


@story
def shape_first_bad_entry_wins(s):
    good = s.transfer("a", "b", 1)
    for change in ({"id": "a/b"}, {"id": "x" * 65}, {"amount": "0"}, {"amount": "01"},
                   {"amount": str(U128_MAX + 1)}, {"nonce": 0}, {"nonce": U64_MAX + 1},
                   {"to": "a"}, {"to": "b b"}, {"to": "x" * 161}, {"asset": "ROC"},
                   {"kind": "Asset"}, {"extra": 1}, {"memo": "m" * 257}, {"meta": []}, {"ts": -1},
                   {"meta": {"p": "q" * 1017}}, {"amount": 1}):
        s.refused(s.ingest(good, {**good, **change}, {**good, "id": ""}), "Malformed", 1)
    s.refused(s.ingest(s.entry("Mint", 1, to="b", nonce=1)), "Malformed", 0)
    s.refused(s.ingest(), "Malformed")
    s.refused(s.ledger.execute(batch_of(8001, T0)), "TooLarge")
    equal(s.ok(s.ledger.execute(batch_of(8000, T0)))["seq_end"], 8001)


@story
def strict_json_is_refused_as_a_whole(s):
    def nested(depth):                              # command, batch, entry: three levels above
        value = {}
        for _ in range(depth - 4):
            value = {"d": value}
        return value

    for change in ({"meta": {"a": 1.5}}, {"memo": "\ud800"}, {"meta": nested(33)}):
        s.refused(s.ingest({**s.transfer("a", "b", 1), **change}), "Malformed")
    s.ok(s.ingest(s.transfer("a", "b", 1, meta=nested(32))))
    s.refused(s.ingest(s.transfer("a", "b", 1), extra=1), "Malformed")
    s.refused(s.ingest(s.transfer("a", "b", 1, meta={"a": 1 << 53})), "Malformed", 0)


@story
def time_never_goes_back(s):
    s.now = T0 - 1
    s.refused(s.ingest(s.transfer("a", "b", 1)), "Malformed")
    s.refused(s.run("expire"), "Malformed")
    s.now = 253_402_300_800_000
    s.refused(s.ingest(s.transfer("a", "b", 1)), "Malformed")
    s.now = T0
    s.ok(s.ingest(s.transfer("a", "b", 1)))


@story
def key_replays_or_conflicts_within_tenant_and_caller(s):
    first = s.transfer("a", "b", 10)
    keyed = {"key": "k", "fingerprint": "11" * 32}
    reply = s.ok(s.ingest(first, **keyed))
    equal(s.ok(s.ingest(s.transfer("a", "b", 11), **keyed)), {**reply, "replay": True})
    s.refused(s.ingest(first, key="k", fingerprint="22" * 32), "IdempotencyConflict")
    s.refused(s.ingest({**first, "amount": "0"}, **keyed), "Malformed", 0)     # shape comes first
    s.ok(s.ingest(s.transfer("a", "b", 10), caller="wallet", **keyed))
    s.ok(s.ingest(s.transfer("a", "b", 10), tenant="1", **keyed))
    equal(s.balance("b"), 30)


@story
def known_id_is_duplicate_or_conflict(s):
    first = s.transfer("a", "b", 10, nonce=1)
    reply = s.ok(s.ingest(first))
    equal(s.ok(s.ingest({**first, "memo": "other", "ts": 1})), {**reply, "dup": True})
    for change in ({"amount": "11"}, {"to": "c"}, {"from": "c"}, {"nonce": 2}, {"asset": "usd"}):
        s.refused(s.ingest({**first, **change}), "Conflict", 0)
    s.refused(s.ingest({"id": first["id"], "kind": "Burn", "from": "a", "asset": "roc",
                        "amount": "10", "nonce": 1}), "Conflict", 0)
    s.refused(s.ingest({k: v for k, v in first.items() if k != "nonce"}), "Conflict", 0)
    s.ok(s.ingest({**first, "nonce": 2}, tenant="9"))       # ids are the tenant's own


@story
def equal_ids_in_one_batch_conflict_at_the_second(s):
    first = s.transfer("a", "b", 10)
    s.refused(s.ingest(s.transfer("a", "b", 1), first, first), "Conflict", 2)


@story
def tuple_of_a_used_nonce_is_a_duplicate_without_key(s):
    reply = s.ok(s.ingest(s.transfer("a", "b", 10, nonce=1)))
    equal(s.ok(s.ingest(s.transfer("a", "b", 10, nonce=1))), {**reply, "dup": True})
    s.refused(s.ingest(s.transfer("a", "b", 11, nonce=1)), "NonceConflict", 0, expected_nonce=2)
    s.refused(s.ingest(s.transfer("a", "b", 10, nonce=1), key="k", fingerprint="0" * 64),
              "NonceConflict", 0, expected_nonce=2)


@story
def only_a_whole_batch_in_order_is_a_duplicate(s):
    one, two = s.transfer("a", "b", 1), s.transfer("a", "b", 2)
    reply = s.ok(s.ingest(one, two))
    equal(s.ok(s.ingest(one, two)), {**reply, "dup": True})
    s.refused(s.ingest(two, one), "Conflict", 0)
    s.refused(s.ingest(one), "Conflict", 0)
    s.refused(s.ingest(s.transfer("a", "b", 3), one, two), "Conflict", 1)
    other = s.transfer("a", "b", 4)
    s.ok(s.ingest(other))
    s.refused(s.ingest(one, two, other), "Conflict", 0)


@story
def duplicates_of_captures_and_reverses_resolve(s):
    hold, capture = s.hold("h", payee="p"), s.entry("Capture", 10, hold_id="h")
    s.ok(s.ingest(hold, capture))
    reverse = s.entry("Reverse", 5, ref="e1")
    s.ok(s.ingest(reverse))
    equal(s.ok(s.ingest(hold, capture))["dup"], True)
    equal(s.ok(s.ingest(reverse))["dup"], True)
    s.refused(s.ingest({**capture, "hold_id": "unknown"}), "Conflict", 0)
    s.refused(s.ingest({**reverse, "ref": "unknown"}), "Conflict", 0)


@story
def source_time_is_checked_after_duplicates(s):
    first = s.transfer("a", "b", 1, ts=T0 - 60_000)
    s.ok(s.ingest(first))
    s.ok(s.ingest({**first, "ts": T0 - 60_001}))
    late = s.transfer("a", "b", 1, ts=T0 + 60_001)
    s.refused(s.ingest(s.transfer("a", "b", 1, asset="nope"), late), "Malformed", 1, server_ms=T0)


@story
def order_within_an_entry(s):
    s.ok(s.run("limits", account="a", asset="roc", minimum="990", daily="20", frozen=True))
    both = s.transfer("sys/x", "pool/p", 1, asset="nope", nonce=9)
    s.refused(s.ingest(both), "NotFound", 0)
    s.refused(s.ingest({**both, "asset": "roc"}), "Forbidden", 0)
    poor = s.transfer("a", "b", 5000, nonce=9)
    s.refused(s.ingest(poor), "NonceConflict", 0, expected_nonce=1)
    s.refused(s.ingest({**poor, "nonce": 1}), "LimitExceeded", 0, limit="frozen")
    s.ok(s.run("limits", account="a", frozen=False))
    s.refused(s.ingest({**poor, "nonce": 1}), "InsufficientFunds", 0, available="1000")
    s.refused(s.ingest(s.transfer("a", "b", 30)), "LimitExceeded", 0, limit="minimum")
    s.ok(s.run("limits", account="b", asset="roc", maximum="5"))
    s.ok(s.run("limits", account="a", asset="roc", daily="20"))
    s.refused(s.ingest(s.transfer("a", "b", 30)), "LimitExceeded", 0, limit="daily")
    s.refused(s.ingest(s.transfer("a", "b", 6)), "LimitExceeded", 0, limit="maximum")
    s.ok(s.ingest(s.transfer("a", "b", 5)))


@story
def accounts_open_by_their_first_credit(s):
    s.refused(s.ingest(s.transfer("b", "c", 1)), "InsufficientFunds", 0, available="0")
    s.refused(s.ingest(s.transfer("b", "c", 1), s.transfer("a", "b", 1)), "InsufficientFunds", 0,
              available="0")
    s.ok(s.ingest(s.transfer("a", "b", 1), s.transfer("b", "c", 1)))


@story
def one_nonce_counter_per_account(s):
    s.asset("usd")
    s.mint("a", 10, "usd")
    s.ok(s.ingest(s.transfer("a", "b", 1, nonce=1), s.transfer("a", "b", 1),
                  s.entry("Burn", 1, "usd", source="a", nonce=2), s.hold("h", nonce=3)))
    s.refused(s.ingest(s.transfer("a", "b", 1, nonce=3)), "NonceConflict", 0, expected_nonce=4)


@story
def frozen_accounts_may_be_credited(s):
    s.ok(s.run("limits", account="b", frozen=True))
    s.ok(s.ingest(s.transfer("a", "b", 1)))
    s.refused(s.ingest(s.transfer("b", "a", 1)), "LimitExceeded", 0, limit="frozen")


@story
def daily_counts_user_debits_of_the_utc_day(s):
    s.now = T0 - T0 % DAY_MS + DAY_MS - 1
    s.ok(s.ingest(s.transfer("a", "b", 60)))
    s.ok(s.run("limits", account="a", asset="roc", daily="100"))
    s.refused(s.ingest(s.transfer("a", "b", 41)), "LimitExceeded", 0, limit="daily")
    s.ok(s.ingest(s.entry("Reverse", 500, ref="e1")))               # a pays back, uncounted
    s.ok(s.ingest(s.hold("h", 40)))
    s.refused(s.ingest(s.entry("Burn", 1, source="a")), "LimitExceeded", 0, limit="daily")
    s.now += 1
    s.ok(s.ingest(s.transfer("a", "b", 100)))


@story
def system_accounts_have_no_limits(s):
    s.refused(s.run("limits", account="sys/mint/roc", frozen=True), "Forbidden")
    s.refused(s.run("limits", account="a", asset="nope"), "NotFound")
    s.refused(s.run("limits", account="a"), "Malformed")
    s.refused(s.run("limits", account="a", daily="5", frozen=True), "Malformed")


@story
def credit_line_allows_debt_down_to_it(s):
    s.ok(s.run("limits", account="a", asset="roc", credit_line="50"))
    s.refused(s.ingest(s.transfer("a", "b", 1051)), "InsufficientFunds", 0, available="1050")
    s.ok(s.ingest(s.transfer("a", "b", 1030)))
    equal(s.balance("a"), -30)
    s.refused(s.ingest(s.transfer("a", "b", 21)), "InsufficientFunds", 0, available="20")
    s.ok(s.run("limits", account="a", asset="roc", credit_line="10"))       # below the debt
    s.refused(s.ingest(s.transfer("a", "b", 1)), "InsufficientFunds", 0, available="0")
    s.ok(s.ingest(s.transfer("b", "a", 31)))
    s.ok(s.ingest(s.transfer("a", "b", 11)))
    equal(s.balance("a"), -10)


@story
def line_cannot_be_drawn_before_the_first_credit(s):
    s.ok(s.run("limits", account="n", asset="roc", credit_line="50"))
    rows = s.ledger.execute({"cmd": "state_root"})["rows"]
    s.refused(s.ingest(s.transfer("n", "b", 1)), "InsufficientFunds", 0, available="0")
    equal(rows, 2)                                  # a and sys/mint/roc: limits open nothing
    s.ok(s.ingest(s.transfer("a", "n", 1), s.transfer("n", "b", 51)))
    equal(s.balance("n"), -50)


@story
def accounts_with_a_line_stay_below_2_to_127(s):
    s.mint("big", LINE_MAX + 1)
    s.refused(s.run("limits", account="big", asset="roc", credit_line="1"), "Conflict")
    s.ok(s.ingest(s.transfer("big", "a", 1)))
    s.ok(s.run("limits", account="big", asset="roc", credit_line="1"))
    s.refused(s.ingest(s.transfer("a", "big", 1)), "LimitExceeded", 0, limit="maximum")


@story
def balances_stop_at_2_to_128(s):
    s.ok(s.run("limits", account="d", asset="roc", credit_line=str(LINE_MAX)))
    s.mint("big", U128_MAX - 1000)
    s.ok(s.ingest(s.transfer("a", "big", 1000)))
    s.ok(s.ingest(s.transfer("big", "d", 1)))
    s.refused(s.ingest(s.transfer("d", "big", 2)), "LimitExceeded", 0, limit="maximum")
    s.ok(s.ingest(s.transfer("d", "c", 2)))
    equal(s.balance("d"), -1)


@story
def limits_write_an_anchor_of_their_terms(s):
    reply = s.ok(s.run("limits", account="a", asset="roc", daily="7", frozen=False, minimum="1"))
    terms = b'{"account":"a","asset":"roc","daily":"7","frozen":false,"minimum":"1"}'
    equal(s.last().kind, "Anchor")
    equal((s.last().debit + s.last().credit).hex(), blake3(terms).hex())
    equal(reply["batch_no"], 2)


@story
def system_names_are_forbidden(s):
    for entry in (s.transfer("a", "sys/x", 1), s.transfer("sys/mint/roc", "a", 1),
                  s.entry("Mint", 1, to="sys/burn/roc"), s.entry("Burn", 1, source="sys/mint/roc"),
                  s.entry("Credit", 1, account="sys/clearing/roc"), s.hold("h", payee="sys/x")):
        s.refused(s.ingest(entry, reserved_ok=True), "Forbidden", 0)
    s.ok(s.ingest(s.transfer("a", "sys", 1), s.transfer("a", "system/x", 1)))


@story
def operator_may_take_from_sys_burn(s):
    s.ok(s.ingest(s.entry("Burn", 10, source="a")))
    back = s.transfer("sys/burn/roc", "a", 4)
    s.refused(s.ingest(back), "Forbidden", 0)
    s.ok(s.ingest(back, reserved_ok=True))
    s.refused(s.ingest(s.transfer("sys/burn/roc", "a", 7), reserved_ok=True), "InsufficientFunds",
              0, available="6")


@story
def pools_are_credited_by_any_and_debited_by_intents_only(s):
    s.ok(s.ingest(s.transfer("a", "pool/0/main", 100)))
    for entry in (s.transfer("pool/0/main", "a", 1), s.hold("h", 1, source="pool/0/main"),
                  s.entry("Reverse", 1, ref="e2"), s.entry("Debit", 1, account="pool/0/main")):
        s.refused(s.ingest(entry, reserved_ok=True), "Forbidden", 0)


@story
def anchor_streams_are_reserved_to_their_callers(s):
    for stream in ("slice/0/bytes", "run", "registry/head", "state", "limits/x", "snapshot/0"):
        anchor = s.entry("Anchor", stream=stream)
        s.refused(s.ingest(anchor), "Forbidden", 0)
        right = "accounting" if stream.startswith("snapshot") else "ledger"
        wrong = "ledger" if right == "accounting" else "accounting"
        s.refused(s.ingest(anchor, caller=wrong), "Forbidden", 0)
        s.ok(s.ingest(anchor, caller=right))
    s.ok(s.ingest(s.entry("Anchor", stream="statement/x")))


@story
def supply_is_for_ever(s):
    s.asset("usd", 100)
    s.mint("a", 100, "usd")
    s.ok(s.ingest(s.entry("Burn", 50, "usd", source="a")))
    s.refused(s.ingest(s.entry("Mint", 1, "usd", to="a")), "LimitExceeded", 0, limit="supply")


@story
def hold_is_captured_released_and_used_up(s):
    s.ok(s.ingest(s.hold("h", 100, payee="p")))
    equal((s.balance("a"), s.balance("sys/hold/h")), (900, 100))
    s.ok(s.ingest(s.entry("Capture", 30, hold_id="h"), s.entry("Release", 20, hold_id="h")))
    equal((s.balance("a"), s.balance("p"), s.balance("sys/hold/h")), (920, 30, 50))
    s.refused(s.ingest(s.entry("Capture", 51, hold_id="h")), "InsufficientFunds", 0, available="50")
    s.refused(s.ingest(s.entry("Release", 51, hold_id="h")), "InsufficientFunds", 0, available="50")
    s.refused(s.ingest(s.entry("Capture", 1, hold_id="none")), "NotFound", 0)
    s.refused(s.ingest(s.hold("h")), "Conflict", 0)


@story
def payee_rule(s):
    s.ok(s.ingest(s.hold("fixed", payee="p"), s.hold("any")))
    s.refused(s.ingest(s.entry("Capture", 1, hold_id="fixed", to="p")), "Malformed", 0)
    s.refused(s.ingest(s.entry("Capture", 1, hold_id="any")), "Malformed", 0)
    s.ok(s.ingest(s.entry("Capture", 1, hold_id="any", to="q")))
    s.refused(s.ingest(s.entry("Release", 1, hold_id="any", to="q")), "Malformed", 0)


@story
def hold_expires_at_its_time(s):
    s.refused(s.ingest(s.hold("h0", after=0)), "Expired", 0)
    s.ok(s.ingest(s.hold("h", after=1000, payee="p")))
    s.now += 999
    s.ok(s.ingest(s.entry("Capture", 1, hold_id="h")))
    s.now += 1
    s.refused(s.ingest(s.entry("Capture", 1, hold_id="h")), "Expired", 0)
    s.refused(s.ingest(s.entry("Release", 1, hold_id="h")), "Expired", 0)


@story
def capture_needs_the_asset_of_the_hold(s):
    s.asset("usd")
    s.ok(s.ingest(s.hold("h", payee="p")))
    s.refused(s.ingest(s.entry("Capture", 1, "usd", hold_id="h")), "Conflict", 0)


@story
def reverse_moves_back_and_never_more(s):
    s.asset("usd")
    s.ok(s.ingest(s.transfer("a", "b", 100)))
    s.refused(s.ingest(s.entry("Reverse", 1, "usd", ref="e2")), "Conflict", 0)
    s.ok(s.ingest(s.entry("Reverse", 60, ref="e2")))
    s.refused(s.ingest(s.entry("Reverse", 41, ref="e2")), "Conflict", 0, available="40")
    s.ok(s.ingest(s.transfer("b", "c", 20)))
    s.refused(s.ingest(s.entry("Reverse", 40, ref="e2")), "InsufficientFunds", 0, available="20")
    s.refused(s.ingest(s.entry("Reverse", 1, ref="none")), "NotFound", 0)
    s.refused(s.ingest(s.entry("Reverse", 1, ref="e4")), "Conflict", 0)         # a Reverse


@story
def only_some_kinds_are_reversed(s):
    hold, anchor = s.hold("h", payee="p"), s.entry("Anchor", stream="x")
    burn = s.entry("Burn", 10, source="a")
    s.ok(s.ingest(hold, anchor, burn))
    s.refused(s.ingest(s.entry("Reverse", 1, ref=hold["id"])), "Conflict", 0)
    s.refused(s.ingest(s.entry("Reverse", 1, ref=anchor["id"])), "Conflict", 0)
    s.ok(s.ingest(s.entry("Reverse", 10, ref=burn["id"])))
    s.ok(s.ingest(s.entry("Reverse", 900, ref="e1")))
    equal((s.balance("a"), s.balance("sys/mint/roc"), s.balance("sys/burn/roc")), (0, 100, 0))


@story
def clearing_is_zero_at_the_end_of_a_batch(s):
    s.asset("usd")
    s.mint("b", 50, "usd")
    credit, debit = s.entry("Credit", 7, account="b"), s.entry("Debit", 7, account="a")
    s.refused(s.ingest(credit, s.transfer("a", "c", 1)), "Malformed", 0)
    s.refused(s.ingest(s.entry("Debit", 3, "usd", account="b"), credit, debit), "Malformed", 0)
    anchor = s.entry("Anchor", stream="x")
    s.refused(s.ingest(s.entry("Debit", 3, "usd", account="b"), credit, anchor), "Malformed", 1)
    s.ok(s.ingest(credit, debit))
    undo = s.entry("Reverse", 7, ref=credit["id"])
    s.refused(s.ingest(undo), "Malformed", 0)
    s.ok(s.ingest(undo, s.entry("Reverse", 7, ref=debit["id"])))
    equal((s.balance("a"), s.balance("b"), s.balance("sys/clearing/roc")), (1000, 0, 0))


@story
def asset_registers_once(s):
    reply = s.asset("usd")
    equal(s.asset("usd"), {**reply, "dup": True})
    s.refused(s.run("asset", asset="usd", decimals=3, max_supply="1000000"), "Conflict")
    s.refused(s.run("asset", asset="usd", decimals=39, max_supply="1"), "Malformed")
    s.asset("eur")
    equal(s.last().asset, 3)


@story
def expire_releases_in_order_what_is_left(s):
    equal(s.run("expire"), {"ok": None})
    s.ok(s.ingest(s.hold("late", 10, after=2000), s.hold("soon", 20, after=1000),
                  s.hold("empty", 30, after=1000, payee="p"), s.hold("future", 40, after=9000)))
    s.ok(s.ingest(s.entry("Release", 30, hold_id="empty")))
    s.now += 2000
    reply = s.ok(s.run("expire"))
    equal(reply["seq_end"] - reply["seq_start"], 1)
    equal([s.ledger.t.entries[seq].amount for seq in (reply["seq_start"], reply["seq_end"])],
          [20, 10])
    equal(s.run("expire"), {"ok": None})
    equal(s.balance("a"), 960)


@story
def expire_gives_back_over_a_maximum(s):
    s.ok(s.ingest(s.hold("h", 100, after=10)))
    s.ok(s.run("limits", account="a", asset="roc", maximum="900"))
    s.now += 10
    s.ok(s.run("expire"))
    equal(s.balance("a"), 1000)


@story
def intents_pay_from_the_pool_in_chunks(s):
    s.refused(s.intents([("x", 60)], chunks=2), "Held")
    s.mint("pool/0/main", 150)
    first = s.ok(s.intents([("x", 60)], chunks=2))
    equal(first["seq_end"] - first["seq_start"], 2)
    equal(s.ok(s.intents([("x", 60)], chunks=2)), {**first, "replay": True})
    s.refused(s.intents([("x", 40)], 1, 2, fingerprint="0" * 64, run_key="other"), "Conflict")
    s.refused(s.intents([("x", 40)], 2, 3), "Conflict", expected_chunk=1)
    s.refused(s.intents([("x", 40)], 1, 3), "Conflict")
    s.refused(s.intents([("x", 40)], 1, 2, total=101), "Conflict")
    s.refused(s.intents([("x", 20), ("y", 21)], 1, 2), "InsufficientFunds", 1, available="20")
    s.refused(s.intents([("x", 39)], 1, 2), "Malformed", available="1")
    s.refused(s.intents([("x", 20), ("sys/x", 20)], 1, 2), "Forbidden", 1)
    s.ok(s.intents([("x", 20), ("y", 20)], 1, 2))
    equal((s.balance("x"), s.balance("y"), s.balance("pool/0/main")), (80, 20, 50))
    s.refused(s.intents([("x", 60)], chunks=2, caller="wallet"), "Conflict", expected_chunk=2)


@story
def pool_is_bound_by_its_limits_but_not_helped_by_a_line(s):
    s.mint("pool/0/main", 100)
    s.ok(s.run("limits", account="pool/0/main", asset="roc", credit_line="50", daily="1"))
    s.refused(s.intents([("x", 101)], total=101), "Held")
    s.ok(s.run("limits", account="pool/0/main", asset="roc", minimum="1", frozen=True))
    s.refused(s.intents([("x", 101)], total=101), "LimitExceeded", limit="frozen")
    s.ok(s.run("limits", account="pool/0/main", frozen=False))
    s.refused(s.intents([("x", 101)], total=101), "Held")
    s.refused(s.intents([("x", 100)]), "LimitExceeded", limit="minimum")
    s.ok(s.run("limits", account="pool/0/main", asset="roc", daily="1"))
    s.ok(s.intents([("x", 100)]))                   # by the ledger: not a user's debit


@story
def intents_refuse_known_ids_and_unknown_assets(s):
    s.mint("pool/0/main", 150)
    s.refused(s.intents([("x", 100)], asset="nope"), "NotFound")
    s.refused(s.intents([], total=100), "Malformed")
    s.refused(s.intents([], payouts=[{"id": "e1", "to": "x", "amount": "100"}]), "Conflict", 0)
    s.refused(s.intents([], payouts=[{"id": "q", "to": "x", "amount": "50"}] * 2), "Conflict", 1)
    s.ok(s.intents([("x", 100)]))
    s.refused(s.ingest(s.entry("Reverse", 1, ref="p0-0")), "Conflict", 0)
    s.refused(s.ingest(s.entry("Capture", 1, hold_id="run/0/ep", to="x")), "Malformed", 0)


@story
def slices_follow_their_chain(s):
    s.refused(s.slice(1, "a", "0"), "OrderOverflow", expected_seq=0)
    s.refused(s.slice(0, "a", "1"), "ChainMismatch")
    first = s.ok(s.slice(0, "a", "0"))
    equal(s.ok(s.slice(0, "a", "9")), {**first, "dup": True})
    s.refused(s.slice(0, "b", "0"), "ChainMismatch")
    s.ok(s.slice(1, "b", "a"))
    equal(s.ok(s.slice(0, "a", "0")), {**first, "dup": True})
    s.refused(s.slice(0, "c", "0"), "ChainMismatch")
    s.refused(s.slice(3, "c", "b"), "OrderOverflow", expected_seq=2)


@story
def pending_batches_can_be_lost(s):
    s.ledger.execute({"cmd": "hold_commits", "on": True})
    one = s.ok(s.ingest(s.transfer("a", "b", 1, nonce=1)))
    lost = s.transfer("a", "c", 2, nonce=2)
    two = s.ok(s.ingest(lost))
    equal((s.balance("b"), s.balance("c")), (0, 0))
    s.ledger.execute({"cmd": "commit", "upto": one["batch_no"]})
    equal((s.balance("b"), s.balance("c")), (1, 0))
    s.ledger.execute({"cmd": "rebuild"})
    equal(s.ok(s.ingest(lost)), two)                # as if it had never been


@case
def generator_repeats_itself_and_breaks_enough():
    def made(seed):
        ledger = Ledger()
        generator = Generator(random.Random(seed), ledger)
        pairs = []
        for _ in range(600):
            command = generator.next()
            text = json.dumps(command)
            answer = ledger.execute(command)
            generator.done(command, answer)
            pairs.append((text, answer))
        return pairs

    first = made(3)
    equal(made(3) == first, True)
    equal(made(4) == first, False)
    equal(sum("error" in answer for _, answer in first) > 180, True)
    equal(sum(bool(answer.get("ok")) for _, answer in first) > 150, True)


@story
def value_is_conserved_per_asset(s):
    s.asset("usd")
    s.mint("pool/0/main", 100)
    s.mint("b", 70, "usd")
    s.ok(s.run("limits", account="a", asset="roc", credit_line="500"))
    s.ok(s.ingest(s.transfer("a", "b", 1400), s.entry("Burn", 10, "usd", source="b")))
    s.ok(s.intents([("x", 30)], chunks=2))
    for asset, issued, burned in (("roc", "1100", "0"), ("usd", "70", "10")):
        equal(s.ledger.execute({"cmd": "totals", "asset": asset}),
              {"issued": issued, "burned": burned, "sum": issued})


def main():
    failed = 0
    for number, function in enumerate(CASES, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}")
        except Exception:                           # any failure is a failed case
            failed += 1
            print(f"not ok {number} - {function.__name__}")
            print("\n".join("# " + line for line in traceback.format_exc().splitlines()))
    print(f"1..{len(CASES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
