#!/usr/bin/env python3
"""test_journal.py PROGRAM [NAME...] - the ledger's entries as a journal, summed by hledger; TAP."""
import os
import shutil
import subprocess
import sys

import checks
from apilib import FAR, RON, WAIT_S, Ledger, mint, run, transfer

LARGE = 2 ** 100


def balances_by_hledger(home):
    """Every kind, two assets, amounts beyond 64 bits, a debt: hledger's sums are /balance's."""
    assert shutil.which("hledger"), "hledger is not installed: ./dev setup"
    with Ledger(home) as ledger:
        assert ledger.post("/assets", {"asset": "usd", "decimals": 2,
                                       "max_supply": str(LARGE * 4)}).status == 200
        ledger.must(mint("m1", "alice", 10 ** 6), mint("m2", "bob", LARGE, "usd"),
                    mint("m3", "pool/0/main", 500), mint("m4", "dan", 1))
        ledger.must(transfer("t1", "alice", "carol", 12345),
                    dict(transfer("t2", "bob", "carol", LARGE // 3), asset="usd"))
        assert ledger.post("/accounts", {"account": "dan", "asset": "roc",
                                         "credit_line": "100"}).status == 200
        ledger.must(transfer("t3", "dan", "carol", 77))
        ledger.must({"id": "h1", "kind": "Hold", "from": "alice", "hold_id": "H1", "payee": "shop",
                     "expires_at": FAR, "asset": "roc", "amount": "30"},
                    {"id": "c1", "kind": "Capture", "hold_id": "H1", "asset": "roc",
                     "amount": "10"})
        ledger.must({"id": "b1", "kind": "Burn", "from": "carol", "asset": "usd", "amount": "9"},
                    {"id": "v1", "kind": "Reverse", "ref": "t1", "asset": "roc", "amount": "45"},
                    {"id": "d1", "kind": "Debit", "account": "alice", "asset": "roc",
                     "amount": "5"},
                    {"id": "d2", "kind": "Credit", "account": "erin", "asset": "roc",
                     "amount": "5"})
        rows = checks.all_entries(ledger)
        touched = {(row[side], row["asset"]) for row in rows if "debit" in row
                   for side in ("debit", "credit")}
        shown = {}
        for account, asset in touched:
            found = ledger.balance(account, asset)
            shown[account, asset] = int(found["amount"]) - int(found.get("debt") or 0)
        assert shown["dan", "roc"] == -76 and shown["carol", "usd"] == LARGE // 3 - 9
        checks.hledger(checks.journal(rows), shown)
        # `ron` writes the same journal, of a server and of its directory.
        token = os.path.join(home, "all.token")
        with open(os.open(token, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(ledger.all)
        for where in (["--url", ledger.api, "--token-file", token],
                      ["--url", "none", "--data", ledger.data]):
            done = subprocess.run([RON, "ledger", "export", "--format", "ledger", *where],
                                  capture_output=True, text=True, timeout=WAIT_S, check=False)
            assert done.returncode == 0, done.stderr
            checks.hledger(done.stdout, shown)
        print(f"# {len(rows)} entries, {len(shown)} balances")


if __name__ == "__main__":
    sys.exit(run([balances_by_hledger]))
