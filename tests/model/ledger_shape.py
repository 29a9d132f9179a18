"""ledger_shape.py - shape of commands: grammar, lengths and members, before any state."""
import datetime
import re

from ledger_bytes import canonical

U64_MAX = (1 << 64) - 1
U128_MAX = (1 << 128) - 1
TIME_MAX = 253_402_300_799_999      # the last millisecond of the year 9999
LINE_MAX = (1 << 127) - 1           # balances of accounts with a credit line, and the lines
BATCH_MAX = 8000
MEMO_MAX, META_MAX = 256, 1024
DEPTH_MAX = 32
# Per kind of an ingested entry: members it must have, beside id and kind, and members it may have.
MEMBERS = {
    "Mint": ({"to", "asset", "amount"}, set()),
    "Burn": ({"from", "asset", "amount"}, {"nonce"}),
    "Transfer": ({"from", "to", "asset", "amount"}, {"nonce"}),
    "Hold": ({"from", "hold_id", "payee", "expires_at", "asset", "amount"}, {"nonce"}),
    "Capture": ({"hold_id", "asset", "amount"}, {"to"}),
    "Release": ({"hold_id", "asset", "amount"}, set()),
    "Reverse": ({"ref", "asset", "amount"}, set()),
    "Credit": ({"account", "asset", "amount"}, set()),
    "Debit": ({"account", "asset", "amount"}, {"nonce"}),
    "Anchor": ({"stream", "digest"}, {"ref"}),
}
ANY_KIND = {"id", "kind", "ts", "memo", "meta"}
STAMP = {"cmd", "commit_ms", "tenant", "caller", "capability"}
COMMAND_MEMBERS = {
    "ingest": STAMP | {"reserved_ok", "key", "fingerprint", "batch"},
    "asset": STAMP | {"asset", "decimals", "max_supply"},
    "limits": STAMP | {"account", "asset", "minimum", "maximum", "credit_line", "daily", "frozen"},
    "intents": STAMP | {"fingerprint", "epoch_id", "run_key", "commitment", "funding_source",
                        "asset", "total", "chunk", "chunks", "payouts"},
    "slice": STAMP | {"dimension", "seq", "digest", "prev"},
    "expire": STAMP,
    "abandon": STAMP | {"epoch_id", "run_key"},
    "open": STAMP | {"names"},
}

AMOUNT = re.compile(r"[1-9][0-9]{0,38}")
ACCOUNT = re.compile(r"[A-Za-z0-9:/_-]{1,160}")
ASSET = re.compile(r"[a-z][a-z0-9_-]{0,31}")
ENTRY_ID = re.compile(r"[A-Za-z0-9_:.-]{1,64}")
HOLD_ID = re.compile(r"[A-Za-z0-9_:-]{1,64}")
RUN_KEY = re.compile(r"[A-Za-z0-9_:-]{1,96}")
KEY = re.compile(r"[A-Za-z0-9_:.-]{1,128}")
DIGEST = re.compile(r"(?:b3|sha256):[0-9a-f]{64}")
B3 = re.compile(r"b3:[0-9a-f]{64}")
TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})"
                  r"(?:\.([0-9]{1,3}))?Z")


class Refused(Exception):
    """A command is refused; nothing of it stays."""

    def __init__(self, code, index=None, **details):
        super().__init__(code)
        self.code, self.index, self.details = code, index, details

    def answer(self):
        error = {"code": self.code}
        if self.index is not None:
            error["index"] = self.index
        if self.details:
            error["details"] = self.details
        return {"error": error}


def parse_time(text):
    """Milliseconds of an RFC 3339 UTC text, or None."""
    match = TIME.fullmatch(text)
    if not match:
        return None
    *parts, fraction = match.groups()
    try:
        moment = datetime.datetime(*map(int, parts), tzinfo=datetime.timezone.utc)
    except ValueError:
        return None
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    ms = (moment - epoch) // datetime.timedelta(milliseconds=1)
    return ms + int((fraction or "0").ljust(3, "0")[:3]) if ms >= 0 else None


def is_int(value, low, high):
    return type(value) is int and (low is None or low <= value) and (high is None or value <= high)


