"""run.py - strangers check a log of ron: Go's sumdb packages and Python from the RFC texts.

usage: run.py TLOG_DRIVER VERIFY_EXAMPLE [--size N] [--count N]
Makes a log, has it checked by both (and by examples/verify.c), then damages one thing at a time and
sees that both refuse.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 240


class Checks:
    def __init__(self):
        self.count = self.failed = 0

    def say(self, good, text):
        self.count += 1
        self.failed += not good
        print("%s %d - %s" % ("ok" if good else "not ok", self.count, text), flush=True)


def run(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, **options)
    return result.returncode, result.stdout + result.stderr


def build_go(scratch):
    """The adapter as a program, from Debian's packages alone: no network, no module."""
    program = os.path.join(scratch, "check")
    env = dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode", GOFLAGS="",
               GOCACHE=os.path.join(scratch, "cache"))
    status, output = run(["go", "build", "-o", program, os.path.join(HERE, "check.go")], env=env)
    if status != 0:
        raise SystemExit("# go build failed:\n" + output)
    return program


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("driver")
    parser.add_argument("example")
    parser.add_argument("--size", type=int, default=70000, help="at least 65536")
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "data")
        os.mkdir(folder, 0o700)
        status, output = run([options.driver, folder, str(options.size), str(options.count)])
        checks.say(status == 0, "a log of %d leaves and %d proofs" % (
            options.size, 2 * options.count))
        print(output, end="")
        strangers = {"Go": [build_go(scratch), folder],
                     "Python": [sys.executable, os.path.join(HERE, "check.py"), folder]}
        for name, command in strangers.items():
            status, output = run(command)
            print(output, end="")
            checks.say(status == 0, name + " accepts all of it")
        sample = [os.path.join(folder, f) for f in ("vkey", "sample.tlog-proof", "sample.leaf")]
        status, output = run([options.example] + sample)
        print("# " + output, end="")
        checks.say(status == 0, "examples/verify.c accepts the proof")
        damages = [("log/checkpoint", 22, "checkpoint"), ("log/tile/1/000", 40, "inner tile"),
                   ("log/tile/0/000", 0, "leaf tile"), ("proofs", 200, "proof"),
                   ("vkey", 30, "key")]
        for path, at, what in damages:
            whole = os.path.join(folder, path)
            shutil.copy(whole, scratch + "/kept")
            flip(whole, at)
            for name, command in strangers.items():
                checks.say(run(command)[0] == 1, "%s refuses a damaged %s" % (name, what))
            shutil.copy(scratch + "/kept", whole)
        for index, path in enumerate(sample):
            flip(path, (30, 60, 0)[index])
            checks.say(run([options.example] + sample)[0] == 1,
                       "examples/verify.c refuses a damaged " + os.path.basename(path))
            flip(path, (30, 60, 0)[index])
    print("1..%d" % checks.count)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
