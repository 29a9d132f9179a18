#!/usr/bin/env python3
"""test_places.py - directories that `ron ledger` is given: what is not a ledger's is told what
would do, and what fails leaves nothing behind; TAP.

    test_places.py PROGRAM [NAME...]
"""
import os
import shutil
import sys

from clilib import Cli, FAILED, FOREIGN, USAGE, filled, run


def not_a_ledger(home):
    """Verbs that need a directory say which, and what would do."""
    cli = Cli(home)
    os.mkdir(cli.path("empty"), 0o700)
    for verb, words, expected in (
            ("verify", (), ("data directory", "backup", "URL")),
            ("replay", (), ("data directory", "backup")),
            ("backup", ("q",), ("--data", "data directory")),
            ("export", ("--url", "none"), ("data directory", "backup"))):
        done = cli.run(verb, *words, status=FAILED)
        assert "open directory ron-data: No such file or directory" in done.stderr
        for word in expected:
            assert word in done.stderr, (verb, done.stderr)
        for place in ("/etc", "empty"):
            at = ("--data", place) if verb in ("backup", "export") else (place,)
            done = cli.run(verb, *words, *at, status=FOREIGN)
            assert f"{place} is not a ledger's directory" in done.stderr, done.stderr
            assert "ledger/log" in done.stderr and done.stdout == ""
            for word in expected:
                assert word in done.stderr, (verb, done.stderr)
    done = cli.run("restore", "/etc", "--data", "x", status=FOREIGN)
    assert "a backup" in done.stderr
    assert os.listdir(home) == ["empty"], os.listdir(home)
    cli.run("verify", "", status=USAGE)


def failed_copies_leave_nothing(home):
    """Neither files nor directories that were not there before."""
    with filled(home) as ledger:
        data = ledger.data
    cli = Cli(home)
    before = sorted(os.listdir(home))
    shutil.copytree(data, cli.path("odd"))
    os.symlink("/etc/passwd", cli.path("odd/ledger/log/seg-0"))  # no copy follows it
    cli.run("backup", "q", "--data", "odd", status=FAILED)
    cli.run("restore", "odd", "--data", "q", status=FAILED)
    cli.run("restore", "nowhere", "--data", "q", status=FAILED)
    os.mkdir(cli.path("there"), 0o700)
    cli.run("backup", "there", "--data", "odd", status=FAILED)
    assert os.listdir(cli.path("there")) == []
    os.makedirs(cli.path("there/ledger/tiles"), 0o700)
    cli.run("backup", "there", "--data", "odd", status=FAILED)
    assert os.listdir(cli.path("there/ledger")) == ["tiles"]
    assert sorted(os.listdir(home)) == sorted(before + ["odd", "there"])
    cli.run("backup", "there", "--data", data)


if __name__ == "__main__":
    sys.exit(run([not_a_ledger, failed_copies_leave_nothing]))
