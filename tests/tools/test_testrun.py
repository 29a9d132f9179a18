"""test_testrun.py - tools/testrun with fake commands: they pass, fail, crash, hang, stay silent."""
import os
import re
import signal
import subprocess
import sys
import time

import support

SLEEP_S = f"77.{os.getpid():07}"  # found again by its argument, in this run's processes only
# Fake test programs, shell each.
PROGRAMS = {
    "pass": "echo 1..2; echo ok 1 - a; echo ok 2 - b",
    "fail": "echo 1..1; echo not ok 1 - a; echo '# because'; exit 1",
    "partly": "echo 1..3; echo ok 1 - a; echo not ok 2 - b; echo ok 3 - c; exit 1",
    "skip": "echo 1..2; echo ok 1 - a; echo 'not ok 2 # SKIP b'",
    "crash": "echo 1..2; echo ok 1 - a; echo 'assertion failed: x' >&2; kill -ABRT $$",
    "hang": f"echo 1..1; echo ok 1 - a; sleep {SLEEP_S}",
    "silent": "exit 0",
    "short": "echo 1..3; echo ok 1 - a",
    "liar": "echo 1..1; echo ok 1 - a; exit 3",
    "quiet_fail": "echo 1..1; echo not ok 1 - a; exit 0",
    "cmocka": "echo '[       OK ] a'; echo '[  FAILED  ] b'; echo '[  FAILED  ] 1 test(s), listed';"
              "echo '[  FAILED  ] b'; exit 1",
    "loud": "seq 1000; echo not ok 1 - a; exit 1",
    "meet": "n=0; while [ ! -e met ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n + 1)); done;"
            "echo 1..1; if [ -e met ]; then echo ok 1 - a; else echo not ok 1 - a; fi",
    "come": "touch met; echo 1..1; echo ok 1 - a",
    "alone": "echo 1..1; if mkdir busy; then sleep 0.3; rmdir busy; echo ok 1 - a;"
             "else echo not ok 1 - a; fi",
    "work": "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo 1..1; echo ok 1 - a",
    "env": "echo 1..1; test \"$A$CMOCKA_MESSAGE_OUTPUT\" = 1TAP && echo ok 1 - a",
}


def plan_of(*parts):
    """parts: (name, programs, more lines)."""
    text = ""
    for name, programs, more in parts:
        commands = ", ".join(f'"sh bin/test_{program}.sh"' for program in programs)
        text += f'[[part]]\nname = "{name}"\ncommands = [{commands}]\n{more}\n'
    return text


def testrun(plan, *options, files=None):
    programs = {f"bin/test_{name}.sh": f"{text}\n" for name, text in PROGRAMS.items()}
    with support.Tree(programs | {"tests/plan.toml": plan} | (files or {})) as root:
        return support.run([support.tool("testrun"), "--root", root, *options])


def expect(done, status, *patterns):
    for pattern in patterns:
        support.check(re.search(pattern, done.stdout, re.MULTILINE), pattern, done.stdout,
                      done.stderr)
    support.check(done.returncode == status, done.returncode, done.stdout, done.stderr)


def one(program, more=""):
    return testrun(plan_of(("p", [program], more)))


def passing_parts_pass():
    done = testrun(plan_of(("p", ["pass", "skip"], ""), ("q", ["pass"], "")))
    expect(done, 0, r"^ok p/pass 2 tests \d+\.\d\d s$", r"^p +3 +0 +\d", r"^q +2 +0 +\d",
           r"^part +passed +failed +seconds +processor$", r"^5 passed, 0 failed\n\Z", r"1 skipped",
           r"^ +p: \d+\.\d s, processor \d+\.\d s$")


def failures_are_counted_and_shown():
    expect(one("fail"), 1, r"^not ok p/\w+ 1 tests, 1 failed \d", r"^  \| # because$",
           r"^0 passed, 1 failed\n\Z")
    expect(one("partly"), 1, r"3 tests, 1 failed", r"^2 passed, 1 failed$")
    expect(one("quiet_fail"), 1, r"^0 passed, 1 failed$")
    expect(one("cmocka"), 1, r"^1 passed, 1 failed$")


def crash_is_one_failure():
    expect(one("crash"), 1, r"killed by SIGABRT", r"^  \| assertion failed: x$",
           r"^1 passed, 1 failed$")


