"""check.py - a log exported by ron, checked from the texts of RFC 6962, 9162 and 8032 and of C2SP.

Uses hashlib and nothing of ron. Recomputes every leaf, every tile and the root from the entry
bundles; verifies the checkpoint's signature, the cosignature, the proof text, and all proofs, each
also in tampered forms that must be refused. usage: check.py DIR
"""
import base64
import functools
import hashlib
import os
import sys

# --- RFC 8032, Ed25519, verification --------------------------------------------------------------
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def recover_x(y, sign):
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - xx) % P or (x == 0 and sign):
        return None
    return P - x if x % 2 != sign else x


def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    x = recover_x(y, sign) if y < P else None
    return None if x is None else (x, y, 1, x * y % P)


def add(a, b):
    u, v = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = v - u, d - c, d + c, v + u
    return e * f % P, g * h % P, f * g % P, e * h % P


@functools.lru_cache(8)  # of the base and the keys in use
def doublings(a):
    powers = [a]
    while len(powers) < 256:
        powers.append(add(powers[-1], powers[-1]))
    return powers


def multiply(scalar, a):
    result = (0, 1, 1, 0)
    for bit, power in enumerate(doublings(a)):
        if scalar >> bit & 1:
            result = add(result, power)
    return result


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (recover_x(BASE_Y, 0), BASE_Y, 1, recover_x(BASE_Y, 0) * BASE_Y % P)


def ed25519(key, message, signature):
    a, r, s = point(key), point(signature[:32]), int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or a is None or r is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    left, right = multiply(s, BASE), add(r, multiply(k, a))
    return ((left[0] * right[2] - right[0] * left[2]) % P == 0 and
            (left[1] * right[2] - right[1] * left[2]) % P == 0)


# --- RFC 6962 and RFC 9162 ------------------------------------------------------------------------
def leaf_hash(data):
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def fold(hashes):
    """MTH of at most 256 hashes of complete subtrees, or of the roots along an edge."""
    if len(hashes) == 1:
        return hashes[0]
    k = 1
    while 2 * k < len(hashes):
        k *= 2
    return node_hash(fold(hashes[:k]), fold(hashes[k:]))


