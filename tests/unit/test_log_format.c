/*
 * test_log_format.c - heads and frames of the log, byte by byte. Method: a golden group, each rule
 * of validity broken by itself with the sums made right again, every prefix and every flipped byte.
 */
#include "base/crc32c.h"
#include "base/hex.h"
#include "io/log_format.h"
#include "support.h"

#define SALT UINT32_C(0xa0de6714) /* of the id 1, 2 ... 16 */
enum { GROUP_SIZE = 48 + 40 + IO_COMMIT_SIZE };

static const struct io_link birth = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

/* Two records, "hello" and an empty one, then their commit. */
static struct io_link make_group(uint8_t bytes[GROUP_SIZE], struct io_link link)
{
    struct io_frame frame = {.index = 7, .group = 7, .epoch = 3, .type = 0x0102};
    struct io_heads heads;

    memset(bytes, 0xee, GROUP_SIZE);
    memcpy(bytes + IO_FRAME_HEAD_SIZE, "hello", 5);
    frame.body.size = 5;
    io_frame_put(&frame, SALT, ron_crc32c(0, "hello", 5), bytes);
    frame.index = 8;
    frame.body.size = 0;
    io_frame_put(&frame, SALT, 0, bytes + 48);
    frame.type = IO_FRAME_COMMIT;
    io_heads_start(&heads);
    io_heads_add(&heads, bytes);
    io_heads_add(&heads, bytes + 48);
    io_group_end(&frame, SALT, &heads, &link, bytes + 88);
    return link;
}

/* Does the group's link fit behind this one? */
static bool links(const uint8_t bytes[GROUP_SIZE], struct io_link link)
{
    struct io_heads heads;

    io_heads_start(&heads);
    io_heads_add(&heads, bytes);
    io_heads_add(&heads, bytes + 48);
    link = io_heads_link(&heads, &link, bytes + 88);
    return memcmp(link.bytes, bytes + 88 + IO_FRAME_HEAD_SIZE, IO_LINK_SIZE) == 0;
}

static const struct io_frame_state before = {6, 7, 2, SALT};

static void group_has_its_golden_bytes(void **state)
{
    uint8_t bytes[GROUP_SIZE];
    char text[2 * GROUP_SIZE + 1];

    (void)state;
    assert_int_equal(io_log_salt(birth.bytes), SALT);
    make_group(bytes, birth);
    (void)ron_hex_encode(ron_slice_of(bytes, sizeof(bytes)), text, sizeof(text));
    assert_string_equal(
        text, "524f4e46050000000700000000000000070000000000000003000000020100004cbb719a2bfca836"
              "68656c6c6f000000524f4e4600000000080000000000000007000000000000000300000002010000"
              "00000000802bf724524f4e46100000000800000000000000070000000000000003000000feff0000"
              "1d5b8a1911456cd4c4a3681dffff15d34015d6bbaa44f02e");
}

static void group_reads_as_it_was_written(void **state)
{
    uint8_t bytes[GROUP_SIZE];
    struct io_frame_state at = before;
    struct io_frame frame;
    const char *why = NULL;

    (void)state;
    make_group(bytes, birth);
    assert_int_equal(io_frame_read(ron_slice_of(bytes, GROUP_SIZE), &at, &frame, &why), 0);
    assert_true(ron_slice_equal(frame.body, RON_SLICE("hello")));
    assert_int_equal(frame.index, 7);
    assert_int_equal(frame.type, 0x0102);
    assert_int_equal(io_frame_read(ron_slice_of(bytes + 48, GROUP_SIZE - 48), &at, &frame, &why),
                     0);
    assert_int_equal(frame.body.size, 0);
    assert_int_equal(io_frame_read(ron_slice_of(bytes + 88, IO_COMMIT_SIZE), &at, &frame, &why), 0);
    assert_int_equal(at.index, 8);
    assert_int_equal(at.group, 9);
    assert_int_equal(at.epoch, 3);
    assert_true(links(bytes, birth));
}

static void link_binds_a_group_to_all_before_it(void **state)
{
    uint8_t bytes[GROUP_SIZE];
    struct io_link other = birth;

    (void)state;
    other.bytes[15] ^= 1;
    make_group(bytes, other);
    assert_true(links(bytes, other));
    assert_false(links(bytes, birth));
}

/* Each byte of the heads counts but those that are checked by themselves (magic, sum of the head),
 * and of a body what its sum in the head says. */
static void link_covers_every_byte_of_the_heads(void **state)
{
    uint8_t bytes[GROUP_SIZE];

    (void)state;
    make_group(bytes, birth);
    for (size_t i = 0; i < 88 + 32; i++) {
        const size_t at = i < 48 ? i : i < 88 ? i - 48 : i - 88;
        const bool free = at < 4 || at >= 36; /* magic, sum of the head, body */

        bytes[i] ^= 4;
        assert_int_equal(links(bytes, birth), free);
        bytes[i] ^= 4;
    }
}

/* However many there are, and wherever a buffer of theirs is full. */
static void heads_are_hashed_in_order(void **state)
{
    enum { HEADS_MAX = 3 * IO_HEADS_BUFFER / 32 + 2 };
    static uint8_t bytes[HEADS_MAX * 32 + IO_LINK_SIZE + 28];
    uint8_t head[IO_FRAME_HEAD_SIZE];
    struct io_heads heads;

    (void)state;
    io_heads_start(&heads);
    for (size_t count = 0; count <= HEADS_MAX; count++) {
        const size_t size = count * 32;
        struct io_link link;
        struct ron_b3 hash;

        for (size_t i = 0; i < count; i++) {
            memset(head, (int)(i + count), sizeof(head));
            memcpy(bytes + i * 32, head + 4, 32);
            io_heads_add(&heads, head);
        }
        memset(head, 0x55, sizeof(head));
        memcpy(bytes + size, birth.bytes, IO_LINK_SIZE);
        memcpy(bytes + size + IO_LINK_SIZE, head + 4, 28);
        link = io_heads_link(&heads, &birth, head);
        hash = ron_b3(bytes, size + IO_LINK_SIZE + 28);
        assert_memory_equal(link.bytes, hash.bytes, IO_LINK_SIZE);
    }
}