def hang_is_one_failure_and_is_ended():
    start = time.monotonic()
    expect(one("hang", "timeout_s = 1"), 1, r"still running after 1 s", r"^1 passed, 1 failed$")
    support.check(time.monotonic() - start < 60, "waited for the command")
    support.check(not sleeper_runs(), "its child still runs")


def sleeper_runs():
    return support.run(["pgrep", "-f", f"^sleep {SLEEP_S}$"]).returncode == 0


def silence_is_one_failure():
    expect(one("silent"), 1, r"reported no test, exit 0", r"^0 passed, 1 failed$")
    expect(one("short"), 1, r"reported 1 of 3 tests", r"^1 passed, 1 failed$")
    expect(one("liar"), 1, r"no test failed, but exit 3", r"^1 passed, 1 failed$")


def what_is_not_there_fails():
    plan = '[[part]]\nname = "p"\ncommands = ["bin/absent"]\n'
    expect(testrun(plan), 1, r"bin/absent is not built", r"^0 passed, 1 failed$")
    plan = '[[part]]\nname = "p"\neach = "none/*.c"\ncommands = ["x"]\n'
    expect(testrun(plan), 1, r"nothing fits none/\*\.c", r"^0 passed, 1 failed$")
    plan = '[[part]]\nname = "p"\ncommands = ["no-such-program-here"]\n'
    expect(testrun(plan), 1, r"does not start", r"^0 passed, 1 failed$")


def each_repeats_commands():
    plan = ('[[part]]\nname = "u"\nbuild = "bin"\neach = "src/test_*.c"\n'
            'commands = ["sh {build}/{stem}.sh"]\n')
    files = {"src/test_pass.c": "", "src/test_partly.c": "", "src/other.c": ""}
    done = testrun(plan, files=files)
    expect(done, 1, r"^ok u/pass 2 tests", r"^not ok u/partly 3 tests", r"^4 passed, 1 failed$")
    expect(testrun(plan, "--only", "u/pass", files=files), 0, r"^2 passed, 0 failed$")
    expect(testrun(plan, "--only", "u", files=files), 1, r"^4 passed, 1 failed$")
    expect(testrun(plan, "--only", "v", files=files), 1, r"^0 passed, 0 failed$")
    done = testrun(plan, "--list", files=files)
    expect(done, 0, r"^u/partly +sh bin/test_partly\.sh$", r"^u/pass ")
    support.check("passed" not in done.stdout, done.stdout)


def each_leaves_out_what_is_said():
    plan = ('[[part]]\nname = "u"\neach = "src/test_*.c"\nexcept = ["src/test_%s.c"]\n'
            'commands = ["sh bin/{stem}.sh"]\n')
    files = {"src/test_pass.c": "", "src/test_partly.c": ""}
    expect(testrun(plan % "partly", files=files), 0, r"^2 passed, 0 failed$")
    expect(testrun(plan % "gone", files=files), 1, r"src/test_gone\.c is left out and not there")
    plan = plan.replace('["src/test_%s.c"]', '"src/list.txt"')
    listed = files | {"src/list.txt": "src/test_partly.c\n"}
    expect(testrun(plan, files=listed), 0, r"^2 passed, 0 failed$")
    listed["src/list.txt"] += "src/test_gone.c\n"
    expect(testrun(plan, files=listed), 1, r"src/test_gone\.c is left out and not there")
    support.check(testrun(plan, files=files).returncode == 2, "a list that is not there")


def parts_run_beside_each_other_and_are_shown_in_order():
    done = testrun(plan_of(("p", ["meet"], ""), ("q", ["come"], "")), "--cores", "2")
    expect(done, 0, r"== p\n(.*\n)*== q\n(.*\n)*\npart", r"^2 passed, 0 failed$")
    done = testrun(plan_of(("p", ["meet", "meet"], "jobs = 1"), ("q", ["come"], "")),
                   "--cores", "2")  # a part that has enough running is overtaken
    expect(done, 0, r"^3 passed, 0 failed$")