def is_text(value, pattern):
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def is_amount(value):
    """An amount of a request: 1 .. 2^128-1."""
    return is_text(value, AMOUNT) and int(value) <= U128_MAX


def is_meta(value):
    """An object with a canonical form of at most 1 KiB; integers beyond 2^53 - 1 have none."""
    return (isinstance(value, dict) and not contains(value, lambda v: is_int(v, 1 << 53, None)
                                                     or is_int(v, None, -(1 << 53)))
            and len(canonical(value).encode()) <= META_MAX)


def contains(value, wanted, depth=1):
    """Is something in a JSON value wanted, or the value nested deeper than 32?"""
    if isinstance(value, (dict, list)):
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        return depth > DEPTH_MAX or any(contains(item, wanted, depth + 1) for item in inside)
    return wanted(value)


def is_no_json(value):
    """A float or a lone surrogate, which the strict reader refuses."""
    return isinstance(value, float) or isinstance(value, str) and not value.isascii() \
        and any(0xD800 <= ord(letter) < 0xE000 for letter in value)


def check_members(command):
    """What is no strict JSON and what has unknown members is refused as a whole."""
    if contains(command, is_no_json) or not command.keys() <= COMMAND_MEMBERS[command["cmd"]]:
        raise Refused("Malformed")


def is_stream(value):
    """Stream and ref of an Anchor have the grammar of account names."""
    return is_text(value, ACCOUNT)


CHECKS = {
    "id": lambda v: is_text(v, ENTRY_ID),
    "kind": lambda v: True,
    "from": lambda v: is_text(v, ACCOUNT),
    "to": lambda v: is_text(v, ACCOUNT),
    "account": lambda v: is_text(v, ACCOUNT),
    "hold_id": lambda v: is_text(v, HOLD_ID),
    "payee": lambda v: v == "*" or is_text(v, ACCOUNT),
    "expires_at": lambda v: isinstance(v, str) and parse_time(v) is not None,
    "asset": lambda v: is_text(v, ASSET),
    "amount": is_amount,
    "nonce": lambda v: is_int(v, 1, U64_MAX),
    "ts": lambda v: is_int(v, 0, U64_MAX),
    "memo": lambda v: isinstance(v, str) and len(v.encode()) <= MEMO_MAX,
    "meta": is_meta,
    "stream": is_stream,
    "digest": lambda v: is_text(v, DIGEST),
}


def entry_shape_is_good(entry):
    if not isinstance(entry, dict) or entry.get("kind") not in MEMBERS:
        return False
    kind = entry["kind"]
    must, may = MEMBERS[kind]
    names = entry.keys()
    if "id" not in names or not must <= names or not names <= must | may | ANY_KIND:
        return False
    for name, value in entry.items():
        if name == "ref":
            good = is_text(value, ENTRY_ID) if kind == "Reverse" else is_stream(value)
        else:
            good = CHECKS[name](value)
        if not good:
            return False
    return kind != "Transfer" or entry["from"] != entry["to"]


def check_count(items):
    if not isinstance(items, list) or not items:
        raise Refused("Malformed")
    if len(items) > BATCH_MAX:
        raise Refused("TooLarge")


def require(good):
    if not good:
        raise Refused("Malformed")


def check_intents(command):
    payouts = command.get("payouts")
    check_count(payouts)
    require(is_text(command.get("epoch_id"), HOLD_ID))
    require(is_text(command.get("run_key"), RUN_KEY))
    require(is_text(command.get("commitment"), B3))
    require(is_text(command.get("funding_source"), HOLD_ID))
    require(is_text(command.get("asset"), ASSET))
    require(is_amount(command.get("total")))
    require(is_int(command.get("chunks"), 1, (1 << 32) - 1))
    require(is_int(command.get("chunk"), 0, command["chunks"] - 1))
    for index, payout in enumerate(payouts):
        good = (isinstance(payout, dict) and payout.keys() == {"id", "to", "amount"}
                and is_text(payout["id"], ENTRY_ID) and is_text(payout["to"], ACCOUNT)
                and is_amount(payout["amount"]))
        if not good:
            raise Refused("Malformed", index)
