#!/usr/bin/env python3
"""test_copies.py - the ledger carried elsewhere: export, import, backup, restore; and verified:
directories, backups, servers, each broken link by its name; TAP.

    test_copies.py PROGRAM [NAME...]
"""
import csv
import datetime
import io
import json
import os
import shutil
import subprocess
import sys

from clilib import (Cli, DAMAGED, FAILED, FOREIGN, Ledger, REFUSED, RON, UNREACHED, USAGE, WAIT_S,
                    checkpoint, filled, mint, run, transfer, until)

ACCOUNTS = ("alice", "bob", "shop/till", "shop/tax")


def balances(ledger):
    return {(name, asset): ledger.amount(name, asset) for name in ACCOUNTS
            for asset in ("roc", "usd")}


def entries_of(directory):
    """The segment files of a log, by name."""
    log = os.path.join(directory, "ledger", "log")
    return [os.path.join(log, name) for name in sorted(os.listdir(log)) if name.startswith("seg-")]


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x40]))


# --- Export and import ----------------------------------------------------------------------------

def export_formats(home):
    """Server and directory give the same bytes."""
    with filled(home) as ledger:
        cli = Cli(home, ledger)
        for form in ("jsonl", "csv", "ledger"):
            online = cli.run("export", "--format", form).stdout
            offline = cli.run("export", "--format", form, "--url", "none", "--data", ledger.data)
            assert online == offline.stdout, form
            done = cli.run("export", "--format", form, "--out", "out")
            assert "entries" in done.stdout
            with open(cli.path("out"), encoding="utf-8", newline="") as file:
                assert file.read() == subprocess_text(online), form
        lines = [json.loads(line) for line in cli.run("export").stdout.splitlines()]
        assert lines == cli.json("entries", "--limit", "0")
        rows = list(csv.DictReader(io.StringIO(cli.run("export", "--format", "csv").stdout)))
        assert len(rows) == len(lines)
        memo = [row for row in rows if row["id"] == "t1"][0]
        assert (memo["memo"], memo["amount"], memo["debit"]) == ('said "hi"; bye', "250", "alice")
        assert cli.json("export", "--from", "3") == lines[2:]
        cli.run("export", "--from", "3", "--url", "none", "--data", ledger.data, status=USAGE)
        os.mkdir(cli.path("empty"), 0o700)
        cli.run("export", "--url", "none", "--data", "empty", status=FOREIGN)


def subprocess_text(text):
    """What text mode made of it: CSV ends its lines with CR LF."""
    return text.replace("\n", "\r\n") if text.startswith("seq,") else text


def journal_balances(home):
    """hledger reads the journal and comes to the server's balances."""
    with filled(home) as ledger:
        cli = Cli(home, ledger)
        cli.run("export", "--format", "ledger", "--out", "all.journal")
        done = subprocess.run(["hledger", "-f", cli.path("all.journal"), "balance", "--flat",
                               "--no-total", "-O", "csv", "--layout=bare"], capture_output=True,
                              text=True, timeout=WAIT_S, check=False, env=dict(
                                  os.environ, LC_ALL="C.UTF-8"))
        assert done.returncode == 0, done.stderr
        found = {(row["account"].replace(":", "/"), row["commodity"]): int(row["balance"])
                 for row in csv.DictReader(io.StringIO(done.stdout))}
        for (name, asset), amount in balances(ledger).items():
            assert found.get((name, asset), 0) == amount, (name, asset, amount, found)
        check = subprocess.run(["hledger", "-f", cli.path("all.journal"), "check"], timeout=WAIT_S,
                               capture_output=True, text=True, check=False)
        assert check.returncode == 0, check.stderr


