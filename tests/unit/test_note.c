/*
 * test_note.c - signed notes, checkpoints, cosignatures and proof texts. Method: the example note
 * of Go's sumdb (golden); what is written reads back the same; every changed, missing or added byte
 * of a signed text is refused; the grammar's edges by table.
 */
#include "support.h"

#include "base/base64.h"
#include "io/note.h"
#include "merkle_oracle.h"

#define DASH "\xe2\x80\x94 "

/* The example of Go's package note. */
static const char peter_vkey[] =
    "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
static const char peter_seed[] = "gQoUAtUUbI2E8kQzMPVAgOv5juF9nHT2JS/F1ccoMXM=";
static const char peter_text[] = "If you think cryptography is the answer to your problem,\n"
                                 "then you don't know what your problem is.\n";
static const char peter_note[] =
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n" DASH
    "PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6K"
    "E6RyyBwJnAM=\n";

/* Keys of tests: a log, two witnesses and a stranger. */
enum { LOG, WITNESS_1, WITNESS_2, STRANGER, SIGNERS_COUNT };
static const char *const names[] = {"example.com/log", "w1.example", "w2.example",
                                    "example.com/log"};
static struct ron_secret seeds[SIGNERS_COUNT];
static struct io_signer signers[SIGNERS_COUNT];
static char vkey_texts[SIGNERS_COUNT][RON_VKEY_SIZE_MAX + 1];
static struct ron_vkey vkeys[SIGNERS_COUNT];

static int make_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIGNERS_COUNT; i++) {
        enum ron_key_type type = i == LOG || i == STRANGER ? RON_KEY_ED25519 : RON_KEY_COSIGNATURE;
        uint8_t bytes[32];
        struct ron_buf text;

        memset(bytes, (int)i + 1, sizeof(bytes));
        assert_ok(ron_secret_init(&seeds[i], ron_slice_of(bytes, sizeof(bytes)), NULL));
        signers[i] = (struct io_signer){ron_slice_text(names[i]), &seeds[i]};
        ron_buf_init(&text, RON_VKEY_SIZE_MAX);
        io_vkey_put(&text, &signers[i], type);
        memcpy(vkey_texts[i], text.data, text.size);
        ron_buf_fini(&text);
        assert_ok(ron_vkey_parse(ron_slice_text(vkey_texts[i]), &vkeys[i], NULL));
        assert_int_equal(vkeys[i].type, type);
    }
    return 0;
}
static int free_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIGNERS_COUNT; i++)
        ron_secret_fini(&seeds[i]);
    return 0;
}

static void the_example_of_go_reads_and_is_written(void **state)
{
    struct ron_secret seed = {0};
    struct io_signer peter = {RON_SLICE("PeterNeumann"), &seed};
    struct ron_vkey key;
    struct ron_note note;
    struct ron_buf out;
    uint8_t bytes[32];
    uint64_t who = 0;
    size_t size = 0;

    (void)state;
    assert_ok(ron_vkey_parse(ron_slice_text(peter_vkey), &key, NULL));
    assert_ok(ron_note_parse(ron_slice_text(peter_note), &note, NULL));
    assert_true(ron_slice_equal(note.text, ron_slice_text(peter_text)));
    assert_ok(ron_note_verify(&note, &key, 1, &who, NULL));
    assert_int_equal(who, 1);
    assert_ok(ron_base64_decode(RON_BASE64_STANDARD, ron_slice_text(peter_seed), bytes,
                                sizeof(bytes), &size, NULL));
    assert_ok(ron_secret_init(&seed, ron_slice_of(bytes, sizeof(bytes)), NULL));
    ron_buf_init(&out, RON_NOTE_SIZE_MAX);
    io_note_put(&out, ron_slice_text(peter_text), &peter);
    assert_true(ron_slice_equal(ron_buf_slice(&out), ron_slice_text(peter_note)));
    ron_buf_reset(&out);
    io_vkey_put(&out, &peter, RON_KEY_ED25519);
    assert_true(ron_slice_equal(ron_buf_slice(&out), ron_slice_text(peter_vkey)));
    ron_buf_fini(&out);
    ron_secret_fini(&seed);
}

