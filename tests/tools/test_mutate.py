"""test_mutate.py - tools/mutate: the changes it makes, and a tiny project judged by it; TAP."""
import os
import re
import sys
import tempfile

import support

sys.path.insert(0, os.path.join(support.PROJECT, "tools"))
from devlib import changes  # noqa: E402

SOURCE = """#include "clamp.h"

enum { LIMIT = 9 };

int clamp(int value)
{
    RON_CHECK(value < 100);
    if (value > LIMIT)
        return LIMIT;
    return value;
}
"""
PROJECT = {
    "meson.build": "project('tiny', 'c')\nsubdir('tests/unit')\n",
    "tests/unit/meson.build":
        "executable('test_clamp', 'test_clamp.c', '../../src/clamp.c')\n",
    "src/clamp.h": "#define RON_CHECK(x)\nint clamp(int value);\n",
    "src/clamp.c": SOURCE.replace("    RON_CHECK(value < 100);\n", ""),
    "tests/unit/test_clamp.c": """
#include <stdio.h>
#include "../../src/clamp.h"
int main(void)
{
    int ok = clamp(3) == 3 && clamp(12) == 9;
    printf("1..1\\n%s 1 - clamp_clamps\\n", ok ? "ok" : "not ok");
    return !ok;
}
""",
}


def function(*lines):
    return "void f(struct x *x)\n{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def made(*lines):
    """Operator -> list of what stands in place of the old lines, for a function of these lines."""
    found = {}
    for change in changes.all_changes("f.c", function(*lines)):
        found.setdefault(change.operator, []).append([line.strip() for line in change.new])
    return found


def tokens_are_turned_round():
    found = made("while (a->b < c && d >= 2)")
    support.check(found["compare"] == [["while (a->b <= c && d >= 2)"],
                                       ["while (a->b < c && d > 2)"]], found)
    support.check(found["logic"] == [["while (a->b < c || d >= 2)"]], found)
    support.check(found["constant"] == [["while (a->b < c && d >= 3)"]], found)
    support.check(found["negate"] == [["while (!(a->b < c && d >= 2))"]], found)
    support.check(made("x->n += a << 1;")["step"] == [["x->n -= a << 1;"]], made("x->n += a << 1;"))
    support.check("compare" not in made("x->n = a >> b;"), made("x->n = a >> b;"))
    support.check(made("x->open = true;")["truth"] == [["x->open = false;"]])


def guards_are_removed():
    found = made("if (x == NULL)", "    return;")
    support.check(found["guard"] == [["if (0 && (x == NULL))"]], found)
    support.check(found["compare"] == [["if (x != NULL)"]] and "negate" not in found, found)
    support.check("guard" not in made("if (x == NULL)", "    x = y;"))


def statements_are_dropped_but_not_locks():
    support.check(made("rt_cond_signal(&x->cond);")["drop-wake"] == [[";"]])
    support.check(made("count(x);")["drop"] == [[";"]])
    support.check(made("x->n = 0;")["drop"] == [[";"]])
    support.check(made("(void)x;") == {}, made("(void)x;"))
    support.check(made("queue_lock(x);", "queue_unlock(x);").keys() == {"swap"})
    support.check(made("int n;", "struct x *y = x;", "return;") == {})


def related_statements_are_swapped():
    found = made("x->n = 1;", "x->m = x->n;")
    support.check(found["swap"] == [["x->m = x->n;", "x->n = 1;"]], found)
    support.check("swap" not in made("x->n = a;", "x->m = b;"))
    support.check("swap" not in made("mem_free(x->a);", "mem_free(x->b);"))
    support.check("swap" in made("x->n = a;", "x_unlock(x);"))
    support.check("swap" not in made("if (a)", "    x->n = a;", "x_unlock(x);"))


def checks_comments_and_texts_are_left_alone():
    text = function('RON_ASSERT(a < 1 && b);', 'queue_check_alive(x, 1);', '/* if a < 1 */',
                    'say("a < 1");') + "int g = 1;\n"
    found = changes.all_changes("f.c", text)
    support.check([change.operator for change in found] == ["drop"], found)
    support.check(changes.all_changes("f.c", "#define F(x) \\\n    (x < 1)\nint g[3 + 1];\n") == [])


def changes_that_change_nothing_are_left_out():
    support.check("compare" not in made("if (x->n > x->peak)", "    x->peak = x->n;"))
    support.check("compare" in made("if (x->n > x->peak)", "    x->peak = 3;"))
    support.check(made("char text[128];") == {}, made("char text[128];"))


