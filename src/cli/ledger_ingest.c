/*
 * ledger_ingest.c - `ron ledger ingest`: a batch from a file, or one entry from the command line.
 */
#include <string.h>

#include "base/json_write.h"
#include "cli/ledger_impl.h"
#include "io/path_file.h"
#include "rt/shim.h"

enum { KEY_SIZE = 48 };

/* 128 random bits: nobody else has it. */
static void make_key(char ret_key[static KEY_SIZE])
{
    (void)snprintf(ret_key, KEY_SIZE, "cli-%016llx%016llx", (unsigned long long)sh_random(),
                   (unsigned long long)sh_random());
}

static void put(struct ron_json_writer *writer, const char *name, const char *value)
{
    if (value == NULL)
        return;
    ron_json_put_name(writer, name);
    ron_json_put_text(writer, value);
}

static enum ron_err put_entry(const struct ledger_args *args, const char *key, uint64_t nonce,
                              struct ron_buf *body, struct ron_errinfo *reterr)
{
    struct ron_json_writer writer;

    ron_json_writer_init(&writer, body, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "batch");
    ron_json_put_array_begin(&writer);
    ron_json_put_object_begin(&writer);
    put(&writer, "id", args->id != NULL ? args->id : key);
    put(&writer, "kind", args->mint ? "Mint" : "Transfer");
    if (!args->mint)
        put(&writer, "from", args->words[0]);
    put(&writer, "to", args->words[args->words_count - 2]);
    put(&writer, "asset", args->asset != NULL ? args->asset : "roc");
    put(&writer, "amount", args->words[args->words_count - 1]);
    put(&writer, "memo", args->memo);
    if (nonce > 0) {
        ron_json_put_name(&writer, "nonce");
        ron_json_put_u64(&writer, nonce);
    }
    ron_json_put_object_end(&writer);
    ron_json_put_array_end(&writer);
    ron_json_put_object_end(&writer);
    return ron_json_writer_end(&writer, reterr);
}

static int submit(const struct ledger_args *args, struct ron_slice body, const char *key) RON_BLOCKS
{
    struct session session;
    int status = session_open(&session, args);

    if (status == CMD_OK) {
        path_begin(&session, "/ingest");
        status = session_post(&session, body, key);
    }
    if (status == CMD_OK)
        status = print_object(args, session_body(&session));
    session_close(&session);
    return status;
}

static int ingest_file(const struct ledger_args *args) RON_BLOCKS
{
    const char *path = args->words_count == 1 ? args->words[0] : "-";
    struct ron_errinfo info = {0};
    struct ron_buf body;
    int status;

    if (args->words_count > 1 || args->asset != NULL || args->nonce != NULL || args->id != NULL ||
        args->memo != NULL)
        return ledger_usage(args, "that goes with --transfer or --mint");
    ron_buf_init(&body, RON_BODY_SIZE_MAX);
    if (io_path_read(path, RON_BODY_SIZE_MAX, &body, &info) == RON_ERR_OK)
        status = submit(args, ron_buf_slice(&body), args->key);
    else
        status = ledger_failed(args, &info);
    ron_buf_fini(&body);
    return status;
}

int ledger_ingest(const struct ledger_args *args)
{
    char made[KEY_SIZE];
    const char *key = args->key;
    struct ron_errinfo info = {0};
    struct ron_buf body;
    uint64_t nonce;
    int status;

    if (!args->transfer && !args->mint)
        return ingest_file(args);
    if ((args->transfer && args->mint) || args->words_count != (args->mint ? 2 : 3))
        return ledger_usage(args, "--transfer FROM TO AMOUNT or --mint TO AMOUNT");
    if (!ledger_number(args, "nonce", args->nonce, 0, 1, UINT64_MAX, &nonce))
        return CMD_USAGE;
    if (key == NULL) {
        make_key(made);
        key = made;
        fprintf(stderr, "key %s\n", key); /* for who has to ask again */
    }
    ron_buf_init(&body, RON_BODY_SIZE_MAX);
    if (put_entry(args, key, nonce, &body, &info) == RON_ERR_OK)
        status = submit(args, ron_buf_slice(&body), key);
    else
        status = ledger_failed(args, &info);
    ron_buf_fini(&body);
    return status;
}
