"""apilib.py - a running ledger and what a client says to it."""
import http.client
import json
import os
import ssl
import sys
import tempfile
import traceback
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serve"))
from servelib import Reply, Serve, token_command, unless_busy, until, WAIT_S  # noqa: E402

RON = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/ron")
# pylint: disable-next=protected-access
STRANGER = ssl._create_unverified_context()  # of a certificate that signs itself
FAR = "2099-01-01T00:00:00Z"
ALL = "ledger.ingest,ledger.mint,ledger.burn,ledger.reverse,ledger.intent,ledger.slice," \
      "ledger.anchor,ledger.read,ledger.admin"


class Ledger(Serve):
    """One ledger with a data directory of its own; `all` may do everything."""

    def __init__(self, home, *options, env=None, safe=False):
        """safe: it is expected in safe-mode, where only reads are ready."""
        super().__init__(RON, os.path.join(home, "data"), "--roles", "ledger", *options, env=env)
        ready = "/readyz?role=ledger" + ("&plane=read" if safe else "")
        until(lambda: self.ask("GET", ready).status == 200, "the ledger is ready")
        self.all = self.mint(f"scope = {ALL}")

    def mint(self, *caveats, any_tenant=False):
        more = ["--any-tenant"] if any_tenant else []
        for caveat in caveats:
            more += ["--caveat", caveat]
        return token_command(RON, "mint", "--keyring", self.data, *more)

    def ask(self, method, path, body=None, token=None, headers=None, admin=False):
        url = urllib.parse.urlsplit(self.admin if admin else self.api)
        if url.scheme == "https":
            connection = http.client.HTTPSConnection(url.hostname, url.port, timeout=WAIT_S,
                                                     context=STRANGER)
        else:
            connection = http.client.HTTPConnection(url.hostname, url.port, timeout=WAIT_S)
        fields = dict(headers or {})
        if token:
            fields["Authorization"] = f"Bearer {token}"
        if body is not None:
            fields.setdefault("Content-Type", "application/json")
            if not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            if isinstance(body, str):
                body = body.encode()
        try:
            connection.request(method, path, body=body, headers=fields)
            reply = connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())
        finally:
            connection.close()

    def get(self, path, token=None):
        return self.ask("GET", path, token=token or self.all)

    def post(self, path, body, token=None, headers=None, admin=False):
        return self.ask("POST", path, body, token or self.all, headers, admin)

    def ingest(self, *entries, key=None, token=None, headers=None, query=""):
        body = {"batch": list(entries)}
        if key is not None:
            body["idem_id"] = key
        return self.post("/ingest" + query, body, token, headers)

    def must(self, *entries, **more):
        reply = self.ingest(*entries, **more)
        assert reply.status == 200, (reply.status, reply.body)
        return reply.json()

    def balance(self, account, asset="roc"):
        reply = self.get(f"/balance?account={urllib.parse.quote(account)}&asset={asset}")
        assert reply.status == 200, reply.body
        return reply.json()

    def amount(self, account, asset="roc"):
        return int(self.balance(account, asset)["amount"])

    def head(self):
        roots = self.ask("GET", "/roots").json()
        return (roots["next"], roots["roots"][-1]["root"] if roots["roots"] else None)


def mint(entry_id, to, amount, asset="roc"):
    return {"id": entry_id, "kind": "Mint", "to": to, "asset": asset, "amount": str(amount)}


def transfer(entry_id, source, to, amount, **more):
    return {"id": entry_id, "kind": "Transfer", "from": source, "to": to, "asset": "roc",
            "amount": str(amount), **more}


def refused(reply, status, code, index=None, **details):
    """An envelope: its status, code, index and details; None: no index."""
    assert reply.status == status, (reply.status, reply.body)
    error = reply.json()["error"]
    assert error["code"] == code, error
    assert error["message"], error
    found = error.get("details") or {}
    assert found.get("index") == index, error
    for name, value in details.items():
        assert found.get(name) == value, error
    return error


class Skip(Exception):
    """Not possible here, and why."""


def run(tests):
    """TAP; names after the program pick some of them."""
    tests = [test for test in tests if len(sys.argv) < 3 or test.__name__ in sys.argv[2:]]
    failed = 0
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as home:
            try:
                test(home)
            except Skip as reason:
                print(f"ok {number} - {test.__name__} # SKIP {reason}")
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print("# " + traceback.format_exc().strip().replace("\n", "\n# "))
                print(f"not ok {number} - {test.__name__}")
            else:
                print(f"ok {number} - {test.__name__}")
        sys.stdout.flush()
    return 1 if failed else 0
