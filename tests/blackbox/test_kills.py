#!/usr/bin/env python3
"""test_kills.py PROGRAM [--kills N] [--seed N] - a ledger that is killed again and again under its
clients; TAP.

Method: clients of both protocols write without pause; the process gets SIGKILL after a drawn number
of acknowledgements, or while it still starts, and is started again on the same data. Afterwards all
that clients were told is held against what is there. A run of more than 100 kills is several.
"""
import argparse
import os
import random
import struct
import sys
import tempfile
import traceback

import checks
from clients import FUNDS, SHARED, Client, OapPeer, NAMES, Operation, Town, mint
from apilib import ALL, RON, Ledger, Serve, until

KILLS_PER_RUN = 100
HTTP_CLIENTS, OAP_CLIENTS = 4, 2


class Life(Ledger):
    """A ledger that nobody waits for; its token is of an earlier life."""

    def __init__(self, home, token):  # pylint: disable=super-init-not-called
        Serve.__init__(self, RON, os.path.join(home, "data"), "--roles", "ledger")
        self.all = token

    def wait_ready(self):
        until(lambda: self.ask("GET", "/readyz?role=ledger").status == 200, "ready again")

    def kill(self):
        self.process.kill()
        self.process.communicate()
        self.log_file.close()


class Found(list):
    """Operations that are there, and the names that were opened."""

    opened = ()


class Run:
    def __init__(self, home, kills, seed):
        self.home, self.kills, self.seed = home, kills, seed
        self.random = random.Random(seed)
        self.notes, self.roots, self.early = [], {}, 0

    def first_life(self):
        """Accounts that binary clients may name, with funds; makes the capability of all."""
        with Ledger(self.home) as ledger:
            token = ledger.mint(f"scope = {ALL}")
            owners = [f"own_{i}" for i in range(HTTP_CLIENTS + OAP_CLIENTS)]
            self.opened = [*SHARED, *owners]
            peer = OapPeer(ledger.api, token)
            names = b"".join(struct.pack("<H", len(name)) + name.encode() for name in self.opened)
            assert peer.ask(NAMES, names).status == 200
            peer.close()
            funds = Operation("funds", [mint(f"fund-{name}", name, FUNDS) for name in self.opened],
                              False)
            reply = ledger.post("/ingest", funds.body, token)
            assert reply.status == 200, reply.body
            funds.state, funds.reply = "acked", reply.body
            self.look(ledger)
        return token, funds

    def look(self, ledger):
        """What this life says in public; it binds all that come after it."""
        since = max(self.roots, default=0)
        last = ledger.ask("GET", f"/roots?since={max(since - 1, 0)}").json()["roots"]
        for root in last:
            assert self.roots.setdefault(root["seq"], root["root"]) == root["root"], root
        note = ledger.ask("GET", "/checkpoint")
        if note.status == 200:
            self.notes.append(note.body)

    def cycle(self, town):
        life = Life(self.home, town.token)
        town.announce(life.api)
        if self.random.random() < 0.2:
            self.early += 1
            life.kill()
            return
        life.wait_ready()
        self.look(life)
        town.ready()
        wanted = town.acks + self.random.randrange(1, 250)
        half = (town.acks + wanted) // 2
        assert town.wait(lambda: town.acks >= half), "clients do not get on"
        self.look(life)
        assert town.wait(lambda: town.acks >= wanted), "clients do not get on"
        life.kill()

    def run(self):
        token, funds = self.first_life()
        town = Town(token)
        clients = [Client(town, i, self.seed, i >= HTTP_CLIENTS)
                   for i in range(HTTP_CLIENTS + OAP_CLIENTS)]
        for client in clients:
            client.start()
        try:
            for _ in range(self.kills):
                self.cycle(town)
                broken = [client for client in clients if client.failure]
                assert not broken, (broken[0].name, broken[0].failure)
        finally:
            town.end()
        for client in clients:
            client.join(60)
            assert not client.is_alive() and not client.failure, (client.name, client.failure)
        operations = [funds] + [each for client in clients for each in client.operations]
        with Life(self.home, token) as ledger:
            ledger.wait_ready()
            self.judge(ledger, operations)
        print(f"# {self.kills} kills, {self.early} of them during the start; seed {self.seed}; "
              f"{sum(client.repeated for client in clients)} repeated on the way")

    def judge(self, ledger, operations):
        self.look(ledger)
        checks.wait_for_expiry(ledger, operations)
        rows, roots = checks.all_entries(ledger), checks.all_roots(ledger)
        final = {root["seq"]: root["root"] for root in roots}
        assert self.roots.items() <= final.items(), "roots that were published are gone"
        there = Found(checks.fates(operations, rows))
        there.opened = self.opened
        model = checks.replayed(rows, roots, there)
        checks.repetitions(ledger, operations, there, ledger.all)
        shown = checks.balances(ledger, model)
        for text in (checks.journal(rows), *checks.exported(self.home, ledger)):
            checks.hledger(text, shown)
        pairs = checks.proofs(ledger, model.t.leaves, roots, self.notes, self.seed)
        # Repetitions and conflicts, all of them, left no trace.
        assert checks.all_roots(ledger) == roots
        states = [operation.state for operation in operations]
        print(f"# {states.count('acked')} acknowledged, {states.count('refused')} refused, "
              f"{states.count('left')} left open, {len(there) - states.count('acked')} of these "
              f"there; {len(rows)} entries, {len(roots)} roots, {pairs} consistency proofs")
        assert states.count("acked") > self.kills and states.count("left"), "nothing was tried"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    runs = [min(KILLS_PER_RUN, options.kills - i) for i in range(0, options.kills, KILLS_PER_RUN)]
    failed = 0
    print(f"1..{len(runs)}")
    for number, kills in enumerate(runs, 1):
        # covers: LED-V15
        with tempfile.TemporaryDirectory(prefix="ron-kills-") as home:
            try:
                Run(home, kills, options.seed + number - 1).run()
                print(f"ok {number} - killed_ledger_keeps_what_it_acknowledged")
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print("# " + traceback.format_exc().strip().replace("\n", "\n# "))
                print(f"not ok {number} - killed_ledger_keeps_what_it_acknowledged")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
