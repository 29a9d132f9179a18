#!/usr/bin/env python3
"""test_writes.py - the ledger's writes over HTTP: replies, repetitions, rights; TAP.

    test_writes.py PROGRAM [NAME...]
"""
import contextlib
import http.server
import json
import re
import sys
import threading
import time

from apilib import ALL, FAR, Ledger, mint, refused, run, transfer, until

DIGEST = "b3:" + "55" * 32


def happy_path(home):
    """The reply has what 00-system says and no more; state follows. covers: LED-V08"""
    with Ledger(home) as ledger:
        reply = ledger.ingest(mint("m1", "acct_a", 100))
        assert reply.status == 200, reply.body
        body = reply.json()
        assert list(body) == ["accepted", "seq_start", "seq_end", "batch_no", "tree_size",
                              "new_root", "committed_at"]
        assert (body["accepted"], body["seq_start"], body["seq_end"], body["batch_no"],
                body["tree_size"]) == (True, 1, 1, 1, 1)
        assert re.fullmatch(r"[0-9a-f]{64}", body["new_root"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["committed_at"])
        assert reply.fields.get("Idempotent-Replay") is None
        body = ledger.must(transfer("t1", "acct_a", "acct_b", 40, nonce=1, memo="rent",
                                    meta={"b": 1, "a": [True]}, ts=int(time.time() * 1000)),
                           {"id": "u1", "kind": "Burn", "from": "acct_b", "asset": "roc",
                            "amount": "5"})
        assert (body["seq_start"], body["seq_end"], body["batch_no"], body["tree_size"]) == \
            (2, 3, 2, 3)
        assert ledger.amount("acct_a") == 60 and ledger.amount("acct_b") == 35
        balance = ledger.balance("acct_a")
        assert list(balance) == ["account", "asset", "amount", "next_nonce", "as_of_seq", "as_of"]
        assert balance["next_nonce"] == 2 and balance["as_of_seq"] == 3
        assert ledger.balance("nobody")["amount"] == "0"
        roots = ledger.ask("GET", "/roots").json()
        assert [root["seq"] for root in roots["roots"]] == [1, 3] and roots["next"] == 3
        assert roots["roots"][1]["root"] == body["new_root"]


def keys_repeat_the_reply(home):
    """Same key and body: same bytes, one header more; also after a restart and by header; another
    body is refused. covers: LED-V02 LED-F07"""
    with Ledger(home) as ledger:
        ledger.must(mint("m1", "acct_a", 100))
        entry = transfer("t1", "acct_a", "acct_b", 40, nonce=1, meta={"x": 1, "y": 2})
        first = ledger.ingest(entry, key="tx-77")
        again = ledger.ingest(dict(entry, ts=int(time.time() * 1000)), key="tx-77")
        assert (again.status, again.body) == (200, first.body), again.body
        assert first.fields.get("Idempotent-Replay") is None
        assert again.fields["Idempotent-Replay"] == "true"
        spelt = json.dumps({"idem_id": "tx-77", "batch": [dict(reversed(entry.items()))]},
                           indent=3).replace("acct_b", "acct\\u005fb")
        assert ledger.post("/ingest", spelt).body == first.body
        by_head = ledger.ingest(entry, headers={"Idempotency-Key": "tx-77"})
        assert by_head.body == first.body
        both = ledger.ingest(entry, key="tx-77", headers={"Idempotency-Key": "tx-77"})
        assert both.body == first.body
        refused(ledger.ingest(entry, key="tx-77", headers={"Idempotency-Key": "tx-78"}), 400,
                "Malformed")
        refused(ledger.ingest(dict(entry, amount="41"), key="tx-77"), 409, "IdempotencyConflict")
        assert ledger.amount("acct_b") == 40
        assert ledger.stop() == 0
    with Ledger(home) as ledger:
        again = ledger.ingest(entry, key="tx-77")
        assert again.body == first.body and again.fields["Idempotent-Replay"] == "true"
        assert ledger.amount("acct_b") == 40


def duplicates_without_key(home):
    """The same entries again are no new entries; a mixture is refused. covers: LED-F08 LED-F09"""
    with Ledger(home) as ledger:
        ledger.must(mint("m1", "acct_a", 100))
        one, two = (transfer("t1", "acct_a", "acct_b", 10, nonce=1),
                    transfer("t2", "acct_a", "acct_c", 20, nonce=2))
        first = ledger.ingest(one, two)
        again = ledger.ingest(one, two)
        assert again.body == first.body and again.fields["Idempotent-Replay"] == "true"
        head = ledger.head()
        refused(ledger.ingest(one), 409, "Conflict", 0)
        refused(ledger.ingest(transfer("t9", "acct_a", "acct_b", 1), one), 409, "Conflict", 1)
        refused(ledger.ingest(dict(one, amount="11")), 409, "Conflict", 0)
        refused(ledger.ingest(transfer("t9", "acct_a", "acct_b", 1),
                              transfer("t9", "acct_a", "acct_b", 2)), 409, "Conflict", 1)
        assert ledger.head() == head


def refusals_say_why(home):
    """Details of the core's refusals, by index."""
    with Ledger(home) as ledger:
        ledger.must(mint("m1", "acct_a", 100))
        refused(ledger.ingest(transfer("a", "acct_a", "b", 1), transfer("b", "acct_a", "b", 100)),
                409, "InsufficientFunds", 1, available="99")
        refused(ledger.ingest(transfer("a", "acct_a", "b", 1, nonce=2)), 409, "NonceConflict", 0,
                expected_nonce=1)
        refused(ledger.ingest(transfer("a", "ghost", "b", 1)), 409, "InsufficientFunds", 0,
                available="0")
        error = refused(ledger.ingest(transfer("a", "acct_a", "b", 1, ts=1)), 400, "Malformed", 0)
        assert abs(error["details"]["server_ms"] - time.time() * 1000) < 60000
        assert ledger.post("/accounts", {"account": "acct_a", "asset": "roc",
                                         "daily": "10"}).status == 200
        refused(ledger.ingest(transfer("a", "acct_a", "b", 11)), 403, "LimitExceeded", 0,
                limit="daily")
        assert ledger.post("/accounts", {"account": "acct_a", "frozen": True}).status == 200
        refused(ledger.ingest(transfer("a", "acct_a", "b", 1)), 403, "LimitExceeded", 0,
                limit="frozen")
        refused(ledger.post("/accounts", {"account": "sys/mint/roc", "frozen": True}), 403,
                "Forbidden")
        refused(ledger.post("/accounts", {"account": "a", "asset": "gold", "daily": "1"}), 404,
                "NotFound")
        refused(ledger.post("/accounts", {"account": "a"}), 400, "Malformed")
        assert ledger.amount("acct_a") == 100


def holds(home):
    """Hold, capture, release. The payee captures and releases; the payer cannot."""
    with Ledger(home) as ledger:
        hold = {"id": "h1", "kind": "Hold", "from": "acct_a", "hold_id": "H1", "payee": "shop",
                "expires_at": FAR, "asset": "roc", "amount": "30"}
        ledger.must(mint("m1", "acct_a", 100), hold,
                    dict(hold, id="h2", hold_id="H2", payee="*"))
        payer = ledger.mint("scope = ledger.ingest,ledger.read", "account = acct_a")
        shop = ledger.mint("scope = ledger.ingest,ledger.read", "account = shop*")
        capture = {"id": "c1", "kind": "Capture", "hold_id": "H1", "asset": "roc", "amount": "10"}
        release = {"id": "r1", "kind": "Release", "hold_id": "H1", "asset": "roc", "amount": "5"}
        refused(ledger.ingest(capture, token=payer), 403, "Forbidden", 0)
        refused(ledger.ingest(release, token=payer), 403, "Forbidden", 0)
        refused(ledger.ingest(dict(capture, hold_id="H2", to="other"), token=shop), 403,
                "Forbidden", 0)
        refused(ledger.ingest(dict(release, hold_id="H2"), token=shop), 403, "Forbidden", 0)
        ledger.must(capture, release, token=shop)
        ledger.must(dict(capture, id="c2", hold_id="H2", to="shop2"), token=shop)
        refused(ledger.ingest(dict(capture, id="c3", amount="16"), token=shop), 409,
                "InsufficientFunds", 0, available="15")
        refused(ledger.ingest(dict(capture, id="c3", hold_id="H9")), 404, "NotFound", 0)
        refused(ledger.ingest(dict(hold, id="h3")), 409, "Conflict", 0)
        assert (ledger.amount("acct_a"), ledger.amount("shop"), ledger.amount("shop2")) == \
            (45, 10, 10)


def scopes_by_kind(home):
    """Each kind needs its scope on top of ledger.ingest. covers: LED-S01 LED-S14"""
    with Ledger(home) as ledger:
        ledger.must(mint("m0", "acct_a", 100), transfer("t0", "acct_a", "acct_b", 9))
        entries = {
            "ledger.mint": mint("m1", "acct_a", 1),
            "ledger.burn": {"id": "u1", "kind": "Burn", "from": "acct_a", "asset": "roc",
                            "amount": "1"},
            "ledger.reverse": {"id": "v1", "kind": "Reverse", "ref": "t0", "asset": "roc",
                               "amount": "1"},
            "ledger.anchor": {"id": "a1", "kind": "Anchor", "stream": "mine", "digest": DIGEST},
        }
        plain = ledger.mint("scope = ledger.ingest")
        ledger.must(transfer("t1", "acct_a", "acct_b", 1), token=plain)
        for scope, entry in entries.items():
            refused(ledger.ingest(transfer("t2", "acct_a", "acct_b", 1), entry, token=plain), 403,
                    "Forbidden", 1)
            ledger.must(entry, token=ledger.mint(f"scope = ledger.ingest,{scope}"))
        refused(ledger.ingest(mint("m2", "a", 1), token=ledger.mint("scope = ledger.mint")), 403,
                "Forbidden")
        refused(ledger.ask("POST", "/ingest", {"batch": [mint("m2", "a", 1)]}), 401,
                "Unauthorized")
        read = ledger.mint("scope = ledger.read")
        refused(ledger.ingest(mint("m2", "a", 1), token=read), 403, "Forbidden")
        refused(ledger.post("/assets", {"asset": "usd", "decimals": 2, "max_supply": "10"},
                            token=plain), 403, "Forbidden")


def caveats_by_entry(home):
    """Account, asset and amount of each entry; reserved names; tenants. covers: LED-S01"""
    with Ledger(home) as ledger:
        ledger.must(mint("m0", "alice", 100), mint("m1", "bob", 100),
                    mint("m2", "pool/0/main", 50))
        write = "scope = ledger.ingest,ledger.mint,ledger.burn,ledger.reverse"
        alice = ledger.mint(write, "account = alice")
        ledger.must(transfer("t1", "alice", "bob", 1), token=alice)
        refused(ledger.ingest(transfer("t2", "alice", "bob", 1),
                              transfer("t3", "bob", "alice", 1), token=alice), 403, "Forbidden", 1)
        refused(ledger.ingest(mint("m3", "bob", 1), token=alice), 403, "Forbidden", 0)
        refused(ledger.ingest({"id": "v", "kind": "Reverse", "ref": "t1", "asset": "roc",
                               "amount": "1"}, token=alice), 403, "Forbidden", 0)
        capped = ledger.mint(write, "max_amount = 10", "asset = roc")
        ledger.must(transfer("t4", "alice", "bob", 10), token=capped)
        refused(ledger.ingest(transfer("t5", "alice", "bob", 11), token=capped), 403,
                "LimitExceeded", 0)
        refused(ledger.ingest(dict(transfer("t5", "alice", "bob", 1), asset="usd"), token=capped),
                403, "Forbidden", 0)
        for source in ("pool/0/main", "sys/burn/roc", "sys/mint/roc"):
            refused(ledger.ingest(transfer("t6", source, "bob", 1)), 403, "Forbidden", 0)
        seven = ledger.mint(write, "tenant = 7")
        refused(ledger.ingest(transfer("t7", "alice", "bob", 1), token=seven), 403, "Forbidden", 0)
        seven = ledger.mint(write, "tenant = 7", "account = alice")
        ledger.must(transfer("t1", "alice", "bob", 3), token=seven)  # ids are a tenant's own
        assert (ledger.amount("alice"), ledger.amount("bob")) == (86, 114)


def daily_ceiling(home):
    """max_daily counts what happened, once: not what was refused, and not its repetition."""
    with Ledger(home) as ledger:
        ledger.must(mint("m0", "alice", 1000))
        token = ledger.mint("scope = ledger.ingest", "max_daily = 100", "account = alice")
        refused(ledger.ingest(transfer("t0", "alice", "bob", 101), token=token), 403,
                "LimitExceeded", 0, reason="max_daily")
        refused(ledger.ingest(transfer("t0", "alice", "bob", 90, nonce=7), token=token), 409,
                "NonceConflict", 0, expected_nonce=1)
        ledger.must(transfer("t1", "alice", "bob", 60), token=token)
        refused(ledger.ingest(transfer("t2", "alice", "bob", 30),
                              transfer("t3", "alice", "bob", 11), token=token), 403,
                "LimitExceeded", 1, reason="max_daily")
        ledger.must(transfer("t2", "alice", "bob", 40), token=token)
        refused(ledger.ingest(transfer("t3", "alice", "bob", 1), token=token), 403,
                "LimitExceeded", 0, reason="max_daily")
        assert ledger.amount("bob") == 100


def daily_ceiling_outlives_a_restart(home):
    """What a capability spent today is read from the log; mints and others' debits are not its."""
    with Ledger(home) as ledger:
        ledger.must(mint("m", "alice", 10000))
        token = ledger.mint("scope = ledger.ingest,ledger.mint,ledger.burn", "max_daily = 100")
        ledger.must(transfer("t1", "alice", "bob", 30), mint("m1", "alice", 5000), token=token)
        ledger.must({"id": "h1", "kind": "Hold", "from": "alice", "hold_id": "H", "payee": "bob",
                     "expires_at": FAR, "asset": "roc", "amount": "20"},
                    {"id": "b1", "kind": "Burn", "from": "alice", "asset": "roc", "amount": "10"},
                    {"id": "k1", "kind": "Capture", "hold_id": "H", "asset": "roc", "amount": "5"},
                    token=token)
        refused(ledger.ingest(transfer("no", "bob", "alice", 10 ** 6), token=token), 403,
                "LimitExceeded", 0, reason="max_daily")
        refused(ledger.ingest(transfer("no", "carol", "alice", 9), token=token), 409,
                "InsufficientFunds", 0)
        ledger.must(transfer("t2", "alice", "bob", 900))  # another capability's
    for left in (40, 25):
        with Ledger(home) as ledger:
            over = transfer("over", "alice", "bob", left + 1)
            until(lambda: ledger.ingest(over, token=token).code() != "NotReady", "sums are known")
            refused(ledger.ingest(over, token=token), 403, "LimitExceeded", 0, reason="max_daily")
            ledger.must(transfer(f"t{left}", "alice", "bob", 15), token=token)


class Yes(http.server.BaseHTTPRequestHandler):
    """A policy that allows everything, and counts."""
    protocol_version = "HTTP/1.1"
    asked = []
    meanwhile = []  # to call before the next answer

    def do_POST(self):  # pylint: disable=invalid-name
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(asked)
        while self.meanwhile:
            self.meanwhile.pop()()
        body = json.dumps({"ok": True, "kid": asked["kid"],
                           "capability_ref": asked["capability_ref"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args):  # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def asking_elsewhere(home):
    """A ledger whose policy port is Yes."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Yes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        with Ledger(home, env={"RON_LEDGER__PORTS__POLICY": url}) as ledger:
            yield ledger
    finally:
        server.shutdown()


def one_evaluator(home):
    """With policy elsewhere, too, freezes and ceilings are decided once and name the entry."""
    with asking_elsewhere(home) as ledger:
        ledger.must(mint("m", "alice", 1000), mint("m2", "bob", 1000))
        assert Yes.asked
        token = ledger.mint("scope = ledger.ingest", "max_daily = 100")
        refused(ledger.ingest(transfer("t0", "carol", "bob", 70), token=token), 409,
                "InsufficientFunds", 0)  # and given back
        ledger.must(transfer("t1", "alice", "bob", 60), token=token)
        refused(ledger.ingest(transfer("a", "alice", "bob", 1), transfer("t2", "alice", "bob", 40),
                              token=token), 403, "LimitExceeded", 1, reason="max_daily")
        again = ledger.ingest(transfer("t3", "alice", "bob", 40), key="k", token=token)
        assert again.status == 200
        assert ledger.ingest(transfer("t3", "alice", "bob", 40), key="k",
                             token=token).body == again.body
        ledger.post("/admin/ledger/freeze", {"on": True, "account": "alice"}, admin=True)
        refused(ledger.ingest(transfer("b", "bob", "alice", 1), transfer("c", "alice", "bob", 1)),
                503, "NotReady", 1, reason="frozen")
        ledger.post("/admin/ledger/freeze", {"on": False, "account": "alice"}, admin=True)
        ledger.must(transfer("c", "alice", "bob", 1))


def frozen_while_asked(home):
    """A freeze holds once it is answered, also for writes that wait for somebody's word."""
    with asking_elsewhere(home) as ledger:
        ledger.must(mint("m", "alice", 1000), mint("m2", "bob", 1000))

        def freeze(**body):
            assert ledger.post("/admin/ledger/freeze", body, admin=True).status == 200

        token = ledger.mint("scope = ledger.ingest", "max_daily = 100")
        Yes.meanwhile.append(lambda: freeze(on=True, account="alice"))
        refused(ledger.ingest(transfer("b", "bob", "alice", 1), transfer("c", "alice", "bob", 90),
                              token=token), 503, "NotReady", 1, reason="frozen")
        assert ledger.amount("alice") == 1000
        freeze(on=False, account="alice")
        ledger.must(transfer("c", "alice", "bob", 90), token=token)  # what was charged came back


def rate_caveat(home):
    """rate = per second / burst; answered with RateLimited."""
    with Ledger(home) as ledger:
        token = ledger.mint("scope = ledger.read", "rate = 1/3")
        answers = [ledger.get("/balance?account=a&asset=roc", token).status for _ in range(8)]
        assert answers[:3] == [200] * 3 and 429 in answers, answers


def on_behalf(home):
    """Only a role acts for others."""
    with Ledger(home) as ledger:
        reply = ledger.ingest(mint("m0", "alice", 1), headers={
            "X-On-Behalf": "k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"})
        refused(reply, 403, "Forbidden")
        refused(ledger.ingest(mint("m0", "alice", 1), headers={"X-On-Behalf-Tenant": "7"}), 403,
                "Forbidden")


def assets(home):
    with Ledger(home) as ledger:
        terms = {"asset": "usd", "decimals": 2, "max_supply": "500"}
        first = ledger.post("/assets", terms)
        assert first.status == 200, first.body
        again = ledger.post("/assets", terms)
        assert again.body == first.body and again.fields["Idempotent-Replay"] == "true"
        refused(ledger.post("/assets", dict(terms, decimals=3)), 409, "Conflict")
        refused(ledger.post("/assets", dict(terms, asset="roc")), 409, "Conflict")
        refused(ledger.post("/assets", dict(terms, asset="Gold")), 400, "Malformed")
        refused(ledger.post("/assets", dict(terms, more=1)), 400, "Malformed")
        refused(ledger.post("/assets", terms, headers={"Idempotency-Key": "k"}), 400, "Malformed")
        ledger.must(mint("m1", "alice", 500, "usd"))
        refused(ledger.ingest(mint("m2", "alice", 1, "usd")), 403, "LimitExceeded", 0,
                limit="supply")
        refused(ledger.ingest(mint("m2", "alice", 1, "eur")), 404, "NotFound", 0)


def intents(home):
    """A run in two chunks: pool, binding, repetition, abandoning."""
    with Ledger(home) as ledger:
        ledger.must(mint("m0", "pool/0/main", 100))
        run_one = {"epoch_id": "e1", "run_key": "rk", "commitment": DIGEST,
                   "funding_source": "main", "asset": "roc", "total": "50", "chunk": 0,
                   "chunks": 2, "payouts": [{"id": "p1", "to": "dave", "amount": "20"}]}
        refused(ledger.post("/intents", dict(run_one, total="101")), 503, "Held")
        first = ledger.post("/intents", run_one)
        assert first.status == 200, first.body
        again = ledger.post("/intents", run_one, headers={"Idempotency-Key": "rk:0"})
        assert again.body == first.body and again.fields["Idempotent-Replay"] == "true"
        refused(ledger.post("/intents", run_one, headers={"Idempotency-Key": "x"}), 400,
                "Malformed")
        refused(ledger.post("/intents", dict(run_one, total="49")), 409, "IdempotencyConflict")
        refused(ledger.post("/intents", dict(run_one, run_key="other")), 409, "Conflict")
        two = dict(run_one, chunk=1, payouts=[{"id": "p2", "to": "erin", "amount": "29"}])
        refused(ledger.post("/intents", two), 400, "Malformed", available="1")
        refused(ledger.post("/intents", dict(two, payouts=[
            {"id": "p2", "to": "erin", "amount": "20"},
            {"id": "p3", "to": "bad name", "amount": "10"}])), 400, "Malformed", 1)
        refused(ledger.post("/intents", dict(two, payouts=[
            {"id": "p2", "to": "erin", "amount": "31"}])), 409, "InsufficientFunds", 0,
            available="30")
        refused(ledger.post("/intents", two, token=ledger.mint("scope = ledger.ingest")), 403,
                "Forbidden")
        reply = ledger.post("/intents", dict(two, payouts=[
            {"id": "p2", "to": "erin", "amount": "30"}]))
        assert reply.status == 200, reply.body
        assert (ledger.amount("dave"), ledger.amount("erin"), ledger.amount("pool/0/main")) == \
            (20, 30, 50)
        stuck = dict(run_one, epoch_id="e2", run_key="rk2", total="50",
                     payouts=[{"id": "p9", "to": "dave", "amount": "1"}])
        assert ledger.post("/intents", stuck).status == 200
        refused(ledger.post("/admin/ledger/abandon", {"epoch_id": "e2", "run_key": "zz"},
                            admin=True), 409, "Conflict")
        ended = ledger.post("/admin/ledger/abandon", {"epoch_id": "e2", "run_key": "rk2"},
                            admin=True)
        assert ended.status == 200, ended.body
        assert ledger.amount("pool/0/main") == 49


def many_writers(home):
    """Eight clients at once: no gap, no lost reply, conservation. covers: LED-V34"""
    with Ledger(home) as ledger:
        ledger.must(*[mint(f"m{i}", f"acct_{i}", 1000) for i in range(8)])
        seqs, wrong = [], []

        def client(number):
            for i in range(25):
                reply = ledger.ingest(transfer(f"t{number}-{i}", f"acct_{number}",
                                               f"acct_{(number + 1) % 8}", 1, nonce=i + 1))
                if reply.status == 200:
                    seqs.append(reply.json()["seq_start"])
                else:
                    wrong.append(reply.body)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[0]
        assert sorted(seqs) == list(range(9, 209))
        assert [ledger.amount(f"acct_{i}") for i in range(8)] == [1000] * 8


def escaped_texts(home):
    """Names and ids spelt with escapes are read into memory that the next request uses too: they
    must not be there any more when the batch is applied, and nothing else where they went."""
    def spelt(text):
        return '"' + "".join(f"\\u{ord(letter):04x}" for letter in text) + '"'

    with Ledger(home) as ledger:
        ledger.must(*[mint(f"m{i}", f"acct_{i}", 1000) for i in range(8)])
        wrong = []

        def client(number):
            for i in range(20):
                entries = [f'{{"id":{spelt(f"t{number}-{i}-{j}")},"kind":"Transfer","from":'
                           f'{spelt(f"acct_{number}")},"to":{spelt(f"to_{number}_{j}")},'
                           f'"asset":"roc","amount":"1","meta":{{"n":{number}}}}}'
                           for j in range(20)]
                reply = ledger.post("/ingest", '{"batch":[' + ",".join(entries) + "]}")
                if reply.status != 200:
                    wrong.append(reply.body)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[0]
        for number in range(8):
            assert ledger.amount(f"acct_{number}") == 600
            assert [ledger.amount(f"to_{number}_{j}") for j in range(20)] == [20] * 20


def frozen(home):
    """Writes stop by order of the operator, all or those of one account; reads go on."""
    with Ledger(home) as ledger:
        ledger.must(mint("m0", "alice", 100), mint("m1", "bob", 100))

        def freeze(**body):
            return ledger.post("/admin/ledger/freeze", body, admin=True)

        assert freeze(on=True).json() == {"frozen": True}
        refused(ledger.ingest(transfer("t1", "alice", "bob", 1)), 503, "NotReady",
                reason="frozen")
        assert ledger.amount("alice") == 100
        assert freeze(on=False).json() == {"frozen": False}
        ledger.must(transfer("t1", "alice", "bob", 1))
        assert freeze(on=True, account="alice").status == 200
        refused(ledger.ingest(transfer("t2", "alice", "bob", 1)), 503, "NotReady", 0,
                reason="frozen")
        ledger.must(transfer("t2", "bob", "carol", 1))
        assert freeze(on=False, account="alice").status == 200
        refused(freeze(on=False, account="alice"), 404, "NotFound")
        refused(freeze(on=True, until=FAR), 400, "Malformed")
        ledger.must(transfer("t3", "alice", "bob", 1))
        refused(ledger.post("/admin/ledger/freeze", {"on": True}, admin=True,
                            token=ledger.mint("scope = ledger.ingest")), 403, "Forbidden")
        ledger.wait_log("the ledger's operator acted")


def safe_mode(home):
    """covers: LED-F20"""
    with Ledger(home) as ledger:
        ledger.must(mint("m0", "alice", 100))

        def set_mode(state):
            return ledger.post("/admin/ledger/safe-mode", {"on": state, "ack": "INC-12"},
                               admin=True)

        assert set_mode(True).json() == {"safe_mode": True}
        error = refused(ledger.ingest(transfer("t1", "alice", "bob", 1)), 503, "SafeMode",
                        reason="operator")
        assert error["retryable"] is False and "operator" in error["message"], error
        recovery = ledger.get("/recovery").json()
        assert recovery["safe_mode"] is True and recovery["last_good_seq"] == 1
        assert (recovery["state"], recovery["cause"]) == ("SafeMode", "operator")
        ready = refused(ledger.ask("GET", "/readyz?role=ledger"), 503, "NotReady")
        assert ready["details"]["roles"][0]["reasons"] == ["operator"], ready
        assert ledger.head()[0] == 1 and ledger.amount("alice") == 100
        assert set_mode(False).json() == {"safe_mode": False}
        ledger.must(transfer("t1", "alice", "bob", 1))
        refused(ledger.post("/admin/ledger/safe-mode", {"on": False}, admin=True), 400,
                "Malformed")


# What each route takes beside its path and body; what is needed has a mark. Others take nothing.
PARAMETERS = {
    "GET /balance": "account! asset! at_seq",
    "GET /entries": "account asset after from limit",
    "GET /holds": "account! after limit",
    "GET /roots": "since limit",
    "GET /roots/stream": "since Last-Event-ID",
    "GET /proof/inclusion": "seq! size",
    "GET /proof/consistency": "from! to",
    "GET /proof/balance": "account! asset!",
    "POST /ingest": "proof Idempotency-Key",
    "POST /intents": "proof Idempotency-Key",
    "POST /assets": "proof",
    "POST /accounts": "proof",
    "PUT /slices/{tenant}/{dimension}/{seq}": "proof",
    "POST /admin/ledger/abandon": "proof",
    "GET /admin/ledger/export": "format since",
}


def operations(ledger):
    """Of the ledger's role: (method, path, what the document says of it)."""
    document = ledger.ask("GET", "/openapi.json").json()
    return [(method.upper(), path, operation) for path, methods in document["paths"].items()
            for method, operation in methods.items() if operation["tags"] == ["ledger"]]


def parameters(home):
    """The document declares what a route takes; it takes what is declared, once, and no more."""
    with Ledger(home) as ledger:
        found = {}
        for method, path, operation in operations(ledger):
            listed = operation.get("parameters", [])
            for one in listed:
                assert one["in"] == "path" or one["description"], (path, one)
            found[f"{method} {path}"] = " ".join(
                one["name"] + "!" * one["required"] for one in listed if one["in"] != "path")
            body = {} if "requestBody" in operation else None
            url = re.sub(r"{\w+}", "0", path)

            def complaint(query, method=method, url=url, body=body, path=path):
                reply = ledger.ask(method, f"{url}?{query}", body, ledger.all,
                                   admin=path.startswith("/admin/"))
                return reply.json()["error"] if reply.status != 200 else {"code": "", "message": ""}

            error = complaint("nothing=1")
            assert error["code"] == "Malformed", (path, error)
            assert "unknown parameter nothing" in error["message"], (path, error)
            if "!" in found[f"{method} {path}"]:
                error = complaint("")
                assert error["code"] == "Malformed", (path, error)
            for one in listed:
                if one["in"] == "query":
                    assert "unknown" not in complaint(one["name"] + "=%20")["message"], path
                    error = complaint(f"{one['name']}=1&{one['name']}=1")
                    assert f"{one['name']}: more than once" in error["message"], (path, one, error)
        assert {name: text for name, text in found.items() if text} == PARAMETERS
        assert "GET /tile/{tile}" in found and "GET /recovery" in found


def openapi(home):
    """Every route of the ledger, with the schemas of its bodies."""
    with Ledger(home) as ledger:
        ledger.must(mint("m0", "alice", 100), key="k1")
        for _, path, operation in operations(ledger):
            content = operation["responses"]["200"]["content"].get("application/json")
            assert content is None or path.startswith("/admin/") or content["schema"], path
        for path in ("/balance?account=alice&asset=roc", "/assets", "/idem/k1", "/roots",
                     "/recovery", "/accounts/alice", "/proof/inclusion?seq=1",
                     "/proof/consistency?from=1", "/entries", "/slices/0/bytes/head"):
            until(lambda path=path: ledger.get(path).status == 200, path)
            plain = re.sub(r"\?.*|(?<=/idem/).*|(?<=/accounts/).*", "", path)
            operation = next(one for method, name, one in operations(ledger) if method == "GET" and
                             re.sub(r"{.*}", "", name.replace("{tenant}/{dimension}", "0/bytes"))
                             == plain)
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            reply = ledger.get(path).json()
            assert set(reply) <= set(schema["properties"]), (path, reply)
            assert set(schema.get("required", [])) <= set(reply), (path, reply)
        document = ledger.ask("GET", "/openapi.json").json()
        for path in ("/ingest", "/intents", "/assets", "/accounts"):
            content = document["paths"][path]["post"]["requestBody"]["content"]
            assert content["application/json"]["schema"]["type"] == "object", path
        assert "ledger.admin" in ALL


TESTS = [happy_path, keys_repeat_the_reply, duplicates_without_key, refusals_say_why, holds,
         scopes_by_kind, caveats_by_entry, daily_ceiling,
         daily_ceiling_outlives_a_restart, one_evaluator, frozen_while_asked, rate_caveat,
         on_behalf, assets, intents, many_writers, escaped_texts, frozen, safe_mode, parameters,
         openapi]

if __name__ == "__main__":
    sys.exit(run(TESTS))