def load_bounds_what_runs_at_once():
    parts = [("p", ["alone", "alone"], "load = %s"), ("q", ["alone"], "load = %s")]

    def run(load):
        return testrun(plan_of(*((name, programs, more % load) for name, programs, more in parts)),
                       "--cores", "2")
    expect(run("1.5"), 0, r"^3 passed, 0 failed$")
    expect(run("9"), 0, r"^3 passed, 0 failed$")  # more than there is: alone
    expect(testrun(plan_of(("p", ["meet", "come"], "load = 0.5")), "--cores", "1"), 0,
           r"^2 passed, 0 failed$")
    expect(testrun(plan_of(("p", ["alone", "alone"], "jobs = 1")), "--cores", "2"), 0,
           r"^2 passed, 0 failed$")


def processor_time_is_shown():
    expect(one("work"), 0, r"^p +1 +0 +\d+\.\d +(?!0\.0)\d+\.\d$", r"^all +1 +0 ")


def output_is_bounded():
    done = one("loud")
    expect(done, 1, r"801 lines left out", r"^  \| 1000$")
    support.check("| 801\n" not in done.stdout and "| 802\n" in done.stdout, done.stdout[:3000])


def environment_reaches_commands():
    expect(one("env", 'env = { A = "1" }'), 0, r"^1 passed, 0 failed$")
    expect(one("env"), 1, r"reported 0 of 1 tests")


def python_is_ours():
    plan = '[[part]]\nname = "p"\ncommands = ["{python} t.py"]\n'
    done = testrun(plan, files={"t.py": "print('1..1'); print('ok 1 - a')\n"})
    expect(done, 0, r"^ok p/t 1 tests", r"^1 passed, 0 failed$")


def bad_plans_are_refused():
    for plan in ("", "[[part]]\n", 'part = 1',
                 '[[part]]\nname="p"\ncommands=["sh"]\nload=0\n',
                 '[[part]]\nname="p"\ncommands=["sh"]\njobs=0\n',
                 '[[part]]\nname="p"\ncommands=["sh"]\njobs="x"\n',
                 '[[part]]\nname="p"\ncommands=[]\n',
                 '[[part]]\nname="p"\ncommands=["sh"]\ntypo=1\n',
                 '[[part]]\nname="p"\ncommands=["{nothing}"]\n'):
        support.check(testrun(plan).returncode == 2, plan)
    support.check("--only" in testrun("", "--help").stdout)


def what_never_ran_is_a_failure():
    """A schedule that starts only the first command: the others are counted."""
    plan = plan_of(("p", ["pass", "pass"], ""), ("q", ["pass"], ""))
    lame = ("import runpy, sys; sys.path.insert(0, sys.argv[1]); from devlib import schedule\n"
            "start, left = schedule.Schedule.start, [True]\n"
            "schedule.Schedule.start = lambda self: start(self) if left and left.pop() else None\n"
            "sys.argv[:2] = []; runpy.run_path(sys.argv[0], run_name='__main__')\n")
    programs = {"bin/test_pass.sh": PROGRAMS["pass"], "tests/plan.toml": plan}
    with support.Tree(programs) as root:
        done = support.run([sys.executable, "-c", lame, os.path.dirname(support.tool("testrun")),
                            support.tool("testrun"), "--root", root])
    expect(done, 1, r"^not ok p: 1 commands did not run$", r"^not ok q: 1 commands did not run$",
           r"^2 passed, 2 failed$")


def interrupt_ends_the_commands():
    programs = {"bin/test_hang.sh": PROGRAMS["hang"], "bin/test_pass.sh": PROGRAMS["pass"]}
    plan = plan_of(("p", ["hang", "hang", "hang", "pass"], "jobs = 1"))
    with support.Tree(programs | {"tests/plan.toml": plan}) as root:
        child = subprocess.Popen([support.tool("testrun"), "--root", root],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 60
            while not sleeper_runs() and time.monotonic() < deadline:
                time.sleep(0.05)
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
        finally:
            child.kill()
        support.check(child.returncode == 128 + signal.SIGTERM, child.returncode)
        support.check(not sleeper_runs(), "a command still runs")


CASES = [(case.__name__, case) for case in (
    passing_parts_pass, failures_are_counted_and_shown, crash_is_one_failure,
    hang_is_one_failure_and_is_ended, silence_is_one_failure, what_is_not_there_fails,
    each_repeats_commands, each_leaves_out_what_is_said,
    parts_run_beside_each_other_and_are_shown_in_order, load_bounds_what_runs_at_once,
    processor_time_is_shown, output_is_bounded, environment_reaches_commands, python_is_ours,
    bad_plans_are_refused, what_never_ran_is_a_failure, interrupt_ends_the_commands)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
