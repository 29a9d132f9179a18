/*
 * test_access.c - the authorize callback: from a head to a principal, and keyrings that change.
 */
#include "app/access.h"

#include <stdio.h>

#include "rt/clock.h"
#include "rt/registry.h"
#include "support.h"

struct asked {
    struct http_head head;
    struct io_peer peer;
    struct io_request request;
    struct auth_principal principal;
};

static const struct io_route config_route = {.method = HTTP_GET,
                                             .path = "/admin/server/config",
                                             .role = "server",
                                             .name = "server_config",
                                             .scope = "server.admin"};
static const struct io_route wallet_route = {.method = HTTP_POST,
                                             .path = "/v1/transfer",
                                             .role = "wallet",
                                             .name = "wallet_transfer",
                                             .scope = "wallet.transfer"};

static void add_field(struct asked *asked, const char *name, const char *value)
{
    asked->head.fields[asked->head.fields_count++] = (struct http_field){ron_slice_text(name),
                                                                         ron_slice_text(value)};
}

static void ask(struct asked *asked, const struct io_route *route)
{
    *asked = (struct asked){.peer = {.local_socket = true, .uid = 7, .gid = 8, .pid = 9}};
    asked->request = (struct io_request){.route = route,
                                         .method = route->method,
                                         .path = ron_slice_text(route->path),
                                         .head = &asked->head,
                                         .peer = &asked->peer,
                                         .arrived_ms = rt_utc_ms()};
}

static enum ron_err authorize(struct app_access *access, struct asked *asked,
                              struct ron_errinfo *reterr)
{
    return app_access_authorize(access, &asked->request, &asked->principal, reterr);
}

static struct auth_keyring *new_keyring(char *bearer, size_t bearer_size, const char *caveat)
{
    const struct ron_slice caveats[] = {ron_slice_text(caveat)};
    char text[AUTH_TOKEN_TEXT_SIZE];
    struct auth_keyring *keyring;
    size_t size;

    assert_ok(auth_keyring_new(rt_utc_ms(), &keyring, NULL));
    assert_ok(auth_keyring_mint(keyring, caveats, 1, rt_utc_ms(), text, &size, NULL));
    assert_true((size_t)snprintf(bearer, bearer_size, "Bearer %s", text) < bearer_size);
    return keyring;
}

static void a_principal_is_a_copy(void **state)
{
    char bearer[AUTH_TOKEN_TEXT_SIZE + 16];
    struct auth_keyring *keyring = new_keyring(bearer, sizeof(bearer),
                                               "scope = server.admin,wallet.read");
    struct app_access *access;
    struct ron_errinfo info = {0};
    struct asked asked, again;

    (void)state;
    assert_ok(app_access_new(keyring, 1, &access, NULL));
    ask(&asked, &config_route);
    add_field(&asked, "Authorization", bearer);
    again = asked;
    again.request.head = &again.head;
    memset(&again.principal, 0xaa, sizeof(again.principal)); /* as its memory comes round */
    assert_ok(authorize(access, &asked, NULL));
    assert_true(asked.principal.local_socket && asked.principal.uid == 7);
    assert_true(asked.principal.gid == 8 && asked.principal.pid == 9);
    assert_true(ron_slice_equal(auth_grant_kid(&asked.principal.grant), RON_SLICE("k1")));
    again.peer.local_socket = false;
    again.request.peer = &again.peer;
    assert_ok(authorize(access, &again, NULL));
    memset(&asked.principal, 0, sizeof(asked.principal));
    assert_true(auth_grant_has(&again.principal.grant, AUTH_CAVEAT_SCOPE));
    assert_false(again.principal.local_socket);
    assert_int_equal(app_access_get_stats(access).hits_count, 1);
    assert_int_equal(app_access_get_stats(access).misses_count, 1);
    ask(&asked, &wallet_route);
    add_field(&asked, "Authorization", bearer);
    support_assert_error(authorize(access, &asked, &info), &info, RON_ERR_FORBIDDEN,
                         "lacks scope wallet.transfer");
    (void)app_access_free(access);
}

static void what_is_no_bearer_token(void **state)
{
    char bearer[AUTH_TOKEN_TEXT_SIZE + 16];
    char other[AUTH_TOKEN_TEXT_SIZE + 32];
    struct auth_keyring *keyring = new_keyring(bearer, sizeof(bearer), "scope = server.admin");
    static const char *const bad[] = {"", "Bearer", "Bearer ", "Basic abc", "BearerX", "Bearer x"};
    struct app_access *access;
    struct ron_errinfo info = {0};
    struct asked asked;

    (void)state;
    assert_ok(app_access_new(keyring, 8, &access, NULL));
    ask(&asked, &config_route);
    support_assert_error(authorize(access, &asked, &info), &info, RON_ERR_UNAUTHORIZED,
                         "a capability is needed");
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++) {
        ask(&asked, &config_route);
        add_field(&asked, "authorization", bad[i]);
        assert_int_equal(authorize(access, &asked, &info), RON_ERR_UNAUTHORIZED);
    }
    ask(&asked, &config_route);
    add_field(&asked, "authorization", bearer);
    add_field(&asked, "Authorization", bearer);
    support_assert_error(authorize(access, &asked, &info), &info, RON_ERR_UNAUTHORIZED,
                         "more than one");
    (void)snprintf(other, sizeof(other), "bEARER  %s", bearer + 7); /* any case, any spaces */
    ask(&asked, &config_route);
    add_field(&asked, "authorization", other);
    assert_ok(authorize(access, &asked, NULL));
    (void)app_access_free(access);
}

