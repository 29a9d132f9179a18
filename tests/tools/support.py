"""support.py - what the tests of the developer tools share: TAP output and throw-away trees."""
import os
import subprocess
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tool(name):
    return os.path.join(PROJECT, "tools", name)


class Tree(tempfile.TemporaryDirectory):
    """A git repository in a temporary folder; `files` maps paths to text."""

    def __init__(self, files=None):
        super().__init__(prefix="ron-tool-test-")
        subprocess.run(["git", "init", "-q", self.name], check=True)
        self.write(files or {})

    def write(self, files):
        for path, text in files.items():
            full = os.path.join(self.name, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as stream:
                stream.write(text)


def run(command, **options):
    """The finished process, with stdout and stderr as text."""
    options.setdefault("timeout", 120)
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


class Skip(Exception):
    """Why the running case cannot be decided here."""


def check(condition, *facts):
    """Fail the running case unless condition holds; the facts are printed."""
    if not condition:
        raise AssertionError("\n".join(str(fact)[:4000] for fact in facts))


def main(cases):
    """Run (name, function) pairs and print TAP. Returns the exit status."""
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    for number, (name, case) in enumerate(cases, 1):
        try:
            case()
            print(f"ok {number} - {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except Exception:  # a broken case must not hide the ones after it
            failed += 1
            print(f"not ok {number} - {name}")
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
    return 1 if failed else 0
