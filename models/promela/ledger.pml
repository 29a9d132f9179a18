/*
 * ledger.pml - the ledger's pipeline as a design: Validated -> Sequenced -> Committed.
 *
 * Clients that ask again with the same key, a validated queue that drops its oldest, a sequencer, a
 * committer that works on while the disk syncs, a crash at any moment, a sync that fails
 * (safe-mode), a restart that replays. Checked in every interleaving:
 *
 *   S1 one writer      nobody begins to append while another appends
 *   S2 no gap          an entry's seq is its place in the log
 *   S3 nothing lost    what was acknowledged is in the log after every restart
 *   S4 nothing twice   no key is in the log twice, and no request is answered twice
 *   S5 conservation    the sum of both accounts is what it was, in both views
 *   S6 bounded         what is between sequencing and answer has a slot, and there are no more
 *   S7 no silence      every client ends (no invalid end state)
 *
 * The code: src/ledger/{prevalidator,sequencer,slots,committer}.c; models/ledger_service.c explores
 * that. Planted bugs: -DSEQ_FIRST -DACK_FIRST -DSILENT_DROP -DFORGET_KEYS -DTWO_WRITERS.
 * tests/promela runs all of it. covers: LED-V22
 */
#ifndef REQUESTS
#define REQUESTS 3
#endif
#define TRIES   2
#define PREVAL  1
#define SLOTS   2
#define CRASHES 1
#define PLACES  4 /* of the log: with a planted bug it gets longer than it should */

#define NONE        0
#define OK          1
#define DROPPED     2
#define BUSY        3
#define SAFE_MODE   4
#define UNKNOWN     5
#define NO_REQUEST  255

/* Clients. */
byte answer[REQUESTS];
bool asking[REQUESTS];
bool acknowledged[REQUESTS];
byte finished;

/* Memory: lost in a crash. */
chan preval = [PREVAL] of { byte };
chan commit = [SLOTS] of { byte, byte }; /* request, seq; seq 0: a repetition */
byte slots;
byte seq_last;
bool known[REQUESTS]; /* keys of the pending view */
byte pending_from, pending_to, committed_from, committed_to;
byte hand = NO_REQUEST; /* what the committer is appending */
byte hand_seq;
byte writers;
byte flight_request[SLOTS], flight_place[SLOTS], flight_count;
bool flight_repeats[SLOTS];
bool safe;

/* The log: what is durable stays, what is only appended may. */
byte log_request[PLACES];
byte place_of[REQUESTS]; /* from 1; 0: not there */
byte appended, durable;
byte crashes;

inline tell(who, what)
{
    assert(asking[who]);           /* S4 */
    assert(answer[who] == NONE);
    answer[who] = what;
    asking[who] = false;
    acknowledged[who] = acknowledged[who] || what == OK;
}

inline check_sums()
{
    assert(pending_from + pending_to == REQUESTS);     /* S5 */
    assert(committed_from + committed_to == REQUESTS); /* S5 */
    assert(slots <= SLOTS);                            /* S6 */
}

proctype Client(byte me)
{
    byte tries, oldest;

    do
    :: tries < TRIES ->
        atomic { /* validated, or refused at the door */
            tries++;
            answer[me] = NONE;
            asking[me] = true;
            if
            :: safe -> tell(me, SAFE_MODE)
            :: !safe && full(preval) ->
                preval?oldest;
                preval!me;
#ifndef SILENT_DROP
                tell(oldest, DROPPED);
#endif
                oldest = 0
            :: !safe && nfull(preval) -> preval!me
            fi
        }
        answer[me] != NONE;
        if
        :: answer[me] == OK -> break
        :: answer[me] != OK
        fi
    :: tries == TRIES -> break
    od;
    finished++
}

proctype Sequencer()
{
    byte request;

    do
    :: atomic {
        nempty(preval) ->
        preval?request;
#ifdef SEQ_FIRST
        if
        :: !known[request] -> seq_last++
        :: known[request]
        fi;
#endif
        if
        :: safe -> tell(request, SAFE_MODE)
        :: !safe && slots == SLOTS -> tell(request, BUSY)
        :: !safe && slots < SLOTS ->
            slots++;
            assert(nfull(commit)); /* S6 */
            if
            :: known[request] -> commit!request, 0
            :: !known[request] ->
#ifndef SEQ_FIRST
                seq_last++;
#endif
                known[request] = true;
                pending_from--;
                pending_to++;
                commit!request, seq_last
            fi
        fi;
        check_sums();
        request = 0
       }
    :: finished == REQUESTS -> break
    od
}

inline put_in_flight(who, is_repeated)
{
    assert(flight_count < SLOTS); /* S6 */
    flight_request[flight_count] = who;
    flight_place[flight_count] = appended;
    flight_repeats[flight_count] = is_repeated;
    flight_count++
}

