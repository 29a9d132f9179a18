"""edges.py - the third part of the generator: exact limits, and little stories told between others.

Random amounts never meet a bound exactly. Here an entry is built from a bound in the state, on it
or one beyond it; and stories of several commands lead to states that chance would not reach.
"""
from ledger_model import DAY_MS
from ledger_shape import LINE_MAX, U128_MAX
from misuse import HOT, rfc3339


class Edges:
    """Mixed into Generator, whose state and entry makers it uses."""

    def _edge(self):
        """One entry that goes exactly to a bound of the state, or one beyond."""
        rng, t = self.rng, self.ledger.t
        by = rng.choice((0, 0, 1))
        how = rng.choice(("supply", "minimum", "minimum", "daily", "daily", "maximum",
                          "credit_line", "funds"))
        bounded = [key for key, limits in t.limits.items() if not key[0].startswith("pool/")
                   and (how in ("supply", "funds") or getattr(limits, how))]
        if how == "supply" or not bounded:
            asset = self._asset_name()
            room = t.assets[asset].max_supply - self._balance("sys/mint/" + asset, asset)
            to = "rich_%d" % rng.randrange(10 ** 6)
            return self._entry("Mint", to=to, asset=asset, amount=str(max(1, min(room, 5) + by))) \
                if room < 10 ** 7 else self._to_the_top(asset, by)
        name, number = rng.choice(bounded[-12:])
        limits, balance = t.limits[name, number], self.ledger.balance(name, number)
        asset = t.asset_names[number]
        day, today = t.daily.get((name, number), (None, 0))
        if how == "minimum":
            amount = balance - limits.minimum + by
        elif how == "daily":
            amount = limits.daily - (today if day == self.now // DAY_MS else 0) + by
        elif how == "maximum":
            return self._entry("Mint", to=name, asset=asset,
                               amount=str(max(1, min(U128_MAX, limits.maximum - balance + by))))
        elif how == "credit_line":
            return self._entry("Mint", to=name, asset=asset,
                               amount=str(max(1, min(U128_MAX, LINE_MAX - balance + by))))
        else:
            amount = balance + (limits.credit_line or 0) + by
        entry = self._entry(rng.choice(("Burn", "Burn", "Hold")), asset=asset,
                            amount=str(max(1, min(U128_MAX, amount))), **{"from": name})
        if entry["kind"] == "Hold":
            entry.update(hold_id="g%d" % self.counter, payee="*",
                         expires_at=rfc3339(self.now + 5000))
        return entry

    def _to_the_top(self, asset, by):
        """A Mint that uses up the supply, rarely, because it ends minting of that asset."""
        room = self.ledger.t.assets[asset].max_supply - self._balance("sys/mint/" + asset, asset)
        amount = room + by if self.rng.random() < 0.1 or by else self.rng.randrange(1, 100)
        return self._entry("Mint", to="rich", asset=asset, amount=str(min(amount, U128_MAX)))

    # ---- Stories: each yields commands, others may come between ----

    def _new_story(self):
        return self.rng.choice((self._story_full_payer, self._story_frozen_pool,
                                self._story_early_limits, self._story_lowered_line,
                                self._story_wrong_chunks, self._story_same_expiry,
                                self._story_tuples, self._story_undo_undo,
                                self._story_days, self._story_top,
                                self._story_other_terms, self._story_stuck_run))()

    def _one(self, entry, tenant="0", **members):
        return {**self._stamp({"cmd": "ingest", "batch": [entry]}, tenant, "direct"), **members}

    def _move(self, source, to, asset, amount, tenant="0"):
        return self._one(self._entry("Transfer", to=to, asset=asset, amount=str(amount),
                                     **{"from": source}), tenant)

    def _story_full_payer(self):
        """A hold expires whose payer has no room for it, then has."""
        self.counter += 1
        asset, payer = "f%d" % self.counter, "full_%d" % self.counter
        yield self._stamp({"cmd": "asset", "asset": asset, "decimals": 0,
                           "max_supply": str(U128_MAX)})
        yield self._one(self._entry("Mint", to=payer, asset=asset, amount=str(LINE_MAX + 15)))
        expires = self.now + self.rng.choice((500, 5000))
        for amount in (15, self.rng.choice((1, 3))):
            yield self._one(self._entry("Hold", asset=asset, amount=str(amount), payee="*",
                                        hold_id="f%d" % self.counter, expires_at=rfc3339(expires),
                                        **{"from": payer}))
        yield self._stamp({"cmd": "limits", "account": payer, "asset": asset, "credit_line": "9"})
        self.now = max(self.now, expires)
        yield {"cmd": "expire", "commit_ms": self.now}
        yield self._move(payer, "acct_a", asset, self.rng.choice((14, 15, 12)))
        yield {"cmd": "expire", "commit_ms": self.now}

    def _story_frozen_pool(self):
        """A pool is frozen or has a minimum or a line when a run wants it."""
        fund = self.rng.choice(("main", "extra"))
        pool = "pool/0/" + fund
        yield self._one(self._entry("Mint", to=pool, asset="usd", amount="1000"))
        there = self._balance(pool, "usd")
        terms = self.rng.choice(({"frozen": True}, {"asset": "usd", "minimum": str(max(1, there))},
                                 {"asset": "usd", "minimum": str(max(1, there - 100))},
                                 {"asset": "usd", "credit_line": "500", "daily": "1"}))
        yield self._stamp({"cmd": "limits", "account": pool, **terms})
        command = self._first_chunk()
        there = max(1, self._balance(pool, "usd"))
        total = there + 1 if "credit_line" in terms else min(there, self.rng.choice((100, 101)))
        command.update(tenant="0", funding_source=fund, asset="usd", total=str(total), chunks=1,
                       payouts=self._payouts(total, True), commit_ms=self.now)
        yield dict(command)
        yield self._stamp({"cmd": "limits", "account": pool, "asset": "usd", "frozen": False})
        yield {**command, "commit_ms": self.now}

    def _story_early_limits(self):
        """Limits on an account that does not exist yet."""
        self.counter += 1
        name = "early_%d" % self.counter
        yield self._stamp({"cmd": "limits", "account": name, "asset": "usd", "credit_line": "50",
                           "maximum": "30", "frozen": self.rng.random() < 0.3})
        yield {"cmd": "balance", "account": name, "asset": "usd"}
        yield self._move(name, "acct_a", "usd", 5)
        yield self._move("acct_a", name, self.rng.choice(("usd", "roc")), 7)
        yield self._move(name, "acct_a", "usd", self.rng.choice((5, 50, 51, 57, 58)))
        yield self._stamp({"cmd": "limits", "account": name, "asset": "eur", "credit_line": "9"})
        yield {"cmd": "state_root"}
        yield self._move(name, "acct_b", "eur", 9)

    def _story_lowered_line(self):
        """A debt, its line lowered and removed, then a large credit."""
        name = self.rng.choice(HOT)
        balance = self._balance(name, "usd")
        if balance < 0:
            return
        yield self._stamp({"cmd": "limits", "account": name, "asset": "usd", "credit_line": "100",
                           "frozen": False})
        yield self._move(name, "acct_x", "usd", min(U128_MAX, self._balance(name, "usd") + 80))
        yield self._stamp({"cmd": "limits", "account": name, "asset": "usd",
                           **self.rng.choice(({}, {"credit_line": "79"}, {"credit_line": "81"}))})
        yield self._move(name, "acct_x", "usd", self.rng.choice((1, 2)))
        yield {"cmd": "balance", "account": name, "asset": "usd"}
        yield {"cmd": "state_root"}
        yield self._one(self._entry("Mint", to=name, asset="usd",
                                    amount=str(self.rng.choice((79, 80, 81, LINE_MAX)))))

    def _story_wrong_chunks(self):
        """A run of three chunks in which each term is wrong once, and the end does not fit."""
        rng = self.rng
        yield self._one(self._entry("Mint", to="pool/1/main", asset="roc", amount="500"), "1")
        first = self._first_chunk()
        total = max(3, min(300, self._balance("pool/1/main", "roc")))
        first.update(tenant="1", funding_source="main", asset="roc", total=str(total), chunks=3,
                     payouts=self._payouts(total // 3, False), commit_ms=self.now)
        yield first
        where = (1, first["epoch_id"])
        for change in ({"commitment": self._digest(("b3",))}, {"funding_source": "extra"},
                       {"asset": "usd"}, {"total": str(total + 1)}, {"chunks": 4},
                       {"run_key": "other"}, {"chunk": 2}, {}):
            run = self.ledger.t.runs.get(where)
            if run is not None and rng.random() < 0.7:
                yield {**self._next_chunk(where, run), "chunks": 3, **change}
        run = self.ledger.t.runs.get(where)
        if run is not None and run.next_chunk == 2:
            command = self._next_chunk(where, run)
            payout = command["payouts"][-1]
            payout["amount"] = str(max(1, int(payout["amount"]) + rng.choice((-1, -1, 1))))
            yield command

    def _story_other_terms(self):
        """An id comes again with other terms of its Hold or Anchor; by nonce too."""
        source = self.rng.choice(HOT[:4])
        self.used = {}
        self.counter += 1
        hold = self._nonce(self._entry("Hold", hold_id="terms%d" % self.counter, payee="acct_b",
                                       expires_at=rfc3339(self.now + 10 ** 6), asset="roc",
                                       amount="3", **{"from": source}), source, 1)
        yield self._one(hold)
        for change in ({}, {"payee": "*"}, {"payee": "acct_c"}, {"amount": "4"},
                       {"expires_at": rfc3339(self.now + 10 ** 6 + 1)},
                       {"expires_at": "1970-01-01T00:00:00Z"}):
            if self.rng.random() < 0.7:
                yield self._one({**hold, **change})
            if self.rng.random() < 0.4:
                yield self._one({**hold, **change, "id": self._new_id()})
        anchor = self._entry("Anchor", stream="mine/%d" % self.counter, ref="r",
                             digest="b3:" + "5" * 64)
        yield self._one(anchor)
        for change in ({}, {"ref": "q"}, {"stream": "mine"}, {"digest": "sha256:" + "5" * 64},
                       {"digest": "b3:" + "6" * 64}):
            yield self._one({**anchor, **change})
        yield self._one({name: value for name, value in anchor.items() if name != "ref"})

    def _story_stuck_run(self):
        """A run whose payee is full is abandoned, in its second chunk; keys look like its own."""
        self.counter += 1
        payee = "full_%d" % self.counter
        yield self._stamp({"cmd": "limits", "account": payee, "asset": "roc", "maximum": "1"})
        yield self._one(self._entry("Mint", to="pool/1/main", asset="roc", amount="90"), "1")
        first = self._first_chunk()
        first.update(tenant="1", funding_source="main", asset="roc", total="90", chunks=2,
                     payouts=self._payouts(20, False), commit_ms=self.now)
        yield self._one(self._entry("Mint", to="acct_a", asset="roc", amount="1"), "1",
                        key=first["run_key"] + ":0", fingerprint="7" * 64)
        yield first
        where = (1, first["epoch_id"])
        run = self.ledger.t.runs.get(where)
        if run is None:
            return
        chunk = self._next_chunk(where, run)
        chunk["payouts"][0]["to"] = payee
        yield chunk
        names = {"epoch_id": first["epoch_id"], "run_key": first["run_key"]}
        for _ in range(2):
            yield self._stamp({"cmd": "abandon", **names}, "1")
        for again in (chunk, first):
            yield {**again, "commit_ms": self.now}

    def _story_same_expiry(self):
        """Several holds end at one time, some just before; one is used at the last moment."""
        rng = self.rng
        expires = self.now + rng.choice((2000, 20_000))
        holds = []
        for _ in range(rng.randrange(2, 6)):
            self.counter += 1
            holds.append("s%d" % self.counter)
            yield self._one(self._entry("Hold", asset="usd", amount="2", payee="acct_b",
                                        hold_id=holds[-1], **{"from": rng.choice(HOT)},
                                        expires_at=rfc3339(expires - rng.choice((0, 0, 0, 1)))))
        if rng.random() < 0.4:              # what comes back may pass the maximum
            name = rng.choice(HOT)
            yield self._stamp({"cmd": "limits", "account": name, "asset": "usd",
                               "maximum": str(max(1, self._balance(name, "usd")))})
        self.now = max(self.now, expires - rng.choice((0, 1)))
        for kind in rng.sample(("Capture", "Release"), 2):
            yield self._one(self._entry(kind, asset="usd", amount="1", hold_id=rng.choice(holds)))
        yield {"cmd": "expire", "commit_ms": self.now}
        self.now = max(self.now, expires)
        yield self._one(self._entry("Capture", asset="usd", amount="1", hold_id=holds[0]))
        yield {"cmd": "expire", "commit_ms": self.now}
        yield self._one(self._entry("Hold", asset="usd", amount="1", payee="*",
                                    hold_id="new" + holds[0], expires_at=rfc3339(self.now),
                                    **{"from": "acct_a"}))

    def _story_days(self):
        """A daily ceiling over midnight UTC and through the day that follows."""
        self.counter += 1
        name = "daily_%d" % self.counter
        yield self._one(self._entry("Mint", to=name, asset="usd", amount="1000"))
        yield self._stamp({"cmd": "limits", "account": name, "asset": "usd", "daily": "100"})
        midnight = self.now - self.now % DAY_MS + DAY_MS
        for moment, amounts in ((midnight - 1, (60, 41, 40)), (midnight, (100, 1)),
                                (midnight + self.rng.randrange(DAY_MS // 2), (1,)),
                                (midnight + DAY_MS - 1, (1,)), (midnight + DAY_MS, (101, 100))):
            self.now = max(self.now, moment)
            for amount in amounts:
                yield self._move(name, "acct_a", "usd", amount)

    def _story_top(self):
        """Balances, clearing and daily sums at 2^128, which only debts and round trips reach."""
        rng = self.rng
        self.counter += 1
        asset, big, debtor = ("%s%d" % (text, self.counter) for text in ("o", "big_", "debtor_"))
        yield self._stamp({"cmd": "asset", "asset": asset, "decimals": 0,
                           "max_supply": str(U128_MAX)})
        yield self._stamp({"cmd": "limits", "account": big, "asset": asset,
                           "daily": str(U128_MAX)})
        yield self._stamp({"cmd": "limits", "account": debtor, "asset": asset,
                           "credit_line": str(LINE_MAX)})
        yield self._one(self._entry("Mint", to=big, asset=asset, amount=str(U128_MAX)))
        yield self._move(big, debtor, asset, 5)
        for amount in (6, 5 + rng.choice((0, 1, LINE_MAX))):
            yield self._move(debtor, big, asset, amount)        # 6: one more than there can be
        for _ in range(3):
            yield self._move(big, "other_" + big, asset, LINE_MAX)
            yield self._move("other_" + big, big, asset, LINE_MAX)
        yield self._move(debtor, "third_" + big, asset, LINE_MAX)
        yield self._one(self._entry("Burn", asset=asset, amount=str(rng.choice((9, LINE_MAX))),
                                    **{"from": big}))
        big_credit = self._entry("Credit", account="fourth_" + big, asset=asset,
                                 amount=str(U128_MAX))
        debit = self._entry("Debit", account=big, asset=asset, amount="7")
        yield self._stamp({"cmd": "ingest", "batch": [big_credit, debit]})

    def _story_tuples(self):
        """A nonce used again: same body with and without key, and each other body."""
        source = self.rng.choice(HOT[:4])
        self.used = {}
        entry = self._nonce(self._entry("Transfer", to="acct_x", asset="roc", amount="3",
                                        **{"from": source}), source, 1)
        yield self._one(entry)
        for change in ({}, {"amount": "4"}, {"to": "acct_y"}, {"asset": "usd"}):
            if self.rng.random() < 0.6:
                yield self._one({**entry, **change, "id": self._new_id()})
        yield self._one({**entry, "id": self._new_id()}, key="t%d" % self.counter,
                        fingerprint="%064x" % self.rng.getrandbits(256))
        burn = {**entry, "id": self._new_id(), "kind": "Burn"}
        del burn["to"]
        yield self._one(burn)

    def _story_undo_undo(self):
        """A Reverse is reversed; a Hold, a Capture, an Anchor and an unknown entry are."""
        transfer = self._entry("Transfer", to="acct_x", asset="roc", amount="9",
                               **{"from": self.rng.choice(HOT[:4])})
        hold = self._make_hold(0)
        hold.update(asset="roc", amount="5", payee="acct_b", expires_at=rfc3339(self.now + 10 ** 6),
                    **{"from": transfer["from"]})
        hold.pop("nonce", None)
        capture = self._entry("Capture", hold_id=hold["hold_id"], asset="roc", amount="2")
        anchor = self._make_anchor(0)
        yield self._stamp({"cmd": "ingest", "batch": [transfer, hold, capture, anchor]}, "0")
        undo = self._entry("Reverse", ref=transfer["id"], asset="roc", amount="4")
        yield self._one(undo)
        for target in (undo, hold, capture, anchor, transfer):
            amount = "6" if target is transfer else "1"
            yield self._one(self._entry("Reverse", ref=target["id"], asset="roc", amount=amount))
        self.used = {}
