#!/usr/bin/env python3
"""test_cli.py [RON] - the `ron` program from outside: output, streams, exit codes; TAP.

Method: run the built binary and compare with what its help and documents promise.
"""
import base64
import os
import re
import resource
import subprocess
import sys
import tempfile

RON = sys.argv[1] if len(sys.argv) > 1 else "build/ron"
CASES = []


def case(function):
    CASES.append(function)
    return function


def ron(*arguments, stdin=""):
    done = subprocess.run([RON, *arguments], capture_output=True, text=True, timeout=60,
                          check=False, input=stdin)
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
def out_of_memory_at_start_is_a_line_and_an_exit_code():
    """Less and less memory: a program that is loaded at all says what it lacks."""
    step = 256 << 10
    seen = set()
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("[log]\n")
        file.flush()
        for size in range(step, 1 << 25, step):
            def limit(size=size):
                resource.setrlimit(resource.RLIMIT_DATA, (size, size))
            done = subprocess.run([RON, "config", "check", "--config", file.name], timeout=60,
                                  capture_output=True, text=True, check=False, preexec_fn=limit)
            if done.returncode == 0:
                break
            if done.returncode != 127:  # the loader's, before there is a program
                assert done.returncode == 1 and done.stdout == "", done
                seen.add(done.stderr)
    assert done.returncode == 0, "it never has enough"
    assert seen, "it never has too little"
    for line in seen:
        assert re.fullmatch(r"ron config: out of memory: .+\n", line), line


@case
def config_check_finds_what_serve_would_refuse():
    """What no key's type can tell, each problem in a line that names its key."""
    with tempfile.TemporaryDirectory() as home:
        name = os.path.join(home, "ron.toml")
        with open(name, "w", encoding="ascii") as file:
            file.write("[server]\nlisten = \"garbage\"\nadmin = \"localhost:1\"\n"
                       "[otlp]\nendpoint = \"http://127.0.0.1:1/a b\"\n"
                       "[ledger]\norigin = \"two words\"\n")
        code, out, err = ron("config", "check", "--config", name)
        assert code == 1 and out == "", (code, out)
        keys = [line.removeprefix("ron config: ").split(":")[0] for line in err.splitlines()]
        assert keys == ["server.listen", "server.admin", "otlp.endpoint", "ledger.origin"], err
        code, out, err = ron("serve", "--config", name, "--data", os.path.join(home, "data"))
        assert code == 3 and "server.listen: garbage" in err, (code, err)
        assert not os.path.exists(os.path.join(home, "data"))


@case
def unknown_command_is_a_usage_error_on_stderr():
    code, out, err = ron("legder")
    assert code == 2 and out == ""
    assert "no command 'legder'" in err and "usage: ron" in err


@case
def unexpected_arguments_are_usage_errors():
    for command in ("config", "errors", "log", "serve", "token", "topology", "version"):
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


def keyring():
    code, out, err = ron("token", "init")
    assert code == 0 and err == "" and out.startswith("ron-keyring 1\nepoch 1\nkey k1 ")
    return out


def minted(ring, *caveats):
    options = [word for caveat in caveats for word in ("--caveat", caveat)]
    code, out, err = ron("token", "mint", *options, stdin=ring)
    assert code == 0 and err == "" and re.fullmatch(r"[A-Za-z0-9_-]+\n", out), err
    return out


@case
def tokens_are_minted_narrowed_and_inspected():
    token = minted(keyring(), "scope = wallet.read", "account = acct_a*")
    code, narrower, err = ron("token", "attenuate", "--caveat", "max_amount = 5", stdin=token)
    assert code == 0 and err == "" and narrower != token
    code, out, err = ron("token", "inspect", stdin=narrower)
    assert code == 0 and err == ""
    assert re.search(r"^identifier +k1\.[0-9A-Z]{26}$", out, re.M)
    assert re.findall(r"^caveat \d+ +(.*)$", out, re.M) == [
        "scope = wallet.read", "account = acct_a*", "tenant = 0", "max_amount = 5"]


@case
def inspect_never_prints_the_signature():
    token = minted(keyring(), "scope = wallet.read")
    raw = base64.urlsafe_b64decode(token.strip() + "=" * (-len(token.strip()) % 4))
    signature = raw[-33:-1]
    _, out, err = ron("token", "inspect", stdin=token)
    shown = (out + err).encode()
    for form in (signature, signature.hex().encode(), base64.urlsafe_b64encode(signature)[:16],
                 base64.b64encode(signature)[:16], token.strip()[-16:].encode()):
        assert form not in shown


@case
def a_token_needs_a_scope_and_known_caveats():
    ring = keyring()
    for options, text in (([], "scope caveat is missing"),
                          (["--caveat", "tenant = 1"], "scope caveat is missing"),
                          (["--caveat", "scope = wallet.reed"], "caveat 1"),
                          (["--caveat", "scope = wallet.read", "--caveat", "x = 1"], "caveat 2")):
        code, out, err = ron("token", "mint", *options, stdin=ring)
        assert code == 1 and out == "" and text in err, err


@case
def a_token_is_not_accepted_as_an_argument_nor_echoed():
    token = minted(keyring(), "scope = wallet.read").strip()
    for command in (["inspect", token], ["attenuate", token], ["revoke", token], [token]):
        code, out, err = ron("token", *command)
        assert code == 2 and out == "" and token[:12] not in err, err


@case
def keys_rotate_and_are_revoked():
    ring = keyring()
    code, out, err = ron("token", "revoke", "--key", "k1", stdin=ring)
    assert code == 1 and out == "" and "rotate first" in err
    code, rotated, err = ron("token", "rotate", stdin=ring)
    assert code == 0 and " sign " in rotated and "\nkey k2 " in rotated
    code, out, err = ron("token", "revoke", "--key", "k1", stdin=rotated)
    assert code == 0 and re.search(r"^key k1 \S+ revoked -$", out, re.M), err
    name = re.search(r"identifier +(\S+)", ron("token", "inspect", stdin=minted(
        rotated, "scope = wallet.read"))[1]).group(1)
    code, out, err = ron("token", "revoke", "--token", name, stdin=rotated)
    assert code == 0 and re.search(rf"^revoked {re.escape(name)} ", out, re.M), err


@case
def bad_keyrings_and_tokens_say_why_and_nothing_of_themselves():
    ring = keyring()
    key = re.search(r" sign ([0-9a-f]{64})", ring).group(1)
    for bad in (ring[:-1], ring.replace("epoch 1", "epoch 2"), ring + "x", ring[:300], "",
                ring.replace(key, key.upper()), "x" * (2 << 20)):
        code, out, err = ron("token", "mint", "--caveat", "scope = wallet.read", stdin=bad)
        assert code == 1 and out == "" and err.startswith("ron token mint: "), err
        assert key[:8] not in err.lower()
    for bad in ("", "\n", "not a token", "MDAx", "A" * 10000):
        code, out, err = ron("token", "inspect", stdin=bad)
        assert code == 1 and out == "" and err.startswith("ron token inspect: "), err


@case
def output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([RON, "errors"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)
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
