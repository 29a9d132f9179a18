#!/usr/bin/env python3
"""diff_macaroons.py DRIVER [--count N] [--seed S] - mutated tokens, judged by both sides; TAP.

Tokens are minted by pymacaroons and damaged: in their text, in their packets, or in their meaning
with the packets put together anew; some stay whole. Ours must accept exactly what pymacaroons
verifies, except what the list below names, where ours must refuse:

  text         the same packets written in another way (padding, unused bits, lengths in capitals,
               packets in another order or twice, the key cut off a signature, ...): pymacaroons
               writes what it read differently from what it was given
  third-party  a caveat with a verification id
  characters   location, identifier or caveat outside printable ASCII, or empty where we need one
  limits       larger than ours: 4,096 bytes, 64 caveats, 1,024 a caveat, 128 the other texts

What ours accepts must read the same to both: location, identifier, caveats.
"""
import argparse
import base64
import collections
import random
import sys

sys.dont_write_bytecode = True

import pymacaroons  # noqa: E402
from pymacaroons.serializers.binary_serializer import BinarySerializer  # noqa: E402

import driver  # noqa: E402

VALUES = [b"tenant = 7", b"scope = wallet.read", b"account = a*", b"asset = roc", b"rate = 1/2",
          b"max_amount = 10", b"x", b"a b c", b"", b"caf\xc3\xa9", b"\xff\xfe", b"line\nfeed",
          b"cid nested = 1", b"y" * 200, b"z" * 1024, b"w" * 1025]
KEYS = [b"one key", b"a root key of thirty-two bytes!!", bytes(range(65))]


def packet(key, value):
    return b"%04x" % (len(key) + len(value) + 6) + key + b" " + value + b"\n"


def unpadded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def parts_of(rng, key):
    """A good token as a list of packets: usual texts mostly, strange ones sometimes."""
    from pymacaroons import utils
    usual = rng.random() < 0.8
    location = rng.choice([b"ron", b"", b"http://x/"] if usual else [b"l" * 129, b"\x01", b"ron"])
    identifier = rng.choice([b"k1.01ARZ3NDEKTSV4RRFFQ69G5FAV", b"id"] if usual else
                            [b"i" * 128, b"i" * 129, b"\xc3\xa9", b"a b"])
    count = rng.choice((0, 1, 2, 3, 6)) if usual else rng.choice((0, 5, 63, 64, 65))
    caveats = [rng.choice(VALUES[:6] if usual else VALUES) for _ in range(count)]
    signature = utils.hmac_digest(utils.generate_derived_key(key), identifier)
    for caveat in caveats:
        signature = utils.hmac_digest(signature, caveat)
    return [[b"location", location], [b"identifier", identifier],
            *[[b"cid", caveat] for caveat in caveats], [b"signature", signature]]


def change_parts(rng, parts):
    """A change that a holder of a token could make without knowing the format's letters."""
    kind = rng.randrange(8)
    at = rng.randrange(len(parts))
    if kind == 0:
        del parts[at]
    elif kind == 1:
        parts.insert(at, list(rng.choice(parts)))
    elif kind == 2:
        rng.shuffle(parts)
    elif kind == 3:
        parts[at][1] = rng.choice(VALUES)
    elif kind == 4:
        parts[at][0] = rng.choice([b"cid", b"vid", b"cl", b"location", b"identifier", b"signature",
                                   b"Cid", b"", b"other"])
    elif kind == 5:
        parts.insert(at, [rng.choice([b"cid", b"vid", b"cl", b"location"]), rng.choice(VALUES)])
    elif kind == 6 and parts[at][1]:
        value = bytearray(parts[at][1])
        value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
        parts[at][1] = bytes(value)
    else:
        parts[-1][1] = parts[-1][1][:rng.randrange(len(parts[-1][1]) + 1)]


def change_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at] = bytes((rng.choice(b"0123456789abcdefABCDEF \n_x+-"),))
        elif kind == 2:
            del data[at:at + rng.choice((1, 1, 2, 8))]
        elif kind == 3:
            data[at:at + 4] = rng.choice((b"0000", b"ffff", b"0x2f", b" 02f", b"002F", b"00_2"))
        elif at < len(data):
            data[at] = rng.randrange(256)
    return bytes(data)


