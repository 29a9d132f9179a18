"""blake3.py - BLAKE3, plain hashing only, written from its specification.

Slow next to C, fast enough for the model: the compression function is generated once as straight
code on local variables, about 448 statements, because a loop over lists costs three times as much.
Nothing here is shared with the project's C code; selftest.py holds vectors made by b3sum.
"""
import struct

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
      0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
BLOCK_SIZE, CHUNK_SIZE = 64, 1024
ROUNDS = 7
# The columns, then the diagonals, of the 4 x 4 state.
QUARTERS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def _source():
    """The text of compress(cv, block, counter, length, flags) -> next chaining value."""
    lines = ["def compress(cv, block, counter, length, flags):",
             " %s = unpack(block)" % ", ".join("m%d" % i for i in range(16)),
             " v0, v1, v2, v3, v4, v5, v6, v7 = cv",
             " v8, v9, v10, v11 = %d, %d, %d, %d" % IV[:4],
             " v12 = counter & 0xFFFFFFFF; v13 = counter >> 32; v14 = length; v15 = flags"]
    words = list(range(16))
    for _ in range(ROUNDS):
        for i, (a, b, c, d) in enumerate(QUARTERS):
            for word, right_d, right_b in ((words[2 * i], 16, 12), (words[2 * i + 1], 8, 7)):
                lines += [
                    f" v{a} = (v{a} + v{b} + m{word}) & 0xFFFFFFFF",
                    f" v{d} ^= v{a}",
                    f" v{d} = (v{d} >> {right_d} | v{d} << {32 - right_d}) & 0xFFFFFFFF",
                    f" v{c} = (v{c} + v{d}) & 0xFFFFFFFF",
                    f" v{b} ^= v{c}",
                    f" v{b} = (v{b} >> {right_b} | v{b} << {32 - right_b}) & 0xFFFFFFFF",
                ]
        words = [words[PERMUTATION[i]] for i in range(16)]
    lines.append(" return (%s)" % ", ".join("v%d ^ v%d" % (i, i + 8) for i in range(8)))
    return "\n".join(lines)


_space = {"unpack": struct.Struct("<16I").unpack}
exec(_source(), _space)
compress = _space["compress"]


def _chunk(data, counter, root):
    """Chaining value of one chunk of at most 1,024 bytes; with root, of the whole short input."""
    cv = IV
    flags = CHUNK_START
    at = 0
    while len(data) - at > BLOCK_SIZE:
        cv = compress(cv, data[at:at + BLOCK_SIZE], counter, BLOCK_SIZE, flags)
        flags = 0
        at += BLOCK_SIZE
    last = data[at:]
    return compress(cv, last.ljust(BLOCK_SIZE, b"\0"), counter, len(last),
                    flags | CHUNK_END | (ROOT if root else 0))


def blake3(data):
    """The 32-byte hash."""
    if len(data) <= CHUNK_SIZE:
        return struct.pack("<8I", *_chunk(data, 0, True))
    level = [_chunk(data[at:at + CHUNK_SIZE], at // CHUNK_SIZE, False)
             for at in range(0, len(data), CHUNK_SIZE)]
    # Pairs from the left, an odd last one rises unchanged: the same tree as "left subtree is the
    # largest power of two".
    while len(level) > 1:
        flags = PARENT | (ROOT if len(level) == 2 else 0)
        above = [compress(IV, struct.pack("<16I", *level[i], *level[i + 1]), 0, BLOCK_SIZE, flags)
                 for i in range(0, len(level) - 1, 2)]
        if len(level) % 2:
            above.append(level[-1])
        level = above
    return struct.pack("<8I", *level[0])
