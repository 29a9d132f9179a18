#!/usr/bin/env python3
"""interop.py DRIVER - our macaroons and Debian's pymacaroons, each with the other's tokens; TAP.

What one mints or attenuates offline the other must verify, byte for byte the same token where both
make it; and a token that was widened, reordered, cut or signed with another key is refused by both.
"""
import sys

sys.dont_write_bytecode = True

import pymacaroons  # noqa: E402

import driver  # noqa: E402

KEY = b"a root key of thirty-two bytes!!"
IDENTIFIER = b"k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"
CAVEATS = [b"tenant = 7", b"scope = wallet.read,wallet.transfer", b"account = acct_a*",
           b"max_amount = 1000", b"ip = 2001:db8::/32", b"before = 2027-01-01T00:00:00Z"]
CASES = []


def case(function):
    CASES.append(function)
    return function


def ours(*requests):
    return driver.ask(sys.argv[1], list(requests))


def theirs(key=KEY, location="ron", identifier=IDENTIFIER, caveats=()):
    macaroon = pymacaroons.Macaroon(location=location, identifier=identifier.decode(), key=key)
    for caveat in caveats:
        macaroon.add_first_party_caveat(caveat.decode())
    return macaroon


def they_accept(token, key=KEY):
    verifier = pymacaroons.Verifier()
    verifier.satisfy_general(lambda predicate: True)
    try:
        return verifier.verify(pymacaroons.Macaroon.deserialize(token), key)
    except Exception:  # noqa: BLE001 - whatever it raises is a refusal
        return False


def we_accept(token, key=KEY):
    return ours(driver.verify(key, token))[0][0]


@case
def both_mint_the_same_bytes():
    for count in range(len(CAVEATS) + 1):
        token = theirs(caveats=CAVEATS[:count]).serialize()
        assert ours(driver.mint(KEY, b"ron", IDENTIFIER, *CAVEATS[:count])) == [(True, [token])]


@case
def theirs_is_verified_here():
    token = theirs(caveats=CAVEATS).serialize()
    good, answer = ours(driver.verify(KEY, token))[0]
    assert good
    assert [driver.unhex(word) for word in answer] == [b"ron", IDENTIFIER, *CAVEATS]
    assert ours(driver.grant(KEY, token))[0][0]


@case
def ours_is_verified_there():
    token = ours(driver.mint(KEY, b"ron", IDENTIFIER, *CAVEATS))[0][1][0]
    assert they_accept(token)
    macaroon = pymacaroons.Macaroon.deserialize(token)
    assert [caveat.caveat_id for caveat in macaroon.caveats] == [c.decode() for c in CAVEATS]


@case
def each_attenuates_the_others_offline():
    for split in range(len(CAVEATS) + 1):
        macaroon = pymacaroons.Macaroon.deserialize(
            ours(driver.mint(KEY, b"ron", IDENTIFIER, *CAVEATS[:split]))[0][1][0])
        for caveat in CAVEATS[split:]:
            macaroon.add_first_party_caveat(caveat.decode())
        assert we_accept(macaroon.serialize()), split
        if split < len(CAVEATS):
            token = ours(driver.attenuate(theirs(caveats=CAVEATS[:split]).serialize(),
                                          *CAVEATS[split:]))[0][1][0]
            assert they_accept(token) and token == macaroon.serialize(), split


@case
def keys_of_any_size_agree():
    for size in (1, 16, 31, 32, 33, 63, 64, 65, 100, 200):
        key = bytes(range(size))
        token = theirs(key=key, caveats=CAVEATS).serialize()
        assert we_accept(token, key), size
        assert not we_accept(token, key + b"x"), size


@case
def another_key_is_refused_by_both():
    token = theirs(caveats=CAVEATS).serialize()
    assert not they_accept(token, b"another") and not we_accept(token, b"another")


@case
def widened_and_reordered_tokens_are_refused_by_both():
    def changed(change):
        macaroon = pymacaroons.Macaroon.deserialize(theirs(caveats=CAVEATS).serialize())
        change(macaroon.caveats)
        return macaroon.serialize()

    def wider(caveats):
        caveats[3].caveat_id = b"max_amount = 10000"

    tokens = [changed(lambda caveats, i=i: caveats.pop(i)) for i in range(len(CAVEATS))]
    tokens += [changed(lambda caveats: caveats.reverse()), changed(lambda caveats: caveats.clear()),
               changed(lambda caveats: caveats.insert(0, caveats.pop())), changed(wider)]
    for token in tokens:
        assert not they_accept(token) and not we_accept(token)


@case
def cut_tokens_are_refused():
    token = theirs(caveats=CAVEATS).serialize()
    answers = ours(*[driver.verify(KEY, token[:size]) for size in range(1, len(token))])
    assert not any(good for good, _ in answers)


@case
def third_party_caveats_are_refused():
    macaroon = theirs(caveats=CAVEATS)
    macaroon.add_third_party_caveat("https://elsewhere", "their key", "an id")
    good, message = ours(driver.verify(KEY, macaroon.serialize()))[0]
    assert not good and "third-party" in message


@case
def an_unknown_caveat_is_refused_though_its_chain_is_right():
    token = theirs(caveats=[*CAVEATS, b"colour = blue"]).serialize()
    assert we_accept(token)
    good, message = ours(driver.grant(KEY, token))[0]
    assert not good and "caveat 7" in message and "blue" not in message


def main():
    failed = 0
    for number, function in enumerate(CASES, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}")
        except Exception as error:  # noqa: BLE001 - a crash of the check is a failed check
            failed += 1
            print(f"not ok {number} - {function.__name__}\n# {error!r}")
    print(f"1..{len(CASES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
