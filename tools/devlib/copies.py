"""copies.py - temporary copies of the tree, with a build folder each, for planted bugs.

A copy is used by one thread. All are removed at the end, also after a signal.
"""
import concurrent.futures
import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile

from devlib import process, results, tree

BUILD_TIMEOUT_S = 900
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Broken(Exception):
    """The mutant cannot be judged; the text says why."""


class Copy:
    def __init__(self, root, folder, runner):
        self.root = root
        self.folder = folder
        self.runner = runner
        self.env = tree.git_environment() | {
            "CCACHE_DISABLE": "1", "CMOCKA_MESSAGE_OUTPUT": "TAP",
            "GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}  # no repository around it counts
        for path in tree.list_files(root):
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(root, path), target)
        if os.path.isdir(os.path.join(root, ".deps")):
            shutil.copytree(os.path.join(root, ".deps"), os.path.join(folder, ".deps"),
                            symlinks=True)

    def run(self, command, timeout_s):
        return self.runner.run(command, self.folder, timeout_s, self.env)

    def must(self, command, what, timeout_s=BUILD_TIMEOUT_S):
        result = self.run(command, timeout_s)
        if result.status != 0 or result.problem:
            text = (result.stdout + result.stderr).splitlines()
            errors = [line for line in text if "error" in line or "Error" in line] or text[-3:]
            raise Broken("; ".join([f"{what} ({result.ending()})", *errors[:3]]))

    def setup(self):
        """Make the build folder: the tree's own where that is up to date, else a new one."""
        built = os.path.join(self.root, "build")
        state = self.runner.run(["ninja", "-C", built, "-n"], self.root, BUILD_TIMEOUT_S, self.env)
        if state.status == 0 and "no work to do" in state.stdout:
            self.take_build(built)
        else:
            self.must(["meson", "setup", "build"], "meson setup failed")

    def take_build(self, built):
        """Copy what is built, so that only what a bug changes is compiled. A `generator` is run
        again when its files have changed, not when its command has: paths may become those of the
        copy, and a bug may leave a warning where CI calls that an error."""
        shutil.copytree(built, os.path.join(self.folder, "build"), symlinks=True)
        rules = os.path.join(self.folder, "build", "build.ninja")
        with open(rules, encoding="utf-8") as stream:
            text = stream.read().replace(self.root + "/", self.folder + "/")
        text = re.sub(r"^(rule \w+)$", r"\1\n generator = 1", text, flags=re.MULTILINE)
        with open(rules, "w", encoding="utf-8") as stream:
            stream.write(re.sub(r" -Werror(?=\s)", "", text))

    def ninja(self, targets):
        self.must(["ninja", "-C", "build", *targets], "does not build")

    @contextlib.contextmanager
    def changed(self, paths):
        """Within, the files may be changed; afterwards they are as before."""
        before = {}
        for path in paths:
            try:
                with open(os.path.join(self.folder, path), "rb") as stream:
                    before[path] = stream.read()
            except FileNotFoundError:
                raise Broken(f"does not apply: no file {path}") from None
        try:
            yield
        finally:
            for path, data in before.items():
                with open(os.path.join(self.folder, path), "wb") as stream:
                    stream.write(data)


def failure_of(result):
    """The test case that fails, or another account of the failure; None when all pass."""
    found = results.parse(result.stdout + "\n" + result.stderr)
    if found.failures:
        return found.failures[0]
    if result.problem or result.status != 0:
        crash = results.crash_line(result.stderr + "\n" + result.stdout)
        return f"{crash} ({result.ending()})" if crash else result.ending()
    return f"reported {found.count()} of {found.planned} tests" if found.short() else None


def share(root, items, jobs, work):
    """Call work(copy, part of the items) in `jobs` threads, each with a copy of its own."""
    jobs = min(jobs, len(items))
    if jobs == 0:
        return
    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    runner = process.Runner()
    temporary = tempfile.mkdtemp(prefix="ron-mutants-")
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        futures = []
        for index in range(jobs):
            folder = os.path.join(temporary, str(index))
            os.mkdir(folder)
            futures.append(pool.submit(start, work, root, folder, runner, items[index::jobs]))
        while concurrent.futures.wait(futures, timeout=0.2).not_done:
            pass  # wakes up, so that a signal is seen
        for future in futures:
            future.result()
    finally:
        for number in STOP_SIGNALS:  # a second one must not cut the cleaning short
            signal.signal(number, signal.SIG_IGN)
        runner.stop()
        pool.shutdown(wait=True)
        shutil.rmtree(temporary)


def start(work, root, folder, runner, items):
    work(Copy(root, folder, runner), items)


def stop(number, _):
    sys.exit(128 + number)