static void every_flipped_byte_and_prefix_is_refused(void **state)
{
    uint8_t bytes[GROUP_SIZE];
    struct io_frame frame;
    const char *why = NULL;

    (void)state;
    make_group(bytes, birth);
    for (size_t i = 0; i < 48; i++) {
        struct io_frame_state at = before;

        assert_int_equal(io_frame_read(ron_slice_of(bytes, i), &at, &frame, &why), IO_FRAME_SHORT);
        bytes[i] ^= 0x20;
        assert_int_equal(io_frame_read(ron_slice_of(bytes, 48), &at, &frame, &why), IO_FRAME_BAD);
        if (i >= 40)
            assert_string_equal(why, i < 45 ? "checksum of the body" : "padding");
        assert_int_equal(at.index, before.index);
        bytes[i] ^= 0x20;
    }
}

/* The head says something else, its sum is right. */
static void assert_misplaced(struct io_frame_state at, const struct io_frame *frame,
                             const char *expected)
{
    uint8_t bytes[64] = {0};
    struct io_frame found;
    const char *why = "";

    io_frame_put(frame, SALT, ron_crc32c(0, bytes + IO_FRAME_HEAD_SIZE, frame->body.size), bytes);
    assert_int_equal(io_frame_read(ron_slice_of(bytes, sizeof(bytes)), &at, &found, &why),
                     IO_FRAME_BAD);
    assert_string_equal(why, expected);
}

static void frames_must_follow_each_other(void **state)
{
    const struct io_frame_state at = {10, 9, 5, SALT};
    const struct ron_slice link = {NULL, IO_LINK_SIZE};

    (void)state;
    assert_misplaced(at, &(struct io_frame){10, 9, 5, 1, {NULL, 0}}, "index out of order");
    assert_misplaced(at, &(struct io_frame){12, 9, 5, 1, {NULL, 0}}, "index out of order");
    assert_misplaced(at, &(struct io_frame){11, 11, 5, 1, {NULL, 0}}, "group out of order");
    assert_misplaced(at, &(struct io_frame){11, 9, 4, 1, {NULL, 0}}, "epoch of an earlier owner");
    assert_misplaced(at, &(struct io_frame){10, 9, 5, IO_FRAME_SEAL, link}, "seal inside a group");
    assert_misplaced((struct io_frame_state){10, 11, 5, SALT},
                     &(struct io_frame){10, 11, 5, IO_FRAME_COMMIT, link}, "commit of no record");
}

static void segment_head_is_strict(void **state)
{
    const struct io_segment_head head = {.kind = 9,
                                         .log_id = {1, 2, 3},
                                         .number = 5,
                                         .first_index = 77,
                                         .link = birth,
                                         .epoch = 4,
                                         .before_size = 123456};
    uint8_t bytes[IO_SEGMENT_HEAD_SIZE];
    struct io_segment_head found = {0};
    struct ron_errinfo info = {0};
    enum ron_err err;

    (void)state;
    io_segment_head_encode(&head, bytes);
    assert_memory_equal(bytes, "RONSEG\0\1\2\0\0\0\t\0\0\0", 16);
    assert_ok(io_segment_head_decode(ron_slice_of(bytes, sizeof(bytes)), &found, NULL));
    assert_int_equal(found.number, 5);
    assert_int_equal(found.first_index, 77);
    assert_int_equal(found.before_size, 123456);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] ^= 1;
        err = io_segment_head_decode(ron_slice_of(bytes, sizeof(bytes)), &found, &info);
        assert_int_equal(err, i < 8              ? RON_ERR_MALFORMED
                              : i >= 8 && i < 12 ? RON_ERR_VERSION_SKEW
                                                 : RON_ERR_WAL_CORRUPT);
        bytes[i] ^= 1;
    }
    bytes[8] = 3;
    err = io_segment_head_decode(ron_slice_of(bytes, sizeof(bytes)), &found, &info);
    support_assert_error(err, &info, RON_ERR_VERSION_SKEW, "version 3, this program reads 2");
    support_assert_error(err, &info, RON_ERR_VERSION_SKEW, "use a newer one");
    bytes[8] = 1;
    err = io_segment_head_decode(ron_slice_of(bytes, sizeof(bytes)), &found, &info);
    support_assert_error(err, &info, RON_ERR_WAL_CORRUPT, "checksum");
    ron_store_le32(bytes + 4088, ron_crc32c(0, bytes, 4088));
    err = io_segment_head_decode(ron_slice_of(bytes, sizeof(bytes)), &found, &info);
    support_assert_error(err, &info, RON_ERR_VERSION_SKEW, "version 1, this program reads 2");
    support_assert_error(err, &info, RON_ERR_VERSION_SKEW, "use the one that wrote it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(group_has_its_golden_bytes),
        cmocka_unit_test(group_reads_as_it_was_written),
        cmocka_unit_test(link_binds_a_group_to_all_before_it),
        cmocka_unit_test(link_covers_every_byte_of_the_heads),
        cmocka_unit_test(heads_are_hashed_in_order),
        cmocka_unit_test(every_flipped_byte_and_prefix_is_refused),
        cmocka_unit_test(frames_must_follow_each_other),
        cmocka_unit_test(segment_head_is_strict),
    };

    return cmocka_run_group_tests_name("log_format", tests, NULL, NULL);
}
