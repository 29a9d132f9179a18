#!/usr/bin/env python3
"""test_signed.py - what `ron ledger verify` says of signatures: what it checked, by whose key, and
that it checked nothing where nothing was there; TAP.

    test_signed.py PROGRAM [NAME...]
"""
import json
import os
import shutil
import sys

from clilib import (Cli, DAMAGED, FAILED, Ledger, NEWER, filled, mint, run, until)


class Stopped:
    """The directory of a ledger that was served, signed and stopped; and its public key."""

    def __init__(self, home):
        with filled(home) as ledger:
            self.data = ledger.data
            self.vkey = ledger.ask("GET", "/checkpoint/vkey").body.decode()
            self.entries = ledger.head()[0]
            with open(os.path.join(self.data, "ledger", "log.key"), encoding="ascii") as file:
                self.seed = file.read().splitlines()[2].split()[1]
        self.cli = Cli(home)
        self.cli.write("vkey", self.vkey)
        with open(os.path.join(self.data, "ledger/tiles/checkpoint"), encoding="utf-8") as file:
            self.cli.write("since", file.read())

    def copy(self, name, *without, of=None):
        """Its directory again, or a backup of it, without some of it."""
        target = self.cli.path(name)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.data if of is None else self.cli.path(of), target)
        for part in without:
            path = os.path.join(target, "ledger", part)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.remove(path)
        return name

    def says(self, *words):
        """The line about the signature, and the same as JSON."""
        done = self.cli.run("verify", *words)
        lines = [line for line in done.stdout.splitlines() if line.startswith("signature ")]
        assert len(lines) == 1 and self.seed not in done.stdout + done.stderr
        found = self.cli.one("verify", *words)
        assert found["sound"] is True
        return lines[0].split(maxsplit=1)[1], [found[name] for name in (
            "signature", "signature_by", "signed_head")]


def a_head_must_be_there(home):
    """With a key from elsewhere, a log with entries and no signed head is damaged; without one it
    is told that nothing was checked."""
    one = Stopped(home)
    cli = one.cli
    text, found = one.says(one.data, "--vkey", "vkey")
    assert (text, found) == ("checked by --vkey", [True, "vkey", True])
    cli.run("backup", "copied", "--data", one.data)
    for part in ("tiles/checkpoint", "tiles"):
        for directory in (one.copy("less", part), one.copy("backup", part, of="copied")):
            done = cli.run("verify", directory, "--vkey", "vkey", "--json", status=DAMAGED)
            found = json.loads(done.stdout)
            assert (found["sound"], found["link"]) == (False, "checkpoint"), found
            assert found["file"] == "ledger/tiles/checkpoint", found
            assert f"no signed head, and the log has {one.entries} entries" in done.stderr
            done = cli.run("verify", directory, "--vkey", "vkey", status=DAMAGED)
            assert "checked" not in done.stdout and "sound" not in done.stdout
            text, found = one.says(directory)
            assert text.startswith("none: no signed head"), text
            assert found == [False, None, False], found
            # A head that was kept elsewhere is one: of what it counts.
            text, found = one.says(directory, "--vkey", "vkey", "--since", "since")
            assert "--vkey, of the note alone" in text, text
            assert found == [True, "vkey", False], found


def nothing_is_signed_of_nothing(home):
    """A ledger without entries never signed; it is sound, and is not said to be checked."""
    with Ledger(home) as ledger:
        data = ledger.data
        vkey = ledger.ask("GET", "/checkpoint/vkey").body.decode()
    cli = Cli(home)
    cli.write("vkey", vkey)
    for words in ((), ("--vkey", "vkey")):
        done = cli.run("verify", data, *words)
        assert "signature  none: the log has no entries yet" in done.stdout, done.stdout
        found = cli.one("verify", data, *words)
        assert (found["sound"], found["signature"], found["signed_head"]) == (True, False, False)


def the_key_in_the_directory(home):
    """Without --vkey the head is checked by the key that lies there; a backup has none, unless it
    was asked for."""
    one = Stopped(home)
    cli = one.cli
    own = ("checked by the key in the directory", [True, "directory", True])
    assert one.says(one.data) == own
    cli.run("backup", "bare", "--data", one.data)
    cli.run("backup", "keyed", "--data", one.data, "--with-key")
    assert one.says("keyed") == own
    text, found = one.says("bare")
    assert found == [False, None, True]
    assert "not looked at" in text and "--vkey" in text and "/checkpoint/vkey" in text, text
    assert one.says("bare", "--vkey", "vkey")[0] == "checked by --vkey"
    # A head that another key signed, of the same tree: only a signature tells.
    path = cli.path(os.path.join(one.copy("forged"), "ledger", "tiles", "checkpoint"))
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    at = len(lines) - 2
    lines[at] = lines[at][:-8] + ("AAAA" if lines[at][-8:-4] != "AAAA" else "BBBB") + lines[at][-4:]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    done = cli.run("verify", "forged", "--json", status=DAMAGED)
    assert json.loads(done.stdout)["link"] == "checkpoint", done.stdout
    assert one.seed not in done.stdout + done.stderr
    os.remove(cli.path("forged/ledger/log.key"))
    assert one.says("forged")[1] == [False, None, True]


def a_key_that_is_none(home):
    """A damaged key is named, one of a later version too; with --vkey nobody reads it."""
    one = Stopped(home)
    cli = one.cli
    path = cli.path(os.path.join(one.copy("bad"), "ledger", "log.key"))
    with open(path, encoding="ascii") as file:
        text = file.read()
    for changed, status in ((text.replace("seed ", "sead "), DAMAGED),
                            (text.replace(" v1", " v2"), NEWER)):
        with open(path, "w", encoding="ascii") as file:
            file.write(changed)
        done = cli.run("verify", "bad", status=status)
        assert "ledger/log.key" in done.stderr and one.seed not in done.stderr, done.stderr
        assert one.says("bad", "--vkey", "vkey")[0] == "checked by --vkey"
    cli.write("nothing", "\n")
    for word in ("--vkey", "--since"):  # an empty file is not one that was not given
        if word == "--since":
            cli.write("nothing", "")
        done = cli.run("verify", one.data, word, "nothing", status=FAILED)
        assert "nothing is empty" in done.stderr and done.stdout == "", done.stderr


def of_a_server_that_runs(home):
    """Its head is on disk soon after its last entry, though nothing else happens: before, nothing
    is said to be checked."""
    with Ledger(home) as ledger:
        cli = Cli(home)
        for count in (1, 2):
            ledger.must(mint(f"m{count}", "alice", 5))
            until(lambda count=count: cli.one("verify", ledger.data)["checkpoint"] == count,
                  "its head on disk")
        found = cli.one("verify", ledger.data)
        assert (found["signed_head"], found["signature_by"]) == (True, "directory"), found
        cli.run("backup", "copied", "--data", ledger.data)
        data = ledger.data
        assert cli.one("verify", "copied")["signed_head"]
    found = cli.one("verify", data)
    assert (found["signed_head"], found["signature_by"]) == (True, "directory")


if __name__ == "__main__":
    sys.exit(run([a_head_must_be_there, nothing_is_signed_of_nothing, the_key_in_the_directory,
                  a_key_that_is_none, of_a_server_that_runs]))
