/*
 * api_admin.c - what an operator may ask of the ledger while it runs: freeze, safe-mode, revival,
 * and its word that damage is dealt with.
 * Each is logged with the capability that asked.
 */
#include "base/json_dto.h"
#include "base/rfc3339.h"
#include "ledger/api_pages.h"

void audit(struct ledger_api *api, const struct io_request *request, const char *what, bool on,
           struct ron_slice about, enum ron_err err)
{
    rt_log(api->options.log, RT_LOG_WARN, "the ledger's operator acted", rt_log_text("what", what),
           rt_log_bool("on", on), rt_log_slice("about", about), rt_log_err(err),
           rt_log_slice("capability", auth_grant_ref(grant_of(request))),
           rt_log_text("corr_id", request->corr_id));
}

static void reply_state(struct io_request *request, const char *name, bool on)
{
    struct ron_json_writer writer;
    struct ron_buf buf;

    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, name);
    ron_json_put_bool(&writer, on);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

/* --- Freeze ------------------------------------------------------------------------------------
 */

struct freeze_body {
    uint64_t present;
    bool on;
    struct ron_slice account, until;
};
enum { FREEZE_ON, FREEZE_ACCOUNT, FREEZE_UNTIL };
static const struct ron_json_field freeze_fields[] = {
    [FREEZE_ON] = RON_JSON_FIELD_BOOL(struct freeze_body, on, 0),
    [FREEZE_ACCOUNT] = RON_JSON_FIELD_STRING(struct freeze_body, account, RON_JSON_OPTIONAL, 1,
                                             RON_ACCOUNT_NAME_SIZE_MAX, NULL),
    [FREEZE_UNTIL] = RON_JSON_FIELD_STRING(struct freeze_body, until, RON_JSON_OPTIONAL, 1, 64,
                                           NULL),
};
static const struct ron_json_dto freeze_dto = RON_JSON_DTO(struct freeze_body, freeze_fields);

static enum ron_err set_freeze(struct ledger_api *api, struct ron_slice account, bool on,
                               uint64_t until_ms, struct ron_errinfo *reterr)
{
    enum ron_err err = on ? ledger_checks_freeze(api->checks, account, until_ms, reterr)
                          : ledger_checks_lift(api->checks, account, reterr);

    if (err == RON_ERR_OK && on) /* never counted down: an ended one asks for nothing */
        (void)rt_atomic_add_u32(&api->freezes_count, 1);
    return err;
}

/* One account: until it is lifted, or until a moment. */
static enum ron_err freeze_account(struct ledger_api *api, const struct freeze_body *body,
                                   struct ron_errinfo *reterr)
{
    uint64_t until_ms = 0;
    enum ron_err err = RON_ERR_OK;

    if (!ledger_is_account(body->account))
        return ron_fail(reterr, RON_ERR_MALFORMED, "account is not an account name");
    if (ron_json_has(body->present, FREEZE_UNTIL))
        err = ron_rfc3339_parse(body->until, &until_ms, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "until");
    return set_freeze(api, body->account, body->on, until_ms, reterr);
}

static enum ron_err freeze(struct ledger_api *api, const struct freeze_body *body,
                           struct ron_errinfo *reterr)
{
    struct rt_lifecycle *lifecycle = ledger_service_lifecycle(api->options.service);

    if (ron_json_has(body->present, FREEZE_ACCOUNT))
        return freeze_account(api, body, reterr);
    if (ron_json_has(body->present, FREEZE_UNTIL))
        return ron_fail(reterr, RON_ERR_MALFORMED, "until is for one account");
    if (body->on)
        (void)rt_lifecycle_raise(lifecycle, RT_CAUSE_FROZEN);
    else
        (void)rt_lifecycle_clear(lifecycle, RT_CAUSE_FROZEN);
    return RON_ERR_OK;
}

static void post_freeze(struct ledger_api *api, struct io_request *request)
{
    struct ron_errinfo info = {0};
    struct body_scratch *scratch;
    struct freeze_body body = {.on = false};
    enum ron_err err = scratch_take(api, &scratch, &info);

    if (err == RON_ERR_OK) {
        err = ron_json_dto_read(&freeze_dto, request->body, &scratch->arena, &body, &info);
        if (err == RON_ERR_OK) {
            err = freeze(api, &body, &info);
            audit(api, request, "freeze", body.on, body.account, err);
        }
        scratch_give(api, scratch);
    }
    if (err == RON_ERR_OK)
        reply_state(request, "frozen", body.on);
    else
        reply_error(request, err, &info);
}

/* --- Safe-mode ---------------------------------------------------------------------------------
 */

