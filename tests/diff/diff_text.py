#!/usr/bin/env python3
"""diff_text.py - compare base's numbers and texts with Python's own.

Usage: diff_text.py PROGRAM [--count N] [--seed S]

PROGRAM is the build's tests/diff/diff_text. Each group of cases is generated from the seed, sent to
its own child, and every answer compared: accepted or refused, value, printed text, and where a
message tells a position, that position. Output is TAP.
"""
import argparse
import base64
import binascii
import datetime
import random
import re
import struct
import subprocess
import sys

U64 = (1 << 64) - 1
U128 = (1 << 128) - 1
U256 = (1 << 256) - 1
TIMEOUT_S = 60


class Refused:
    """The expected answer is an error; at is the byte its message must name, if that is known."""

    def __init__(self, at=None):
        self.at = at


def u64(value):
    return value.to_bytes(8, "little")


def u128(value):
    return value.to_bytes(16, "little")


def u256(value):
    return value.to_bytes(32, "little")


# ---- Inputs ----

STRAY = [bytes((byte,)) for byte in b" \n\0=-+_/.09:ZzTtGgaAIO@`[{?\x80\xff"]


def mutate(rng, text):
    """One to three small changes; the result may by chance still be valid."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(9)
        if kind == 0:
            text = text[:at] + rng.choice(STRAY) + text[at:]
        elif kind == 1:
            text = text[:at] + rng.choice(STRAY) + text[at + 1:]
        elif kind == 2:
            text = text[:at] + bytes((rng.randrange(256),)) + text[at + 1:]
        elif kind == 3:
            text = text[:at] + text[at + 1:]
        elif kind == 4:
            text = text[:at]
        elif kind == 5:
            text = text[:at] + text[at:at + 1].swapcase() + text[at + 1:]
        elif kind == 6:
            text = text[:at] + text[at:at + 2][::-1] + text[at + 2:]
        elif kind == 7:
            text = text + rng.choice(STRAY)
        else:
            text = b"0" + text
    return text


def texts(rng, count, valid, mutated=0.8):
    for _ in range(count):
        text = valid(rng)
        yield mutate(rng, text) if rng.random() < mutated else text


def limb(rng):
    return rng.choice((0, 1, 2, 1 << 63, (1 << 63) - 1, (1 << 63) + 1, U64, U64 - 1,
                       rng.getrandbits(64), rng.getrandbits(64), rng.getrandbits(32)))


def number(rng, bits):
    """Uniform in length rather than in value, and often at an edge."""
    kind = rng.randrange(4)
    if kind == 0:
        value = rng.getrandbits(rng.randrange(1, bits + 1))
    elif kind == 1:
        value = (1 << rng.randrange(bits)) + rng.randrange(-2, 3)
    elif kind == 2:
        value = (1 << bits) - 1 - rng.getrandbits(rng.randrange(1, 9))
    else:
        value = 0
        for _ in range(bits // 64):
            value = value << 64 | limb(rng)
    return max(0, min(value, (1 << bits) - 1))


def some_bytes(rng):
    return rng.randbytes(rng.choice((0, 1, 2, 3, 4, 5, 16, 31, 32, 33, rng.randrange(100))))


# ---- Groups: each yields (operation letter, argument, expected answer) ----

def decimal(letter, bits, encode, print_letter):
    digits_max = len(str((1 << bits) - 1))

    def valid(rng):
        kind = rng.randrange(8)
        if kind == 0:  # around the upper bound, both sides
            return b"%d" % ((1 << bits) + rng.randrange(-20, 20))
        if kind == 1:
            return b"%d" % (10 ** rng.randrange(digits_max + 1) + rng.randrange(-1, 2))
        return b"%d" % number(rng, bits)

    def expect(text):
        if re.fullmatch(rb"0|[1-9][0-9]*", text):
            if int(text) < 1 << bits:
                return encode(int(text)) + text
            return Refused(min(len(text), digits_max + 1) - 1)
        stray = re.search(rb"[^0-9]", text[:digits_max])
        if stray:
            return Refused(stray.start())
        if text == b"" or text.startswith(b"0"):
            return Refused(0)
        return Refused(digits_max)

    def group(rng, count):
        for text in texts(rng, count - count // 5, valid, 0.65):
            yield letter, text, expect(text)
        for _ in range(count // 5):
            value = number(rng, bits)
            yield print_letter, encode(value), b"%d" % value

    return group


def hex_group(rng, count):
    def expect(text):
        try:
            value = bytes.fromhex(text.decode("ascii"))
            if value.hex().encode() == text:
                return value
        except (ValueError, UnicodeDecodeError):
            pass
        stray = re.search(rb"[^0-9a-f]", text)
        return Refused(stray.start() if stray else len(text))

    for text in texts(rng, count - count // 5, lambda r: some_bytes(r).hex().encode()):
        yield "h", text, expect(text)
    for _ in range(count // 5):
        value = some_bytes(rng)
        yield "H", value, value.hex().encode()


def base64_group(form):
    url, padded = form >= 2, form % 2 == 0
    altchars = b"-_" if url else b"+/"
    alphabet = rb"[A-Za-z0-9\-_]*" if url else rb"[A-Za-z0-9+/]*"

    def encode(value):
        text = base64.b64encode(value, altchars)
        return text if padded else text.rstrip(b"=")

    def expect(text):
        try:
            whole = text if padded else text + b"=" * (-len(text) % 4)
            value = base64.b64decode(whole, altchars, validate=True)
            if encode(value) == text:
                return value
        except binascii.Error:
            pass
        stray = re.match(alphabet, text).end()
        if stray < len(text) and (text[stray:stray + 1] != b"=" or not padded):
            return Refused(stray)
        return Refused()

    def group(rng, count):
        for text in texts(rng, count - count // 5, lambda r: encode(some_bytes(r))):
            yield "b", bytes((form,)) + text, expect(text)
        for _ in range(count // 5):
            value = some_bytes(rng)
            yield "B", bytes((form,)) + value, encode(value)

    return group


CROCKFORD = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
PYTHON_32 = b"0123456789ABCDEFGHIJKLMNOPQRSTUV"


def ulid_text(value):
    digits = bytearray()
    for _ in range(26):
        value, digit = divmod(value, 32)
        digits.append(CROCKFORD[digit])
    return bytes(reversed(digits))


def ulid_answer(value):
    return value.to_bytes(16, "big") + u64(value >> 80) + ulid_text(value)


def ulid_group(rng, count):
    def expect(text):
        if len(text) == 26 and not text.translate(None, CROCKFORD):
            value = int(text.translate(bytes.maketrans(CROCKFORD, PYTHON_32)), 32)
            if value <= U128:
                return ulid_answer(value)
        return Refused()

    def valid(r):
        return ulid_text(number(r, 128) + (r.randrange(4) << 128) * (r.random() < 0.2))

    for text in texts(rng, count * 7 // 10, valid):
        yield "u", text, expect(text)
    for _ in range(count // 10):
        time_ms, noise = rng.getrandbits(48), number(rng, 80)
        yield "U", u64(time_ms) + noise.to_bytes(10, "big"), ulid_answer(time_ms << 80 | noise)
    for _ in range(count - count * 7 // 10 - count // 10):
        value = number(rng, 128)
        if rng.random() < 0.5:
            value |= (1 << 80) - 1
        full = value % (1 << 80) == (1 << 80) - 1
        yield "n", value.to_bytes(16, "big"), Refused() if full else ulid_answer(value + 1)


DURATIONS = {b"ns": 1, b"us": 10**3, b"ms": 10**6, b"s": 10**9, b"m": 60 * 10**9,
             b"h": 3600 * 10**9, b"d": 86400 * 10**9}
SIZES = {b"B": 1, b"KB": 10**3, b"MB": 10**6, b"GB": 10**9, b"TB": 10**12,
         b"KiB": 2**10, b"MiB": 2**20, b"GiB": 2**30, b"TiB": 2**40}


def units(letter, factors, printed, zero, bare):
    def valid(rng):
        unit = rng.choice(list(factors))
        largest = U64 // factors[unit]
        near = largest + rng.randrange(-3, 4)
        small = rng.randrange(100000)
        text = b"%d" % rng.choice((near, small, small, small * 3600, small * 1024, number(rng, 64)))
        return text if bare and rng.random() < 0.1 else text + unit

    def expect(text):
        match = re.fullmatch(rb"(0|[1-9][0-9]*)([A-Za-z]*)", text)
        if not match or not (match[2] in factors or (bare and not match[2])):
            return Refused()
        value = int(match[1]) * factors.get(match[2], 1)
        if int(match[1]) > U64 or value > U64:
            return Refused()
        unit = zero if value == 0 else max((u for u in printed if value % factors[u] == 0),
                                           key=lambda u: factors[u])
        return u64(value) + b"%d" % (value // factors[unit]) + unit

    def group(rng, count):
        for text in texts(rng, count, valid, 0.5):
            yield letter, text, expect(text)

    return group


EPOCH = datetime.datetime(1970, 1, 1)
MS = datetime.timedelta(milliseconds=1)


def time_answer(moment):
    seconds = moment.isoformat(timespec="seconds").encode()
    ms = moment.isoformat(timespec="milliseconds").encode()
    return u64((moment - EPOCH) // MS) + u64((moment - EPOCH).days) + ms + b"Z" + seconds + b"Z"


def rfc3339_group(rng, count):
    shape = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})"
                       rb"(?:\.([0-9]{1,3}))?Z")

    def valid(r):
        if r.random() < 0.4:  # parts that may not exist: 31 April, 29 February, hour 24
            text = "%04d-%02d-%02dT%02d:%02d:%02d" % (
                r.choice((1969, 1970, 1999, 2000, 2024, 2100, 2400, 9999, r.randrange(10000))),
                r.choice((0, 1, 2, 2, 2, 4, 11, 12, 13)), r.choice((0, 1, 28, 29, 30, 31, 32)),
                r.choice((0, 12, 23, 24)), r.choice((0, 59, 60)), r.choice((0, 30, 59, 60, 61)))
        else:
            moment = EPOCH + MS * r.randrange(253402300800000)
            text = moment.isoformat(timespec="seconds")
        fraction = r.choice(("", "", ".0", ".5", ".25", ".999", ".001", ".1234"))
        return (text + fraction + "Z").encode()

    def expect(text):
        match = shape.fullmatch(text)
        if not match:
            return Refused()
        try:
            parts = [int(part) for part in match.groups()[:6]]
            moment = datetime.datetime(*parts, int((match[7] or b"0").ljust(6, b"0")))
        except ValueError:
            return Refused()
        return time_answer(moment) if moment >= EPOCH else Refused()

    for text in texts(rng, count - count // 5, valid, 0.35):
        yield "r", text, expect(text)
    for _ in range(count // 5):
        moment = EPOCH + MS * rng.randrange(253402300800000)
        yield "R", u64((moment - EPOCH) // MS), time_answer(moment)


def sums_group(rng, count):
    for _ in range(count):
        a, b = number(rng, 128), number(rng, 128)
        if rng.random() < 0.3:  # at the edge of overflow
            b = min(max(U128 - a + rng.randrange(-2, 3), 0), U128)
        letter = rng.choice("+-")
        value = a + b if letter == "+" else a - b
        yield letter, u128(a) + u128(b), u128(value) if 0 <= value <= U128 else Refused()


def products_group(rng, count):
    for _ in range(count):
        a, b = number(rng, 128), number(rng, 128)
        if rng.random() < 0.4 and a:
            b = min(max(U128 // a + rng.randrange(-2, 3), 0), U128)
        if rng.random() < 0.3:
            yield "f", u128(a) + u128(b), u256(a * b)
        else:
            yield "*", u128(a) + u128(b), u128(a * b) if a * b <= U128 else Refused()


def wide_sums_group(rng, count):
    for _ in range(count):
        a, b = number(rng, 256), number(rng, 256)
        if rng.random() < 0.3:
            b = min(max(U256 - a + rng.randrange(-2, 3), 0), U256)
        if rng.random() < 0.1:
            b = a
        if rng.random() < 0.5:
            order = bytes(((a > b) - (a < b) + 1,))
            yield "a", u256(a) + u256(b), u256(a + b) + order if a + b <= U256 else Refused()
        else:
            yield "z", u256(a) + u256(b), u256(a - b) if a >= b else Refused()


def division_group(rng, count):
    for _ in range(count):
        b = number(rng, 128)
        kind = rng.randrange(4)
        if kind == 0 and b:  # a quotient and a remainder at their edges
            a = number(rng, 128) * b + rng.choice((0, 1, b - 1, rng.randrange(b))) % b
        elif kind == 1 and b:  # around the largest quotient
            a = min(max((b << 128) + rng.randrange(-3, 3), 0), U256)
        elif kind == 2 and b:
            a = rng.randrange(b) << 128 | number(rng, 128)
        else:
            a = number(rng, 256)
        fits = b != 0 and a // b <= U128
        yield "/", u256(a) + u128(b), u128(a // b) + u128(a % b) if fits else Refused()


def mul_div_group(rng, count):
    for _ in range(count):
        a, b, c = number(rng, 128), number(rng, 128), number(rng, 128)
        if rng.random() < 0.3:  # a share of a pool: c is at least b
            b, c = min(b, c), max(b, c)
        fits = c != 0 and a * b // c <= U128
        yield "m", u128(a) + u128(b) + u128(c), (u128(a * b // c) + u128(a * b % c) if fits
                                                 else Refused())


# Name, cases, least share of refusals, whether messages tell a position.
GROUPS = [
    ("hex", hex_group, 1 / 3, True),
    ("base64 standard", base64_group(0), 1 / 3, True),
    ("base64 standard without padding", base64_group(1), 1 / 3, True),
    ("base64 url", base64_group(2), 1 / 3, True),
    ("base64 url without padding", base64_group(3), 1 / 3, True),
    ("decimal u64", decimal("d", 64, u64, "p"), 1 / 3, True),
    ("decimal u128", decimal("D", 128, u128, "P"), 1 / 3, True),
    ("ulid", ulid_group, 1 / 3, True),
    ("durations", units("t", DURATIONS, DURATIONS, b"s", False), 1 / 3, True),
    ("sizes", units("s", SIZES, (b"B", b"KiB", b"MiB", b"GiB", b"TiB"), b"B", True), 1 / 3, True),
    ("rfc3339", rfc3339_group, 1 / 3, True),
    ("u128 add and sub", sums_group, 1 / 4, False),
    ("u128 mul", products_group, 1 / 5, False),
    ("u256 add and sub", wide_sums_group, 1 / 4, False),
    ("u256 division", division_group, 1 / 5, False),
    ("u128 mul_div", mul_div_group, 1 / 5, False),
]


def run_child(program, cases):
    """Send all cases, return the list of (accepted, bytes). Raises on a crash or a wrong count."""
    requests = bytearray()
    for letter, argument, _ in cases:
        requests += struct.pack("<I", 1 + len(argument)) + letter.encode() + argument
    child = subprocess.run([program], input=bytes(requests), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
    answers, at, out = [], 0, child.stdout
    while at + 4 <= len(out):
        size = struct.unpack_from("<I", out, at)[0]
        if at + 4 + size > len(out):
            break
        answers.append((out[at + 4] == 0, out[at + 5:at + 4 + size]))
        at += 4 + size
    if child.returncode != 0 or len(answers) != len(cases):
        raise RuntimeError("exit status %d after %d of %d answers: %s" % (
            child.returncode, len(answers), len(cases),
            child.stderr.decode("utf-8", "replace").strip()[:1000]))
    return answers


def mismatch(case, answer, positions):
    """Why an answer is wrong, or None."""
    letter, argument, expected = case
    accepted, got = answer
    if not isinstance(expected, Refused):
        if not accepted:
            return "refused with %r, expected %r" % (got, expected)
        return None if got == expected else "answered %r, expected %r" % (got, expected)
    if accepted:
        return "accepted as %r, expected a refusal" % got
    if not positions or letter == "n":
        return None
    told = re.match(rb"byte ([0-9]+): .", got)
    size = len(argument) - (letter == "b")
    if not told or int(told[1]) > size:
        return "message %r tells no position within %d bytes" % (got, size)
    if expected.at is not None and int(told[1]) != expected.at:
        return "message %r, expected byte %d" % (got, expected.at)
    return None


def run_group(program, group, seed, count):
    """Return (cases, refused, list of problems)."""
    name, generate, refused_share, positions = group
    cases = list(generate(random.Random("%d %s" % (seed, name)), count))
    refused = sum(isinstance(case[2], Refused) for case in cases)
    problems = []
    if count >= 1000 and refused < refused_share * len(cases):
        problems.append("only %d of %d cases are refusals" % (refused, len(cases)))
    try:
        answers = run_child(program, cases)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        return len(cases), refused, problems + [str(error)]
    for case, answer in zip(cases, answers):
        why = mismatch(case, answer, positions)
        if why:
            problems.append("%s %r: %s" % (case[0], case[1], why))
    return len(cases), refused, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=200000, help="cases in all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    per_group = max(100, -(-options.count // len(GROUPS)))
    failed = cases_count = refused_count = 0
    print("# seed %d" % options.seed)
    for index, group in enumerate(GROUPS, 1):
        count, refused, problems = run_group(options.program, group, options.seed, per_group)
        for problem in problems[:5]:
            print("# " + problem.replace("\n", "\n# "))
        if len(problems) > 5:
            print("# and %d more" % (len(problems) - 5))
        failed += bool(problems)
        cases_count += count
        refused_count += refused
        print("%s %d - %s (%d cases, %d refused)" % (
            "not ok" if problems else "ok", index, group[0], count, refused), flush=True)
    enough = 3 * refused_count >= cases_count
    failed += not enough
    print("%s %d - a third of all is refused (%d of %d)" % (
        "ok" if enough else "not ok", len(GROUPS) + 1, refused_count, cases_count))
    print("1..%d" % (len(GROUPS) + 1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
