"""ledger_model.py - the ledger core as a model: docs/ledger-core.md in plain Python.

Written from those texts alone and sharing nothing with the C core, so that compare.py can hold one
against the other. Clear rather than fast: balances are unbounded Python integers, tables are dicts
keyed by names, and every change goes through Tables.put(), which remembers the old value; refusing
a command is undoing what it had done so far.

Ledger.execute(command) takes one command or query of the driver's protocol (a dict) and returns the
answer (a dict). Where the text leaves room the reading is marked "Reading:".
"""
import struct
from collections import namedtuple

from blake3 import blake3
from ledger_bytes import (EXT_ASSET, EXT_HOLD, EXT_MEMO, EXT_META, EXT_STREAM, FLAG_BY_LEDGER,
                          FLAG_SHA256, ZERO16, Frontier, account_id, anchor_link, canonical,
                          entry_id, leaf_bytes, tlv, u128)
from ledger_shape import (ACCOUNT, ASSET, B3, BATCH_MAX, HOLD_ID, KEY, LINE_MAX, RUN_KEY, TIME_MAX,
                          U64_MAX, U128_MAX, Refused, check_count, check_intents, check_members,
                          entry_shape_is_good, is_amount, is_int, is_text, parse_time, require)

TS_SLACK_MS = 60_000
DAY_MS = 86_400_000
USER_DEBITS = {"Transfer", "Burn", "Hold", "Debit"}     # what a daily ceiling counts
REVERSIBLE = {"Mint", "Burn", "Transfer", "Credit", "Debit"}
# Which caller a reserved Anchor stream needs, by the text before its first slash.
STREAM_CALLER = {"slice": "ledger", "run": "ledger", "registry": "ledger", "state": "ledger",
                 "limits": "ledger", "accounts": "ledger", "snapshot": "accounting"}

Asset = namedtuple("Asset", "name number decimals max_supply batch_no")
Limits = namedtuple("Limits", "minimum maximum credit_line daily")
Hold = namedtuple("Hold", "entry_id tenant hold_id payer payee expires_ms asset")
Run = namedtuple("Run", "run_key terms next_chunk hold_account anchor_id pool asset ended_in")
Entry = namedtuple("Entry", "seq id kind debit credit asset amount nonce link batch_no "
                            "debit_name credit_name terms")
NO_LIMITS = Limits(None, None, 0, None)


class Tables:
    """All state, in dicts; put() journals the old value so that a step can be taken back."""

    ABSENT = object()

    def __init__(self):
        self.journal = []
        self.assets = {"roc": Asset("roc", 1, 6, U128_MAX, None)}
        self.asset_names = {1: "roc"}
        self.names = {}         # account id -> name, of opened accounts
        self.known = {}         # name -> True: touched, a payee, with limits, or by open
        self.next_nonce = {}    # name -> next nonce, 1 if absent
        self.balances = {}      # (name, asset number) -> balance; sys/mint: total issued
        self.limits = {}        # (name, asset number) -> Limits
        self.frozen = {}        # name -> bool
        self.daily = {}         # (name, asset number) -> (day, sum of user debits)
        self.holds = {}         # account name of the hold -> Hold
        self.entries = {}       # seq -> Entry
        self.leaves = {}        # seq -> bytes
        self.ids = {}           # entry id -> seq
        self.nonces = {}        # (debit name, nonce) -> seq
        self.reversed = {}      # entry id -> sum of its reversals
        self.batches = {}       # batch_no -> reply
        self.keys = {}          # (cmd, tenant, caller, key) -> (fingerprint, reply)
        self.runs = {}          # (tenant, epoch_id) -> Run
        self.slices = {}        # (tenant, dimension) -> (next seq, b3 of the last)
        self.log = {"seq": 0, "batch_no": 0, "tree": Frontier(), "commit_ms": 0}

    def put(self, table, key, value):
        self.journal.append((table, key, table.get(key, self.ABSENT)))
        table[key] = value

    def swap_back(self, journal):
        """Undo a journal, newest change first; return the journal that redoes it."""
        redo = []
        for table, key, old in reversed(journal):
            redo.append((table, key, table.get(key, self.ABSENT)))
            if old is self.ABSENT:
                del table[key]
            else:
                table[key] = old
        return redo


