/*
 * service_safe.c - SafeMode: entered, kept over a restart by a mark, left by an operator.
 *
 * `damage` is what this service found, written once; such a service writes no more. `mark` is what
 * an earlier one left behind: the log has been read again since, and if that went well an operator
 * may acknowledge it. While either stands nothing is written, not even by the service itself.
 */
#include "ledger/service_impl.h"

enum { DAMAGE_NONE, DAMAGE_COMES, DAMAGE_STANDS }; /* service->damaged */
enum { MARK_NONE, MARK_STANDS, MARK_LEAVES };      /* service->marked */
/* service->marking: of what this service found. */
enum { MARKING_NONE, MARKING_UNDER_WAY, MARKING_FAILED, MARKING_DONE };

bool service_is_safe(struct ledger_service *service)
{
    return rt_atomic_load_u32(&service->broken) != 0 ||
           (rt_lifecycle_status(service->lifecycle).raised & RT_CAUSES_SAFE_MODE) != 0;
}

void service_show_safe(struct ledger_service *service)
{
    bool safe, shown;

    do { /* the last look is the newest */
        shown = (rt_lifecycle_status(service->lifecycle).raised & RT_CAUSES_SAFE_MODE) != 0;
        ledger_set(&service->metrics, service->metrics.safe_mode, shown ? 1 : 0);
        rt_spans_set_safe_mode(service->options.spans, shown);
        safe = (rt_lifecycle_status(service->lifecycle).raised & RT_CAUSES_SAFE_MODE) != 0;
    } while (safe != shown);
}

/* --- Found -------------------------------------------------------------------------------------
 */

void service_break(struct ledger_service *service, const struct ron_errinfo *info)
{
    rt_atomic_store_u32(&service->broken, 1);
    if (rt_atomic_cas_u32(&service->damaged, DAMAGE_NONE, DAMAGE_COMES)) {
        const struct ledger_root head = ledger_read_head(service);

        service->damage = (struct ledger_damage){
            .info = *info, .found_ms = rt_utc_ms(), .good_seq = head.seq, .good_root = head.root};
        if (info->err == RON_ERR_WAL_CORRUPT)
            service->damage.place = service->engine->damage;
        rt_atomic_store_u32(&service->damaged, DAMAGE_STANDS);
    }
    (void)rt_lifecycle_raise(service->lifecycle, RT_CAUSE_DAMAGED);
    (void)rt_lifecycle_clear(service->lifecycle, RT_CAUSE_RECOVERING);
    (void)rt_lifecycle_clear(service->lifecycle, CAUSE_STARTING);
    service_show_safe(service);
}

/* What says nothing of the log: the next start may go better by itself, or that of the program
 * whose version its frames are. */
static bool passes_by_itself(enum ron_err err)
{
    return err == RON_ERR_NO_MEMORY || err == RON_ERR_VERSION_SKEW || err == RON_ERR_BUSY ||
           err == RON_ERR_NOT_READY ||
           err == RON_ERR_TOO_LARGE; /* windows that are too small for the log */
}

/* Is there something to mark? */
static bool wants_mark(struct ledger_service *service)
{
    return service->options.damage.vfs != NULL &&
           rt_atomic_load_u32(&service->damaged) == DAMAGE_STANDS &&
           !passes_by_itself(service->damage.info.err);
}

/* Whoever changes `marking` from this writes. */
static void mark(struct ledger_service *service, uint32_t from) RON_BLOCKS
{
    const struct ledger_damage_options *options = &service->options.damage;
    struct ron_errinfo info = {0};
    enum ron_err err;

    rt_assert_no_lock_held();
    if (!wants_mark(service) || !rt_atomic_cas_u32(&service->marking, from, MARKING_UNDER_WAY))
        return;
    err = ledger_damage_mark(options->vfs, options->path, &service->damage, &info);
    rt_atomic_store_u32(&service->marking, err == RON_ERR_OK ? MARKING_DONE : MARKING_FAILED);
    if (err != RON_ERR_OK && from == MARKING_NONE)
        rt_log(service->options.log, RT_LOG_ERROR,
               "damage cannot be marked, which is tried again: a restart before that may leave "
               "SafeMode by itself",
               rt_log_info(&info));
    else if (err == RON_ERR_OK && from == MARKING_FAILED)
        rt_log(service->options.log, RT_LOG_WARN, "damage is marked now",
               rt_log_text("path", options->path));
}

void service_mark(struct ledger_service *service)
{
    mark(service, MARKING_NONE);
}

