"""ledger_past.py - how long questions about the past take, at places drawn from all of it.

One connection, one question after the other, of a server that rests: what is far behind has left
the page cache, so most of them read the disk. Times are the client's, the reply read and parsed.
"""
import http.client
import json
import random
import time
import urllib.parse

QUESTIONS = 400  # of each kind


class Past:
    def __init__(self, url, token, accounts, entries, seed=1):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
        self.headers = {"Authorization": f"Bearer {token.strip()}"}
        self.accounts, self.entries = accounts, entries
        self.random = random.Random(seed)
        self.ids = []

    def ask(self, path):
        """The reply, and how long it took in milliseconds."""
        begin = time.perf_counter()
        self.connection.request("GET", path, headers=self.headers)
        reply = self.connection.getresponse()
        body = json.loads(reply.read())
        took_ms = (time.perf_counter() - begin) * 1000
        if reply.status != 200:
            raise RuntimeError(f"GET {path}: {reply.status} {body.get('code')}")
        return body, took_ms

    def account(self):
        return f"acct:{self.random.randrange(self.accounts):019}"

    def seq(self):
        return self.random.randrange(self.accounts, self.entries) + 1

    def balance(self):
        body, took_ms = self.ask(f"/balance?account={self.account()}&asset=roc&at_seq={self.seq()}")
        if int(body["amount"]) < 0:
            raise RuntimeError(f"a balance of {body['amount']}")
        return took_ms

    def page(self):
        """A hundred entries by number: one frame of the log, or two."""
        first = self.seq()
        body, took_ms = self.ask(f"/entries?from={first}&limit=100")
        found = body["entries"]
        if not found or found[0]["seq"] != first:
            raise RuntimeError(f"entries from {first} do not begin there")
        self.ids.append(self.random.choice(found)["id"])
        return took_ms

    def entry(self):
        wanted = self.ids.pop()
        body, took_ms = self.ask(f"/entries/{wanted}")
        if body["id"] != wanted:
            raise RuntimeError(f"entry {wanted} is another")
        return took_ms

    def history(self):
        return self.ask(f"/entries?account={self.account()}&limit=100")[1]

    def proof(self):
        return self.ask(f"/proof/inclusion?seq={self.seq()}")[1]

    def rows(self):
        """Of each kind of question: name, median, 99th of a hundred, longest, in milliseconds."""
        kinds = [("/balance?at_seq=", self.balance), ("/entries?from=&limit=100", self.page),
                 ("/entries/{id}", self.entry), ("/entries?account=&limit=100", self.history),
                 ("/proof/inclusion?seq=", self.proof)]
        rows = []
        for name, question in kinds:
            times = sorted(question() for _ in range(QUESTIONS))
            rows.append((name, times[len(times) // 2], times[len(times) * 99 // 100], times[-1]))
        self.connection.close()
        return rows
