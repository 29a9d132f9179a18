#!/usr/bin/env python3
"""test_cli.py [RON] - the `ron` program from outside: output, streams, exit codes; TAP.

Method: run the built binary and compare with what its help and documents promise.
"""
import re
import subprocess
import sys

RON = sys.argv[1] if len(sys.argv) > 1 else "build/ron"
CASES = []


def case(function):
    CASES.append(function)
    return function


def ron(*arguments):
    done = subprocess.run([RON, *arguments], capture_output=True, text=True, timeout=20,
                          check=False)
    return done.returncode, done.stdout, done.stderr


@case
def no_argument_lists_the_commands():
    code, out, err = ron()
    assert code == 0 and err == ""
    assert out.startswith("usage: ron COMMAND")
    assert re.search(r"^  errors +\S", out, re.M) and re.search(r"^  version +\S", out, re.M)
    assert ron("--help") == ron("help") == (code, out, err)


@case
def every_command_has_help():
    commands = re.findall(r"^  (\w+) +\S", ron()[1], re.M)
    assert len(commands) >= 2
    for command in commands:
        code, out, err = ron(command, "--help")
        assert code == 0 and err == "" and out.startswith(f"usage: ron {command}"), command


@case
def unknown_command_is_a_usage_error_on_stderr():
    code, out, err = ron("legder")
    assert code == 2 and out == ""
    assert "no command 'legder'" in err and "usage: ron" in err


@case
def unexpected_arguments_are_usage_errors():
    for command in ("errors", "log", "topology", "version"):
        code, out, err = ron(command, "--nope")
        assert code == 2 and out == "" and "--nope" in err, command


@case
def version_is_one_line():
    code, out, err = ron("version")
    assert code == 0 and err == ""
    assert re.fullmatch(r"ron \d+\.\d+\.\d+\n", out)
    assert ron("--version") == (code, out, err)


@case
def errors_lists_public_codes_only():
    code, out, err = ron("errors")
    rows = [line.split(None, 4) for line in out.splitlines()[1:]]
    assert code == 0 and err == ""
    assert ["Busy", "429", "yes", "capacity"] in [row[:4] for row in rows]
    assert ["PersistenceFull", "503", "no", "wal_full"] in [row[:4] for row in rows]
    assert all(400 <= int(row[1]) <= 599 for row in rows)
    assert not {"Ok", "Io", "NoMemory", "Lagging", "WalCorrupt"} & {row[0] for row in rows}


@case
def topology_lists_lock_classes_in_rising_rank():
    code, out, err = ron("topology")
    rows = [line.split() for line in out.splitlines()]
    assert code == 0 and err == ""
    locks = [row for row in rows if row[:2] == ["lock", "class"]]
    ranks = [int(row[3]) for row in locks]
    assert {"shard", "queue", "bus", "watch", "log"} <= {row[2] for row in locks}
    assert ranks == sorted(set(ranks)), ranks


@case
def topology_document_says_what_the_list_says():
    code, out, err = ron("topology", "--markdown")
    assert code == 0 and err == "" and out.startswith("# Concurrency\n")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|$", out, re.M)
    listed = [tuple(line.split()[2:4]) for line in ron("topology")[1].splitlines()
              if line.startswith("lock class")]
    assert rows == listed and len(rows) > 10


@case
def output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([RON, "errors"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=20, check=False)
    assert done.returncode == 1 and "cannot write the output" in done.stderr


def main():
    failed = 0
    for number, function in enumerate(CASES, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}")
        except Exception as error:  # noqa: BLE001 - a crash of the check is a failed check
            failed += 1
            print(f"not ok {number} - {function.__name__}\n# {error!r}")
    print(f"1..{len(CASES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
