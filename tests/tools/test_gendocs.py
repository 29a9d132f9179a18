#!/usr/bin/env python3
"""test_gendocs.py [BUILD] - a queue, task or policy that the documents do not show stops the tests;
TAP.

Method: tools/gendocs in a tree of its own, with the program of the build and documents that lack a
line, or have it otherwise. The list of the program is the registry's: what is not in it does not
exist (docs/concurrency.md).

covers: LED-C59
"""
import os
import re
import shutil
import sys

import support

BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(support.PROJECT, "build")
PAGE = "docs/concurrency.md"


def project_text(path):
    with open(os.path.join(support.PROJECT, path), encoding="utf-8") as file:
        return file.read()


def check_with(page):
    """gendocs --check where docs/concurrency.md is `page`."""
    with support.Tree({PAGE: page, "docs/errors.md": project_text("docs/errors.md")}) as folder:
        os.mkdir(os.path.join(folder, "tools"))
        shutil.copy(support.tool("gendocs"), os.path.join(folder, "tools"))
        os.symlink(os.path.abspath(BUILD), os.path.join(folder, "build"))
        return support.run([os.path.join(folder, "tools", "gendocs"), "--check"])


def what_is_current_passes():
    done = check_with(project_text(PAGE))
    support.check(done.returncode == 0 and f"ok 1 - {PAGE}" in done.stdout, done.stdout)


def line_of(name):
    found = re.search(rf"^.*\b{name}\b.*\bledger\b.*$|^.*\bledger\b.*\b{name}\b.*$",
                      project_text(PAGE), re.M)
    support.check(found, f"{name} is not in {PAGE}")
    return found.group(0)


def a_missing_queue_or_task_is_noticed():
    for name in ("ingress", "preval", "commit", "sequencer", "committer", "prevalidator"):
        done = check_with(project_text(PAGE).replace(line_of(name) + "\n", "", 1))
        support.check(done.returncode != 0 and f"not ok 1 - {PAGE}" in done.stdout, name,
                      done.stdout)


def another_policy_or_capacity_is_noticed():
    for old, new in (("drop expired, then oldest: PrevalDropOldest", "drop newest"),
                     ("2000", "4000")):
        support.check(old in line_of("preval"), line_of("preval"))
        changed = line_of("preval").replace(old, new)
        done = check_with(project_text(PAGE).replace(line_of("preval"), changed, 1))
        support.check(done.returncode != 0, changed, done.stdout)


CASES = [(case.__name__, case) for case in (
    what_is_current_passes, a_missing_queue_or_task_is_noticed,
    another_policy_or_capacity_is_noticed)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
