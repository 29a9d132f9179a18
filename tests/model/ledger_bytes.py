"""ledger_bytes.py - bytes of the ledger: ids, canonical JSON, leaves and trees."""
import hashlib
import json
import struct
from functools import lru_cache

from blake3 import blake3

ZERO16 = bytes(16)
KINDS = {"Mint": 1, "Burn": 2, "Transfer": 3, "Hold": 4, "Capture": 5, "Release": 6, "Reverse": 7,
         "Credit": 8, "Debit": 9, "Anchor": 10, "Asset": 11}
KIND_NAMES = {number: name for name, number in KINDS.items()}
FLAG_EXT, FLAG_SHA256, FLAG_BY_LEDGER = 1, 2, 4
EXT_MEMO, EXT_META, EXT_HOLD, EXT_STREAM, EXT_ASSET = 1, 2, 3, 4, 5


@lru_cache(maxsize=200_000)
def account_id(name):
    return blake3(b"ron:account:v1\0" + name.encode())[:16]


def anchor_link(stream, ref):
    """What an Anchor is about, in its entry: 00-system's 16-byte form of stream and ref."""
    return blake3(b"ron:anchor:v1\0" + stream.encode() + b"\0" + ref.encode())[:16]


@lru_cache(maxsize=50_000)
def entry_id(tenant, text):
    return blake3(b"ron:entry:v1\0" + tenant.to_bytes(16, "big") + text.encode())[:16]


def canonical(value):
    """RFC 8785 of values without floats: members by UTF-16 code units, shortest escapes."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(value[name])
                              for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def tlv(kind, data):
    return struct.pack("<BH", kind, len(data)) + data


def u128(value):
    """Little-endian; a debt d is written as 2^128 - d."""
    return (value % (1 << 128)).to_bytes(16, "little")


def leaf_bytes(entry, commit_ms, capability, flags, ext):
    """128-byte entry, then ext."""
    return (entry.id + entry.debit + entry.credit + u128(entry.amount) + entry.link
            + struct.pack("<QQQQIHH", entry.seq, commit_ms, entry.nonce, entry.batch_no,
                          entry.asset, KINDS[entry.kind], flags | (FLAG_EXT if ext else 0))
            + capability + ext)


def leaf_hash(data):
    return hashlib.sha256(b"\0" + data).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


class Frontier:
    """Append-only RFC 6962 tree: the roots of its complete subtrees, largest first."""

    def __init__(self):
        self.size, self.roots = 0, ()

    def with_leaf(self, data):
        """A frontier with one leaf more; this one stays as it is."""
        after = Frontier()
        after.size = self.size + 1
        roots, node, size = list(self.roots), leaf_hash(data), self.size
        while size & 1:
            node = node_hash(roots.pop(), node)
            size >>= 1
        after.roots = (*roots, node)
        return after

    def root(self):
        if not self.roots:
            return hashlib.sha256(b"").digest()
        node = self.roots[-1]
        for left in reversed(self.roots[:-1]):
            node = node_hash(left, node)
        return node
