"""generate.py - seeded commands for the ledger core, made by looking at the model's state.

Generator(rng, ledger).next() returns one command of the driver's protocol. About half are meant to
be applied; the rest repeat earlier ones (as they were, altered, permuted, in part), break one rule,
or break the shape. What was meant is no promise: the model decides. Same seed and same model, same
commands. Time only goes forward; steps reach days and hold expiries.
"""
import copy

from edges import Edges
from ledger_model import DAY_MS, REVERSIBLE
from ledger_shape import TIME_MAX, U64_MAX, U128_MAX
from misuse import (BAD_AMOUNTS, CALLERS, EDGES, FUNDS, HOT, TENANTS, Misuse, rfc3339)

DIMENSIONS = ("bytes", "requests")
ASSET_NAMES = ("usd", "eur", "a", "jpy_2", "pts-x", "gold", "x" * 32)
MEMOS = ("lunch", "", "ünïcode \u20ac \U0001f600", "tab\t quote\" slash\\ \u0001\u001f", "m" * 256)
METAS = ({}, {"b": 1, "a": [True, None, "x"]},
         {"\U0001f600": 1, "\uffee": 2, "é": {"z": -5, "y": {}}},
         {"n": 9007199254740991, "s": "\b\f\n\r\t\u007f/</>"}, {"p": "q" * 1016})
START_MS = 1_760_000_000_000
ZERO_B3 = "b3:" + "0" * 64
FOREIGN = (("asset", "usd"), ("frozen", True), ("chunk", 0), ("dimension", "bytes"),
           ("names", ["a"]), ("extra", 1), ("key", "k"))