def inclusion(leaf, index, size, proof, root):
    """RFC 9162, 2.1.3.2."""
    if index >= size:
        return False
    fn, sn, r = index, size - 1, leaf
    for p in proof:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            r = node_hash(p, r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node_hash(r, p)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and r == root


def consistency(first, first_root, second, second_root, proof):
    """RFC 9162, 2.1.4.2; equal sizes need equal roots and no proof."""
    if first == second:
        return not proof and first_root == second_root
    if not proof or first == 0 or first > second:
        return False
    path = [first_root] + proof if first & (first - 1) == 0 else proof
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for c in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = node_hash(c, fr), node_hash(c, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node_hash(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return fr == first_root and sr == second_root and sn == 0


# --- C2SP -----------------------------------------------------------------------------------------
class Broken(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Broken(what)


def key_of(text):
    name, key_id, data = text.split("+", 2)
    data = base64.b64decode(data, validate=True)
    expected = hashlib.sha256(name.encode() + b"\n" + data).digest()[:4]
    require(bytes.fromhex(key_id) == expected, "key id")
    return name, expected, data[0], data[1:]


def signed(note, key):
    """The text of a note, if this key signed it."""
    name, key_id, kind, public = key
    text, _, lines = note.rpartition(b"\n\n")
    text += b"\n"
    for line in lines.splitlines():
        dash, who, data = line.decode().split(" ")
        data = base64.b64decode(data, validate=True)
        if dash != "\u2014" or who != name or data[:4] != key_id:
            continue
        message, signature = text, data[4:]
        if kind == 4:
            stamp = int.from_bytes(signature[:8], "big")
            message, signature = b"cosignature/v1\ntime %d\n" % stamp + text, signature[8:]
        require(ed25519(public, message, signature), "signature of " + name)
        return text
    raise Broken("no signature of " + name)


def tile_path(level, index, width):
    digits = "%03d" % (index % 1000)
    while index >= 1000:
        index //= 1000
        digits = "x%03d/" % (index % 1000) + digits
    return "tile/%s/%s%s" % (level, digits, "" if width == 256 else ".p/%d" % width)


def read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def check_tiles(log, size, root):
    """Every bundle and tile that the size asks for; the root over them. Returns leaf hashes."""
    leaves = []
    for start in range(0, size, 256):
        width = min(256, size - start)
        data, at = read(log, tile_path("entries", start // 256, width)), 0
        for _ in range(width):
            length = int.from_bytes(data[at:at + 2], "big")
            require(at + 2 + length <= len(data), "bundle %d" % (start // 256))
            leaves.append(leaf_hash(data[at + 2:at + 2 + length]))
            at += 2 + length
        require(at == len(data), "bundle %d" % (start // 256))
    level, hashes, edge = 0, leaves, []
    while hashes:
        for start in range(0, len(hashes), 256):
            part = hashes[start:start + 256]
            require(read(log, tile_path(level, start // 256, len(part))) == b"".join(part),
                    "tile %d/%d" % (level, start // 256))
        full = len(hashes) // 256 * 256
        if len(hashes) > full:  # complete subtrees along the right edge, the largest first
            rest, at, roots = hashes[full:], 0, []
            for bit in range(7, -1, -1):
                if len(rest) >> bit & 1:
                    roots.append(fold(rest[at:at + (1 << bit)]))
                    at += 1 << bit
            edge = roots + edge
        level += 1
        hashes = [fold(hashes[i:i + 256]) for i in range(0, full, 256)]
    result = edge[-1]
    for left in reversed(edge[:-1]):
        result = node_hash(left, result)
    require(result == root, "the root of all leaves")
    return leaves


def check_proofs(text, leaves):
    for number, line in enumerate(text.decode().splitlines()):
        kind, size, root, n, leaf, *hashes = line.split()
        size, n, root, leaf = int(size), int(n), bytes.fromhex(root), bytes.fromhex(leaf)
        hashes = [bytes.fromhex(h) for h in hashes]

        def holds(hashes, root=root, leaf=leaf):
            if kind == "inclusion":
                return inclusion(leaf, n, size, hashes, root)
            return consistency(n, leaf, size, root, hashes)
        require(kind != "inclusion" or leaf == leaves[n], "leaf %d" % n)
        require(holds(hashes), "proof: " + line)
        at, bad = number % max(1, len(hashes)), hashes[:]
        if bad:
            bad[at] = bytes([bad[at][0] ^ 1]) + bad[at][1:]
            require(not holds(bad), "tampered proof: " + line)
            require(not holds(hashes[:-1]), "shortened proof: " + line)
        require(not holds(hashes + [root]), "longer proof: " + line)
        require(not holds(hashes, leaf=bytes(32)), "another leaf: " + line)
    return number + 1


def check_sample(folder, key, name, extra):
    head, _, note = read(folder, name).partition(b"\n\n")
    lines = head.decode().split("\n")
    require(lines.pop(0) == "c2sp.org/tlog-proof@v1", "first line of the proof")
    if extra:
        require(base64.b64decode(lines.pop(0).removeprefix("extra ")) == extra, "extra data")
    index = int(lines[0].removeprefix("index "))
    hashes = [base64.b64decode(line, validate=True) for line in lines[1:]]
    body = signed(note, key).decode().split("\n")
    require(inclusion(leaf_hash(read(folder, "sample.leaf")), index, int(body[1]), hashes,
                      base64.b64decode(body[2])), "sample proof")


def main():
    folder = sys.argv[1]
    log = os.path.join(folder, "log")
    try:
        key = key_of(read(folder, "vkey").decode())
        witness = key_of(read(folder, "witness").decode())
        note = read(log, "checkpoint")
        text = signed(note, key)
        require(signed(note, witness) == text, "what the witness signed")
        origin, size, root, end = text.decode().split("\n")
        require(origin == key[0] and end == "", "body of the checkpoint")
        leaves = check_tiles(log, int(size), base64.b64decode(root, validate=True))
        count = check_proofs(read(folder, "proofs"), leaves)
        check_sample(folder, key, "sample.tlog-proof", None)
        check_sample(folder, key, "extra.tlog-proof", b"extra")
    except (Broken, OSError, ValueError) as error:
        print("# Python: %s" % error)
        return 1
    print("# Python: %s, %s leaves, %d proofs" % (origin, size, count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
