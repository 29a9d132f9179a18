#!/usr/bin/env python3
"""compare.py - hold the ledger core against the model: compare.py DRIVER [--runs N] [--commands M].

Each run makes M commands from its own seed with the model's help, sends them to a fresh DRIVER
(tests/model/ledger_driver.c) and compares every answer; then every balance, leaves, the state root
and the totals, and adds up all balances of the core per asset. Bounded runs with small tables reach
Busy. A difference is printed with its run, its command, both answers and a shorter list of commands
that shows it too. Output is TAP; the tables before it show what was reached. Exit 1 on any
difference, on a code never reached and, from 200,000 commands on, on a pair of kinds never reached.
"""
import argparse
import collections
import concurrent.futures
import json
import random
import subprocess
import sys
import time

from generate import Generator, size_commands
from ledger_bytes import KINDS
from ledger_model import Ledger

CODES = ("Malformed", "TooLarge", "IdempotencyConflict", "Conflict", "NotFound", "Forbidden",
         "Expired", "NonceConflict", "LimitExceeded frozen", "LimitExceeded minimum",
         "LimitExceeded daily", "LimitExceeded supply", "LimitExceeded maximum",
         "InsufficientFunds", "Busy", "Held", "ChainMismatch", "OrderOverflow")
PAIRS_FROM = 200_000            # commands, from which every pair of kinds must have been reached
SIZES_FROM = 10_000             # commands of a run, from which the first tries every size limit
INVALID_SHARE = 0.30
LEAVES_MAX = 3000               # compared per run; more are sampled
DRIVER_TIMEOUT_S = 300
SHRINK_TRIALS, SHRINK_S = 400, 60
BOUND = 40                      # size of the table that a bounded run fills


class DriverFailed(Exception):
    """The driver died, hung or answered something that is no answer."""


