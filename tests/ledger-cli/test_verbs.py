#!/usr/bin/env python3
"""test_verbs.py - `ron ledger` against a running server: every verb for people and as JSON, its
refusals and its words; TAP.

    test_verbs.py PROGRAM [NAME...]
"""
import base64
import hashlib
import os
import sys

from clilib import (Cli, DAMAGED, FAILED, Ledger, OK, REFUSED, RON, Serve, UNREACHED, USAGE, ask,
                    certificate, filled, mint, run, until)

VERBS = ("ingest balance history entries holds proof assets limits export import backup restore "
         "verify replay top").split()


def help_of_every_verb(home):
    cli = Cli(home)
    listed = cli.run("--help").stdout
    for verb in VERBS:
        assert f"  {verb} " in listed, verb
        done = cli.run(verb, "--help")
        assert done.stdout.startswith(f"usage: ron ledger {verb} ") and done.stderr == ""
        assert "unexpected argument" in cli.run(verb, "--nonsense", status=USAGE).stderr
    cli.run(status=USAGE)
    cli.run("dance", status=USAGE)
    for words in (("balance",), ("balance", "a", "b"), ("balance", "a", "--asset"),
                  ("holds",), ("holds", "H", "--account", "a"), ("restore", "x"),
                  ("history", "a", "--limit", "x"), ("export", "--format", "xml"),
                  ("ingest", "--transfer", "a", "b"), ("ingest", "--mint", "a", "b", "c"),
                  ("ingest", "--transfer", "a", "b", "1", "--nonce", "0"),
                  ("ingest", "x", "--asset", "roc"),
                  ("balance", "a", "--asset", "x", "--asset", "y"),
                  ("top", "--interval", "0s"), ("assets", "--limit", "5")):
        assert cli.run(*words, status=USAGE).stdout == "", words


def found_without_flags(home):
    """A fresh server is found by its defaults; a token that was named must be there."""
    with Ledger(home) as ledger:
        cli = Cli(home)  # no environment
        done = cli.run("balance", "alice", "--url", ledger.api, "--data", ledger.data)
        assert "amount           0" in done.stdout, done.stdout
        os.rename(ledger.data, os.path.join(home, "ron-data"))
        try:
            assert cli.one("balance", "alice", "--url", ledger.api)["amount"] == "0"
        finally:
            os.rename(os.path.join(home, "ron-data"), ledger.data)
        done = cli.run("balance", "alice", "--url", ledger.api, status=REFUSED)
        assert "Unauthorized" in done.stderr and "no token was sent" in done.stderr
        cli.run("balance", "alice", "--url", ledger.api, "--token-file", "missing", status=FAILED)
        done = cli.run("balance", "alice", "--url", "http://127.0.0.1:1", "--data", ledger.data,
                       status=UNREACHED)
        assert done.stdout == ""
        cli.run("balance", "alice", "--url", "gopher://x", status=FAILED)


def over_https(home):
    """The server's certificate must come from whom one trusts, and name whom one asked for."""
    config = os.path.join(home, "ron.toml")
    now, key = certificate(home, "now")
    stranger, _ = certificate(home, "stranger")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f'[server.tls]\ncertificate = "{now}"\nkey = "{key}"\n')
    with Ledger(home, "--config", config) as ledger:
        assert ledger.api.startswith("https://127.0.0.1:")
        cli = Cli(home, ledger)
        cli.run("ingest", "--mint", "alice", "100", "--ca", now)
        shown = cli.run("balance", "alice", env={"RON_CA_FILE": now}).stdout
        assert "amount           100\n" in shown, shown
        assert cli.json("export", "--ca", now)[0]["id"]
        cli.run("verify", "--url", ledger.api, "--ca", now)
        for words in ((), ("--ca", stranger), ("--ca", now, "--host", "127.0.0.2"),
                      ("--ca", now, "--host", "ledger.example")):
            done = cli.run("balance", "alice", *words, status=UNREACHED)
            assert done.stdout == "" and "certificate" in done.stderr, (words, done.stderr)
        done = cli.run("balance", "alice", "--ca", "missing.pem", status=FAILED)
        assert "missing.pem" in done.stderr
        cli.run("balance", "alice", "--ca", now, "--client-cert", now, status=USAGE)
        plain = ledger.api.replace("https", "http")
        cli.run("balance", "alice", "--url", plain, status=UNREACHED)
        for words in (("--ca", now), ("--host", "ledger.example"),
                      ("--client-cert", now, "--client-key", key)):
            done = cli.run("balance", "alice", "--url", plain, *words, status=USAGE)
            assert "not without https" in done.stderr, done.stderr