struct safe_body {
    uint64_t present;
    bool on;
    struct ron_slice ack;
};
static const struct ron_json_field safe_fields[] = {
    RON_JSON_FIELD_BOOL(struct safe_body, on, 0),
    RON_JSON_FIELD_STRING(struct safe_body, ack, 0, 1, 64, NULL),
};
static const struct ron_json_dto safe_dto = RON_JSON_DTO(struct safe_body, safe_fields);

static void post_safe_mode(struct ledger_api *api, struct io_request *request)
{
    struct ron_errinfo info = {0};
    struct body_scratch *scratch;
    struct safe_body body = {.on = false};
    enum ron_err err = scratch_take(api, &scratch, &info);

    if (err == RON_ERR_OK) {
        err = ron_json_dto_read(&safe_dto, request->body, &scratch->arena, &body, &info);
        if (err == RON_ERR_OK) {
            err = ledger_service_set_safe(api->options.service, body.on, &info);
            audit(api, request, "safe-mode", body.on, body.ack, err);
        }
        scratch_give(api, scratch);
    }
    if (err == RON_ERR_OK)
        reply_state(request, "safe_mode", body.on);
    else
        reply_error(request, err, &info);
}

struct acknowledge_body {
    uint64_t present;
    struct ron_slice ack;
};
static const struct ron_json_field acknowledge_fields[] = {
    RON_JSON_FIELD_STRING(struct acknowledge_body, ack, 0, 1, 64, NULL),
};
static const struct ron_json_dto acknowledge_dto = RON_JSON_DTO(struct acknowledge_body,
                                                                acknowledge_fields);

static bool is_safe(const struct ledger_api *api)
{
    struct ledger_health health;

    ledger_read_health(api->options.service, &health);
    return health.status.state == RT_LIFE_SAFE_MODE;
}

static void post_acknowledge(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct body_scratch *scratch;
    struct acknowledge_body body = {.present = 0};
    enum ron_err err = scratch_take(api, &scratch, &info);

    if (err == RON_ERR_OK) {
        err = ron_json_dto_read(&acknowledge_dto, request->body, &scratch->arena, &body, &info);
        if (err == RON_ERR_OK) {
            err = ledger_service_acknowledge(api->options.service, &info);
            audit(api, request, "acknowledge", true, body.ack, err);
        }
        scratch_give(api, scratch);
    }
    if (err == RON_ERR_OK)
        reply_state(request, "safe_mode", is_safe(api)); /* an operator's order stands */
    else
        reply_error(request, err, &info);
}

static void post_revive(struct ledger_api *api, struct io_request *request)
{
    struct ron_errinfo info = {0};
    enum ron_err err = ledger_service_revive(api->options.service, &info);

    audit(api, request, "revive", true, (struct ron_slice){NULL, 0}, err);
    if (err == RON_ERR_OK)
        reply_state(request, "revived", true);
    else
        reply_error(request, err, &info);
}

#define ADMIN                                                                 \
    .role = "ledger", .flags = IO_ROUTE_ADMIN, .replies = "application/json", \
    .scope = "ledger.admin"
#define BODY .media = "application/json", .body_max = 4096

static const struct api_row rows[] = {
    {{HTTP_POST, "/admin/ledger/freeze", ADMIN, BODY, .name = "ledger_freeze",
      .summary = "refuse writes, or those that debit one account; or lift that",
      .request_schema = "{\"type\":\"object\",\"required\":[\"on\"],\"properties\":{\"on\":{"
                        "\"type\":\"boolean\"},\"account\":{\"type\":\"string\"},\"until\":{"
                        "\"type\":\"string\",\"format\":\"date-time\"}}}"},
     post_freeze},
    {{HTTP_POST, "/admin/ledger/safe-mode", ADMIN, BODY, .name = "ledger_safe_mode",
      .summary = "enter or leave safe-mode; ack names the incident",
      .request_schema = "{\"type\":\"object\",\"required\":[\"on\",\"ack\"],\"properties\":{"
                        "\"on\":{\"type\":\"boolean\"},\"ack\":{\"type\":\"string\"}}}"},
     post_safe_mode},
    {{HTTP_POST, "/admin/ledger/acknowledge", ADMIN, BODY, .name = "ledger_acknowledge",
      .summary = "damage is dealt with: leave safe-mode after a clean replay; ack names the "
                 "incident",
      .request_schema = "{\"type\":\"object\",\"required\":[\"ack\"],\"properties\":{"
                        "\"ack\":{\"type\":\"string\"}}}"},
     post_acknowledge},
    {{HTTP_POST, "/admin/ledger/revive", ADMIN, .name = "ledger_revive",
      .summary = "run prevalidators again that gave up"},
     post_revive},
};
const struct api_rows api_admin_rows = {rows, RON_ARRAY_COUNT(rows)};
