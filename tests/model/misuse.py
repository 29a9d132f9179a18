"""misuse.py - the other half of the generator: repeats commands, breaks rules and shapes."""
import copy
import datetime

from ledger_model import STREAM_CALLER
from ledger_shape import LINE_MAX, U64_MAX, U128_MAX

EDGES = (1, 2, (1 << 64) - 1, 1 << 64, (1 << 64) + 1, LINE_MAX - 1, LINE_MAX, LINE_MAX + 1,
         LINE_MAX + 2, U128_MAX - 1, U128_MAX)
BAD_AMOUNTS = ("0", "-1", "01", "", "1.0", "1e3", " 1", str(U128_MAX + 1), "9" * 39, "1" * 40, 7,
               None)
TENANTS = ("0", "0", "0", "1", "7", str(U128_MAX))
CALLERS = ("direct", "direct", "wallet", "rewarder", "accounting", "registry", "ledger")
HOT = ("acct_a", "acct_b", "acct_c", "shop:1", "team/x/y", "Z-9")
FUNDS = ("main", "extra")


def rfc3339(ms):
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return text + ("Z" if ms % 1000 == 0 else f".{ms % 1000:03}Z")


class Misuse:
    """Mixed into Generator, whose state and entry makers it uses."""

    # ---- Repeating ----

    def _known_id(self, tenant):
        ids = [entry["id"] for command, _ in self.history[-100:]
               if command["cmd"] in ("ingest", "intents") and command["tenant"] == tenant
               for entry in command.get("batch", command.get("payouts"))]
        return self.rng.choice(ids) if ids else self._new_id()

    def _retry(self):
        """An earlier command again, as it was or changed in one of the ways that matter."""
        rng = self.rng
        earlier = [item for item in self.history[-150:] if item[0]["cmd"] != "expire"]
        if not earlier:
            return self._ingest()
        command = copy.deepcopy(rng.choice(earlier)[0])
        command["commit_ms"] = self.now
        draw = rng.random()
        if draw < 0.25 or command["cmd"] != "ingest":
            if draw > 0.9 and "fingerprint" in command:
                command["fingerprint"] = "%064x" % rng.getrandbits(256)
            return command
        if draw < 0.35 and "key" in command:
            command["fingerprint"] = "%064x" % rng.getrandbits(256)
            return command
        if draw < 0.40 and "key" in command:
            command[rng.choice(("caller", "tenant"))] = rng.choice(("direct", "wallet")) \
                if rng.random() < 0.5 else rng.choice(TENANTS)
            command["caller"] = command["caller"] if command["caller"] in CALLERS else "direct"
            command["tenant"] = command["tenant"] if command["tenant"] in TENANTS else "1"
            return command
        command.pop("key", None)
        command.pop("fingerprint", None)
        if draw < 0.55:
            return command
        return self._alter_retry(command)

    def _alter_retry(self, command):
        rng = self.rng
        batch = command["batch"]
        how = rng.randrange(9)
        if how == 0:
            rng.shuffle(batch)
        elif how == 1:
            batch.pop(rng.choice((-1, -1, 0, rng.randrange(len(batch)))))
        elif how == 2:
            batch.insert(rng.randrange(len(batch) + 1), self._entry(
                "Anchor", stream="notes", digest=self._digest()))
        elif how in (3, 4):                             # the tuple: same nonces under new ids
            for entry in batch:
                if how == 3 or rng.random() < 0.5:
                    entry["id"] = self._new_id()
        elif how == 5:
            entry = rng.choice(batch)
            if "amount" in entry:
                entry["amount"] = str(int(entry["amount"]) % U128_MAX + 1)
        elif how == 6:
            entry = rng.choice(batch)
            for name, value in (("to", "acct_z"), ("asset", "eur"), ("memo", "other"),
                                ("nonce", 3), ("digest", self._digest()), ("stream", "else")):
                if name in entry and rng.random() < 0.5:
                    entry[name] = value
        elif how == 7:
            batch.append(copy.deepcopy(rng.choice(batch)))
        else:
            other = rng.choice(self.history)[0]
            if other["cmd"] == "ingest":
                batch += copy.deepcopy(other["batch"][:2])
        if rng.random() < 0.1:
            for entry in batch:
                entry["ts"] = self.now - 120_000        # too old, but duplicates come first
        return command

    # ---- Breaking ----

    def _break_rule(self, command):
        """Well formed, but one rule of the text is broken in one entry."""
        rng = self.rng
        batch = command["batch"]
        entry = rng.choice(batch)
        how = rng.randrange(17)
        if how == 0 and "asset" in entry:
            entry["asset"] = rng.choice(("nope", "roc", "usd", "eur"))
        elif how == 1:
            for entry in (entry, rng.choice(batch)):
                entry["ts"] = self.now + rng.choice((-60_001, 60_001, -10 ** 9, 10 ** 9))
        elif how == 2:
            for name in ("from", "to", "account", "payee"):
                if name in entry and rng.random() < 0.6:
                    entry[name] = rng.choice(("sys/mint/roc", "sys/burn/roc", "sys/clearing/usd",
                                              "sys/x", "pool/0/main", "pool/1/extra", "pool/q"))
            if entry.get("from") == entry.get("to"):
                entry["to"] = "acct_z"
        elif how == 3 and "nonce" in entry:
            entry["nonce"] = rng.choice((1, 2, entry["nonce"] + 1, U64_MAX))
        elif how == 4:
            batch.append(self._entry("Burn", asset=self._asset_name(), amount=self._amount(),
                                     **{"from": "nobody_%d" % rng.randrange(50)}))
        elif how == 5 and "amount" in entry:
            entry["amount"] = str(rng.choice(EDGES))
        elif how == 6:
            batch.append(self._entry("Anchor", digest=self._digest(), stream=rng.choice(
                (*STREAM_CALLER, "limits/a", "run/0/e1", "slice/0/bytes", "snapshot/1",
                 "snapshot/x/y", "registry/head", "state/1"))))
        elif how == 7:
            batch.append(self._entry(rng.choice(("Capture", "Release")), asset="roc", amount="1",
                                     hold_id=rng.choice(("none", "h0", "h1", "h2"))))
        elif how == 8:
            batch.append(self._entry("Reverse", asset=self._asset_name(), amount=self._amount(),
                                     ref=self._known_id(command["tenant"])))
        elif how == 9:
            batch.append(self._entry("Reverse", asset="roc", amount="1", ref="nothing"))
        elif how == 10:
            self._misuse_hold(batch)
        elif how == 11:
            batch.append(self._entry(rng.choice(("Credit", "Debit")), account=rng.choice(HOT),
                                     asset=self._asset_name(), amount=self._amount()))
        elif how == 12:
            entry["id"] = self._known_id(command["tenant"])
        elif how == 13:
            batch.append(copy.deepcopy(entry))
        elif how == 14:
            command["reserved_ok"] = True
            asset = self._asset_name()
            burned = self._balance("sys/burn/" + asset, asset)
            batch.append(self._entry("Transfer", to=self._account(), asset=asset,
                                     amount=self._amount(burned),
                                     **{"from": "sys/burn/" + rng.choice((asset, asset, "usd"))}))
        elif how == 15:
            self._overflow(batch)
        else:
            self._touch_pool(batch, int(command["tenant"]))
        return command

    def _misuse_hold(self, batch):
        rng = self.rng
        holds = self._recent_holds()
        if not holds:
            return
        hold = rng.choice(holds)
        asset = self.ledger.t.asset_names[hold.asset]
        how = rng.randrange(5)
        if how == 0:                                    # the hold_id again
            batch.append(self._entry("Hold", hold_id=hold.hold_id, payee="*", asset="roc",
                                     amount="1",
                                     expires_at=rfc3339(self.now + rng.choice((0, 5000))),
                                     **{"from": rng.choice(HOT)}))
        elif how == 1:                                  # expired at birth
            batch.append(self._entry("Hold", hold_id=self._new_id()[:60].replace(".", "-"),
                                     payee=rng.choice(("*", "sys/x")), asset="roc", amount="1",
                                     expires_at=rfc3339(self.now - rng.choice((0, 1, 5000))),
                                     **{"from": rng.choice(HOT)}))
        elif how == 2:                                  # the payee rule
            entry = self._entry("Capture", hold_id=hold.hold_id, asset=asset, amount="1")
            if hold.payee is not None:
                entry["to"] = rng.choice(HOT)
            batch.append(entry)
        else:                                           # another asset, or more than the rest
            entry = self._entry(rng.choice(("Capture", "Release")), hold_id=hold.hold_id,
                                asset=asset if how == 3 else self._asset_name(),
                                amount=str(rng.choice((1, 10 ** 7, U128_MAX))))
            if entry["kind"] == "Capture" and hold.payee is None:
                entry["to"] = rng.choice(HOT)
            batch.append(entry)

    def _overflow(self, batch):
        """Sums beyond 128 bits: in clearing, in one account, in the supply."""
        rng = self.rng
        asset = self._asset_name()
        big = str(rng.choice((U128_MAX, LINE_MAX, LINE_MAX + 1)))
        if rng.random() < 0.5:
            batch += [self._entry("Credit", account="big_%d" % rng.randrange(10 ** 6), asset=asset,
                                  amount=big) for _ in range(rng.choice((1, 2, 3)))]
        else:
            batch.append(self._entry("Mint", to=self._account(), asset=asset, amount=big))

    def _touch_pool(self, batch, tenant):
        """Money into a pool by every way, and out of it by the ways that are refused."""
        rng = self.rng
        pool = self._pool(tenant)
        asset = self._asset_name()
        into = [(command, entry) for command, _ in self.history[-100:]
                if command["cmd"] == "ingest" and int(command["tenant"]) == tenant
                for entry in command["batch"] if entry.get("to", "").startswith("pool/")]
        if into and rng.random() < 0.5:
            _, target = rng.choice(into)
            if target["kind"] != "Capture":
                batch.append(self._entry("Reverse", ref=target["id"], asset=target["asset"],
                                         amount=rng.choice((target["amount"], "1"))))
            return
        how = rng.randrange(4)
        if how == 0:
            batch.append(self._entry("Burn", asset=asset, amount="1", **{"from": pool}))
        elif how == 1:
            batch.append(self._entry("Debit", account=pool, asset=asset, amount="1"))
            batch.append(self._entry("Credit", account="acct_a", asset=asset, amount="1"))
        elif how == 2:
            batch.append(self._entry("Debit", account="acct_a", asset=asset, amount="1"))
            batch.append(self._entry("Credit", account=pool, asset=asset, amount="1"))
        else:
            batch.append(self._entry("Hold", hold_id="hp%d" % self.counter, payee=pool, asset=asset,
                                     amount="1", expires_at=rfc3339(self.now + 10 ** 7),
                                     **{"from": rng.choice(("acct_b", pool))}))

    def _break_shape(self, command):
        rng = self.rng
        batch = command["batch"]
        entry = rng.choice(batch)
        how = rng.randrange(20)
        bad_names = ("", "a b", "x" * 161, "é", "a.b", "a\u0000b", 5, None)
        if how == 0:
            entry["id"] = rng.choice(("", "a/b", "x" * 65, "é", "a b", 7))
        elif how == 1:
            entry["kind"] = rng.choice(("transfer", "Asset", "", "Nope", 3))
        elif how == 2:
            del entry[rng.choice(list(entry))]
            if rng.random() < 0.5:
                entry.pop("id", None)
        elif how in (3, 4) and "amount" in entry:
            entry["amount"] = rng.choice(BAD_AMOUNTS)
        elif how == 5:
            entry["nonce"] = rng.choice((0, -1, "1", U64_MAX + 1))
        elif how == 6:
            entry["nonce"] = 1
            entry["kind"] = rng.choice((entry["kind"], "Mint", "Release"))
        elif how in (7, 8):
            for name in ("from", "to", "account", "payee", "stream"):
                if name in entry:
                    entry[name] = rng.choice(bad_names)
        elif how == 9 and "from" in entry and "to" in entry:
            entry["to"] = entry["from"]
        elif how == 10 and "asset" in entry:
            entry["asset"] = rng.choice(("", "ROC", "1x", "x" * 33, "a b", 1, None))
        elif how == 11:
            entry["memo"] = rng.choice(("m" * 257, "é" * 129, 5, None, "\ud800", "nul \u0000"))
        elif how == 12:
            deep = {}
            for _ in range(rng.choice((28, 29, 40))):
                deep = {"d": deep}
            entry["meta"] = rng.choice(([], "x", {"p": "q" * 1017}, None, {"f": 1.5}, {"f": 1e2},
                                        {"i": 1 << 53}, {"i": -(1 << 53)}, {"s": "\udc00"}, deep))
        elif how == 13:
            entry[rng.choice(("extra", "seq", "hold_id", "account", "ref", "stream"))] = "1"
        elif how == 14:
            entry["ts"] = rng.choice((-1, "1", U64_MAX + 1, None))
        elif how == 15 and "hold_id" in entry:
            entry["hold_id"] = rng.choice(("", "a/b", "run/0/ep1", "a.b", "x" * 65))
        elif how == 16 and "expires_at" in entry:
            entry["expires_at"] = rng.choice(("", "tomorrow", "2030-02-30T00:00:00Z", 5,
                                              "2030-01-01T00:00:00", "2030-01-01",
                                              "2030-01-01T00:00:00.1234Z",
                                              "2030-01-01T00:00:00+00:00"))
        elif how == 17 and "digest" in entry:
            entry["digest"] = rng.choice(("b3:" + "A" * 64, "b3:" + "a" * 63, "md5:" + "a" * 64,
                                          "a" * 64, ""))
        elif how == 18 and rng.random() < 0.5:
            command["batch"] = []
        elif how == 18:
            command["extra"] = "x"
        else:
            command["key"] = rng.choice(("", "k" * 129, "a/b", "é"))
            command["fingerprint"] = "%064x" % rng.getrandbits(256)
        return command