class Generator(Misuse, Edges):
    def __init__(self, rng, ledger, profile="plain"):
        self.rng, self.ledger = rng, ledger
        self.profile = profile
        self.now = START_MS + rng.randrange(DAY_MS) + 1
        self.counter = 0
        self.history = []               # (command, answer) of applied commands
        self.story = iter(())
        self.used = {}                  # account -> nonces used in the batch being made
        self.accounts = list(HOT)
        self.openings = self._openings()

    # ---- The stream of commands ----

    def next(self):
        command = next(self.openings, None)
        if command is not None:
            return command
        if self.rng.random() < 0.25:
            command = next(self.story, None)
            if command is not None:
                return command
            if self.rng.random() < 0.3:
                self.story = self._new_story()
        self._step_time()
        draw = self.rng.random()
        if draw < 0.05 and self.profile != "quiet":
            return self._query()
        return self._foreign(self._command(draw))

    def _foreign(self, command):
        """Rarely: a member that belongs to another command, or to none."""
        if self.rng.random() < 0.01:
            for name, value in self.rng.sample(FOREIGN, 2):
                command.setdefault(name, value)
        return self._at_wrong_time(command) if self.rng.random() < 0.1 else command

    def _command(self, draw):
        if draw < 0.17:
            return self._retry()
        if draw < 0.25:
            return self._administer()
        if draw < 0.32:
            return self._intents()
        if draw < 0.38:
            return self._slice()
        if draw < 0.39:
            return self._at_wrong_time({"cmd": "expire", "commit_ms": self.now})
        if draw < 0.40:
            return self._at_wrong_time(self._open_names())
        if draw < 0.44:
            return self._at_wrong_time(self._one(self._edge()))
        command = self._ingest()
        if draw < 0.72:
            return command
        return self._break_shape(command) if draw < 0.80 else self._break_rule(command)

    def done(self, command, answer):
        """Told after each command what the model answered."""
        reply = answer.get("ok")
        if reply and not reply["dup"] and not reply["replay"]:
            self.history.append((command, answer))

    def _openings(self):
        """Money first, else most commands die of poverty."""
        for name, decimals, supply in (("usd", 2, U128_MAX), ("eur", 2, 1_000_000)):
            yield self._stamp({"cmd": "asset", "asset": name, "decimals": decimals,
                               "max_supply": str(supply)}, "0", "direct")
        for asset, amount in (("roc", 10 ** 12), ("usd", 10 ** 9), ("eur", 50_000)):
            for account in HOT[:4]:
                yield self._stamp({"cmd": "ingest", "batch": [
                    self._entry("Mint", to=account, asset=asset, amount=str(amount))]},
                    "0", "direct")

    def _at_wrong_time(self, command):
        """Rarely: time goes back or leaves the calendar; a bad shape is told before."""
        if self.rng.random() < 0.05:
            last = self.ledger.t.log["commit_ms"]
            command["commit_ms"] = self.rng.choice((0, last - 1, last - DAY_MS, TIME_MAX + 1))
        return command

    def _step_time(self):
        draw = self.rng.random()
        if draw < 0.30:
            return
        if draw < 0.95:
            self.now += self.rng.randrange(2000)
        elif draw < 0.965:
            self.now += self.rng.choice((DAY_MS, DAY_MS - self.now % DAY_MS,
                                         DAY_MS - self.now % DAY_MS - 1))
        elif draw < 0.97:
            self.now += self.rng.randrange(3 * DAY_MS)
        else:
            due = [hold.expires_ms for hold in self._open_holds()]
            if due:
                self.now = max(self.now, min(due) + self.rng.choice((-1, 0, 0, 1)))

    def _stamp(self, command, tenant=None, caller=None):
        rng = self.rng
        command["commit_ms"] = self.now
        command["tenant"] = tenant or rng.choice(TENANTS)
        command["caller"] = caller or rng.choice(CALLERS)
        command["capability"] = "%016x" % rng.getrandbits(64)
        if command["cmd"] == "ingest":
            command["reserved_ok"] = rng.random() < 0.05
        return command

    # ---- What the state offers ----

    def _balance(self, name, asset):
        number = self.ledger.t.assets[asset].number
        return self.ledger.balance(name, number)

    def _asset_name(self):
        names = list(self.ledger.t.assets)
        return self.rng.choice(("roc", "roc", "usd", "usd", "usd", "eur", self.rng.choice(names)))

    def _account(self):
        """Mostly a hot account, sometimes an older one, sometimes a new one."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.75:
            return rng.choice(HOT)
        if draw < 0.90:
            return rng.choice(self.accounts)
        name = rng.choice(("n/%d", "user:%d", "x_%d-" + "y" * rng.choice((0, 3, 140)))) \
            % rng.randrange(10 ** 6)
        if len(self.accounts) < 400:
            self.accounts.append(name)
        return name

    def _funded(self, asset):
        """An account that has something of the asset, if a few draws find one."""
        for _ in range(6):
            name = self._account()
            if self._balance(name, asset) > 0:
                return name
        return name

    def _open_holds(self):
        """Recent holds with something left, expired ones rarely; bounded, being asked often."""
        t, found = self.ledger.t, []
        for account, _ in zip(reversed(t.holds), range(60)):
            hold = t.holds[account]
            alive = hold.expires_ms > self.now or self.rng.random() < 0.1
            if alive and self.ledger.balance(account, hold.asset):
                found.append(hold)
            if len(found) == 12:
                break
        return found

    def _recent_holds(self):
        t = self.ledger.t
        return [t.holds[account] for account, _ in zip(reversed(t.holds), range(30))]

    def _recent_entries(self, wanted):
        t, found = self.ledger.t, []
        for seq in range(t.log["seq"], max(0, t.log["seq"] - 60), -1):
            if wanted(t.entries[seq]):
                found.append(t.entries[seq])
        return found

    def _amount(self, most=None):
        """Small mostly; up to what is there; edges."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.70:
            amount = rng.randrange(1, 500)
        elif draw < 0.90 or self.profile == "plain" and draw < 0.97:
            amount = rng.randrange(1, max(2, (most or 1000) // 2))
        elif draw < 0.95 and most:
            amount = most
        else:
            amount = rng.choice(EDGES)
        if most is not None and most > 0 and rng.random() < 0.9:
            amount = min(amount, most)
        return str(amount)

    def _digest(self, algorithms=("b3", "b3", "sha256")):
        return "%s:%064x" % (self.rng.choice(algorithms), self.rng.getrandbits(256))

    def _new_id(self):
        self.counter += 1
        draw = self.rng.random()
        if draw < 0.95:
            return "e%d" % self.counter
        return ("%d:A.b_c-" % self.counter).ljust(64 if draw < 0.97 else 36, "z")

    # ---- Entries ----

    def _entry(self, kind, **members):
        entry = {"id": self._new_id(), "kind": kind, **members}
        rng = self.rng
        if rng.random() < 0.12:
            entry["ts"] = self.now + rng.choice((0, 1, -1, 60_000, -60_000, rng.randrange(60_000)))
        if rng.random() < 0.06:
            entry["memo"] = rng.choice(MEMOS)
        if rng.random() < 0.06:
            entry["meta"] = copy.deepcopy(rng.choice(METAS))
        return entry

    def _ingest(self):
        rng = self.rng
        command = self._stamp({"cmd": "ingest"})
        self.used = {}
        tenant = int(command["tenant"])
        count = rng.choice((1, 1, 1, 1, 1, 2, 2, 3, 4, rng.randrange(1, 12)))
        batch = []
        if rng.random() < 0.15:
            batch += self._legs()
        while len(batch) < count:
            kind = rng.choice(("Mint", "Burn", "Transfer", "Transfer", "Hold", "Hold", "Capture",
                               "Capture", "Release", "Reverse", "Reverse", "Anchor"))
            entry = getattr(self, "_make_" + kind.lower())(tenant)
            if entry is not None:
                batch.append(entry)
        if rng.random() < 0.1:
            rng.shuffle(batch)
        command["batch"] = batch
        if rng.random() < 0.3:
            command["key"] = "k%d" % self.counter if rng.random() < 0.95 else "K" * 128
            command["fingerprint"] = "%064x" % rng.getrandbits(256)
        return command

    def _nonce(self, entry, account, share=0.6):
        if self.rng.random() < share:
            used = self.used.get(account, 0)
            entry["nonce"] = self.ledger.t.next_nonce.get(account, 1) + used
            self.used[account] = used + 1
        return entry

    def _make_mint(self, tenant):
        asset = self._asset_name()
        known = self.ledger.t.assets[asset]
        room = known.max_supply - self._balance("sys/mint/" + asset, asset)
        to = self._account() if self.rng.random() < 0.9 else self._pool(tenant)
        amount = self._amount(min(room, 10 ** 9))
        if self.rng.random() < 0.4:
            amount = str(max(1, min(room // 4, 10 ** 7)))
        return self._entry("Mint", to=to, asset=asset, amount=amount)

    def _make_burn(self, tenant):
        asset = self._asset_name()
        account = self._funded(asset)
        amount = self._amount(self._balance(account, asset))
        return self._nonce(self._entry("Burn", asset=asset, amount=amount, **{"from": account}),
                           account)

    def _make_transfer(self, tenant):
        rng = self.rng
        asset = self._asset_name()
        account = self._funded(asset)
        to = self._account() if rng.random() < 0.85 else self._pool(tenant)
        while to == account:
            to = self._account()
        amount = self._amount(self._balance(account, asset))
        return self._nonce(self._entry("Transfer", to=to, asset=asset, amount=amount,
                                       **{"from": account}), account)

    def _make_hold(self, tenant):
        rng = self.rng
        asset = self._asset_name()
        account = self._funded(asset)
        expires = self.now + rng.choice((1, 50, 5_000, 60_000, 3_600_000, 40 * DAY_MS,
                                         rng.randrange(1, 100_000)))
        if rng.random() < 0.3:
            expires -= expires % 1000 - 1000
        entry = self._entry("Hold", asset=asset, amount=self._amount(self._balance(account, asset)),
                            hold_id="h%d" % self.counter, expires_at=rfc3339(expires),
                            payee="*" if rng.random() < 0.4 else self._account(),
                            **{"from": account})
        return self._nonce(entry, account)

    def _of_hold(self, kind):
        holds = self._open_holds()
        if self.rng.random() < 0.05:
            holds = self._recent_holds()
        if not holds:
            return None
        hold = self.rng.choice(holds)
        asset = self.ledger.t.asset_names[hold.asset]
        rest = self.ledger.balance("sys/hold/" + hold.hold_id, hold.asset)
        entry = self._entry(kind, hold_id=hold.hold_id, asset=asset, amount=self._amount(rest))
        if kind == "Capture" and hold.payee is None:
            entry["to"] = self._account()
        return entry

    def _make_capture(self, tenant):
        return self._of_hold("Capture")

    def _make_release(self, tenant):
        return self._of_hold("Release")

    def _make_reverse(self, tenant):
        """Texts of ids are not in the state; they come from the history."""
        rng = self.rng
        choices = [(entry["id"], entry) for command, _ in self.history[-40:]
                   if command["cmd"] == "ingest" and int(command["tenant"]) == tenant
                   for entry in command["batch"]
                   if entry["kind"] in REVERSIBLE - {"Credit", "Debit"}]
        if not choices:
            return None
        ref, target = rng.choice(choices)
        amount = int(target["amount"])
        return self._entry("Reverse", ref=ref, asset=target["asset"],
                           amount=str(rng.choice((amount, max(1, amount // 2), 1))))

    def _make_anchor(self, tenant):
        rng = self.rng
        entry = self._entry("Anchor", stream=rng.choice(("notes", "a/b/c", "s" * 160, "statement",
                                                         "x:1_-")),
                            digest=self._digest())
        if rng.random() < 0.5:
            entry["ref"] = rng.choice(("1", "registry:7", "r" * 160, "a/b"))
        return entry

    def _pool(self, tenant):
        return "pool/%d/%s" % (tenant, self.rng.choice(FUNDS))

    def _legs(self):
        """Credit and Debit legs that sum to zero in one to three assets; or the reverse of some."""
        rng = self.rng
        legs = []
        for asset in rng.sample(list(self.ledger.t.assets), rng.choice((1, 1, 2))):
            payer = self._funded(asset)
            total = int(self._amount(min(self._balance(payer, asset), 10 ** 6)))
            parts = [total]
            if total > 2 and rng.random() < 0.5:
                first = rng.randrange(1, total)
                parts = [first, total - first]
            legs.append(self._nonce(self._entry("Debit", account=payer, asset=asset,
                                                amount=str(total)), payer, 0.3))
            legs += [self._entry("Credit", account=self._account(), asset=asset, amount=str(part))
                     for part in parts]
        if rng.random() < 0.4:
            rng.shuffle(legs)
        return legs

    def _reverse_legs(self):
        """A batch that takes an earlier cleared batch back, whole or (not cleared) in part."""
        choices = [command for command, _ in self.history[-80:] if command["cmd"] == "ingest"
                   and all(entry["kind"] in ("Credit", "Debit") for entry in command["batch"])]
        if not choices:
            return None
        earlier = self.rng.choice(choices)
        batch = [self._entry("Reverse", ref=entry["id"], asset=entry["asset"],
                             amount=entry["amount"]) for entry in earlier["batch"]]
        if self.rng.random() < 0.3:
            batch.pop(self.rng.randrange(len(batch)))
        self.rng.shuffle(batch)
        return self._stamp({"cmd": "ingest", "batch": batch}, earlier["tenant"]) if batch else None

    # ---- Administration ----

    def _administer(self):
        rng = self.rng
        draw = rng.random()
        if draw < 0.25:
            return self._asset_command()
        if draw < 0.45:
            return self._reverse_legs() or self._limits()
        return self._limits()

    def _asset_command(self):
        rng = self.rng
        known = self.ledger.t.assets
        name = rng.choice((*ASSET_NAMES, "roc", *["t%d" % rng.randrange(10 ** 4)] * 8))
        if len(known) > 40:
            name = rng.choice(list(known))
        command = {"cmd": "asset", "asset": name, "decimals": rng.choice((0, 2, 6, 38)),
                   "max_supply": str(rng.choice((*EDGES, 1000, 10 ** 9)))}
        if name in known and rng.random() < 0.6:
            command.update(decimals=known[name].decimals, max_supply=str(known[name].max_supply))
            if rng.random() < 0.3:
                command["decimals"] = (command["decimals"] + 1) % 39
        draw = rng.random()
        if draw < 0.06:
            command["decimals"] = rng.choice((39, -1, "2", 1 << 40))
        elif draw < 0.12:
            command["max_supply"] = rng.choice(BAD_AMOUNTS[:-1])
        elif draw < 0.18:
            command["asset"] = rng.choice(("", "USD", "1a", "x" * 33, "a.b", "_a"))
        return self._stamp(command)

    def _limits(self):
        rng = self.rng
        command = {"cmd": "limits", "account": self._account()}
        frozen = [name for name in HOT if self.ledger.t.frozen.get(name)]
        if frozen and rng.random() < 0.5:
            return self._stamp({**command, "account": rng.choice(frozen), "frozen": False})
        draw = rng.random()
        if draw < 0.08:
            command["account"] = self._pool(rng.choice((0, 1, 7)))
        elif draw < 0.12:
            command["account"] = rng.choice(("sys/mint/roc", "sys/burn/usd", "sys/hold/h1"))
        elif draw < 0.14:
            command["account"] = rng.choice(("", "a b", "x" * 161, "é"))
        if rng.random() < 0.9:
            asset = self._asset_name()
            balance = max(0, self._balance(command["account"], asset))
            command["asset"] = asset
            near = max(1, balance + rng.randrange(-300, 3000))
            # Bounds that bite would stop the traffic: they are rare and later limits replace them.
            if rng.random() < 0.25:
                command["minimum"] = str(rng.choice((0, 10, max(1, balance // 2), near)))
            if rng.random() < 0.25:
                command["maximum"] = str(rng.choice((0, near, near, balance * 2 + 1,
                                                         *EDGES)))
            if rng.random() < 0.35:
                command["credit_line"] = str(rng.choice((0, 100, 5000, 10 ** 6, rng.choice(EDGES))))
            if rng.random() < 0.25:
                command["daily"] = str(rng.choice((0, 1000, 5000, 10 ** 7, rng.choice(EDGES))))
        if rng.random() < 0.3 or "asset" not in command:
            command["frozen"] = rng.random() < 0.12
        self._break_limits(command)
        return self._stamp(command)

    def _break_limits(self, command):
        rng = self.rng
        draw = rng.random()
        if draw < 0.04:
            command["asset"] = rng.choice(("nope", "NOPE", ""))
        elif draw < 0.08:
            command[rng.choice(("minimum", "maximum", "credit_line", "daily"))] = \
                rng.choice(BAD_AMOUNTS[:-1])
        elif draw < 0.10:
            command[rng.choice(("frozen", "extra"))] = rng.choice(("true", 1))
        elif draw < 0.12:
            command.pop("asset", None)

    # ---- Runs and slices ----

    def _open_names(self):
        """Names known and new, sometimes one that cannot be."""
        rng = self.rng
        names = [self._account() for _ in range(rng.choice((1, 1, 2, 5)))]
        if rng.random() < 0.15:
            names.insert(rng.randrange(len(names) + 1),
                         rng.choice(("sys/hold/h1", "sys/x", "", "a b", "x" * 161, "pool/0/new")))
        return self._stamp({"cmd": "open", "names": names if rng.random() < 0.97 else []})

    def _abandon(self):
        """A run that may be open, paid, abandoned or never was."""
        rng = self.rng
        runs = list(self.ledger.t.runs.items())[-6:]
        (tenant, epoch), run_key = (0, "never"), "rk"
        if runs and rng.random() < 0.95:
            (tenant, epoch), run = rng.choice(runs)
            run_key = run.run_key
        if rng.random() < 0.15:
            run_key = rng.choice(("other", "", "a/b", "x" * 97))
        return self._stamp({"cmd": "abandon", "epoch_id": epoch, "run_key": run_key}, str(tenant))

    def _intents(self):
        rng = self.rng
        if rng.random() < 0.25:
            return self._fund_pool()
        if rng.random() < 0.08:
            return self._at_wrong_time(self._abandon())
        runs = [(where, run) for where, run in self.ledger.t.runs.items()
                if run.next_chunk < run.terms[4]]
        if runs and rng.random() < 0.7:
            where, run = rng.choice(runs[-4:])
            command = self._next_chunk(where, run)
        else:
            command = self._first_chunk()
        if rng.random() < 0.3:
            self._break_intents(command)
        return command

    def _fund_pool(self):
        tenant = self.rng.choice(TENANTS)
        asset = self.rng.choice(("roc", "usd"))
        return self._stamp({"cmd": "ingest", "batch": [
            self._entry("Mint", to=self._pool(int(tenant)), asset=asset,
                        amount=str(self.rng.randrange(1000, 100_000)))]}, tenant)

    def _payouts(self, total, last):
        """Payouts that use total up if last, else leave something."""
        rng = self.rng
        payouts = []
        count = rng.choice((1, 1, 2, 3, 5))
        for left in range(count, 0, -1):
            amount = total if last and left == 1 else rng.randrange(1, max(2, total // (left + 1)))
            payouts.append({"id": self._new_id(), "to": self._account(), "amount": str(amount)})
            total -= amount
            if total <= 0:
                break
        return payouts

    def _first_chunk(self):
        rng = self.rng
        tenant = rng.choice(TENANTS)
        asset = rng.choice(("roc", "roc", "usd", "eur"))
        fund = rng.choice(FUNDS)
        there = self._balance(f"pool/{tenant}/{fund}", asset)
        total = rng.randrange(10, max(11, min(there, 10 ** 6) + 1))
        if there and rng.random() < 0.1:
            total = there + rng.choice((0, 1))
        chunks = rng.choice((1, 2, 2, 3, 4))
        self.counter += 1
        return self._stamp({
            "cmd": "intents", "epoch_id": "ep%d" % self.counter,
            "run_key": ("rk%d" % self.counter).ljust(rng.choice((0, 0, 0, 96)), "k"),
            "commitment": self._digest(("b3",)), "funding_source": fund, "asset": asset,
            "total": str(total), "chunk": 0, "chunks": chunks,
            "payouts": self._payouts(total, chunks == 1),
            "fingerprint": "%064x" % rng.getrandbits(256)}, tenant, rng.choice(CALLERS[:4]))

    def _next_chunk(self, where, run):
        tenant, epoch = where
        commitment, fund, asset, total, chunks = run.terms
        number = self.ledger.t.assets[asset].number
        rest = self.ledger.balance(run.hold_account, number)
        return self._stamp({
            "cmd": "intents", "epoch_id": epoch, "run_key": run.run_key, "commitment": commitment,
            "funding_source": fund, "asset": asset, "total": total, "chunk": run.next_chunk,
            "chunks": chunks, "payouts": self._payouts(rest, run.next_chunk == chunks - 1),
            "fingerprint": "%064x" % self.rng.getrandbits(256)},
            str(tenant), self.rng.choice(CALLERS[:4]))

    def _break_intents(self, command):
        rng = self.rng
        payout = rng.choice(command["payouts"])
        done = [run_command for run_command, _ in self.history[-200:]
                if run_command["cmd"] == "intents"]
        draw = rng.randrange(19)
        if draw == 0:
            command["chunk"] = rng.choice((0, 1, 2, 3, command["chunks"], -1))
        elif draw == 1:
            command["run_key"] = "other"
        elif draw == 2:
            command["commitment"] = self._digest(("b3",))
        elif draw == 3:
            command["total"] = str(int(command["total"]) + 1)
        elif draw == 4:
            command["asset"] = rng.choice(("nope", "roc", "usd"))
        elif draw == 5:
            command["chunks"] += 1
        elif draw == 6:
            payout["to"] = rng.choice(("sys/mint/roc", "pool/0/main", "sys/hold/h1", "bad name"))
        elif draw == 7:
            payout["amount"] = str(int(payout["amount"]) + rng.choice((1, 10 ** 7)))
        elif draw == 8:
            payout["amount"] = rng.choice(BAD_AMOUNTS)
        elif draw == 9 and self.history:
            payout["id"] = self._known_id(command["tenant"])
        elif draw == 10:
            command["payouts"].append(dict(payout))
        elif draw == 11:
            command["payouts"] = []
        elif draw == 12:
            command["funding_source"] = rng.choice(("elsewhere", "main", "", "a b"))
        elif draw == 13:
            command["epoch_id"] = rng.choice(("", "e/1", "x" * 65, "a.b"))
        elif draw == 14:
            del payout[rng.choice(("id", "to", "amount"))]
        elif draw == 15 and done:
            command.clear()
            command.update(self._stamp(copy.deepcopy(rng.choice(done)), None, None))
        elif draw == 16:
            payout["amount"] = str(max(1, int(payout["amount"]) - 1))
        elif draw == 17:
            payout["extra"] = 1
        else:
            command["total"] = rng.choice((*BAD_AMOUNTS[:-1], str(rng.choice(EDGES))))

    def _slice(self):
        rng = self.rng
        tenant, dimension = rng.choice(TENANTS), rng.choice(DIMENSIONS)
        expected, head = self.ledger.t.slices.get((int(tenant), dimension), (0, ZERO_B3))
        command = {"cmd": "slice", "dimension": dimension, "seq": expected,
                   "digest": self._digest(("b3",)), "prev": head}
        draw = rng.random()
        if draw < 0.12 and expected:
            command["seq"] = rng.choice((expected - 1, rng.randrange(expected)))
            if rng.random() < 0.7:
                command["digest"] = self._slice_digest(tenant, dimension, command["seq"])
        elif draw < 0.20:
            command["seq"] += rng.choice((1, 2, 1000, U64_MAX - expected))
        elif draw < (0.28 if expected else 0.5):
            command["prev"] = rng.choice((ZERO_B3, self._digest(("b3",))))
        elif draw < 0.34:
            command[rng.choice(("digest", "prev"))] = rng.choice(
                ("b3:" + "A" * 64, "b3:" + "a" * 63, "", 5, "sha256" + "a" * 64))
        elif draw < 0.35:
            command["dimension"] = rng.choice(("", "d" * 65, "a/b", "a.b"))
        elif draw < 0.36:
            command["seq"] = rng.choice((-1, "0", U64_MAX + 1))
        return self._stamp(command, tenant)

    def _slice_digest(self, tenant, dimension, seq):
        for command, _ in reversed(self.history):
            if (command["cmd"], command.get("tenant"), command.get("dimension"),
                    command.get("seq")) == ("slice", tenant, dimension, seq):
                return command["digest"]
        return self._digest(("b3",))

    # ---- Questions ----

    def _query(self):
        rng, log = self.rng, self.ledger.t.log
        draw = rng.random()
        if draw < 0.25:
            return {"cmd": "balance", "account": self._account(),
                    "asset": rng.choice(("roc", "usd", "eur"))}
        if draw < 0.45:
            committed = (self.ledger.pending[0][0] - 1) if self.ledger.pending else log["batch_no"]
            size = self.ledger.t.batches[committed]["seq_end"] if committed else 0
            if size:
                return {"cmd": "leaf", "seq": rng.randrange(1, size + 1)}
        if draw < 0.50:
            return {"cmd": "state_root"}
        if draw < 0.55:
            return {"cmd": "totals", "asset": rng.choice(("roc", "usd", "eur"))}
        return self._commits()

    def _commits(self):
        """Hold commits back for a while, release some, lose the rest."""
        rng, pending = self.rng, self.ledger.pending
        if not self.ledger.hold_commits:
            return {"cmd": "hold_commits", "on": True} if rng.random() < 0.7 else {"cmd": "rebuild"}
        if not pending:
            return rng.choice(({"cmd": "hold_commits", "on": False}, {"cmd": "rebuild"}))
        if rng.random() < 0.25:
            return {"cmd": "rebuild"}
        return {"cmd": "commit", "upto": rng.choice(pending)[0] if rng.random() < 0.5
                else pending[-1][0]}


def stamped(cmd, now, **members):
    return {"cmd": cmd, "commit_ms": now, "tenant": "0", "caller": "direct",
            "capability": "00" * 8, **members}


def batch_of(count, now, prefix="m", **members):
    """A batch of count entries, Mints unless told; short, so that it stays under 1 MiB."""
    members = members or {"kind": "Mint", "to": "many"}
    return stamped("ingest", now, reserved_ok=False,
                   batch=[{"id": f"{prefix}{i}", "asset": "roc", "amount": "1", **members}
                          for i in range(count)])


def size_commands(now, all_sizes):
    """At and over the limits of size: entries of a batch, payouts of a chunk, releases."""
    yield batch_of(8001, now)
    yield batch_of(8000, now)
    if not all_sizes:
        return
    yield stamped("ingest", now, reserved_ok=False, batch=[
        {"id": "mp", "kind": "Mint", "to": "pool/0/size", "asset": "roc", "amount": "8000"}])
    for count in (8001, 8000, 8000):
        yield stamped("intents", now, fingerprint="0" * 64, epoch_id="size", run_key="size",
                      commitment="b3:" + "1" * 64, funding_source="size", asset="roc",
                      total="8000", chunk=0, chunks=1,
                      payouts=[{"id": f"mq{i}", "to": "many", "amount": "1"}
                               for i in range(count)])
    for part in range(3):
        holds = batch_of(2700, now, f"mh{part}-", kind="Hold", payee="*",
                         expires_at=rfc3339(now + 1), **{"from": "many"})
        for i, entry in enumerate(holds["batch"]):
            entry["hold_id"] = f"mh{part}-{i}"
        yield holds
    for _ in range(3):
        yield stamped("expire", now + 1)
