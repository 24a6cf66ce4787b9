/* NCCL for tests, between processes: a message is a file in the folder that the unique id names. As in NCCL
 * that does not block, a group is submitted to the stream only while somebody asks for the state of the
 * communicator. Whoever submits a program before that gets it done before the group. The work waits in the
 * stream until the messages of all others are there. Sums are added from the last rank to the first, so that
 * they differ from exact sums.
 *
 * Environment:
 *     FAKE_NCCL_FOLDER=DIR   where the folders of messages are; default: /tmp
 *     FAKE_NCCL_LOG=FILE     each communicator appends a line when it ends: its calls, and how it ended
 *     FAKE_NCCL_REFUSE=1     no communicator is made
 *     FAKE_NCCL_FAIL=7       the seventh group fails while it is under way; 7@1: that of rank 1
 *     FAKE_NCCL_STOP=7       the process stops (SIGSTOP) when it submits the seventh group
 *     FAKE_NCCL_VERSION=...  instead of 22801
 * Read next: nccl.h, queue.c. */
#include "nccl.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANKS_MOST = 16, MESSAGES_MOST = CALLS_MOST * 2 * RANKS_MOST };

typedef struct message {
    bool out;
    int peer;
    unsigned number; /* among the messages between the two ranks in this direction */
    const fake_call *call;
    void *to; /* where it is stored; NULL: it is added up */
} message;

/* Calls that are submitted together. */
typedef struct group {
    ncclComm_t comm;
    fake_call calls[CALLS_MOST];
    message messages[MESSAGES_MOST];
    int n_calls, n_messages;
    bool sent, polled;
} group;

struct fake_ranks {
    char folder[128];
    unsigned sent[RANKS_MOST], received[RANKS_MOST];
    bool open, ending, ended, aborted;
    ncclResult_t failed;
    group *waiting; /* the group that is not in the stream yet */
    long groups, calls[KINDS];
};

__attribute__((destructor)) static void at_end(void) {
    if (fake_nccl_refused()) _exit(1);
}

/* ---- files ---- */

static void name_file(const struct fake_ranks *r, char path[300], const char *format, ...) {
    va_list args;
    const int n = snprintf(path, 200, "%s/", r->folder);
    va_start(args, format);
    vsnprintf(path + n, 100, format, args);
    va_end(args);
}

/* Writes a file that the others see only when it is complete. */
static void write_file(const struct fake_ranks *r, const char *path, const void *head, size_t head_bytes,
                       const void *data, size_t bytes) {
    char hidden[300];
    static _Thread_local unsigned n;
    name_file(r, hidden, "new-%d-%p-%u", (int)getpid(), (void *)&n, n);
    n++;
    FILE *file = fopen(hidden, "wb");
    if (!file || fwrite(head, 1, head_bytes, file) != head_bytes || fwrite(data, 1, bytes, file) != bytes ||
        fclose(file) != 0 || rename(hidden, path) != 0)
        fake_nccl_refuse("a message cannot be written");
}

static bool all_have(const struct ncclComm *comm, const char *what) {
    char path[300];
    for (int i = 0; i < comm->ranks; i++) {
        name_file(comm->others, path, "%s-%d", what, i);
        if (access(path, F_OK) != 0) return false;
    }
    return true;
}

static void note(const struct ncclComm *comm, const char *what) {
    char path[300];
    name_file(comm->others, path, "%s-%d", what, comm->rank);
    write_file(comm->others, path, &comm->card, sizeof comm->card, "", 0);
}

/* ---- messages ---- */

typedef struct head {
    int kind;
    unsigned type;
    size_t count;
} head;

static void message_name(const group *g, const message *m, char path[300]) {
    const int own = g->comm->rank;
    name_file(g->comm->others, path, "message-%d-%d-%u", m->out ? own : m->peer, m->out ? m->peer : own,
              m->number);
}

/* A SEND is received by a RECEIVE. */
static head head_of(const fake_call *c) {
    return (head){c->kind == RECEIVE ? SEND : (int)c->kind, c->type, c->count};
}

static size_t bytes_of(const fake_call *c) { return c->count * fake_nccl_size(c->type); }

static void add_message(group *g, const fake_call *c, bool out, int peer, void *to) {
    struct fake_ranks *r = g->comm->others;
    g->messages[g->n_messages++] = (message){out, peer, out ? r->sent[peer]++ : r->received[peer]++, c, to};
}

static void add_messages(group *g, const fake_call *c) {
    for (int i = 0; i < g->comm->ranks; i++) {
        const bool other = i != g->comm->rank, root = c->peer == g->comm->rank;
        if ((c->kind == SEND && i == c->peer) || (c->kind == BROADCAST && root && other) ||
            (other && (c->kind == GATHER || c->kind == REDUCE)))
            add_message(g, c, true, i, NULL);
        if ((c->kind == RECEIVE || (c->kind == BROADCAST && !root)) && i == c->peer)
            add_message(g, c, false, i, c->to);
        if (other && c->kind == GATHER) add_message(g, c, false, i, (char *)c->to + (size_t)i * bytes_of(c));
        if (other && c->kind == REDUCE) add_message(g, c, false, i, NULL);
    }
}