static void every_changed_byte_of_a_note_is_refused(void **state)
{
    uint8_t bytes[sizeof(peter_note)];
    struct ron_vkey key;
    struct ron_note note;
    uint64_t who;

    (void)state;
    assert_ok(ron_vkey_parse(ron_slice_text(peter_vkey), &key, NULL));
    for (size_t i = 0; i < sizeof(peter_note) - 1; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(bytes, peter_note, sizeof(bytes));
            bytes[i] ^= (uint8_t)(1u << bit);
            if (ron_note_parse(ron_slice_of(bytes, sizeof(bytes) - 1), &note, NULL) == RON_ERR_OK)
                assert_int_equal(ron_note_verify(&note, &key, 1, &who, NULL),
                                 RON_ERR_INVALID_SIGNATURE);
        }
    for (size_t size = 0; size < sizeof(peter_note) - 1; size++)
        assert_int_equal(ron_note_parse(ron_slice_of(peter_note, size), &note, NULL),
                         RON_ERR_MALFORMED);
}

static void the_grammar_of_notes(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "without an empty line"},
        {"\n\n", "without an empty line"},
        {"a\n\n", "without a signature"},
        {"\n" DASH "a AAAAAAA=\n", "without an empty line"},
        {"a\n\n" DASH "a AAAAAAA=", "has no newline"},
        {"a\n\n" DASH "a AAAA\n", "more than 4 bytes"},
        {"a\n\n" DASH "a AAAAAA==\n", "more than 4 bytes"},
        {"a\n\n" DASH "a AAAAAAB=\n", "more than 4 bytes"},
        {"a\n\n" DASH "a AAAAAAA\n", "more than 4 bytes"},
        {"a\n\n" DASH "a  AAAAAAA=\n", "more than 4 bytes"},
        {"a\n\n" DASH "a+b AAAAAAA=\n", "name is not valid"},
        {"a\n\n" DASH "a\xc2\xa0"
         "b AAAAAAA=\n",
         "name is not valid"},
        {"a\n\n" DASH "a\xe2\x80\xaf"
         "b AAAAAAA=\n",
         "name is not valid"},
        {"a\n\n" DASH "a\xe3\x80\x80 AAAAAAA=\n", "name is not valid"},
        {"a\n\n" DASH "\xe1\x9a\x80 AAAAAAA=\n", "name is not valid"},
        {"a\n\n" DASH " AAAAAAA=\n", "name is not valid"},
        {"a\n\n" DASH "AAAAAAA=\n", "without a signature"},
        {"a\n\n- a AAAAAAA=\n", "without its dash"},
        {"a\n\n" DASH "a AAAAAAA=\nx\n", "without its dash"},
        {"a\r\n\n" DASH "a AAAAAAA=\n", "byte 1: a control"},
        {"a\xff\n\n" DASH "a AAAAAAA=\n", "byte 1: not UTF-8"},
        {"a\n\n" DASH "a AAAAAAA=\n\n", "without a signature"},
    };
    struct ron_note note;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++) {
        struct ron_errinfo info = {0};

        support_assert_error(ron_note_parse(ron_slice_text(bad[i].text), &note, &info), &info,
                             RON_ERR_MALFORMED, bad[i].message);
    }
    /* The text is all before the last empty line. */
    assert_ok(ron_note_parse(RON_SLICE("a\n\nb\n\n" DASH "k AAAAAAA=\n"), &note, NULL));
    assert_int_equal(note.text.size, 5);
    assert_int_equal(note.signatures[0].size, 1);
    assert_ok(ron_note_parse(RON_SLICE("\n\n\n" DASH "k AAAAAAA=\n"), &note, NULL));
    assert_int_equal(note.text.size, 2);
}

static void notes_are_bounded(void **state)
{
    struct ron_errinfo info = {0};
    struct ron_note note;
    struct ron_buf out;

    (void)state;
    ron_buf_init(&out, 2 * RON_NOTE_SIZE_MAX);
    ron_buf_put_text(&out, "a\n\n");
    for (size_t i = 0; i < RON_NOTE_SIGNATURES_MAX; i++)
        ron_buf_put_text(&out, DASH "k AAAAAAA=\n");
    assert_ok(ron_note_parse(ron_buf_slice(&out), &note, NULL));
    assert_int_equal(note.signatures_count, RON_NOTE_SIGNATURES_MAX);
    ron_buf_put_text(&out, DASH "k AAAAAAA=\n");
    support_assert_error(ron_note_parse(ron_buf_slice(&out), &note, &info), &info,
                         RON_ERR_TOO_LARGE, "more than 32 signatures");
    ron_buf_reset(&out);
    ron_buf_put_text(&out, "a\n\n" DASH "pq "); /* as large as a post-quantum one */
    for (size_t i = 0; i < 1700; i++)
        ron_buf_put_text(&out, "AAAA");
    ron_buf_put_text(&out, "\n");
    assert_ok(ron_note_parse(ron_buf_slice(&out), &note, NULL));
    assert_int_equal(note.signatures[0].size, 1700 * 3 - 4);
    while (out.size <= RON_NOTE_SIZE_MAX)
        ron_buf_put_text(&out, "more\n");
    assert_int_equal(ron_note_parse(ron_buf_slice(&out), &note, NULL), RON_ERR_TOO_LARGE);
    ron_buf_fini(&out);
}

