"""test_plan.py - what tests/plan.toml claims about the tests it leaves out."""
import os
import shutil
import sys
import tempfile
import tomllib

import support


def parts():
    with open(os.path.join(support.PROJECT, "tests", "plan.toml"), "rb") as stream:
        return tomllib.load(stream)["part"]


def what_the_thread_sanitizer_leaves_out_has_no_threads():
    left_out = [path for part in parts() if part.get("build") == "build-tsan"
                for path in part.get("except", [])]
    support.check(left_out, "nothing is left out")
    with tempfile.NamedTemporaryFile() as trace:
        command = ["strace", "-f", "-qq", "-e", "trace=clone,clone3", "-o", trace.name]
        support.check(shutil.which("strace"), "strace is not installed: ./dev setup does it")
        if support.run([*command, "true"]).returncode != 0:
            raise support.Skip("strace may not trace here")
        for path in left_out:
            name = os.path.basename(path).removesuffix(".c")
            program = os.path.join(support.PROJECT, "build", "tests", "unit", name)
            done = support.run([*command, program], timeout=300)
            support.check(done.returncode == 0, program, done.stderr)
            with open(trace.name, encoding="utf-8", errors="replace") as file:
                support.check("CLONE_THREAD" not in file.read(), f"{name} starts a thread")


CASES = [(case.__name__, case) for case in (what_the_thread_sanitizer_leaves_out_has_no_threads,)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