def import_lines(home):
    """Chunks with keys: the same file again changes nothing."""
    with Ledger(home) as ledger:
        cli = Cli(home, ledger)
        lines = [mint("m", "alice", 1000)] + [transfer(f"t{i}", "alice", "bob", 1)
                                              for i in range(25)]
        cli.write("in", "\n".join(json.dumps(line) for line in lines) + "\n\n")
        first = cli.one("import", "in", "--chunk", "10")
        assert first == {"batches": 3, "entries": 26, "repeated": 0, "passed_over": 0}
        head = ledger.head()
        assert cli.one("import", "in", "--chunk", "10")["repeated"] == 3
        assert ledger.head() == head and ledger.amount("bob") == 25
        text = "".join(json.dumps(line) + "\n" for line in (
            transfer("a1", "alice", "bob", 1), transfer("a2", "alice", "bob", 10 ** 6)))
        done = cli.run("import", "-", "--chunk", "1", text=text, status=REFUSED)
        assert "InsufficientFunds" in done.stderr and "begins at line 2" in done.stderr
        done = cli.run("import", "-", text="{}\n[1]\n", status=FAILED)
        assert "line 2" in done.stderr
        cli.run("import", "-", "--chunk", "8001", text="", status=USAGE)


def import_goes_on(home):
    """A file that has grown: its full batches are repeated, and what is new is written."""
    with Ledger(home) as ledger:
        cli = Cli(home, ledger)
        lines = [mint("m", "alice", 1000)] + [transfer(f"t{i}", "alice", "bob", 1)
                                              for i in range(40)]
        texts = [json.dumps(line) + "\n" for line in lines]
        cli.run("import", "-", "--chunk", "10", text="".join(texts[:20]))
        cli.write("in", "".join(texts)[:-1])  # the last line has no end
        made = cli.one("import", "in", "--chunk", "10")
        assert made == {"batches": 5, "entries": 41, "repeated": 2, "passed_over": 0}, made
        assert ledger.amount("bob") == 40 and ledger.head()[0] == 41
        changed = texts[:10] + [json.dumps(transfer("other", "alice", "bob", 5)) + "\n"]
        made = cli.json("import", "-", "--chunk", "10", text="".join(changed))[0]
        assert made["repeated"] == 1 and ledger.amount("bob") == 45, made
        long = json.dumps(dict(transfer("t", "alice", "bob", 1), memo="x" * (64 << 10)))
        done = cli.run("import", "-", text=texts[0] + long, status=FAILED)
        assert "line 2:" in done.stderr and "more than 65536 bytes" in done.stderr, done.stderr
        more = [json.dumps(transfer(f"more{i}", "alice", "bob", 1)) for i in range(4)]
        for one in more[:2]:  # as many lines, but not the same
            assert cli.json("import", "-", text=one)[0]["repeated"] == 0
        assert cli.json("import", "-", text=more[1])[0]["repeated"] == 1
        cli.run("import", "-", "--key", "k" * 107, "--chunk", "1", text="\n".join(more[2:]))
        cli.run("import", "-", "--key", "k" * 108, text=more[0], status=USAGE)


def peak(cli, *words):
    """The most memory that a command had, in bytes (or that we had when it began)."""
    with open(os.devnull, "wb") as nowhere:
        with subprocess.Popen([RON, "ledger", *words], cwd=cli.home, env=cli.environment(),
                              stdout=nowhere) as process:
            status, usage = os.wait4(process.pid, 0)[1:]
            process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return usage.ru_maxrss << 10


