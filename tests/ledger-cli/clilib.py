"""clilib.py - `ron ledger` against a ledger of its own, as an operator types it."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ledger-api"))
from apilib import RON, Ledger, Serve, WAIT_S, mint, run, transfer, until  # noqa: E402,F401
from servelib import ask, certificate  # noqa: E402,F401

OK, FAILED, USAGE, DAMAGED, FOREIGN, NEWER, REFUSED, UNREACHED = range(8)


class Cli:
    """Runs in a folder of its own; the server's address and token come by the environment."""

    def __init__(self, home, ledger=None):
        self.home, self.ledger = home, ledger

    def environment(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("RON_")}
        if self.ledger is not None:
            env.update(RON_URL=self.ledger.api, RON_ADMIN_URL=self.ledger.admin,
                       RON_TOKEN_FILE=os.path.join(self.ledger.data, "operator.token"))
        return env

    def run(self, *words, text=None, status=OK, env=None):
        """The process that ended; its exit code must be `status`."""
        done = subprocess.run([RON, "ledger", *words], input=text, capture_output=True, text=True,
                              cwd=self.home, timeout=WAIT_S, check=False,
                              env=dict(self.environment(), **(env or {})))
        assert done.returncode == status, (words, done.returncode, done.stdout[-500:], done.stderr)
        return done

    def json(self, *words, text=None):
        """Every line of the output is JSON: one object, or a list of them."""
        lines = self.run(*words, "--json", text=text).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def one(self, *words, text=None):
        found = self.json(*words, text=text)
        assert len(found) == 1, found
        return found[0]

    def refused(self, *words, text=None):
        """The server's envelope, by --json."""
        done = self.run(*words, "--json", text=text, status=REFUSED)
        assert done.stdout == "", done.stdout
        return json.loads(done.stderr.splitlines()[-1])["error"]

    def path(self, name):
        return os.path.join(self.home, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return name


def checkpoint(ledger, size):
    """A signed head of that size: it comes a moment after the commit."""
    def look():
        note = ledger.ask("GET", "/checkpoint").body.decode()
        return note if note.splitlines()[1] == str(size) else None
    return until(look, f"a head of {size}")


def filled(home):
    """A ledger with assets, holds, memos and a batch of balanced legs, and the head of all that."""
    ledger = Ledger(home)
    ledger.post("/assets", {"asset": "usd", "decimals": 2, "max_supply": "1000000"})
    ledger.must(mint("m1", "alice", 10000), mint("m2", "bob", 500), key="start")
    ledger.must(mint("u1", "alice", 300, asset="usd"))
    ledger.must(transfer("t1", "alice", "bob", 250, nonce=1, memo='said "hi"; bye'))
    ledger.must({"id": "d1", "kind": "Debit", "account": "alice", "asset": "roc", "amount": "40"},
                {"id": "c1", "kind": "Credit", "account": "shop/till", "asset": "roc",
                 "amount": "25"},
                {"id": "c2", "kind": "Credit", "account": "shop/tax", "asset": "roc",
                 "amount": "15"})
    ledger.must({"id": "h1", "kind": "Hold", "from": "alice", "hold_id": "H", "payee": "shop/till",
                 "expires_at": "2099-01-01T00:00:00Z", "asset": "roc", "amount": "100"})
    ledger.must({"id": "k1", "kind": "Capture", "hold_id": "H", "asset": "roc", "amount": "60"})
    checkpoint(ledger, ledger.head()[0])
    return ledger