inline drop_first()
{
    flight_request[0] = flight_request[1];
    flight_place[0] = flight_place[1];
    flight_repeats[0] = flight_repeats[1];
    flight_count--;
    flight_request[flight_count] = 0;
    flight_place[flight_count] = 0;
    flight_repeats[flight_count] = false;
    slots--
}

#ifdef ACK_FIRST
#define IS_DURABLE true
#else
#define IS_DURABLE (flight_place[0] <= durable)
#endif

proctype Committer()
{
    byte request, seq;

    do
    :: atomic { /* begin to append, or wait with a repetition for what is before it */
        nempty(commit) && hand == NO_REQUEST && !safe ->
        commit?request, seq;
        if
        :: seq == 0 -> put_in_flight(request, true)
        :: seq > 0 ->
            assert(writers == 0); /* S1 */
            writers++;
            hand = request;
            hand_seq = seq
        fi;
        request = 0;
        seq = 0
       }
    :: atomic { /* appended */
        hand != NO_REQUEST && !safe ->
        assert(hand_seq == appended + 1);  /* S2 */
        assert(place_of[hand] == 0);       /* S4 */
        log_request[appended] = hand;
        appended++;
        place_of[hand] = appended;
        put_in_flight(hand, false);
        hand = NO_REQUEST;
        hand_seq = 0;
        writers--
       }
    :: atomic { /* committed view, then the answer */
        flight_count > 0 && !safe && IS_DURABLE ->
        if
        :: flight_repeats[0]
        :: !flight_repeats[0] ->
            committed_from--;
            committed_to++
        fi;
        check_sums();
        tell(flight_request[0], OK);
        drop_first()
       }
    :: atomic { /* safe-mode: nothing more is written, everybody is answered */
        safe && hand != NO_REQUEST ->
        tell(hand, UNKNOWN);
        hand = NO_REQUEST;
        hand_seq = 0;
        writers--;
        slots--
       }
    :: atomic {
        safe && flight_count > 0 ->
        tell(flight_request[0], UNKNOWN);
        drop_first()
       }
    :: atomic {
        safe && nempty(commit) ->
        commit?request, seq;
        tell(request, UNKNOWN);
        slots--;
        request = 0;
        seq = 0
       }
    :: finished == REQUESTS -> break
    od
}

#ifdef TWO_WRITERS
/* Planted: somebody else appends, too. */
proctype Intruder()
{
    if
    :: atomic { hand == NO_REQUEST -> assert(writers == 0); writers++ };
       atomic { writers == 1 -> writers-- }
    :: finished == REQUESTS
    fi
}
#endif

/* Syncs some of what was appended; or fails, and never tries again. */
proctype Disk()
{
    do
    :: atomic { durable < appended && !safe -> durable++ }
    :: atomic { durable < appended && !safe -> safe = true }
    :: finished == REQUESTS -> break
    od
}

/* Everything in memory is gone; of what was not synced any beginning is left. Then the replay. */
inline crash()
{
    do
    :: appended > durable ->
        appended--;
        place_of[log_request[appended]] = 0;
        log_request[appended] = 0
    :: break
    od;
    durable = appended;
    do
    :: nempty(preval) -> preval?i
    :: empty(preval) -> break
    od;
    do
    :: nempty(commit) -> commit?i, hand_seq
    :: empty(commit) -> break
    od;
    hand = NO_REQUEST;
    hand_seq = 0;
    writers = 0;
    do
    :: flight_count > 0 -> drop_first()
    :: flight_count == 0 -> break
    od;
    slots = 0;
    safe = false;
    seq_last = durable;
    pending_to = durable;
    pending_from = REQUESTS - durable;
    committed_to = durable;
    committed_from = REQUESTS - durable;
    for (i : 0 .. REQUESTS - 1) {
#ifdef FORGET_KEYS
        known[i] = false;
#else
        known[i] = place_of[i] != 0;
#endif
        assert(!acknowledged[i] || place_of[i] != 0); /* S3 */
        if
        :: asking[i] -> tell(i, UNKNOWN)
        :: !asking[i]
        fi
    }
    i = 0;
    check_sums()
}

proctype Fate()
{
    byte i;

    do
    :: atomic { /* at any moment; and an operator who restarts once safe-mode has answered all */
        finished < REQUESTS &&
        (crashes < CRASHES || (crashes == CRASHES && safe && slots == 0)) ->
        crashes++;
        crash()
       }
    :: finished == REQUESTS -> break
    od;
    atomic { /* the end of all: a last restart finds what was promised */
        for (i : 0 .. REQUESTS - 1) {
            assert(!asking[i]);                           /* S7 */
            assert(!acknowledged[i] || place_of[i] != 0)  /* S3 */
        }
    }
}

init
{
    byte i;

    atomic {
        pending_from = REQUESTS;
        committed_from = REQUESTS;
        for (i : 0 .. REQUESTS - 1) {
            run Client(i)
        }
        run Sequencer();
        run Committer();
        run Disk();
        run Fate();
#ifdef TWO_WRITERS
        run Intruder()
#endif
    }
}