class Ledger:
    """The state machine, and around it the driver's commits: held batches can be thrown away."""

    def __init__(self):
        self.t = Tables()
        self.hold_commits = False
        self.pending = []               # (batch_no, journal) applied and not committed
        self.commands = {"ingest": self._ingest, "asset": self._asset, "limits": self._limits,
                         "intents": self._intents, "slice": self._slice, "expire": self._expire,
                         "abandon": self._abandon, "open": self._open}
        self.queries = {"balance": self._balance, "leaf": self._leaf, "totals": self._totals,
                        "state_root": self._state_root}

    def execute(self, command):
        name = command["cmd"]
        if name in self.queries:
            return self._on_committed(lambda: self.queries[name](command))
        if name == "hold_commits":
            self.hold_commits = command["on"]
            if not self.hold_commits:
                self.pending = []
            return {"ok": None}
        if name == "commit":
            self.pending = [item for item in self.pending if item[0] > command["upto"]]
            return {"ok": None}
        if name == "rebuild":
            for _, journal in reversed(self.pending):
                self.t.swap_back(journal)
            self.pending = []
            return {"ok": None}
        return self._apply(command)

    def _apply(self, command):
        self.t.journal = []
        try:
            check_members(command)
            reply = self.commands[command["cmd"]](command)
        except Refused as refused:
            self.t.swap_back(self.t.journal)
            return refused.answer()
        if self.hold_commits and self.t.journal:
            self.pending.append((self.t.log["batch_no"], self.t.journal))
        return {"ok": reply}

    def _on_committed(self, query):
        """Step back over the pending batches, ask, step forward again."""
        redo = [self.t.swap_back(journal) for _, journal in reversed(self.pending)]
        answer = query()
        for journal in reversed(redo):
            self.t.swap_back(journal)
        return answer

    # ---- Batches ----

    def _open_batch(self, command):
        """What every entry of the batch carries; the shape has been found good."""
        self.commit_ms = command["commit_ms"]
        require(self.t.log["commit_ms"] <= self.commit_ms <= TIME_MAX)
        self.tenant = int(command.get("tenant", "0"))
        self.capability = bytes.fromhex(command.get("capability", "00" * 8))
        self.batch_no = self.t.log["batch_no"] + 1
        self.seq_start = self.t.log["seq"] + 1

    def _close_batch(self):
        """Number the batch and make its reply."""
        t = self.t
        t.put(t.log, "batch_no", self.batch_no)
        t.put(t.log, "commit_ms", self.commit_ms)
        reply = {"seq_start": self.seq_start, "seq_end": t.log["seq"], "batch_no": self.batch_no,
                 "tree_size": t.log["seq"], "new_root": t.log["tree"].root().hex(),
                 "replay": False, "dup": False}
        t.put(t.batches, self.batch_no, reply)
        return reply

    def _append(self, kind, id16, debit, credit, asset, amount, nonce=0, link=ZERO16, flags=0,
                ext=b"", names=(None, None), terms=None):
        """Write one entry into the log. debit and credit are ids; names, if they are accounts."""
        t = self.t
        entry = Entry(t.log["seq"] + 1, id16, kind, debit, credit, asset, amount, nonce, link,
                      self.batch_no, *names, terms)
        leaf = leaf_bytes(entry, self.commit_ms, self.capability, flags, ext)
        assert len(leaf) <= 4096
        t.put(t.log, "seq", entry.seq)
        t.put(t.log, "tree", t.log["tree"].with_leaf(leaf))
        t.put(t.entries, entry.seq, entry)
        t.put(t.leaves, entry.seq, leaf)
        t.put(t.ids, id16, entry.seq)
        return entry

    def _replayed(self, command, key, fingerprint):
        """Rule 2: the stored reply of a known key, or None."""
        known = self.t.keys.get(self._key_place(command, key))
        if known is None:
            return None
        if known[0] != fingerprint:
            raise Refused("IdempotencyConflict")
        return {**known[1], "replay": True}

    def _remember(self, command, key, fingerprint, reply):
        self.t.put(self.t.keys, self._key_place(command, key), (fingerprint, reply))

    @staticmethod
    def _key_place(command, key):
        """Keys of intents are a space of their own."""
        return command["cmd"], int(command["tenant"]), command["caller"], key

    # ---- Moving amounts ----

    def balance(self, name, asset):
        return self.t.balances.get((name, asset), 0)

    def line(self, name, asset):
        return self.t.limits.get((name, asset), NO_LIMITS).credit_line

    def _check_debit(self, index, kind, name, asset, amount, nonce=0):
        """Steps 5 to 8; system accounts have no limits, so only nonce and funds bind them."""
        t = self.t
        if nonce:
            expected = t.next_nonce.get(name, 1)
            if nonce != expected:
                raise Refused("NonceConflict", index, expected_nonce=expected)
        if t.frozen.get(name, False):
            raise Refused("LimitExceeded", index, limit="frozen")
        available = 0
        if account_id(name) in t.names:
            available = max(0, self.balance(name, asset) + self.line(name, asset))
        if available < amount:
            raise Refused("InsufficientFunds", index, available=str(available))
        limits = t.limits.get((name, asset), NO_LIMITS)
        if limits.minimum is not None and self.balance(name, asset) - amount < limits.minimum:
            raise Refused("LimitExceeded", index, limit="minimum")
        if kind in USER_DEBITS and limits.daily is not None:
            if self._debited_today(name, asset) + amount > limits.daily:
                raise Refused("LimitExceeded", index, limit="daily")

    def _debited_today(self, name, asset):
        day, total = self.t.daily.get((name, asset), (None, 0))
        return total if day == self.commit_ms // DAY_MS else 0

    def _fits(self, name, asset, amount):
        """Can the balance after a credit be represented?"""
        top = LINE_MAX if self.line(name, asset) else U128_MAX
        return self.balance(name, asset) + amount <= top

    def _check_credit(self, index, name, asset, amount):
        """Step 9."""
        maximum = self.t.limits.get((name, asset), NO_LIMITS).maximum
        if maximum is not None and self.balance(name, asset) + amount > maximum:
            raise Refused("LimitExceeded", index, limit="maximum")
        if not self._fits(name, asset, amount):
            raise Refused("LimitExceeded", index, limit="maximum")

    def _check_name(self, index, name):
        """Step 4."""
        if self.t.names.get(account_id(name), name) != name:
            raise Refused("Conflict", index)

    def _move(self, debit, credit, asset, amount):
        """Change two balances. sys/mint counts what left it: the total issued."""
        t = self.t
        for name, change in ((debit, -amount), (credit, amount)):
            if name.startswith("sys/mint/"):
                change = -change
            t.put(t.balances, (name, asset), self.balance(name, asset) + change)
        t.put(t.names, account_id(credit), credit)
        t.put(t.known, debit, True)
        t.put(t.known, credit, True)
        if account_id(debit) not in t.names:
            assert debit.startswith("sys/")
            t.put(t.names, account_id(debit), debit)

    # ---- ingest ----

    def _ingest(self, command):
        batch = command.get("batch")
        key, fingerprint = command.get("key"), command.get("fingerprint")
        check_count(batch)
        require(key is None or is_text(key, KEY))
        for index, entry in enumerate(batch):
            if not entry_shape_is_good(entry):
                raise Refused("Malformed", index)
        self._open_batch(command)
        if key is not None:
            reply = self._replayed(command, key, fingerprint)
            if reply is not None:
                return reply
        ids = [entry_id(self.tenant, entry["id"]) for entry in batch]
        reply = self._duplicate_reply(batch, ids, key)
        if reply is not None:
            return reply
        for index, entry in enumerate(batch):
            if abs(entry.get("ts", self.commit_ms) - self.commit_ms) > TS_SLACK_MS:
                raise Refused("Malformed", index, server_ms=self.commit_ms)
        clearing = {}           # asset number -> index of the last entry that touched its clearing
        for index, entry in enumerate(batch):
            self._apply_entry(index, entry, ids[index], command, clearing)
        for asset in sorted(clearing):
            if self.balance("sys/clearing/" + self.t.asset_names[asset], asset) != 0:
                raise Refused("Malformed", clearing[asset])
        reply = self._close_batch()
        if key is not None:
            self._remember(command, key, fingerprint, reply)
        return reply

    def _duplicate_reply(self, batch, ids, key):
        """Rule 3: the reply of the batch this one repeats, or None if nothing in it is known."""
        t = self.t
        duplicates = {}                         # index -> seq of what it repeats
        seen = set()
        for index, (entry, id16) in enumerate(zip(batch, ids)):
            if id16 in seen:
                raise Refused("Conflict", index)
            seen.add(id16)
            if id16 in t.ids:
                if self._identity(entry) != self._identity_of(t.entries[t.ids[id16]]):
                    raise Refused("Conflict", index)
                duplicates[index] = t.ids[id16]
            elif key is None and "nonce" in entry:
                debit = entry["account" if entry["kind"] == "Debit" else "from"]
                seq = t.nonces.get((debit, entry["nonce"]))
                if seq and self._identity(entry) == self._identity_of(t.entries[seq]):
                    duplicates[index] = seq
        if not duplicates:
            return None
        reply = t.batches[t.entries[next(iter(duplicates.values()))].batch_no]
        whole = list(range(reply["seq_start"], reply["seq_end"] + 1))
        if [duplicates.get(index) for index in range(len(batch))] != whole:
            raise Refused("Conflict", min(duplicates))
        return {**reply, "dup": True}

    @staticmethod
    def _identity_of(entry):
        return (entry.kind, entry.debit, entry.credit, entry.asset, entry.amount, entry.nonce,
                entry.link, entry.terms)

    def _identity(self, entry):
        """Kind, debit, credit, asset, amount, nonce, link of a wire entry; None if unresolvable."""
        kind = entry["kind"]
        if kind == "Anchor":
            digest = bytes.fromhex(entry["digest"].split(":")[1])
            return (kind, digest[:16], digest[16:], 0, 0, 0,
                    anchor_link(entry["stream"], entry.get("ref", "")),
                    self._terms(entry))
        asset = self.t.assets.get(entry["asset"])
        if asset is None:
            return None
        sides = self._sides(entry)
        if sides is None:
            return None
        debit, credit, link = sides
        return (kind, account_id(debit), account_id(credit), asset.number, int(entry["amount"]),
                entry.get("nonce", 0), link, self._terms(entry))

    @staticmethod
    def _terms(entry):
        """What two entries of one id must agree on beyond the entry's own fields."""
        if entry["kind"] == "Hold":
            return entry["payee"], parse_time(entry["expires_at"])
        if entry["kind"] == "Anchor":
            return entry["stream"], entry.get("ref"), entry["digest"]
        return None

    def _sides(self, entry):
        """Names of debit and credit and the link of a movement, or None if unresolvable."""
        t, kind, asset = self.t, entry["kind"], entry["asset"]
        if kind == "Mint":
            return "sys/mint/" + asset, entry["to"], ZERO16
        if kind == "Burn":
            return entry["from"], "sys/burn/" + asset, ZERO16
        if kind == "Transfer":
            return entry["from"], entry["to"], ZERO16
        if kind == "Hold":
            return entry["from"], "sys/hold/" + entry["hold_id"], ZERO16
        if kind == "Credit":
            return "sys/clearing/" + asset, entry["account"], ZERO16
        if kind == "Debit":
            return entry["account"], "sys/clearing/" + asset, ZERO16
        if kind == "Reverse":
            seq = t.ids.get(entry_id(self.tenant, entry["ref"]))
            if seq is None or t.entries[seq].debit_name is None:
                return None
            target = t.entries[seq]
            return target.credit_name, target.debit_name, target.id
        account = "sys/hold/" + entry["hold_id"]
        hold = t.holds.get(account)
        if hold is None:
            return None
        if kind == "Release":
            return account, hold.payer, hold.entry_id
        if (hold.payee is None) != ("to" in entry):
            return None
        return account, hold.payee or entry["to"], hold.entry_id

    def _apply_entry(self, index, entry, id16, command, clearing):
        """Rule 5 for one entry."""
        t, kind = self.t, entry["kind"]
        by_ledger = FLAG_BY_LEDGER if command["caller"] == "ledger" else 0
        ext = b""
        if "memo" in entry:
            ext += tlv(EXT_MEMO, entry["memo"].encode())
        if "meta" in entry:
            ext += tlv(EXT_META, canonical(entry["meta"]).encode())
        if kind == "Anchor":
            self._check_stream(index, entry["stream"], command["caller"])
            self._append_anchor(id16, entry["stream"], entry.get("ref", ""), entry["digest"],
                                by_ledger, ext, self._terms(entry))
            return
        asset = t.assets.get(entry["asset"])
        if asset is None:
            raise Refused("NotFound", index)
        self._check_reserved(index, entry, command.get("reserved_ok", False))
        self._check_target(index, entry)
        debit, credit, link = self._sides(entry)
        amount, nonce = int(entry["amount"]), entry.get("nonce", 0)
        self._check_name(index, debit)
        self._check_name(index, credit)
        self._check_sides(index, kind, debit, credit, asset, amount, nonce)
        self._move(debit, credit, asset.number, amount)
        if kind in USER_DEBITS:
            t.put(t.daily, (debit, asset.number),
                  (self.commit_ms // DAY_MS, self._debited_today(debit, asset.number) + amount))
        if kind == "Hold":
            payee = None if entry["payee"] == "*" else entry["payee"]
            expires_ms = parse_time(entry["expires_at"])
            if payee:
                t.put(t.known, payee, True)
            t.put(t.holds, credit, Hold(id16, self.tenant, entry["hold_id"], debit, payee,
                                        expires_ms, asset.number))
            ext += tlv(EXT_HOLD, (account_id(payee) if payee else ZERO16)
                       + struct.pack("<Q", expires_ms))
        if kind == "Reverse":
            t.put(t.reversed, link, t.reversed.get(link, 0) + amount)
        written = self._append(kind, id16, account_id(debit), account_id(credit), asset.number,
                               amount, nonce, link, by_ledger, ext, (debit, credit),
                               self._terms(entry))
        if nonce:
            t.put(t.next_nonce, debit, nonce + 1)
            t.put(t.nonces, (debit, nonce), written.seq)
        if "sys/clearing/" + asset.name in (debit, credit):
            clearing[asset.number] = index

    def _check_sides(self, index, kind, debit, credit, asset, amount, nonce):
        """Steps 5 to 9: what the debit account allows, then what the credit account takes."""
        number = asset.number
        if kind == "Mint":
            if self.balance(debit, number) + amount > asset.max_supply:
                raise Refused("LimitExceeded", index, limit="supply")
        elif not debit.startswith("sys/clearing/"):
            self._check_debit(index, kind, debit, number, amount, nonce)
        # sys/clearing may hold anything until rule 6, and a reversed Mint lowers sys/mint.
        if not credit.startswith(("sys/clearing/", "sys/mint/")):
            self._check_credit(index, credit, number, amount)

    def _check_stream(self, index, stream, caller):
        needed = STREAM_CALLER.get(stream.split("/")[0])
        if needed is not None and caller != needed:
            raise Refused("Forbidden", index)

    def _check_reserved(self, index, entry, reserved_ok):
        """Step 2. For a Reverse what counts is the account that would pay back."""
        kind = entry["kind"]
        for member in ("from", "to", "account", "payee"):
            if entry.get(member, "").startswith("sys/"):
                correction = (kind == "Transfer" and member == "from" and reserved_ok
                              and entry["from"] == "sys/burn/" + entry["asset"])
                if not correction:
                    raise Refused("Forbidden", index)
        debited = entry.get("account" if kind == "Debit" else "from", "")
        if kind == "Reverse":
            sides = self._sides(entry)
            debited = sides[0] if sides else ""
        if debited.startswith("pool/"):
            raise Refused("Forbidden", index)

    def _check_target(self, index, entry):
        """Step 3: the hold or the reversed entry."""
        t, kind = self.t, entry["kind"]
        if kind == "Hold":
            if "sys/hold/" + entry["hold_id"] in t.holds:
                raise Refused("Conflict", index)
            if parse_time(entry["expires_at"]) <= self.commit_ms:
                raise Refused("Expired", index)
        elif kind in ("Capture", "Release"):
            hold = t.holds.get("sys/hold/" + entry["hold_id"])
            if hold is None:
                raise Refused("NotFound", index)
            if kind == "Capture" and (hold.payee is None) != ("to" in entry):
                raise Refused("Malformed", index)
            if self.commit_ms >= hold.expires_ms:
                raise Refused("Expired", index)
            if t.assets[entry["asset"]].number != hold.asset:
                raise Refused("Conflict", index)
        elif kind == "Reverse":
            seq = t.ids.get(entry_id(self.tenant, entry["ref"]))
            if seq is None:
                raise Refused("NotFound", index)
            target = t.entries[seq]
            if target.kind not in REVERSIBLE or target.asset != t.assets[entry["asset"]].number:
                raise Refused("Conflict", index)
            left = target.amount - t.reversed.get(target.id, 0)
            if int(entry["amount"]) > left:
                raise Refused("Conflict", index, available=str(left))

    def _append_anchor(self, id16, stream, ref, digest, flags, ext=b"", terms=None):
        algorithm, text = digest.split(":")
        value = bytes.fromhex(text)
        if algorithm == "sha256":
            flags |= FLAG_SHA256
        ext += tlv(EXT_STREAM, stream.encode() + b"\0" + ref.encode())
        return self._append("Anchor", id16, value[:16], value[16:], 0, 0, flags=flags, ext=ext,
                            link=anchor_link(stream, ref), terms=terms)

    # ---- asset, limits ----

    def _asset(self, command):
        t, name, decimals = self.t, command.get("asset"), command.get("decimals")
        supply = command.get("max_supply")
        require(is_text(name, ASSET) and is_int(decimals, 0, 38) and is_amount(supply))
        self._open_batch(command)
        known = t.assets.get(name)
        if known is not None:
            same = (known.decimals, known.max_supply) == (decimals, int(supply))
            if not same or known.batch_no is None:
                raise Refused("Conflict")
            return {**t.batches[known.batch_no], "dup": True}
        number = len(t.assets) + 1
        t.put(t.assets, name, Asset(name, number, decimals, int(supply), self.batch_no))
        t.put(t.asset_names, number, name)
        terms = canonical({"asset": name, "decimals": decimals, "max_supply": supply})
        self._append("Asset", entry_id(self.tenant, "asset/" + name), ZERO16, ZERO16, number, 0,
                     ext=tlv(EXT_ASSET, terms.encode()))
        return self._close_batch()

    def _limits(self, command):
        t = self.t
        names = ("minimum", "maximum", "credit_line", "daily")
        account, asset_name = command.get("account"), command.get("asset")
        require(is_text(account, ACCOUNT))
        require(asset_name is None or is_text(asset_name, ASSET))
        require(all(is_amount(command[name]) for name in names if name in command))
        require(int(command.get("credit_line", "1")) <= LINE_MAX)
        require(isinstance(command.get("frozen", False), bool))
        require(asset_name is not None
                or "frozen" in command and not any(name in command for name in names))
        self._open_batch(command)
        if asset_name is not None and asset_name not in t.assets:
            raise Refused("NotFound")
        if account.startswith("sys/"):
            raise Refused("Forbidden")
        self._check_name(None, account)
        if asset_name is not None:
            values = {name: int(command[name]) if name in command else None for name in names}
            values["credit_line"] = values["credit_line"] or 0
            number = t.assets[asset_name].number
            if values["credit_line"] and self.balance(account, number) > LINE_MAX:
                raise Refused("Conflict")
            t.put(t.limits, (account, number), Limits(**values))
        t.put(t.known, account, True)
        if "frozen" in command:
            t.put(t.frozen, account, command["frozen"])
        terms = {name: command[name] for name in (*names, "account", "asset", "frozen")
                 if name in command}
        digest = "b3:" + blake3(canonical(terms).encode()).hex()
        self._append_anchor(entry_id(self.tenant, f"limits/{self.batch_no}"), "limits", account,
                            digest, FLAG_BY_LEDGER)
        return self._close_batch()

    # ---- intents ----

    def _intents(self, command):
        t = self.t
        check_intents(command)
        self._open_batch(command)
        payouts, chunk, chunks = command["payouts"], command["chunk"], command["chunks"]
        key, fingerprint = f"{command['run_key']}:{chunk}", command["fingerprint"]
        reply = self._replayed(command, key, fingerprint)
        if reply is not None:
            return reply
        where = (self.tenant, command["epoch_id"])
        terms = tuple(command[name] for name in ("commitment", "funding_source", "asset", "total",
                                                 "chunks"))
        run = t.runs.get(where)
        if run is not None and run.run_key != command["run_key"]:
            raise Refused("Conflict")
        if run is not None and run.ended_in is not None:
            raise Refused("Conflict")
        expected = run.next_chunk if run else 0
        if chunk != expected:
            raise Refused("Conflict", expected_chunk=expected)
        if run is not None and run.terms != terms:
            raise Refused("Conflict")
        ids = [entry_id(self.tenant, payout["id"]) for payout in payouts]
        seen = set()
        for index, id16 in enumerate(ids):
            if id16 in t.ids or id16 in seen:
                raise Refused("Conflict", index)
            seen.add(id16)
        if run is None:
            run = self._open_run(command, terms)
        number = t.assets[command["asset"]].number
        for index, (payout, id16) in enumerate(zip(payouts, ids)):
            self._pay(index, payout, id16, run, number)
        rest = self.balance(run.hold_account, number)
        if chunk == chunks - 1 and rest != 0:
            raise Refused("Malformed", available=str(rest))
        t.put(t.runs, where, run._replace(next_chunk=chunk + 1))
        reply = self._close_batch()
        self._remember(command, key, fingerprint, reply)
        return reply

    def _open_run(self, command, terms):
        """Chunk 0: the Anchor and the Hold of the total."""
        t, epoch = self.t, command["epoch_id"]
        asset, total = t.assets.get(command["asset"]), int(command["total"])
        if asset is None:
            raise Refused("NotFound")
        pool = f"pool/{self.tenant}/{command['funding_source']}"
        account = f"sys/hold/run/{self.tenant}/{epoch}"
        if t.frozen.get(pool, False):
            raise Refused("LimitExceeded", limit="frozen")
        if self.balance(pool, asset.number) < total:
            raise Refused("Held")
        minimum = t.limits.get((pool, asset.number), NO_LIMITS).minimum
        if minimum is not None and self.balance(pool, asset.number) - total < minimum:
            raise Refused("LimitExceeded", limit="minimum")
        anchor = self._append_anchor(entry_id(self.tenant, "run/" + epoch),
                                     f"run/{self.tenant}/{epoch}", "", command["commitment"],
                                     FLAG_BY_LEDGER)
        self._check_name(None, account)
        self._move(pool, account, asset.number, total)
        self._append("Hold", entry_id(self.tenant, "runhold/" + epoch), account_id(pool),
                     account_id(account), asset.number, total, flags=FLAG_BY_LEDGER,
                     ext=tlv(EXT_HOLD, ZERO16 + bytes(8)), names=(pool, account))
        return Run(command["run_key"], terms, 0, account, anchor.id, pool, asset.number, None)

    def _pay(self, index, payout, id16, run, asset):
        """One payout: a Capture of the run's hold."""
        to, amount = payout["to"], int(payout["amount"])
        if to.startswith("sys/"):
            raise Refused("Forbidden", index)
        self._check_name(index, to)
        rest = self.balance(run.hold_account, asset)
        if amount > rest:
            raise Refused("InsufficientFunds", index, available=str(rest))
        self._check_credit(index, to, asset, amount)
        self._move(run.hold_account, to, asset, amount)
        self._append("Capture", id16, account_id(run.hold_account), account_id(to), asset, amount,
                     link=run.anchor_id, names=(run.hold_account, to))

    # ---- abandon, open ----

    def _abandon(self, command):
        t, epoch, run_key = self.t, command.get("epoch_id"), command.get("run_key")
        require(is_text(epoch, HOLD_ID) and is_text(run_key, RUN_KEY))
        self._open_batch(command)
        run = t.runs.get((self.tenant, epoch))
        if run is None:
            raise Refused("NotFound")
        if run.run_key != run_key:
            raise Refused("Conflict")
        if run.ended_in is not None:
            return {**t.batches[run.ended_in], "dup": True}
        rest = self.balance(run.hold_account, run.asset)
        if rest == 0:
            raise Refused("Conflict")
        terms = canonical({"epoch_id": epoch, "rest": str(rest), "run_key": run_key})
        self._append_anchor(entry_id(self.tenant, "runend/" + epoch),
                            f"run/{self.tenant}/{epoch}", "abandoned",
                            "b3:" + blake3(terms.encode()).hex(), FLAG_BY_LEDGER)
        if not self._fits(run.pool, run.asset, rest):
            raise Refused("LimitExceeded", limit="maximum")
        self._move(run.hold_account, run.pool, run.asset, rest)
        self._append("Release", entry_id(self.tenant, "runrelease/" + epoch),
                     account_id(run.hold_account), account_id(run.pool), run.asset, rest,
                     link=run.anchor_id, flags=FLAG_BY_LEDGER, names=(run.hold_account, run.pool))
        t.put(t.runs, (self.tenant, epoch), run._replace(ended_in=self.batch_no))
        return self._close_batch()

    def _open(self, command):
        t, names = self.t, command.get("names")
        check_count(names)
        for index, name in enumerate(names):
            if not is_text(name, ACCOUNT):
                raise Refused("Malformed", index)
        self._open_batch(command)
        body = b""
        for index, name in enumerate(names):
            if name.startswith("sys/"):
                raise Refused("Forbidden", index)
            self._check_name(index, name)
            if name not in t.known:
                t.put(t.known, name, True)
                body += struct.pack("<H", len(name)) + name.encode()
        if not body:
            return None
        self._append_anchor(entry_id(self.tenant, f"accounts/{self.batch_no}"), "accounts", "",
                            "b3:" + blake3(body).hex(), FLAG_BY_LEDGER)
        return self._close_batch()

    # ---- slice, expire ----

    def _slice(self, command):
        t, dimension, seq = self.t, command.get("dimension"), command.get("seq")
        digest, prev = command.get("digest"), command.get("prev")
        require(is_text(dimension, HOLD_ID) and is_int(seq, 0, U64_MAX))
        require(is_text(digest, B3) and is_text(prev, B3))
        self._open_batch(command)
        where = (self.tenant, dimension)
        expected, head = t.slices.get(where, (0, "b3:" + "0" * 64))
        id16 = entry_id(self.tenant, f"slice/{dimension}/{seq}")
        if seq < expected:
            earlier = t.entries[t.ids[id16]]
            if earlier.debit + earlier.credit != bytes.fromhex(digest[3:]):
                raise Refused("ChainMismatch")
            return {**t.batches[earlier.batch_no], "dup": True}
        if seq > expected:
            raise Refused("OrderOverflow", expected_seq=expected)
        if prev != head:
            raise Refused("ChainMismatch")
        self._append_anchor(id16, f"slice/{self.tenant}/{dimension}", str(seq), digest,
                            FLAG_BY_LEDGER)
        t.put(t.slices, where, (seq + 1, digest))
        return self._close_batch()

    def _expire(self, command):
        self._open_batch(command)
        t = self.t
        due = sorted((hold.expires_ms, account_id(account), account)
                     for account, hold in t.holds.items()
                     if hold.expires_ms <= self.commit_ms and self.balance(account, hold.asset))
        written = 0
        for _, _, account in due:
            hold = t.holds[account]
            rest = self.balance(account, hold.asset)
            # The payer's own money comes back whatever his maximum; what his balance cannot
            # represent waits.
            if written == BATCH_MAX or not self._fits(hold.payer, hold.asset, rest):
                continue
            self._move(account, hold.payer, hold.asset, rest)
            self._append("Release", entry_id(hold.tenant, "expire/" + hold.hold_id),
                         account_id(account), account_id(hold.payer), hold.asset, rest,
                         link=hold.entry_id, flags=FLAG_BY_LEDGER, names=(account, hold.payer))
            written += 1
        return self._close_batch() if written else None

    # ---- Queries ----

    def _balance(self, command):
        t, name = self.t, command["account"]
        if command["asset"] not in t.assets:
            return Refused("NotFound").answer()
        asset = t.assets[command["asset"]].number
        return {"balance": {"amount": str(self.balance(name, asset)),
                            "next_nonce": t.next_nonce.get(name, 1), "as_of_seq": t.log["seq"]}}

    def _leaf(self, command):
        if command["seq"] not in self.t.leaves:
            return Refused("NotFound").answer()
        return {"leaf": self.t.leaves[command["seq"]].hex()}

    def _totals(self, command):
        """Recomputed from all balances, never kept."""
        name = command["asset"]
        if name not in self.t.assets:
            return Refused("NotFound").answer()
        number = self.t.assets[name].number
        mint = "sys/mint/" + name
        total = sum(value for (account, asset), value in self.t.balances.items()
                    if asset == number and account != mint)
        return {"issued": str(self.balance(mint, number)),
                "burned": str(self.balance("sys/burn/" + name, number)), "sum": str(total)}

    def _state_root(self, command):
        t = self.t
        tree = Frontier()
        rows = sorted((account_id(name), asset, name) for name, asset in t.balances)
        for id16, asset, name in rows:
            tree = tree.with_leaf(id16 + struct.pack("<I", asset) + u128(t.balances[name, asset])
                                  + struct.pack("<Q", t.next_nonce.get(name, 1)))
        return {"state_root": tree.root().hex(), "rows": len(rows)}