void service_mark_again(struct ledger_service *service)
{
    mark(service, MARKING_FAILED);
}

bool service_check_archive(struct ledger_service *service)
{
    const struct ledger_archive *archive = &service->options.archive;
    struct ron_errinfo info = {0};

    if (archive->failed == NULL || archive->failed(archive->context, &info) == RON_ERR_OK)
        return true;
    if (rt_atomic_load_u32(&service->broken) == 0)
        rt_log(service->options.log, RT_LOG_ERROR, "the archive failed: SafeMode",
               rt_log_info(&info));
    service_break(service, &info);
    service_mark(service);
    return false;
}

/* --- Kept --------------------------------------------------------------------------------------
 */

void service_recall_mark(struct ledger_service *service)
{
    const struct ledger_damage_options *options = &service->options.damage;
    struct ron_errinfo info = {0};
    enum ron_err err;

    rt_assert_no_lock_held();
    if (options->vfs == NULL)
        return;
    err = ledger_damage_read(options->vfs, options->path, &service->mark, &info);
    if (err == RON_ERR_NOT_FOUND)
        return;
    if (err != RON_ERR_OK)
        (void)ron_fail(&service->mark.info, err, "%s cannot be read: %s", options->path,
                       info.message);
    rt_log(service->options.log, RT_LOG_WARN,
           "damage was found before: SafeMode until an operator acknowledges it",
           rt_log_info(&service->mark.info));
    rt_atomic_store_u32(&service->marked, MARK_STANDS);
    (void)rt_lifecycle_raise(service->lifecycle, RT_CAUSE_DAMAGED);
    service_show_safe(service);
}

void service_get_damage(struct ledger_service *service, struct ledger_health *health)
{
    if (rt_atomic_load_u32(&service->damaged) == DAMAGE_STANDS) {
        health->damage = service->damage;
        health->damage_marked = rt_atomic_load_u32(&service->marking) == MARKING_DONE;
    } else if (rt_atomic_load_u32(&service->marked) != MARK_NONE) {
        bool started = false;

        (void)rt_watch_get(service->started, &started);
        health->damage = service->mark;
        health->damage_marked = true;
        health->damage_over = started && rt_atomic_load_u32(&service->broken) == 0;
    }
}

/* --- Left --------------------------------------------------------------------------------------
 */

/* What was found while we cleared it stands. */
static void leave(struct ledger_service *service)
{
    (void)rt_lifecycle_clear(service->lifecycle, RT_CAUSE_DAMAGED);
    if (rt_atomic_load_u32(&service->damaged) != DAMAGE_NONE ||
        rt_atomic_load_u32(&service->marked) != MARK_NONE)
        (void)rt_lifecycle_raise(service->lifecycle, RT_CAUSE_DAMAGED);
    service_show_safe(service);
}

enum ron_err ledger_service_acknowledge(struct ledger_service *service, struct ron_errinfo *reterr)
{
    const struct ledger_damage_options *options = &service->options.damage;
    bool started = false;
    enum ron_err err;

    rt_assert_no_lock_held();
    (void)rt_watch_get(service->started, &started);
    if (!started)
        return ron_fail(reterr, RON_ERR_NOT_READY, "the log is still being read");
    if (rt_atomic_load_u32(&service->broken) != 0)
        return ron_fail(reterr, RON_ERR_CONFLICT,
                        "the log does not replay: restore what is damaged, restart, ask again");
    if (!rt_atomic_cas_u32(&service->marked, MARK_STANDS, MARK_LEAVES))
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "there is no damage to acknowledge");
    err = ledger_damage_unmark(options->vfs, options->path, reterr);
    rt_atomic_store_u32(&service->marked, err == RON_ERR_OK ? MARK_NONE : MARK_STANDS);
    if (err == RON_ERR_OK)
        leave(service);
    return err;
}

enum ron_err ledger_service_set_safe(struct ledger_service *service, bool on,
                                     struct ron_errinfo *reterr)
{
    if (on) {
        (void)rt_lifecycle_raise(service->lifecycle, RT_CAUSE_OPERATOR);
        service_show_safe(service);
        return RON_ERR_OK;
    }
    if (rt_atomic_load_u32(&service->damaged) != DAMAGE_NONE ||
        rt_atomic_load_u32(&service->marked) != MARK_NONE)
        return ron_fail(reterr, RON_ERR_CONFLICT,
                        "damage was found: it must be acknowledged, after the log replays");
    (void)rt_lifecycle_clear(service->lifecycle, RT_CAUSE_OPERATOR);
    leave(service);
    return RON_ERR_OK;
}