def ask(driver, commands, options=()):
    """Answers of a fresh driver to a list of commands."""
    text = "".join(json.dumps(command) + "\n" for command in commands)
    try:
        done = subprocess.run([driver, *options], input=text.encode(), capture_output=True,
                              timeout=DRIVER_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise DriverFailed(f"no end within {DRIVER_TIMEOUT_S} s") from error
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(commands):
        tail = done.stderr.decode(errors="replace")[-2000:]
        raise DriverFailed(f"exit {done.returncode}, {len(lines)} answers to {len(commands)} "
                           f"commands\n{tail}")
    return [json.loads(line) for line in lines]


def essence(answer):
    """The part of an answer that must be equal: messages are the driver's own."""
    if "error" in answer:
        error = answer["error"]
        return {"error": {"code": error.get("code"), "index": error.get("index"),
                          "details": error.get("details") or {}}}
    return answer


# ---- One run ----

class Result:
    """What a run counted, and its difference if it has one."""

    def __init__(self, seed):
        self.seed, self.problem = seed, None
        self.codes, self.pairs = collections.Counter(), collections.Counter()
        self.outcomes, self.entries = collections.Counter(), 0


def count_answer(result, command, answer, ledger):
    if command["cmd"] not in ledger.commands:
        result.outcomes["question"] += 1
    elif "error" in answer:
        error = answer["error"]
        limit = error.get("details", {}).get("limit")
        result.codes[error["code"] + (" " + limit if limit else "")] += 1
        result.outcomes["refused"] += 1
    elif answer["ok"] is None or answer["ok"]["dup"] or answer["ok"]["replay"]:
        result.outcomes["repeated"] += 1
    else:
        result.outcomes["applied"] += 1


def count_pairs(result, ledger):
    entries = ledger.t.entries
    result.entries = len(entries)
    for seq in range(2, len(entries) + 1):
        result.pairs[entries[seq - 1].kind, entries[seq].kind] += 1


def make_commands(seed, count, sizes, result):
    """Commands and the model's answers; sizes adds the batches at and over the size limit."""
    rng = random.Random(seed)
    ledger = Ledger()
    generator = Generator(rng, ledger, rng.choice(("plain", "plain", "edges")))
    commands, answers = [], []

    def run(command):
        answer = ledger.execute(command)
        commands.append(command)
        answers.append(answer)
        count_answer(result, command, answer, ledger)
        return answer

    for command in size_commands(generator.now - 1, count >= SIZES_FROM) if sizes else ():
        run(command)
    for _ in range(count):
        command = generator.next()
        generator.done(command, run(command))
    for command in final_questions(ledger, rng):
        commands.append(command)
        answers.append(ledger.execute(command))
    count_pairs(result, ledger)
    return commands, answers


def final_questions(ledger, rng):
    """Commit what is pending, then ask for everything."""
    t = ledger.t
    yield {"cmd": "commit", "upto": t.log["batch_no"]} if ledger.pending else {"cmd": "rebuild"}
    yield {"cmd": "hold_commits", "on": False}
    yield {"cmd": "state_root"}
    for name, number in t.balances:
        yield {"cmd": "balance", "account": name, "asset": t.asset_names[number]}
    yield {"cmd": "balance", "account": "never/seen", "asset": "roc"}
    for asset in t.assets:
        yield {"cmd": "totals", "asset": asset}
    seqs = range(1, t.log["seq"] + 1)
    if len(seqs) > LEAVES_MAX:
        seqs = sorted(rng.sample(seqs, LEAVES_MAX))
    for seq in seqs:
        yield {"cmd": "leaf", "seq": seq}
    yield {"cmd": "rebuild"}
    yield {"cmd": "state_root"}


def conservation(commands, answers):
    """Add up the core's own final balances per asset: together they are what was issued."""
    sums, issued = collections.Counter(), collections.Counter()
    last = max(at for at, command in enumerate(commands) if command["cmd"] == "hold_commits")
    for command, answer in zip(commands[last:], answers[last:]):
        if command["cmd"] == "balance":
            mint = command["account"] == "sys/mint/" + command["asset"]
            (issued if mint else sums)[command["asset"]] += int(answer["balance"]["amount"])
    wrong = [asset for asset in sums if sums[asset] != issued[asset]]
    return f"conservation broken in {wrong}: {sums} against {issued}" if wrong else None


def run_once(driver, seed, count, sizes):
    result = Result(seed)
    commands, expected = make_commands(seed, count, sizes, result)
    try:
        got = ask(driver, commands)
    except DriverFailed as error:
        result.problem = f"driver: {error}"
        return result
    for at, (command, want, have) in enumerate(zip(commands, expected, got)):
        if essence(want) != essence(have):
            result.problem = describe(driver, commands[:at + 1], command, want, have)
            return result
    result.problem = conservation(commands, got)
    return result


# ---- Differences ----

def still_differs(driver, commands):
    """Do model and core disagree on the last of these commands?"""
    ledger = Ledger()
    for command in commands:
        want = ledger.execute(command)
    try:
        have = ask(driver, commands)[-1]
    except DriverFailed:
        return True
    return essence(want) != essence(have)


def shrink(driver, commands):
    """Drop chunks, then single commands, as long as the last one still differs; bounded."""
    body, last = commands[:-1], commands[-1:]
    trials, end = 0, time.monotonic() + SHRINK_S
    size = max(1, len(body) // 2)
    while trials < SHRINK_TRIALS and time.monotonic() < end:
        at, dropped = 0, False
        while at < len(body) and trials < SHRINK_TRIALS and time.monotonic() < end:
            shorter = body[:at] + body[at + size:]
            trials += 1
            if still_differs(driver, shorter + last):
                body, dropped = shorter, True
            else:
                at += size
        if size == 1 and not dropped:
            break
        size = max(1, size // 2)
    return drop_entries(driver, body + last, end)


def drop_entries(driver, commands, end):
    """Drop single entries of batches and payouts in the same way."""
    for at, command in enumerate(commands):
        name = "payouts" if "payouts" in command else "batch"
        index = 0
        while index < len(command.get(name, ())) > 1 and time.monotonic() < end:
            entries = command[name]
            shorter = {**command, name: entries[:index] + entries[index + 1:]}
            if still_differs(driver, commands[:at] + [shorter] + commands[at + 1:]):
                command = commands[at] = shorter
            else:
                index += 1
    return commands


def brief(value):
    text = json.dumps(value)
    return text if len(text) < 3000 else text[:3000] + " ..."


def describe(driver, commands, command, want, have):
    lines = [f"command {len(commands) - 1}: {brief(command)}", f"model: {brief(want)}",
             f"core:  {brief(have)}"]
    if still_differs(driver, commands):
        shorter = shrink(driver, commands)
        lines.append(f"shown also by these {len(shorter)} commands:")
        lines += [brief(item) for item in shorter]
    else:
        lines.append("the same commands do not show it again: the core is not deterministic")
    return "\n".join(lines)


# ---- Bounded runs ----

MEASURES = {
    "accounts": lambda t: len(t.known),
    "rows": lambda t: len(t.balances),
    "holds": lambda t: len(t.holds) + len(t.runs),
    "entries": lambda t: t.log["seq"],
}


def bounded_run(driver, option, seed, count):
    """Fill one small table in lock step. The model has no bounds: where the core answers Busy it
    must have been about to pass its bound, and the model takes its own step back."""
    result = Result(seed)
    ledger = Ledger()
    ledger.hold_commits = True          # keeps the last step's journal
    generator = Generator(random.Random(seed), ledger, "quiet")
    with subprocess.Popen([driver, f"--{option}", str(BOUND)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        for number in range(count):
            command = generator.next()
            before = MEASURES[option](ledger.t)
            want = ledger.execute(command)
            after = MEASURES[option](ledger.t)
            child.stdin.write(json.dumps(command).encode() + b"\n")
            child.stdin.flush()
            line = child.stdout.readline()
            if not line:
                result.problem = f"driver ended at command {number}: {brief(command)}"
                break
            have = json.loads(line)
            count_answer(result, command, have, ledger)
            if have.get("error", {}).get("code") == "Busy":
                # The account of a limits command takes room in the core without being opened.
                unopened = sum(name not in ledger.t.balances for name in ledger.t.limits) \
                    + len(ledger.t.frozen)
                problem = busy_problem(command, want, have, after + unopened)
                if problem:
                    result.problem = f"command {number}: {brief(command)}\n{problem}"
                if ledger.pending:
                    ledger.t.swap_back(ledger.pending.pop()[1])
                want = have
            elif essence(want) != essence(have):
                result.problem = (f"command {number}: {brief(command)}\nmodel: {brief(want)}\n"
                                  f"core:  {brief(have)}\n{option}: {before} to {after} of {BOUND}")
            ledger.pending.clear()
            generator.done(command, want)
            if result.problem:
                break
        child.stdin.close()
        child.kill()
    users = sum(not name.startswith("sys/") for name in ledger.t.names.values())
    if not result.problem and option == "accounts" and users > BOUND:
        result.problem = f"{users} accounts opened in a table of {BOUND}"
    # Entries may be a window instead, if what left it is still known: then nothing is Busy.
    if not result.problem and option != "entries" and not result.codes["Busy"]:
        result.problem = f"Busy never reached with {MEASURES[option](ledger.t)} {option}"
    return result


def busy_problem(command, want, have, measure):
    """Busy is the last check of an entry, so the model must not have refused an earlier one."""
    if "ok" in want:
        if want["ok"] is None:
            return "Busy where nothing is to be done"
        if (want["ok"]["dup"] or want["ok"]["replay"]):
            return f"Busy for what is only repeated: {brief(want)}"
        return f"Busy at {measure} of {BOUND}" if measure < BOUND else None
    error = want["error"]
    busy_at = have["error"].get("index", -1)            # -1: the Hold of a run, before its payouts
    if error["code"] == "Malformed":                    # clearing, a run's rest: after all entries
        return None
    return f"Busy hides {brief(want)}" if error.get("index", -2) < busy_at else None


# ---- Report ----

def print_tables(total):
    print("# outcomes: " + ", ".join(f"{name} {count}" for name, count in total.outcomes.items()))
    print("# codes:")
    for code in sorted(set(CODES) | set(total.codes)):
        print(f"#   {code:24}{total.codes[code]:9}")
    names = list(KINDS)
    print("# pairs of kinds, previous entry down, next entry across:")
    print("# " + " " * 9 + "".join(f"{name:>9}" for name in names))
    for first in names:
        print(f"# {first:9}" + "".join(f"{total.pairs[first, second]:9}" for second in names))


class Tap:
    def __init__(self):
        self.count, self.failed = 0, 0

    def report(self, good, name, why=None):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}")
        if not good and why:
            print("\n".join("# " + line for line in str(why).splitlines()))
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("driver")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--commands", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    start = time.monotonic()
    total, tap = Result(options.seed), Tap()
    seeds = [options.seed * 1_000_003 + run for run in range(options.runs)]
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        runs = [(f"run of seed {seed}",
                 pool.submit(run_once, options.driver, seed, options.commands, seed == seeds[0]))
                for seed in seeds]
        runs += [(f"bounded {option}",
                  pool.submit(bounded_run, options.driver, option, options.seed, 1500))
                 for option in MEASURES]
        for name, future in runs:
            result = future.result()
            tap.report(result.problem is None, name, result.problem)
            total.entries += result.entries
            for field in ("codes", "pairs", "outcomes"):
                getattr(total, field).update(getattr(result, field))
    print_tables(total)
    commands = sum(total.outcomes.values()) - total.outcomes["question"]
    missing = [code for code in CODES if not total.codes[code]]
    tap.report(not missing, "every_code_is_reached", f"never: {missing}")
    share = total.outcomes["refused"] / max(1, commands)
    tap.report(share >= INVALID_SHARE, "enough_commands_are_refused", f"{share:.2f}")
    missing = [pair for pair in ((a, b) for a in KINDS for b in KINDS) if not total.pairs[pair]]
    if options.runs * options.commands >= PAIRS_FROM:
        tap.report(not missing, "every_pair_of_kinds_is_reached", f"never: {missing}")
    else:
        print(f"# pairs never reached: {len(missing)} of {len(KINDS) ** 2} (judged in long runs)")
    seconds = time.monotonic() - start
    print(f"# {commands} commands, {total.entries} entries in {seconds:.1f} s")
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