static void send_all(group *g) {
    char path[300];
    for (int k = 0; k < g->n_messages; k++) {
        const message *m = &g->messages[k];
        const head h = head_of(m->call);
        if (!m->out) continue;
        message_name(g, m, path);
        write_file(g->comm->others, path, &h, sizeof h, m->call->from, bytes_of(m->call));
    }
    g->sent = true;
}

static int is_ready(void *data) {
    group *g = data;
    char path[300];
    if (g->comm->others->aborted) return 1;
    if (!g->sent) send_all(g);
    for (int k = 0; k < g->n_messages; k++) {
        message_name(g, &g->messages[k], path);
        if (!g->messages[k].out && access(path, F_OK) != 0) return 0;
    }
    return 1;
}

/* ---- work in the stream ---- */

/* Reads a message to `to`. */
static void receive(const group *g, const message *m, void *to) {
    const head wanted = head_of(m->call);
    head h = {0};
    char path[300];
    message_name(g, m, path);
    FILE *file = fopen(path, "rb");
    if (!file || fread(&h, sizeof h, 1, file) != 1 || h.kind != wanted.kind || h.type != wanted.type ||
        h.count != wanted.count || fread(to, 1, bytes_of(m->call), file) != bytes_of(m->call)) {
        fake_nccl_refuse("ranks that exchange otherwise");
        g->comm->others->failed = INVALID_USAGE;
    }
    if (file) fclose(file);
    unlink(path);
}

static void add_up(const fake_call *c, void *sum, const void *more) {
    for (size_t i = 0; i < c->count; i++)
        if (c->type == ncclFloat64)
            ((double *)sum)[i] += ((const double *)more)[i];
        else
            ((float *)sum)[i] += ((const float *)more)[i];
}

/* Adds up from the last rank to the first. */
static void reduce(const group *g, const fake_call *c) {
    const size_t bytes = bytes_of(c);
    char *sum = calloc(1, bytes), *more = malloc(bytes);
    for (int i = g->comm->ranks - 1; i >= 0; i--) {
        if (i == g->comm->rank) memcpy(more, c->from, bytes);
        for (int k = 0; k < g->n_messages; k++)
            if (g->messages[k].call == c && !g->messages[k].out && g->messages[k].peer == i)
                receive(g, &g->messages[k], more);
        add_up(c, sum, more);
    }
    memcpy(c->to, sum, bytes);
    free(sum);
    free(more);
}

/* What the own rank gives to itself, and sums. */
static void finish_call(const group *g, const fake_call *c) {
    char *own = (char *)c->to + (c->kind == GATHER ? (size_t)c->comm->rank * bytes_of(c) : 0);
    if (c->kind == REDUCE) reduce(g, c);
    if ((c->kind == GATHER || (c->kind == BROADCAST && c->peer == c->comm->rank)) && own != c->from)
        memmove(own, c->from, bytes_of(c));
}

static void note_uses(const fake_call *c) {
    if (c->from) fake_uses(c->from, bytes_of(c), 0);
    if (c->to) fake_uses(c->to, bytes_of(c) * (c->kind == GATHER ? (size_t)c->comm->ranks : 1), 1);
}

static unsigned do_group(void *data) {
    group *g = data;
    for (int k = 0; k < g->n_messages && !g->comm->others->aborted; k++)
        if (!g->messages[k].out && g->messages[k].to) receive(g, &g->messages[k], g->messages[k].to);
    for (int i = 0; i < g->n_calls && !g->comm->others->aborted; i++) {
        note_uses(&g->calls[i]);
        finish_call(g, &g->calls[i]);
    }
    free(g);
    return 0;
}

/* ---- groups ---- */

ncclResult_t fake_nccl_submit(const fake_call *calls, int n) {
    struct fake_ranks *r = calls[0].comm->others;
    if (!r->open || r->ending || r->waiting)
        return fake_nccl_refuse("a group before the last call has ended");
    group *g = calloc(1, sizeof *g);
    g->comm = calls[0].comm;
    g->n_calls = n;
    for (int i = 0; i < n; i++) {
        const fake_call *c = &calls[i];
        const size_t bytes = bytes_of(c);
        if (c->comm != g->comm || c->stream != calls[0].stream ||
            (c->from && !fake_is_on_card(c->from, bytes)) ||
            (c->to && !fake_is_on_card(c->to, bytes * (c->kind == GATHER ? (size_t)c->comm->ranks : 1))))
            return fake_nccl_refuse("memory that is not of the card, or another communicator");
        g->calls[i] = *c;
        r->calls[c->kind]++;
        add_messages(g, &g->calls[i]);
    }
    r->waiting = g;
    r->groups++;
    return ncclInProgress;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      CUstream stream) {
    return fake_nccl_add((fake_call){SEND, from, NULL, count, type, peer, comm, stream});
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      CUstream stream) {
    return fake_nccl_add((fake_call){RECEIVE, NULL, to, count, type, peer, comm, stream});
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           CUstream stream) {
    return fake_nccl_add((fake_call){GATHER, from, to, count, type, 0, comm, stream});
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, CUstream stream) {
    return fake_nccl_add((fake_call){BROADCAST, from, to, count, type, root, comm, stream});
}