static void the_grammar_of_keys(void **state)
{
    static const char *const bad[] = {
        "",
        "PeterNeumann",
        "PeterNeumann+c74f20a3",
        "PeterNeumann+c74f20a3+",
        "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumanM+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10T",
        "PeterNeumann+c74f20a3+Ahpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    };
    struct ron_vkey key;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++)
        assert_int_equal(ron_vkey_parse(ron_slice_text(bad[i]), &key, NULL), RON_ERR_MALFORMED);
}

static struct ron_checkpoint sample(void)
{
    struct ron_sha256 leaves[5];

    oracle_leaves(leaves, 5);
    return (struct ron_checkpoint){ron_slice_text(names[LOG]), {5, oracle_root(leaves, 5)}, {0}};
}

static void put_checkpoint_note(struct ron_buf *out, const struct ron_checkpoint *checkpoint,
                                unsigned signer)
{
    struct ron_buf text;

    ron_buf_init(&text, RON_CHECKPOINT_SIZE_MAX);
    io_checkpoint_put(&text, checkpoint);
    assert_ok(ron_buf_check(&text, NULL));
    io_note_put(out, ron_buf_slice(&text), &signers[signer]);
    ron_buf_fini(&text);
}

static void checkpoints_read_back(void **state)
{
    struct ron_trust trust = {.log = &vkeys[LOG]};
    struct ron_checkpoint checkpoint = sample(), read;
    struct ron_buf out;

    (void)state;
    ron_buf_init(&out, RON_NOTE_SIZE_MAX);
    checkpoint.extensions = RON_SLICE("one\ntwo\n");
    put_checkpoint_note(&out, &checkpoint, LOG);
    assert_ok(ron_verify_checkpoint(ron_buf_slice(&out), &trust, &read, NULL));
    assert_int_equal(read.tree.size, 5);
    assert_memory_equal(read.tree.root.bytes, checkpoint.tree.root.bytes, 32);
    assert_true(ron_slice_equal(read.extensions, checkpoint.extensions));
    ron_buf_fini(&out);
}