def change_text(rng, text):
    kind = rng.randrange(6)
    at = rng.randrange(len(text) + 1)
    if kind == 0:
        return text + rng.choice(("=", "==", "A", "\n"))
    if kind == 1:
        return text[:at] + rng.choice("ABCxyz019-_=+/ .~") + text[at + 1:]
    if kind == 2:
        return text[:at]
    if kind == 3:
        return text[:at] + rng.choice("ABCxyz019-_") + text[at:]
    if kind == 4:
        return text.replace("-", "+").replace("_", "/")
    return text[:-1] + chr(ord(text[-1]) ^ 1)


def token_of(rng, key):
    """(kind, text)"""
    parts = parts_of(rng, key)
    kind = rng.choice(("whole", "parts", "bytes", "bytes", "text"))
    if kind == "parts":
        for _ in range(rng.choice((1, 1, 2))):
            if parts:
                change_parts(rng, parts)
    data = b"".join(packet(name, value) for name, value in parts)
    if kind == "bytes":
        data = change_bytes(rng, data)
    text = unpadded(data)
    if kind == "text":
        text = change_text(rng, text)
    return kind, text


def printable(text):
    return all(0x20 <= byte <= 0x7e for byte in text)


def excused(text, macaroon):
    """The name of a listed difference, or None."""
    caveats = [caveat.caveat_id_bytes for caveat in macaroon.caveats]
    location = macaroon._location or b""
    if any(caveat._verification_key_id is not None or caveat._location is not None
           for caveat in macaroon.caveats):
        return "third-party"
    if not (all(printable(c) and c for c in caveats) and printable(location) and
            printable(macaroon.identifier_bytes) and macaroon.identifier_bytes):
        return "characters"
    if BinarySerializer().serialize(macaroon) != text:
        return "text"
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) > 4096 or len(caveats) > 64 or any(len(c) > 1024 for c in caveats) or \
            len(location) > 128 or len(macaroon.identifier_bytes) > 128:
        return "limits"
    return None


def judge(text, key):
    """What pymacaroons says: (accepted, macaroon or None)."""
    verifier = pymacaroons.Verifier()
    verifier.satisfy_general(lambda predicate: True)
    try:
        macaroon = pymacaroons.Macaroon.deserialize(text)
        return bool(verifier.verify(macaroon, key)), macaroon
    except Exception:  # noqa: BLE001 - it raises whatever its parts raise
        return False, None


def compare(key, text, answer, counts):
    """An explanation when the two disagree in a way that is not listed."""
    accepted, macaroon = judge(text, key)
    good, rest = answer
    if not accepted:
        counts["both refuse"] += not good
        return "only we accept" if good else None
    excuse = excused(text, macaroon)
    if excuse is not None:
        counts[f"only they accept: {excuse}"] += not good
        return f"we accept what we should not: {excuse}" if good else None
    if not good:
        return f"only they accept: {rest}"
    counts["both accept"] += 1
    read = [driver.unhex(word) for word in rest]
    if read != [macaroon._location or b"", macaroon.identifier_bytes,
                *[caveat.caveat_id_bytes for caveat in macaroon.caveats]]:
        return "they read it differently"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    cases = []
    for _ in range(options.count):
        key = rng.choice(KEYS)
        kind, text = token_of(rng, key)
        cases.append((key, kind, text))
    answers = driver.ask(options.program, [driver.verify(key, text) for key, _, text in cases], 300)
    counts = collections.Counter()
    bad = []
    for (key, kind, text), answer in zip(cases, answers):
        why = compare(key, text, answer, counts)
        if why is not None:
            bad.append(f"{kind}: {why}: {text}")
    for name, count in sorted(counts.items()):
        print(f"# {count:6} {name}")
    for line in bad[:10]:
        print(f"# {line}")
    reached = all(counts[name] > options.count // 2000 for name in (
        "both accept", "both refuse", "only they accept: text", "only they accept: third-party",
        "only they accept: characters", "only they accept: limits"))
    print(f"{'not ok' if bad else 'ok'} 1 - {options.count} tokens of seed {options.seed}, "
          f"{len(bad)} differences")
    print(f"{'ok' if reached else 'not ok'} 2 - every category was reached")
    print("1..2")
    return 1 if bad or not reached else 0


if __name__ == "__main__":
    sys.exit(main())