/* ---- communicators ---- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    const char *folder = getenv("FAKE_NCCL_FOLDER");
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%s/fake-nccl-XXXXXX", folder ? folder : "/tmp");
    return mkdtemp(id->internal) ? 0 : SYSTEM_ERROR;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    const int card = fake_current_card();
    if (config->size != sizeof *config || config->magic != 0xcafebeefU || config->version != 21400 ||
        config->blocking || ranks < 2 || ranks > RANKS_MOST || rank < 0 || rank >= ranks || card < 0)
        return fake_nccl_refuse("a communicator with other options, or no card");
    if (getenv("FAKE_NCCL_REFUSE")) return SYSTEM_ERROR;
    *comm = calloc(1, sizeof **comm);
    **comm = (struct ncclComm){rank, ranks, card, true, calloc(1, sizeof *(*comm)->others)};
    snprintf((*comm)->others->folder, sizeof(*comm)->others->folder, "%s", id.internal);
    note(*comm, "joined");
    return ncclInProgress;
}

/* The cards of all ranks must differ. All processes of the tests are on one machine. */
static ncclResult_t open_communicator(struct ncclComm *comm) {
    bool taken[CARDS_MOST] = {false};
    char path[300];
    if (!all_have(comm, "joined")) return ncclInProgress;
    for (int i = 0; i < comm->ranks; i++) {
        int card = 0;
        name_file(comm->others, path, "joined-%d", i);
        FILE *file = fopen(path, "rb");
        if (!file || fread(&card, sizeof card, 1, file) != 1 || card < 0 || card >= CARDS_MOST)
            return SYSTEM_ERROR;
        fclose(file);
        if (taken[card]) return fake_nccl_refuse("two ranks on one card");
        taken[card] = true;
    }
    comm->others->open = true;
    return 0;
}

static ncclResult_t submit_waiting(struct ncclComm *comm) {
    struct fake_ranks *r = comm->others;
    const char *fail = getenv("FAKE_NCCL_FAIL"), *stop = getenv("FAKE_NCCL_STOP");
    group *g = r->waiting;
    if (!g->polled) {
        g->polled = true;
        return ncclInProgress;
    }
    r->waiting = NULL;
    const char *rank = fail ? strchr(fail, '@') : NULL;
    if (fail && r->groups == atol(fail) && (!rank || atoi(rank + 1) == comm->rank))
        return r->failed = INTERNAL_ERROR;
    if (stop && r->groups == atol(stop)) raise(SIGSTOP);
    fake_enter_card(comm->card);
    const unsigned error = fake_enqueue_when(g->calls[0].stream, is_ready, do_group, g);
    fake_leave_card();
    return error ? INTERNAL_ERROR : 0;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state) {
    struct fake_ranks *r = comm->others;
    if (!comm->alive || !r) return fake_nccl_refuse("a communicator that is gone");
    if (r->failed)
        *state = r->failed;
    else if (!r->open)
        *state = open_communicator(comm);
    else if (r->waiting)
        *state = submit_waiting(comm);
    else if (r->ending && !r->ended)
        *state = (r->ended = all_have(comm, "closed")) ? 0 : ncclInProgress;
    else
        *state = 0;
    return 0;
}

/* Removes the folder, with messages that nobody has received. */
static void remove_folder(const struct fake_ranks *r) {
    char path[300];
    DIR *folder = opendir(r->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        name_file(r, path, "%.90s", entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (folder) closedir(folder);
    rmdir(r->folder);
}

/* The last rank removes the folder. */
static void leave(struct ncclComm *comm, const char *how) {
    const struct fake_ranks *r = comm->others;
    const char *log = getenv("FAKE_NCCL_LOG");
    FILE *file = log ? fopen(log, "a") : NULL;
    if (file)
        fprintf(file,
                "rank %d of %d on card %d: sums=%ld sends=%ld receives=%ld gathers=%ld broadcasts=%ld %s\n",
                comm->rank, comm->ranks, comm->card, r->calls[REDUCE], r->calls[SEND], r->calls[RECEIVE],
                r->calls[GATHER], r->calls[BROADCAST], how);
    if (file) fclose(file);
    note(comm, "gone");
    if (all_have(comm, "gone")) remove_folder(r);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    struct fake_ranks *r = comm->others;
    if (!comm->alive || !r || !r->open || r->waiting || r->ending)
        return fake_nccl_refuse("the end of a communicator that does not exist, or does something");
    r->ending = true;
    note(comm, "closed");
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (!comm->alive || !comm->others || !comm->others->ended)
        return fake_nccl_refuse("a communicator that the others still use");
    leave(comm, "destroyed");
    comm->alive = false;
    return 0;
}

void fake_nccl_abort(ncclComm_t comm) {
    comm->others->aborted = true; /* work in the stream ends */
    free(comm->others->waiting);
    comm->others->waiting = NULL;
    leave(comm, "aborted");
}
