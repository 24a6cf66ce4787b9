/* Processes that train one model together, on one machine or on many. An engine of clusters starts them:
 * mpirun, mpiexec, or srun of Slurm. They exchange memory of the host over MPI, which libweft opens at run
 * time. */
#ifndef WEFT_PROCESS_GROUP_H
#define WEFT_PROCESS_GROUP_H

#include <weft/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_process_group weft_process_group;

typedef struct weft_process_group_options {
    double timeout; /* seconds that a process waits for the others; 0: 60 */
} weft_process_group_options;

/* Joins the processes that were started together with this one. *group is NULL if this process was started
 * alone: all functions below take NULL for a group of one process. All processes of the group must call this
 * function, and later the same functions in the same order. options may be NULL.
 *
 * Which MPI it is follows from the variables that the launcher sets. $WEFT_MPI overrides this: openmpi,
 * mpich, the path of a library, or off.
 *
 * A group belongs to one thread at a time. WEFT_ERR_STATE: the launcher's MPI is not there; the message tells
 * what to install. WEFT_ERR_DEVICE: MPI failed. */
WEFT_API WEFT_CHECKED weft_status weft_process_group_open(const weft_process_group_options *options,
                                                          weft_process_group **group);
/* Leaves the group. All processes must call it. */
WEFT_API void weft_process_group_close(weft_process_group *group);

/* Ends all processes of the group at once, by their launcher, with this exit code. Only a program should call
 * it, after an error that the other processes do not know of. Without it they wait until their time is over.
 * Returns only if the group is NULL. */
WEFT_API void weft_process_group_abort(weft_process_group *group, int code);

/* The number of this process, from 0 on, and the number of processes. */
WEFT_API int weft_process_group_rank(const weft_process_group *group);
WEFT_API int weft_process_group_size(const weft_process_group *group);
/* The name of the machine of process `rank`. It lives as long as the group. */
WEFT_API const char *weft_process_group_host(const weft_process_group *group, int rank);
/* The number of this process among those of its machine, and how many these are. */
WEFT_API int weft_process_group_local_rank(const weft_process_group *group);
WEFT_API int weft_process_group_local_size(const weft_process_group *group);
/* How many threads this process should use, so that those of one machine do not share processors:
 * OMP_NUM_THREADS if it is set, else a part of the processors that the launcher allows. For
 * weft_open_options.threads. */
WEFT_API int weft_process_group_threads(const weft_process_group *group);
/* Changes the time limit, in seconds. */
WEFT_API void weft_process_group_set_timeout(weft_process_group *group, double timeout);
/* The engine and its version, such as "Open MPI v4.1.4". */
WEFT_API const char *weft_process_group_engine(const weft_process_group *group);

/* The functions below exchange memory of the host. Each process waits for the others, at most for the time
 * limit. WEFT_ERR_TIMEOUT: it is over; the message names the processes that do not answer. After an error the
 * group can only be aborted. */

/* Copies `bytes` bytes of process `from` to all others. */
WEFT_API WEFT_CHECKED weft_status weft_process_group_broadcast(weft_process_group *group, void *data,
                                                               size_t bytes, int from);
/* data: `size` parts of `bytes` bytes. Each process has filled the part of its rank, and receives the other
 * parts. */
WEFT_API WEFT_CHECKED weft_status weft_process_group_all_gather(weft_process_group *group, void *data,
                                                                size_t bytes);
/* Replaces each of `count` numbers, f32 or f64, by the sum of this number over all processes.
 * exact: adds in a binary tree over the ranks, ((0 + 1) + (2 + 3)) + ... The result does not depend on the
 * engine. If each process gives the sum of a subtree, it does not depend on their number either. Otherwise
 * the engine chooses the order. */
WEFT_API WEFT_CHECKED weft_status weft_process_group_all_reduce(weft_process_group *group, void *data,
                                                                weft_dtype dtype, size_t count, bool exact);
/* Waits until all processes have called it. */
WEFT_API WEFT_CHECKED weft_status weft_process_group_barrier(weft_process_group *group);

#ifdef __cplusplus
}
#endif
#endif