/* A keyring of its own, and a bearer of the operator's scope under one more caveat. */
static struct app_access *access_with(const char *caveat,
                                      char bearer[static AUTH_TOKEN_TEXT_SIZE + 16])
{
    const struct ron_slice caveats[] = {RON_SLICE("scope = server.admin"), ron_slice_text(caveat)};
    struct auth_keyring *keyring;
    struct app_access *access;
    size_t size;

    memcpy(bearer, "Bearer ", 8);
    assert_ok(auth_keyring_new(rt_utc_ms(), &keyring, NULL));
    assert_ok(auth_keyring_mint(keyring, caveats, 2, rt_utc_ms(), bearer + 7, &size, NULL));
    assert_ok(app_access_new(keyring, 1, &access, NULL));
    return access;
}

static void addresses_of_peers(void **state)
{
    static const struct {
        const char *caveat;
        uint8_t address[16];
        enum ron_err err;
    } cases[] = {
        {"ip = 10.1.0.0/16", {[10] = 255, 255, 10, 1, 2, 3}, RON_ERR_OK},
        {"ip = 10.1.0.0/16", {[10] = 255, 255, 10, 2, 2, 3}, RON_ERR_FORBIDDEN},
        {"ip = fd00::/8", {0xfd, [15] = 1}, RON_ERR_OK},
        {"ip = fd00::/8", {0xfc, [15] = 1}, RON_ERR_FORBIDDEN},
        {"ip = fd00::/8", {[10] = 255, 255, 10, 1, 2, 3}, RON_ERR_FORBIDDEN},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        char bearer[AUTH_TOKEN_TEXT_SIZE + 16];
        struct app_access *access = access_with(cases[i].caveat, bearer);
        struct asked asked;

        ask(&asked, &config_route);
        add_field(&asked, "authorization", bearer);
        /* A Unix socket has no address: a token for one network is not for it. */
        assert_int_equal(authorize(access, &asked, NULL), RON_ERR_FORBIDDEN);
        asked.peer.local_socket = false;
        memcpy(asked.peer.address, cases[i].address, sizeof(asked.peer.address));
        assert_int_equal(authorize(access, &asked, NULL), cases[i].err);
        (void)app_access_free(access);
    }
}

static void methods_of_requests(void **state)
{
    static const struct {
        const char *caveat;
        enum ron_err err;
    } cases[] = {{"method = GET", RON_ERR_OK}, {"method = POST", RON_ERR_FORBIDDEN}};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        char bearer[AUTH_TOKEN_TEXT_SIZE + 16];
        struct app_access *access = access_with(cases[i].caveat, bearer);
        struct asked asked;

        ask(&asked, &config_route);
        add_field(&asked, "authorization", bearer);
        assert_int_equal(authorize(access, &asked, NULL), cases[i].err);
        (void)app_access_free(access);
    }
}

static void a_keyring_takes_over_at_once(void **state)
{
    char old_bearer[AUTH_TOKEN_TEXT_SIZE + 16], new_bearer[AUTH_TOKEN_TEXT_SIZE + 16];
    struct auth_keyring *before = new_keyring(old_bearer, sizeof(old_bearer),
                                              "scope = server.admin");
    struct auth_keyring *after = new_keyring(new_bearer, sizeof(new_bearer),
                                             "scope = server.admin");
    struct app_access_stage *stage;
    struct app_access *access;
    struct asked asked_old, asked_new;

    (void)state;
    assert_ok(app_access_new(before, 8, &access, NULL));
    ask(&asked_old, &config_route);
    add_field(&asked_old, "authorization", old_bearer);
    ask(&asked_new, &config_route);
    add_field(&asked_new, "authorization", new_bearer);
    assert_ok(authorize(access, &asked_old, NULL));
    assert_int_equal(authorize(access, &asked_new, NULL), RON_ERR_UNAUTHORIZED);
    assert_ok(app_access_prepare(access, after, &stage, NULL));
    app_access_commit(access, stage); /* the same epoch, another keyring */
    assert_int_equal(authorize(access, &asked_old, NULL), RON_ERR_UNAUTHORIZED);
    assert_ok(authorize(access, &asked_new, NULL));
    assert_int_equal(app_access_get_stats(access).misses_count, 4); /* none is forgotten */
    (void)app_access_free(access);
}

struct attempt {
    char bearer[AUTH_TOKEN_TEXT_SIZE + 16];
    struct app_access *access;
};

static enum ron_err attempt_authorize(void *context, struct ron_errinfo *reterr)
{
    struct attempt *attempt = context;
    struct asked asked;

    ask(&asked, &config_route);
    add_field(&asked, "authorization", attempt->bearer);
    return authorize(attempt->access, &asked, reterr);
}

static enum ron_err attempt_prepare(void *context, struct ron_errinfo *reterr)
{
    struct attempt *attempt = context;
    struct app_access_stage *stage;
    enum ron_err err = app_access_prepare(attempt->access, NULL, &stage, reterr);

    if (err == RON_ERR_OK)
        (void)app_access_stage_free(stage);
    return err;
}

static void out_of_memory_anywhere(void **state)
{
    static struct attempt attempt;
    struct auth_keyring *keyring = new_keyring(attempt.bearer, sizeof(attempt.bearer),
                                               "scope = server.admin");

    (void)state;
    assert_ok(app_access_new(keyring, 2, &attempt.access, NULL));
    assert_int_equal(support_fail_each_allocation(attempt_authorize, &attempt, 20), 0);
    assert_true(support_fail_each_allocation(attempt_prepare, &attempt, 20) >= 3);
    (void)app_access_free(attempt.access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_principal_is_a_copy),        cmocka_unit_test(what_is_no_bearer_token),
        cmocka_unit_test(methods_of_requests),          cmocka_unit_test(addresses_of_peers),
        cmocka_unit_test(a_keyring_takes_over_at_once), cmocka_unit_test(out_of_memory_anywhere),
    };

    rt_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