def large_copies(home):
    """A file beyond 64 MiB is imported, and exported whole, in memory that does not grow with it;
    an export that fails leaves what was there."""
    count, mib = 25500, 1 << 20
    with Ledger(home) as ledger:
        cli = Cli(home, ledger)
        cli.write("none", "")
        small = max(peak(cli, "import", "none"), peak(cli, "export", "--out", "none"))
        memo, meta = "\1" * 256, {"m": "x" * 1000}
        with open(cli.path("in"), "w", encoding="ascii") as file:
            file.write(json.dumps(mint("m", "alice", count)) + "\n")
            for i in range(count):
                file.write(json.dumps(transfer(f"t{i}", "alice", "bob", 1, memo=memo, meta=meta))
                           + "\n")
        assert os.path.getsize(cli.path("in")) > 64 * mib
        found = [peak(cli, "import", "in"), peak(cli, "export", "--out", "out"),
                 peak(cli, "export", "--out", "copy", "--url", "none", "--data", ledger.data)]
        assert ledger.amount("bob") == count
        assert os.path.getsize(cli.path("out")) > 64 * mib
        with open(cli.path("out"), "rb") as file:
            assert sum(1 for _ in file) == count + 1
        subprocess.run(["cmp", cli.path("out"), cli.path("copy")], check=True, timeout=WAIT_S)
        if "ASAN_OPTIONS" not in os.environ:  # it keeps what was freed
            assert max(found[:2]) < small + 24 * mib, (small, found)  # a directory is done again
        cli.write("in", "before")
        shutil.copytree(ledger.data, cli.path("bad"))
    log = entries_of(cli.path("bad"))[0]
    flip(log, os.path.getsize(log) // 2 if os.path.getsize(log) < 64 * mib else 40 * mib)
    before = sorted(os.listdir(home))
    cli.run("export", "--out", "in", "--url", "none", "--data", "bad", status=DAMAGED)
    with open(cli.path("in"), encoding="ascii") as file:
        assert file.read() == "before"
    cli.run("export", "--out", "fresh", "--url", "http://127.0.0.1:1", status=UNREACHED)
    assert sorted(os.listdir(home)) == before


# What a copy cannot have from the original: its own order, batches, times, roots and token.
OF_THE_LEDGER = ("seq", "batch_no", "batch_seq_start", "batch_seq_end", "batch_root",
                 "committed_at", "capability_ref")


def all_kinds(home):
    """A ledger with an entry of every kind that a client may write, and some of its own."""
    ledger = filled(home)
    roc = {"asset": "roc"}
    soon = (datetime.datetime.now(datetime.timezone.utc)
            + datetime.timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    ledger.must(dict(roc, id="b1", kind="Burn", **{"from": "bob"}, amount="7"),
                mint("m3", "shop/till", 1))
    ledger.must(dict(roc, id="h2", kind="Hold", hold_id="any", payee="*", amount="90",
                     expires_at="2099-01-01T00:00:00Z", meta={"why": ["x", 1]},
                     **{"from": "alice"}))
    ledger.must(dict(roc, id="h3", kind="Hold", hold_id="short", payee="shop/tax", amount="30",
                     expires_at=soon, **{"from": "alice"}),
                dict(roc, id="k3", kind="Capture", hold_id="short", amount="4"))
    ledger.must(dict(roc, id="k2", kind="Capture", hold_id="any", to="carol/1", amount="50"))
    ledger.must(dict(roc, id="l1", kind="Release", hold_id="H", amount="15"),
                dict(roc, id="l2", kind="Release", hold_id="any", amount="5"))
    ledger.must(dict(roc, id="r1", kind="Reverse", ref="t1", amount="50"),
                dict(roc, id="r2", kind="Reverse", ref="t1", amount="20"),
                dict(roc, id="r3", kind="Reverse", ref="m3", amount="1"))
    ledger.must({"id": "a1", "kind": "Anchor", "stream": "notes/x", "digest": "b3:" + "5c" * 32},
                {"id": "a2", "kind": "Anchor", "stream": "notes/x", "ref": "2",
                 "digest": "sha256:" + "a7" * 32})
    ledger.post("/accounts", {"account": "dave", "asset": "roc", "minimum": "1"})
    until(lambda: ledger.get("/holds/short").json()["state"] == "ended", "the release of a hold")
    return ledger


def told(cli):
    """Every entry that a client wrote, without what is the ledger's."""
    return [{name: value for name, value in entry.items() if name not in OF_THE_LEDGER}
            for entry in cli.json("entries", "--limit", "0") if not entry["by_ledger"]]


def holds(ledger):
    return {name: {key: value for key, value in ledger.get("/holds/" + name).json().items()
                   if key not in ("seq", "as_of_seq", "expires_at")}
            for name in ("H", "any", "short")}


def export_is_imported(home):
    """What one server exported another one takes, entries of every kind; legs of a batch stay
    together, and the same file again changes nothing."""
    os.mkdir(os.path.join(home, "a"))
    os.mkdir(os.path.join(home, "b"))
    with all_kinds(os.path.join(home, "a")) as one, Ledger(os.path.join(home, "b")) as two:
        cli, first = Cli(home, two), Cli(home, one)
        text = first.run("export").stdout
        lines = [json.loads(line) for line in text.splitlines()]
        assert {line["kind"] for line in lines} == {
            "Mint", "Burn", "Transfer", "Hold", "Capture", "Release", "Reverse", "Credit", "Debit",
            "Anchor", "Asset"}
        own = [line["kind"] for line in lines if line["by_ledger"] and line["kind"] != "Asset"]
        assert own.count("Release") == 1 and "Anchor" in own, own
        assert text == first.run("export", "--url", "none", "--data", one.data).stdout
        cli.write("in", text)
        done = cli.run("import", "in", "--chunk", "1", status=REFUSED)
        assert "Expired" in done.stderr and "--holds-until" in done.stderr
        soon = (datetime.datetime.now(datetime.timezone.utc)
                + datetime.timedelta(seconds=4)).strftime("%Y-%m-%dT%H:%M:%SZ")
        words = ("import", "in", "--chunk", "1", "--holds-until", soon)
        made = cli.one(*words)
        assert made["passed_over"] == len(own), made
        assert made["entries"] == len(lines) - len(own), made
        until(lambda: two.get("/holds/short").json()["state"] == "ended", "the release of a hold")
        names = ACCOUNTS + ("carol/1", "sys/hold/H", "sys/hold/any", "sys/hold/short",
                            "sys/mint/roc", "sys/burn/roc")
        for name in names:
            for asset in ("roc", "usd"):
                assert two.amount(name, asset) == one.amount(name, asset), (name, asset)
            assert two.balance(name)["next_nonce"] == one.balance(name)["next_nonce"], name
        assert holds(two) == holds(one)
        again = [dict(entry, expires_at=None) if entry["id"] == "h3" else entry
                 for entry in told(cli)]
        assert again == [dict(entry, expires_at=None) if entry["id"] == "h3" else entry
                         for entry in told(first)]
        head = two.head()
        assert cli.one(*words)["repeated"] == made["batches"]
        assert two.head() == head


def import_needs_the_whole_line(home):
    """A line that lacks what its entry was asked with is refused, with its number."""
    with all_kinds(home) as ledger:
        cli = Cli(home, ledger)
        lines = {line["id"]: line
                 for line in map(json.loads, cli.run("export").stdout.splitlines())}
        head = ledger.head()
        for name, member in (("h1", "payee"), ("h2", "payee"), ("k1", "hold_id"),
                             ("l1", "hold_id"), ("r1", "ref"), ("m1", "credit"), ("b1", "debit"),
                             ("a1", "stream"), ("t1", "credit")):
            short = {key: value for key, value in lines[name].items() if key != member}
            done = cli.run("import", "-", text="\n" + json.dumps(short), status=FAILED)
            assert f"line 2: a {short['kind']} without its {member}" in done.stderr, done.stderr
        strange = dict(lines["t1"], tenant="7")
        done = cli.run("import", "-", text=json.dumps(lines["m1"]) + "\n" + json.dumps(strange),
                       status=FAILED)
        assert "line 2: of tenant 7" in done.stderr
        payout = dict(lines["k1"], hold_id="run/0/e1")
        done = cli.run("import", "-", text=json.dumps(payout), status=FAILED)
        assert "a payout of a run" in done.stderr
        done = cli.run("import", "-", text=json.dumps(dict(lines["t1"], kind="Gift")),
                       status=FAILED)
        assert "no kind" in done.stderr
        cli.run("import", "-", "--holds-until", "tomorrow", text="", status=USAGE)
        # A Capture whose Hold is only in the server: it is asked for whom the hold is.
        text = json.dumps(dict(lines["k2"], id="k2b", amount="1")) + "\n" + json.dumps(
            dict(lines["k1"], id="k1b", amount="1"))
        assert ledger.head() == head
        cli.run("import", "-", text=text)
        assert ledger.amount("carol/1") == 51 and ledger.amount("sys/hold/H") == 24
        cli.run("import", "-", text=json.dumps(dict(lines["k1"], hold_id="none")), status=REFUSED)


# --- Backup, restore, verify ----------------------------------------------------------------------

def backup_and_restore(home):
    """Of a server that runs and writes; what is restored is served, with the same head."""
    with filled(home) as ledger:
        cli = Cli(home, ledger)
        cli.write("since", checkpoint(ledger, ledger.head()[0]))
        cli.write("vkey", ledger.ask("GET", "/checkpoint/vkey").body.decode())
        made = cli.one("backup", "copy", "--data", ledger.data, "--with-key")
        head = ledger.head()
        assert made["entries"] == head[0] and made["key"] is True
        bare = cli.one("backup", "bare", "--data", ledger.data)
        assert bare["key"] is False
        assert not os.path.exists(cli.path("bare/ledger/log.key"))
        assert "not empty" in cli.run("backup", "copy", "--data", ledger.data, status=FAILED).stderr
        before = balances(ledger)
    os.mkdir(cli.path("new"))
    cli = Cli(home)
    cli.run("restore", "copy", "--data", "new/data")
    found = cli.one("verify", "new/data", "--vkey", "vkey", "--since", "since")
    assert found["sound"] and found["entries"] == head[0] and found["signature"] is True
    cli.run("restore", "copy", "--data", "new/data", status=FAILED)
    cli.run("restore", "nowhere", "--data", "other", status=FAILED)
    with Ledger(cli.path("new")) as ledger:
        assert ledger.head() == head and balances(ledger) == before
        ledger.must(transfer("after", "alice", "bob", 1))
        Cli(home, ledger).run("verify", "--url", ledger.api, "--since", "since")


def backup_under_load(home):
    """Copies of a log that grows all the time are sound beginnings of it."""
    with Ledger(home) as ledger:
        cli = Cli(home, ledger)
        ledger.must(mint("m", "alice", 10 ** 9))
        lines = [transfer(f"t{i}", "alice", f"b{i % 50}", 1) for i in range(20000)]
        cli.write("in", "\n".join(json.dumps(line) for line in lines))
        load = subprocess.Popen([ledger.program, "ledger", "import", "in", "--chunk", "50"],
                                cwd=home, env=cli.environment(), stdout=subprocess.DEVNULL)
        try:
            sizes = [cli.one("backup", f"copy{i}", "--data", ledger.data)["entries"]
                     for i in range(4)]
        finally:
            assert load.wait(WAIT_S) == 0
        assert sizes == sorted(sizes) and sizes[0] >= 1
        for i, size in enumerate(sizes):
            assert Cli(home).one("verify", f"copy{i}")["entries"] == size


def verify_names_the_link(home):
    """One thing at a time is damaged in a copy; the link that broke is named."""
    with filled(home) as ledger:
        for i in range(300):
            ledger.must(transfer(f"x{i}", "alice", "bob", 1))
        data = ledger.data
        vkey = ledger.ask("GET", "/checkpoint/vkey").body.decode()
    cli = Cli(home)
    cli.write("vkey", vkey)
    sound = cli.one("verify", data, "--vkey", "vkey")
    assert sound["sound"] and sound["tiles"] == sound["entries"] == sound["checkpoint"]
    assert "sound: " in cli.run("verify", data).stdout

    def damaged(link, change, *words):
        shutil.rmtree(cli.path("bad"), ignore_errors=True)
        shutil.copytree(data, cli.path("bad"))
        change(cli.path("bad"))
        done = cli.run("verify", "bad", "--vkey", "vkey", *words, "--json", status=DAMAGED)
        found = json.loads(done.stdout)
        assert found["sound"] is False and found["link"] == link, (found, done.stderr)
        assert f"broken link: {link}" in done.stderr

    damaged("log", lambda copy: flip(entries_of(copy)[0], 5000))
    damaged("tiles", lambda copy: flip(os.path.join(copy, "ledger/tiles/level-0"), 40))
    damaged("checkpoint", lambda copy: flip(os.path.join(copy, "ledger/tiles/checkpoint"), 60))
    cli.write("forged", "\n".join(["x", "1", "A" * 43 + "=", "", "x"]))
    damaged("note", lambda copy: None, "--since", "forged")
    shutil.rmtree(cli.path("bad"))
    shutil.copytree(data, cli.path("bad"))
    flip(entries_of(cli.path("bad"))[0], 5000)
    assert "broken link: log" in cli.run("backup", "worse", "--data", "bad", status=DAMAGED).stderr
    cli.run("replay", "bad", status=DAMAGED)
    os.mkdir(cli.path("empty"), 0o700)
    cli.run("verify", "empty", status=FOREIGN)
    cli.run("verify", "nowhere", status=FAILED)


def verify_a_server(home):
    """Over more than one tile; a note of another history is refused."""
    os.mkdir(os.path.join(home, "a"))
    os.mkdir(os.path.join(home, "b"))
    with Ledger(os.path.join(home, "a")) as one, Ledger(os.path.join(home, "b")) as two:
        cli = Cli(home, one)
        one.must(mint("m", "alice", 1000))
        cli.write("since", checkpoint(one, 1))
        one.must(*[transfer(f"t{i}", "alice", "bob", 1) for i in range(600)])
        checkpoint(one, 601)
        found = cli.one("verify", "--url", one.api, "--since", "since")
        assert found["sound"] and found["entries"] == 601 and found["leaves_read"] is True
        assert (found["since"], found["signature_by"]) == (1, "server")
        assert "sound: 601" in cli.run("verify", one.api).stdout
        two.must(mint("m", "alice", 1000))
        cli.write("other", checkpoint(two, 1))
        cli.write("other.vkey", two.ask("GET", "/checkpoint/vkey").body.decode())
        done = cli.run("verify", "--url", one.api, "--since", "other", status=DAMAGED)
        assert "broken link: note" in done.stderr
        done = cli.run("verify", "--url", one.api, "--vkey", "other.vkey", status=DAMAGED)
        assert "broken link: checkpoint" in done.stderr
        # The same key, another history: the log behind it lost everything and began again.
        data = two.data
        two.stop()
        shutil.rmtree(os.path.join(data, "ledger", "log"))
        shutil.rmtree(os.path.join(data, "ledger", "tiles"))
        shutil.rmtree(os.path.join(data, "ledger", "books"))
        with Ledger(os.path.join(home, "b")) as again:
            again.must(mint("m", "mallory", 1000))
            checkpoint(again, 1)
            cli = Cli(home, again)
            done = cli.run("verify", "--url", again.api, "--since", "other", status=DAMAGED)
            assert "broken link: note" in done.stderr and "another root" in done.stderr


def replay(home):
    """Of a server that runs; the root is the server's."""
    with filled(home) as ledger:
        cli = Cli(home, ledger)
        found = cli.one("replay", ledger.data)
        assert (found["entries"], found["root"]) == ledger.head()
        assert found["rows"] > 0 and found["entries_per_s"] > 0
        assert "entries/s" in cli.run("replay", "--data", ledger.data).stdout


if __name__ == "__main__":
    sys.exit(run([export_formats, journal_balances, import_lines, import_goes_on,
                  large_copies, export_is_imported,
                  import_needs_the_whole_line,
                  backup_and_restore, backup_under_load, verify_names_the_link, verify_a_server,
                  replay]))