def client_certificates(home):
    config = os.path.join(home, "ron.toml")
    now, key = certificate(home, "now")
    mine, my_key = certificate(home, "client")  # signs itself: its own authority
    with open(config, "w", encoding="utf-8") as file:
        file.write(f'[server.tls]\ncertificate = "{now}"\nkey = "{key}"\nclient_ca = "{mine}"\n')
    server = Serve(RON, os.path.join(home, "data"), "--roles", "ledger", "--config", config)
    with server:
        cli = Cli(home)
        words = ("--url", server.api, "--data", server.data, "--ca", now)
        ready = server.admin + "/readyz?role=ledger"
        until(lambda: ask(ready).status == 200, "the ledger is ready")
        done = cli.run("assets", *words, "--client-cert", mine, "--client-key", my_key)
        assert "roc" in done.stdout
        cli.run("assets", *words, status=UNREACHED)


def ingest_one(home):
    """One mint, one transfer; the same key again is the same batch."""
    with Ledger(home) as ledger:
        cli = Cli(home, ledger)
        done = cli.run("ingest", "--mint", "alice", "100")
        assert done.stderr.startswith("key cli-") and "accepted         true" in done.stdout
        first = cli.one("ingest", "--transfer", "alice", "bob", "30", "--nonce", "1", "--key",
                        "pay-1", "--memo", "x")
        again = cli.one("ingest", "--transfer", "alice", "bob", "30", "--nonce", "1", "--key",
                        "pay-1", "--memo", "x")
        assert first == again and ledger.amount("bob") == 30
        other = cli.refused("ingest", "--transfer", "alice", "bob", "31", "--key", "pay-1")
        assert other["code"] == "IdempotencyConflict"
        poor = cli.refused("ingest", "--transfer", "alice", "bob", "71")
        assert poor["code"] == "InsufficientFunds" and poor["details"]["index"] == 0
        done = cli.run("ingest", "--transfer", "alice", "bob", "71", status=REFUSED)
        assert "InsufficientFunds: " in done.stderr and '"index":0' in done.stderr
        assert cli.one("entries", "pay-1")["memo"] == "x"
        assert cli.one("ingest", "--mint", "alice", "5", "--id", "named")["accepted"]
        assert cli.one("entries", "named")["amount"] == "5"
        unknown = cli.refused("ingest", "--mint", "alice", "5", "--asset", "gold")
        assert unknown["code"] == "NotFound"


def ingest_batch(home):
    with Ledger(home) as ledger:
        cli = Cli(home, ledger)
        body = '{"batch":[{"id":"a","kind":"Mint","to":"z","asset":"roc","amount":"7"}]}'
        assert cli.one("ingest", text=body)["seq_end"] == 1
        cli.write("b.json", body.replace('"a"', '"b"'))
        assert cli.one("ingest", "b.json", "--key", "k")["seq_end"] == 2
        assert cli.one("ingest", "b.json", "--key", "k")["seq_end"] == 2
        assert ledger.amount("z") == 14
        bad = cli.refused("ingest", "-", text=body.replace("}]", '},{"id":"c"}]'))
        assert bad["code"] == "Malformed" and bad["details"]["index"] == 1
        cli.run("ingest", "missing.json", status=FAILED)
        cli.run("ingest", "-", text="x" * (2 << 20), status=FAILED)


def reads(home):
    with filled(home) as ledger:
        cli = Cli(home, ledger)
        assert cli.one("balance", "alice")["amount"] == str(10000 - 250 - 40 - 100)
        assert cli.one("balance", "alice", "--asset", "usd")["amount"] == "300"
        assert cli.one("balance", "bob", "--at-seq", "3")["amount"] == "500"
        every = cli.json("entries", "--limit", "0")
        assert [entry["seq"] for entry in every] == list(range(1, len(every) + 1))
        assert cli.json("entries", "--from", "2", "--limit", "2") == every[1:3]
        mine = [entry for entry in every if "alice" in (entry.get("debit"), entry.get("credit"))]
        assert cli.json("history", "alice", "--limit", "0") == mine
        assert cli.json("history", "alice", "--asset", "usd") == [
            entry for entry in mine if entry["asset"] == "usd"]
        assert cli.json("history", "alice", "--after", str(mine[0]["seq"]), "--limit", "1") == \
            mine[1:2]
        table = cli.run("history", "alice").stdout.splitlines()
        assert table[0].split()[:3] == ["SEQ", "KIND", "DEBIT"] and len(table) == len(mine) + 1
        assert cli.one("entries", "t1")["leaf"]
        assert cli.one("holds", "H")["rest"] == "40"
        assert [hold["id"] for hold in cli.json("holds", "--account", "alice")] == ["h1"]
        assert {asset["asset"] for asset in cli.json("assets")} == {"roc", "usd"}
        assert "usd" in cli.run("assets").stdout
        assert cli.one("limits", "shop/till")["frozen"] is False
        assert cli.refused("entries", "nobody")["code"] == "NotFound"
        assert cli.refused("holds", "nothing")["code"] == "NotFound"
        assert cli.refused("balance", "a b")["code"] == "Malformed"


