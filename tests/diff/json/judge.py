"""judge.py - Python's json as an oracle for ron's JSON reader; driven by diff_json over pipes.

A batch in: its size (u32, little-endian), then documents, each as size (u32) and bytes.
A batch out: its size, then for each document one byte, 0 refused or 1 accepted; if accepted, its
value as size and compact text in document order, then size and text in RFC 8785 order, where the
size 0xffffffff stands for "the same". Both texts are empty for a value that ron cannot hold exactly
(floats, NaN, lone surrogates).

Strict where json can be told to be: UTF-8, no duplicate names, integers exact.
"""

import json
import struct
import sys

SAME = struct.pack("<I", 0xFFFFFFFF)
SIZE = struct.Struct("<I")

inexact = False
unsorted = False


def note_inexact(text):
    global inexact
    inexact = True
    return 0


def utf16(name):
    return name.encode("utf-16-be", "surrogatepass")


def unique(pairs):
    global unsorted
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate name")
    if len(pairs) > 1 and not unsorted:
        names = [utf16(name) for name in members]
        unsorted = names != sorted(names)
    return members


def in_order(pairs):
    return dict(sorted(pairs, key=lambda pair: utf16(pair[0])))


def decoder(pairs_hook):
    return json.JSONDecoder(
        object_pairs_hook=pairs_hook,
        parse_float=note_inexact,
        parse_constant=note_inexact,
        strict=True,
    ).decode


decode_unique = decoder(unique)
decode_in_order = decoder(in_order)
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def judge(document):
    global inexact, unsorted
    inexact = False
    unsorted = False
    try:
        text = document.decode("utf-8")
        value = decode_unique(text)
    except ValueError:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        return b"\x00"
    try:
        ordered = b"" if inexact else encode(value).encode("utf-8")
    except UnicodeEncodeError:
        ordered = b""
    answer = b"\x01" + SIZE.pack(len(ordered)) + ordered
    if not ordered or not unsorted:
        return answer + SAME
    canonical = encode(decode_in_order(text)).encode("utf-8")
    return answer + SIZE.pack(len(canonical)) + canonical


def main():
    source = sys.stdin.buffer
    sink = sys.stdout.buffer
    while True:
        head = source.read(4)
        if len(head) < 4:
            return
        batch = source.read(SIZE.unpack(head)[0])
        answers = []
        at = 0
        while at < len(batch):
            size = SIZE.unpack_from(batch, at)[0]
            answers.append(judge(batch[at + 4 : at + 4 + size]))
            at += 4 + size
        reply = b"".join(answers)
        sink.write(SIZE.pack(len(reply)))
        sink.write(reply)
        sink.flush()


main()
