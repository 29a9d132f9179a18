#!/usr/bin/env python3
"""test_journal.py PROGRAM [NAME...] - the ledger's entries as a journal, summed by hledger; TAP."""
import shutil
import sys

import checks
from apilib import FAR, Ledger, mint, run, transfer

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
        for text in checks.exported(home, ledger):
            checks.hledger(text, shown)
        print(f"# {len(rows)} entries, {len(shown)} balances")


if __name__ == "__main__":
    sys.exit(run([balances_by_hledger]))