def proofs(home):
    """By id and by number; another key, and a proof that was touched, are noticed."""
    with filled(home) as ledger:
        cli = Cli(home, ledger)
        found = cli.one("proof", "t1", "--save", "t1.proof")
        entry = cli.one("entries", "t1")
        assert found["proven"] and found["seq"] == entry["seq"]
        assert cli.one("proof", str(entry["seq"]))["seq"] == entry["seq"]
        assert "proven: entry" in cli.run("proof", "t1").stdout
        with open(cli.path("t1.proof.leaf"), "rb") as file:
            assert file.read().hex() == entry["leaf"]
        cli.run("proof", "t1", "--vkey", "t1.proof.vkey")
        with open(cli.path("t1.proof.vkey"), encoding="ascii") as file:
            name = file.read().split("+")[0]
        # Another log's key of the same name: its id is computed, so it is a sound key.
        key = b"\x01" + bytes(range(32))
        number = hashlib.sha256(name.encode() + b"\n" + key).hexdigest()[:8]
        cli.write("other", f"{name}+{number}+{base64.b64encode(key).decode()}\n")
        done = cli.run("proof", "t1", "--vkey", "other", status=DAMAGED)
        assert "not proven" in done.stderr
        cli.run("proof", "t99999", status=REFUSED)
        cli.run("proof", "99999", status=FAILED)


def top(home):
    with Ledger(home) as ledger:
        cli = Cli(home, ledger)
        ledger.must(mint("m", "a", 1))
        lines = cli.json("top", "--interval", "20ms", "--count", "3")
        assert len(lines) == 3 and all(line["seq"] == 1 for line in lines)
        assert {"ingress", "preval", "commit", "backlog", "entries_per_s"} <= set(lines[0])
        assert len(cli.run("top", "--interval", "20ms", "--count", "2").stdout.splitlines()) == 3


def what_is_not_there(home):
    """Empty lists, empty details, an empty token file, no server at all: each in words."""
    with Ledger(home) as ledger:
        cli = Cli(home, ledger)
        for words, what in ((("holds", "--account", "alice"), "holds"),
                            (("history", "alice"), "entries"), (("entries",), "entries")):
            done = cli.run(*words)
            assert (done.stdout, done.stderr) == ("", f"ron ledger {words[0]}: no {what}\n"), words
            done = cli.run(*words, "--json")
            assert (done.stdout, done.stderr) == ("", ""), words
        done = cli.run("assets")
        assert "roc" in done.stdout and done.stderr == ""
        assert cli.refused("entries", "nobody")["details"] == {}
        done = cli.run("entries", "nobody", status=REFUSED)
        assert "NotFound" in done.stderr and "{}" not in done.stderr, done.stderr
        for text in ("", "\n"):
            cli.write("no.token", text)
            done = cli.run("assets", "--token-file", "no.token", status=FAILED)
            assert done.stderr == "ron ledger assets: the token file no.token is empty\n"
        done = cli.run("export", "--url", "http://127.0.0.1:1", status=UNREACHED)
        assert done.stdout == "" and "--url none --data" in done.stderr, done.stderr


def secrets_stay_out(home):
    """No token in output or messages, whatever goes wrong."""
    with Ledger(home) as ledger:
        cli = Cli(home, ledger)
        token = ledger.token()
        cli.write("bad.token", token[:-4] + "AAAA")
        for words, status in ((("assets",), OK),
                              (("assets", "--token-file", "bad.token"), REFUSED),
                              (("assets", "--url", "http://127.0.0.1:1"), UNREACHED),
                              (("balance", "a", token), USAGE)):
            done = cli.run(*words, status=status)
            assert token[:-4] not in done.stdout + done.stderr, words


if __name__ == "__main__":
    sys.exit(run([help_of_every_verb, found_without_flags, over_https,
                  client_certificates, ingest_one, ingest_batch, reads, proofs,
                  top, what_is_not_there, secrets_stay_out]))
