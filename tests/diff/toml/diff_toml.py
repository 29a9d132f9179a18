#!/usr/bin/env python3
"""diff_toml.py PROGRAM [--count N] [--seed N] - ron's TOML reader against Python's tomllib.

Generates documents (from the grammar, with few distinct keys so that definitions collide, then
mutated), asks PROGRAM (toml_dump) for each, and compares with tomllib: both accept and dump the
same values in the same order, or both refuse. ron alone may refuse only floats, dates, integers
beyond 64 bits, and nesting beyond its bound; it must never accept alone. Prints TAP.
"""
import argparse
import datetime
import random
import re
import struct
import subprocess
import sys
import threading
import time
import tomllib

DEPTH_MAX = 16
I64 = range(-(2**63), 2**63)


class Generator:
    """Random documents. Everything random comes from one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return choices[int(self.random.random() * len(choices))]

    def chance(self, one_in):
        return self.random.random() * one_in < 1

    def space(self):
        return self.pick("", "", "", " ", " ", "\t", "  ")

    def newline(self):
        return "\n"

    def comment(self):
        return self.pick("", "", "", "# c", "#", "# \u00e9\t[x]") if self.chance(3) else ""

    def lines(self):
        text = self.space()
        while self.chance(3):
            text += self.comment() + self.newline() + self.space()
        return text

    def simple_key(self):
        return self.pick(
            "a", "b", "c", "d", "a", "b", "c", "ab", "A", "-", "_", "1", "0x1", "true",
            '"a"', "'b'", '"\\u0061"', '""', "''", '"a.b"', '"\u00e9"', '"\\t"', "'\\'",
            '"a\\u0000"',
        )

    def key(self):
        count = self.pick(1, 1, 1, 1, 2, 2, 3)
        dot = self.pick(".", ".", " . ", ".\t")
        return dot.join(self.simple_key() for _ in range(count))

    def integer(self):
        r = self.random
        valid = [
            lambda: str(r.randrange(-100, 100)),
            lambda: "+" + str(r.randrange(10)),
            lambda: str(r.randrange(-(2**63), 2**63)),
            lambda: str(self.pick(2**63 - 1, -(2**63))),
            lambda: "1_000_0",
            lambda: hex(r.randrange(2**self.pick(8, 32, 63))),
            lambda: "0x" + "%X" % r.randrange(2**40) + "_f",
            lambda: oct(r.randrange(2**30)),
            lambda: "0o00_7",
            lambda: bin(r.randrange(2**12)),
            lambda: self.pick("-0", "+0", "0"),
        ]
        odd = [
            "01", "-01", "1_", "_1", "1__0", "0x", "0x_1", "0X1", "-0x1", "+0b1", "0b2", "0o8",
            "00", "+", "-", "--1", "0_1", "0x1_",
            "9223372036854775808", "-9223372036854775809", "0x8000000000000000",
            "0xffffffffffffffffffff", "123456789012345678901234567890", "1a", "0b", "1:2", "1-2",
        ]
        return self.pick(*odd) if self.chance(25) else self.pick(*valid)()

    def boolean(self):
        return self.pick("true", "false")

    def other_scalar(self):
        return self.pick(
            "1.5", "1e3", "-1.5E-3", "inf", "-nan", "+inf", "1_0.0_1", "1979-05-27", "07:32:00",
            "1979-05-27T07:32:00Z", "1979-05-27 07:32:00.5", "1979-05-27T07:32:00+01:00",
            "1.", ".5", "1e", "infinity", "True", "TRUE", "null", "1979-13-40", "7:32",
            "25:00:00", "tru", "truefalse",
        )

    def characters(self, multiline, basic, quote):
        pieces = ["x", "yz ", "\u00e9", "\u6c34", "\U0001f600", "#", "\t", "[", "=", "", ""]
        other = "'" if quote == '"' else '"'
        pieces.append(other)
        if multiline:
            pieces += ["\n", "\n\n  ", quote, quote * 2, other * 3]
        if basic:
            pieces += [
                "\\n", "\\t", "\\\\", '\\"', "\\b", "\\f", "\\r", "\\u00e9",
                "\\U0001F600", "\\u0000", "\\ud7ff",
            ]
            if multiline:
                pieces += ["\\\n  ", "\\  \n\n \t", "\\\n"]
        text = "".join(self.pick(*pieces) for _ in range(self.pick(0, 1, 1, 2, 3, 6)))
        if self.chance(30):
            text += self.pick(
                "\\x41", "\\u12", "\\ud800", "\\U00110000", "\\ ", "\\a", "\x00",
                "\x1f", "\x7f", "\x80", "\r", "\\", "\n", quote, "\\/", "\\'", "\\e",
                "\\U0000d800", "\\uD83D\\uDE00", "\x0b",
            )
        return text

    def string(self):
        quote = self.pick('"', "'")
        multiline = self.chance(3)
        marks = quote * 3 if multiline else quote
        start = self.pick("", "\n", "\n\n") if multiline else ""
        return marks + start + self.characters(multiline, quote == '"', quote) + marks

    def array(self, depth):
        text = "[" + self.lines()
        count = self.pick(0, 1, 2, 2, 3)
        for i in range(count):
            text += self.value(depth - 1) + self.lines()
            if i + 1 < count or self.chance(3):
                text += "," + self.lines()
        return text + "]"

    def inline_table(self, depth):
        text = "{" + self.space()
        count = self.pick(0, 1, 2, 2, 3)
        for i in range(count):
            text += self.key() + self.space() + "=" + self.space()
            text += self.value(depth - 1) + self.space()
            if i + 1 < count or self.chance(25):
                text += "," + self.space()
        return text + "}"

    def value(self, depth):
        if depth > 0 and self.chance(4):
            return self.array(depth)
        if depth > 0 and self.chance(4):
            return self.inline_table(depth)
        if self.chance(40):
            return self.other_scalar()
        return self.pick(self.integer, self.integer, self.string, self.string, self.boolean)()

    def deep(self):
        """Nesting around the bound, by each way to nest."""
        count = self.random.randrange(DEPTH_MAX - 3, DEPTH_MAX + 4)
        half = count // 2
        return self.pick(
            "a=" + "[" * count + "]" * count,
            "a=" + "{a=" * count + "1" + "}" * count,
            ".".join("a" * count) + "=1",
            "[" + ".".join("a" * count) + "]",
            "[[" + ".".join("a" * count) + "]]",
            "[" + ".".join("a" * half) + "]\n" + ".".join("a" * (count - half)) + "=[]",
        )

    def statement(self):
        kind = self.random.randrange(10)
        if kind < 6:
            text = self.key() + self.space() + "=" + self.space() + self.value(3)
        elif kind < 8:
            text = "[" + self.space() + self.key() + self.space() + "]"
        elif kind < 9:
            text = "[[" + self.space() + self.key() + self.space() + "]]"
        else:
            text = ""
        return self.space() + text + self.space() + self.comment()

    def mutate(self, text):
        r = self.random
        at = r.randrange(len(text) + 1)
        kind = r.randrange(6)
        if kind == 0:
            return text[:at] + text[at + 1 :]
        if kind == 1:
            special = "[]{}=.,#'\"\\\n\r\t _-+:0aexu\x00\x7f\u00e9\ufeff"
            return text[:at] + self.pick(*special) + text[at:]
        if kind == 2:
            return text[:at]
        if kind == 3:
            other = r.randrange(len(text) + 1)
            return text[:at] + text[other : other + 10] + text[at:]
        if kind == 4:
            return text[:at] + text[at:].replace("\n", "\r\n", self.pick(1, 2, -1))
        piece = self.pick('"""', "'''", "]]", "[[", "= =", "..", "\r\n", "\\\n")
        return text[:at] + piece + text[at + 1 :]

    def document(self):
        if self.chance(50):
            text = self.deep()
        else:
            text = "\n".join(self.statement() for _ in range(self.pick(1, 2, 3, 4, 6, 8)))
        if self.chance(4):
            text = text.replace("\n", "\r\n")
        while self.chance(3):
            text = self.mutate(text)
        data = text.encode("utf-8")
        if self.chance(60) and data:
            at = self.random.randrange(len(data))
            data = data[:at] + bytes([self.random.randrange(128, 256)]) + data[at + 1 :]
        return data


def dump(value, found, depth=0):
    """The canonical dump of toml_dump.c; `found` collects what ron may refuse."""
    if isinstance(value, bool):
        return "b:%d" % value
    if isinstance(value, int):
        if value not in I64:
            found.add("integer")
        return "i:%d" % value
    if isinstance(value, str):
        return "s:" + value.encode().hex()
    if depth > DEPTH_MAX and isinstance(value, (list, dict)):
        found.add("depth")
    if isinstance(value, list):
        return "[" + ",".join(dump(v, found, depth + 1) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(k.encode().hex() + "=" + dump(v, found, depth + 1)
                              for k, v in value.items()) + "}"
    if isinstance(value, float):
        found.add("float")
    elif isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        found.add("date")
    else:
        raise TypeError(type(value))
    return "?"


def expectation(data):
    """(dump or None, what ron may refuse, tomllib's message)."""
    found = set()
    try:
        return dump(tomllib.loads(data.decode("utf-8")), found), found, ""
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return None, found, str(error)


EXCUSES = {
    "float": "MALFORMED .*: floats are not used",
    "date": "MALFORMED .*: dates are not used",
    "integer": "MALFORMED .*: the integer does not fit 64 bits",
    "depth": "TOO_LARGE .*: tables and arrays are nested deeper than 16",
}


def place_is_real(data, answer):
    """Does file:line:column lie inside the document?"""
    match = re.match(r"[A-Z_]+ doc\.toml:([0-9]+):([0-9]+): .", answer)
    if match is None:
        return False
    lines = data.split(b"\n")
    line, column = int(match[1]), int(match[2])
    if not 1 <= line <= len(lines):
        return False
    return 1 <= column <= len(lines[line - 1].decode("utf-8", "replace")) + 1


def judge(data, answer, tally):
    """None if the answer is right, else what is wrong."""
    expected, excuses, message = expectation(data)
    if answer.startswith("ok "):
        if expected is None:
            return "ron accepts, tomllib says: " + message
        if excuses:
            return "ron accepts what it should refuse: " + " ".join(excuses)
        tally["accepted"] += 1
        return None if answer[3:] == expected else "values differ, expected " + expected
    if not place_is_real(data, answer):
        return "the place is not in the document"
    if expected is None:
        tally["refused"] += 1
        return None
    for excuse in excuses:
        if re.match(EXCUSES[excuse], answer):
            tally[excuse] += 1
            return None
    return "ron refuses, tomllib accepts"


def ask(program, documents):
    """All answers of the program, in order."""
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def feed():
        try:
            for data in documents:
                process.stdin.write(struct.pack("<I", len(data)) + data)
            process.stdin.close()
        except BrokenPipeError:
            pass  # a crash; the answers stop early

    feeder = threading.Thread(target=feed)
    feeder.start()
    answers = []
    while len(head := process.stdout.read(4)) == 4:
        answers.append(process.stdout.read(struct.unpack("<I", head)[0]).decode("utf-8"))
    feeder.join()
    return answers, process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    generator = Generator(options.seed)
    documents = [generator.document() for _ in range(options.count)]
    answers, status = ask(options.program, documents)
    tally = dict.fromkeys(["accepted", "refused", *EXCUSES], 0)
    failures = []
    for data, answer in zip(documents, answers):
        wrong = judge(data, answer, tally)
        if wrong is not None:
            failures.append((data, answer, wrong))

    results = [
        (status == 0 and len(answers) == len(documents), "toml_dump answers every document"),
        (not failures, "%d documents read as tomllib reads them" % len(answers)),
        (min(tally["accepted"], tally["refused"]) * 4 >= options.count,
         "a quarter accepted, a quarter refused"),
        (all(tally[excuse] > 0 for excuse in EXCUSES), "every listed difference was met"),
    ]
    print("1..%d" % len(results))
    for number, (good, name) in enumerate(results, 1):
        print("%s %d - %s" % ("ok" if good else "not ok", number, name))
    print("# seed %d, %s" % (options.seed, ", ".join("%s %d" % item for item in tally.items())))
    for data, answer, wrong in failures[:10]:
        print("# %s\n#   document %r\n#   answer   %s" % (wrong, data, answer))
    print("# %d failures, %.1f s" % (len(failures), time.monotonic() - started))
    return 0 if all(good for good, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