static void the_grammar_of_checkpoints(void **state)
{
#define ROOT "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="
    static const char *const bad[] = {
        "",
        "o",
        "o\n",
        "\n5\n" ROOT "\n",
        "o\n5\n",
        "o\n5\nCsU=\n",
        "o\n05\n" ROOT "\n",
        "o\n+5\n" ROOT "\n",
        "o\n \n" ROOT "\n",
        "o\n18446744073709551616\n" ROOT "\n",
        "o\n5\n" ROOT,
        "o\n5\n" ROOT "\n\n",
        "o\n5\n" ROOT "\nx\n\ny\n",
        "o\n5\n" ROOT "\nx",
        "o\n5\n" ROOT "=\n",
        "o\n0\n" ROOT "\n",
        "o\n5\n" ROOT ROOT "\n",
    };
    struct ron_checkpoint read;
    char large[RON_CHECKPOINT_SIZE_MAX + 1];

    (void)state;
    assert_ok(ron_checkpoint_parse(RON_SLICE("o\n5\n" ROOT "\n"), &read, NULL));
    assert_ok(ron_checkpoint_parse(RON_SLICE("o\n18446744073709551615\n" ROOT "\n"), &read, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++)
        assert_int_equal(ron_checkpoint_parse(ron_slice_text(bad[i]), &read, NULL),
                         RON_ERR_MALFORMED);
    memset(large, '\n', sizeof(large));
    assert_int_equal(ron_checkpoint_parse(ron_slice_of(large, sizeof(large)), &read, NULL),
                     RON_ERR_TOO_LARGE);
}

static void trust_is_in_key_name_and_origin(void **state)
{
    struct ron_trust trust = {.log = &vkeys[LOG]};
    struct ron_checkpoint checkpoint = sample(), read;
    struct ron_errinfo info = {0};
    struct ron_buf out;

    (void)state;
    ron_buf_init(&out, RON_NOTE_SIZE_MAX);
    put_checkpoint_note(&out, &checkpoint, STRANGER); /* the log's name, another key */
    support_assert_error(ron_verify_checkpoint(ron_buf_slice(&out), &trust, &read, &info), &info,
                         RON_ERR_INVALID_SIGNATURE, "none of 1");
    ron_buf_reset(&out);
    checkpoint.origin = RON_SLICE("example.com/other"); /* another log, the same key */
    put_checkpoint_note(&out, &checkpoint, LOG);
    support_assert_error(ron_verify_checkpoint(ron_buf_slice(&out), &trust, &read, &info), &info,
                         RON_ERR_CONFLICT, "another log");
    trust.origin = checkpoint.origin;
    assert_ok(ron_verify_checkpoint(ron_buf_slice(&out), &trust, &read, NULL));
    trust.origin = RON_SLICE("example.com/othe");
    assert_int_equal(ron_verify_checkpoint(ron_buf_slice(&out), &trust, &read, NULL),
                     RON_ERR_CONFLICT);
    ron_buf_fini(&out);
}

static void witnesses_are_counted(void **state)
{
    struct ron_vkey witnesses[] = {vkeys[WITNESS_1], vkeys[WITNESS_2], vkeys[WITNESS_1]};
    struct ron_trust trust = {.log = &vkeys[LOG], .witnesses = witnesses, .witnesses_count = 3};
    struct ron_checkpoint checkpoint = sample(), read;
    struct ron_errinfo info = {0};
    struct ron_buf note, lines, both, again;
    struct ron_note parsed;

    (void)state;
    ron_buf_init(&note, RON_NOTE_SIZE_MAX);
    ron_buf_init(&lines, RON_NOTE_SIZE_MAX);
    ron_buf_init(&both, RON_NOTE_SIZE_MAX);
    ron_buf_init(&again, RON_NOTE_SIZE_MAX);
    put_checkpoint_note(&note, &checkpoint, LOG);
    assert_ok(ron_note_parse(ron_buf_slice(&note), &parsed, NULL));
    io_note_put_cosignature(&lines, parsed.text, &signers[WITNESS_1], 1679315147);
    assert_ok(io_note_add_lines(ron_buf_slice(&note), ron_buf_slice(&lines), &both, NULL));
    assert_int_equal(both.size, note.size + lines.size);
    assert_memory_equal(both.data + note.size, lines.data, lines.size); /* byte for byte */
    trust.quorum = 1;
    assert_ok(ron_verify_checkpoint(ron_buf_slice(&both), &trust, &read, NULL));
    assert_int_equal(ron_verify_checkpoint(ron_buf_slice(&note), &trust, &read, NULL),
                     RON_ERR_QUORUM_FAILED);
    trust.quorum = 2; /* listed twice, counted once */
    support_assert_error(ron_verify_checkpoint(ron_buf_slice(&both), &trust, &read, &info), &info,
                         RON_ERR_QUORUM_FAILED, "1 of 3 witnesses");
    /* The same line again changes nothing; an empty line among them is refused. */
    assert_ok(io_note_add_lines(ron_buf_slice(&both), ron_buf_slice(&lines), &again, NULL));
    assert_true(ron_slice_equal(ron_buf_slice(&both), ron_buf_slice(&again)));
    ron_buf_reset(&again);
    ron_buf_put_text(&lines, "\n");
    ron_buf_put(&lines, both.data + note.size, both.size - note.size);
    support_assert_error(
        io_note_add_lines(ron_buf_slice(&note), ron_buf_slice(&lines), &again, &info), &info,
        RON_ERR_MALFORMED, "empty line");
    /* A later time than the one signed. */
    memcpy(&parsed, &(struct ron_note){0}, sizeof(parsed));
    assert_ok(ron_note_parse(ron_buf_slice(&both), &parsed, NULL));
    parsed.signatures[1].bytes[7]++;
    assert_int_equal(ron_note_verify(&parsed, witnesses, 1, &(uint64_t){0}, NULL),
                     RON_ERR_INVALID_SIGNATURE);
    ron_buf_fini(&note);
    ron_buf_fini(&lines);
    ron_buf_fini(&both);
    ron_buf_fini(&again);
}

static void proof_texts_read_back_and_verify(void **state)
{
    struct ron_trust trust = {.log = &vkeys[LOG]};
    struct ron_checkpoint checkpoint = sample(), read;
    struct ron_sha256 leaves[5];
    struct oracle_path path = {.count = 0};
    struct io_proof_text parts = {.extra = RON_SLICE("\x01two"), .index = 3};
    struct ron_errinfo info = {0};
    struct ron_buf note, out;
    struct ron_proof proof;
    uint64_t index = 0;

    (void)state;
    oracle_leaves(leaves, 5);
    oracle_inclusion(leaves, 3, 5, &path);
    ron_buf_init(&note, RON_NOTE_SIZE_MAX);
    ron_buf_init(&out, RON_NOTE_SIZE_MAX);
    put_checkpoint_note(&note, &checkpoint, LOG);
    parts.hashes = path.hashes;
    parts.hashes_count = path.count;
    parts.note = ron_buf_slice(&note);
    io_proof_put(&out, &parts);
    assert_ok(ron_proof_parse(ron_buf_slice(&out), &proof, NULL));
    assert_true(ron_slice_equal(proof.extra, RON_SLICE("AXR3bw==")));
    assert_true(ron_slice_equal(proof.note, ron_buf_slice(&note)));
    assert_ok(ron_verify_proof(ron_buf_slice(&out), &leaves[3], &trust, &index, &read, NULL));
    assert_int_equal(index, 3);
    assert_int_equal(read.tree.size, 5);
    support_assert_error(
        ron_verify_proof(ron_buf_slice(&out), &leaves[2], &trust, NULL, NULL, &info), &info,
        RON_ERR_CHAIN_MISMATCH, "another root");
    for (size_t i = 0; i < out.size; i++) { /* the extra data is not authenticated */
        bool is_extra = i >= sizeof("c2sp.org/tlog-proof@v1\nextra") && out.data[i] != '\n' &&
                        i < sizeof("c2sp.org/tlog-proof@v1\nextra AXR3bw==") - 1;

        out.data[i] ^= 2;
        if (!is_extra)
            assert_int_not_equal(
                ron_verify_proof(ron_buf_slice(&out), &leaves[3], &trust, NULL, NULL, NULL),
                RON_ERR_OK);
        out.data[i] ^= 2;
        assert_int_not_equal(
            ron_verify_proof(ron_slice_of(out.data, i), &leaves[3], &trust, NULL, NULL, NULL),
            RON_ERR_OK);
    }
    ron_buf_fini(&note);
    ron_buf_fini(&out);
}

static void the_grammar_of_proofs(void **state)
{
#define HEAD "c2sp.org/tlog-proof@v1\n"
    static const char *const bad[] = {
        "",
        "c2sp.org/tlog-proof@v2\nindex 0\n\nx",
        HEAD,
        HEAD "extra AAAA\n",
        HEAD "extra \nindex 0\n\nx",
        HEAD "extra A\nindex 0\n\nx",
        HEAD "extra AAAA\nextra AAAA\nindex 0\n\nx",
        HEAD "index\n\nx",
        HEAD "index 00\n\nx",
        HEAD "index -1\n\nx",
        HEAD "index 18446744073709551616\n\nx",
        HEAD "index 0\n",
        HEAD "index 0\n\n",
        HEAD "index 0\nAAAA\n\nx",
        HEAD "index 0\n" ROOT "\n",
    };
    struct ron_proof proof;
    struct ron_buf out;

    (void)state;
    assert_ok(ron_proof_parse(RON_SLICE(HEAD "index 0\n\nx"), &proof, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++)
        assert_int_equal(ron_proof_parse(ron_slice_text(bad[i]), &proof, NULL), RON_ERR_MALFORMED);
    ron_buf_init(&out, 1 << 16);
    ron_buf_put_text(&out, HEAD "index 0\n");
    for (size_t i = 0; i < 65; i++)
        ron_buf_put_text(&out, ROOT "\n");
    ron_buf_put_text(&out, "\nx");
    assert_int_equal(ron_proof_parse(ron_buf_slice(&out), &proof, NULL), RON_ERR_TOO_LARGE);
    ron_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_go_reads_and_is_written),
        cmocka_unit_test(every_changed_byte_of_a_note_is_refused),
        cmocka_unit_test(the_grammar_of_notes),
        cmocka_unit_test(notes_are_bounded),
        cmocka_unit_test(the_grammar_of_keys),
        cmocka_unit_test(checkpoints_read_back),
        cmocka_unit_test(the_grammar_of_checkpoints),
        cmocka_unit_test(trust_is_in_key_name_and_origin),
        cmocka_unit_test(witnesses_are_counted),
        cmocka_unit_test(proof_texts_read_back_and_verify),
        cmocka_unit_test(the_grammar_of_proofs),
    };
    return cmocka_run_group_tests_name("note", tests, make_keys, free_keys);
}
