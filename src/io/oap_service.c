/*
 * oap_service.c - the table of operations. See oap_server.h.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "io/oap_server.h"

struct io_oap_service {
    size_t count;
    uint32_t keys[IO_OAP_OPS_MAX]; /* app_proto and code: a look-up reads four lines of cache */
    const struct io_oap_op *ops[IO_OAP_OPS_MAX];
    void *contexts[IO_OAP_OPS_MAX];
};

static uint32_t key_of(uint16_t app_proto, uint16_t code)
{
    return (uint32_t)app_proto << 16 | code;
}

enum ron_err io_oap_service_new(struct io_oap_service **ret_service, struct ron_errinfo *reterr)
{
    struct io_oap_service *service = ron_mem_alloc_array(1, sizeof(*service));

    if (service == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "table of OAP operations");
    *ret_service = service;
    return RON_ERR_OK;
}

struct io_oap_service *io_oap_service_free(struct io_oap_service *service)
{
    return ron_mem_free(service);
}

static const struct io_oap_op *find(const struct io_oap_service *service, uint32_t key,
                                    size_t *ret_number)
{
    for (size_t i = 0; i < service->count; i++)
        if (service->keys[i] == key) {
            *ret_number = i;
            return service->ops[i];
        }
    return NULL;
}

enum ron_err io_oap_service_add(struct io_oap_service *service, const struct io_oap_op *ops,
                                size_t ops_count, void *context, struct ron_errinfo *reterr)
{
    if (ops_count > IO_OAP_OPS_MAX - service->count)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "more than %d OAP operations", IO_OAP_OPS_MAX);
    for (size_t i = 0; i < ops_count; i++) {
        const struct io_oap_op *op = &ops[i];
        uint32_t key = key_of(op->app_proto, op->code);
        size_t number;

        RON_ASSERT(op->app_proto != OAP_PROTO_HELLO);
        RON_ASSERT((op->route.handler == NULL) == ((op->route.flags & IO_ROUTE_CALL) != 0));
        RON_ASSERT(op->route.role != NULL && op->route.name != NULL);
        RON_ASSERT((op->route.flags & IO_ROUTE_STREAM) == 0);
        RON_ASSERT(op->route.body_max <= RON_INFLATED_SIZE_MAX);
        if (find(service, key, &number) != NULL)
            return ron_fail(reterr, RON_ERR_CONFLICT, "%s and %s are both app_proto %u code %u",
                            service->ops[number]->route.name, op->route.name, op->app_proto,
                            op->code);
        service->keys[service->count] = key;
        service->ops[service->count] = op;
        service->contexts[service->count] = context;
        service->count++;
    }
    return RON_ERR_OK;
}

enum ron_err io_oap_service_match(const struct io_oap_service *service, uint16_t app_proto,
                                  uint16_t code, struct io_oap_match *ret_match,
                                  struct ron_errinfo *reterr)
{
    size_t number;
    const struct io_oap_op *op = find(service, key_of(app_proto, code), &number);

    if (op == NULL)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "no operation of app_proto %u has code %u",
                        app_proto, code);
    *ret_match = (struct io_oap_match){&op->route, number, service->contexts[number]};
    return RON_ERR_OK;
}

size_t io_oap_service_count(const struct io_oap_service *service)
{
    return service->count;
}

const struct io_oap_op *io_oap_service_at(const struct io_oap_service *service, size_t number)
{
    RON_ASSERT(number < service->count);
    return service->ops[number];
}