def change_knows_its_text():
    change = changes.all_changes("f.c", function("x->n = 1;"))[0]
    support.check(change.name == "f.c:3:12 constant", change.name)
    support.check("x->n = 2;" in change.apply(function("x->n = 1;")))
    try:
        change.apply(function("x->n = 5;"))
    except ValueError:
        return
    raise AssertionError("applied to another text")


def mutate(*options, files=None):
    """Run the tool on the tiny project; TMPDIR must be empty afterwards, the tree unchanged."""
    files = PROJECT | (files or {})
    with support.Tree(files) as root, tempfile.TemporaryDirectory() as temporary:
        done = support.run([support.tool("mutate"), "--root", root, "--killer", "unit/clamp",
                            *options], env=os.environ | {"TMPDIR": temporary})
        support.check(os.listdir(temporary) == [], "left behind", os.listdir(temporary))
        with open(os.path.join(root, "src/clamp.c"), encoding="utf-8") as stream:
            support.check(stream.read() == files["src/clamp.c"], "the tree was changed")
        return done


def expect(done, status, *patterns):
    support.check(done.returncode == status, done.returncode, done.stdout, done.stderr)
    for pattern in patterns:
        support.check(re.search(pattern, done.stdout + done.stderr, re.MULTILINE), pattern,
                      done.stdout, done.stderr)


def survivors_are_shown_and_counted():
    done = mutate("src/clamp.c")  # nobody asks for clamp(9), and there it makes no difference
    expect(done, 1, r"^\[\d/3\] src/clamp\.c:7:15 compare: > becomes >= SURVIVED$",
           r"^    -    if \(value > LIMIT\)\n    \+    if \(value >= LIMIT\)$",
           r"guard: .* → unit/clamp clamp_clamps$", r"^killed by: unit/clamp 2$",
           r"^src/clamp\.c: killed 2 of 3 \(66\.7 %\)$",
           r"^killed 2 of 3 \(66\.7 %\), 0 did not compile$")
    expect(mutate("src/clamp.c", "--max-survivors", "50"), 0, r"^killed 2 of 3")


def what_does_not_compile_counts_for_nothing():
    source = PROJECT["src/clamp.c"].replace(
        "    return value;", "    int b[1 + 1] = {[1] = 0};\n    return value + b[1];")
    done = mutate("src/clamp.c", "--only", "* constant", "--max-survivors", "100",
                  files={"src/clamp.c": source})
    expect(done, 0, r"constant: .* does not count: does not compile: array designator",
           r"[1-9] did not compile$")


def baseline_must_pass():
    broken = PROJECT["tests/unit/test_clamp.c"].replace("== 9", "== 8")
    done = mutate("src/clamp.c", files={"tests/unit/test_clamp.c": broken})
    expect(done, 1, r"unit/clamp fails without any change: clamp_clamps")


def sample_list_and_bad_use():
    first = mutate("src/clamp.c", "--list", "--sample", "1", "--seed", "a")
    expect(first, 0)
    support.check(len(re.findall("^src/", first.stdout, re.M)) == 1, first.stdout)
    again = mutate("src/clamp.c", "--list", "--sample", "1", "--seed", "a")
    support.check(first.stdout == again.stdout, first.stdout, again.stdout)
    both = mutate("src/clamp.c", "--list", "--only", "* guard", "--only", "* negate")
    support.check(len(re.findall("^src/", both.stdout, re.M)) == 2, both.stdout)
    expect(mutate("src/clamp.c", "--only", "zz"), 1, "nothing to change")
    expect(mutate("src/none.c"), 2, "none.c")
    expect(mutate("src/clamp.c", "--killer", "unit/none"), 2, "no killer unit/none")
    expect(mutate("src/clamp.c", "--max-survivors", "101"), 2)
    expect(mutate("--help"), 0, "--sample N")


CASES = [(case.__name__, case) for case in (
    tokens_are_turned_round, guards_are_removed, statements_are_dropped_but_not_locks,
    related_statements_are_swapped, checks_comments_and_texts_are_left_alone,
    changes_that_change_nothing_are_left_out, change_knows_its_text,
    survivors_are_shown_and_counted, what_does_not_compile_counts_for_nothing,
    baseline_must_pass, sample_list_and_bad_use)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
