/* Statuses, errors, logging and allocation. All other headers use them.
 *
 * Errors are values. No function of the library aborts, exits or prints. A function that can fail returns a
 * status, and weft_last_error() returns the message: what failed, where, and what to do.
 *
 * Arguments of every function:
 * - A pointer must be given, unless the function's comment says that NULL is allowed. Options may be NULL:
 *   all defaults, and a field that is 0 has its default (see WEFT_ZERO). Other NULLs are WEFT_ERR_ARGUMENT.
 * - After such an error, a function that makes a tensor, module or optimizer returns a poisoned one. Other
 *   functions that make something return NULL.
 * - Functions that only ask (how many, which, is it) answer 0, NULL, "", false, NaN or -1 for NULL. They
 *   accept NULL for a result that you do not need.
 * - Functions that free or close something ignore NULL.
 * - A number out of range is an error, also as a rank or an extent. But Weft cannot check a count against
 *   the array that it belongs to: only the caller knows the length of that array. */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

#if defined(__GNUC__)
#define WEFT_API               __attribute__((visibility("default")))
#define WEFT_CHECKED           __attribute__((warn_unused_result))
#define WEFT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define WEFT_API
#define WEFT_CHECKED
#define WEFT_PRINTF(fmt, args)
#endif

/* The caller's source location, "file.c:12". The op macros pass it, so that errors can name it. Functions
 * that end in _at take a location; NULL means that it is not known. Weft copies each location once and
 * keeps the copy until weft_close. */
#define WEFT_STRINGIFY_(x) #x
#define WEFT_STRINGIFY(x)  WEFT_STRINGIFY_(x)
#define WEFT_HERE          __FILE__ ":" WEFT_STRINGIFY(__LINE__)

/* Every status with its text. Files and messages use the names, never the numbers. */
#define WEFT_STATUS_LIST(X)                                                                                  \
    X(OK, "ok")                                                                                              \
    X(ERR_ARGUMENT, "invalid argument")                                                                      \
    X(ERR_SHAPE, "shapes do not fit")                                                                        \
    X(ERR_DTYPE, "dtype not accepted")                                                                       \
    X(ERR_INDEX, "index out of range")                                                                       \
    X(ERR_STALE, "the variables this tensor reads have moved on")                                            \
    X(ERR_OOM, "out of memory")                                                                              \
    X(ERR_DEVICE, "no such device")                                                                          \
    X(ERR_UNSUPPORTED, "not supported")                                                                      \
    X(ERR_IO, "input or output failed")                                                                      \
    X(ERR_FORMAT, "malformed data")                                                                          \
    X(ERR_NUMERIC, "not a finite number")                                                                    \
    X(ERR_STATE, "not possible in this state")                                                               \
    X(ERR_BUSY, "in use by another process")                                                                 \
    X(ERR_STOPPED, "stopped, as the program asked")                                                          \
    X(ERR_TIMEOUT, "another process does not answer in time")                                                \
    X(ERR_INTERNAL, "a bug in Weft")

typedef enum weft_status {
#define WEFT_STATUS_ENUM_(name, text) WEFT_##name,
    WEFT_STATUS_LIST(WEFT_STATUS_ENUM_)
#undef WEFT_STATUS_ENUM_
} weft_status;

typedef struct weft_context weft_context;

/* The name of a status, such as "ERR_SHAPE"; never NULL. */
WEFT_API const char *weft_status_name(weft_status status);

/* The message of the last error of a context; with NULL, of the last error of the calling thread. "" if
 * there was none. Valid until the next error of that context or thread. */
WEFT_API const char *weft_last_error(const weft_context *ctx);

/* The status that belongs to weft_last_error(). */
WEFT_API weft_status weft_last_status(const weft_context *ctx);

/* "0.1.0" */
WEFT_API const char *weft_version(void);

typedef enum weft_log_level {
    WEFT_LOG_DEBUG,
    WEFT_LOG_INFO,
    WEFT_LOG_WARNING,
    WEFT_LOG_ERROR
} weft_log_level;

/* Receives each log line, without a newline. Without a callback nothing is logged. */
typedef void (*weft_log_fn)(void *user, weft_log_level level, const char *message);

/* A context allocates all its host memory through this function. It works like realloc: old NULL allocates;
 * size 0 frees and returns NULL. Any other NULL result means failure, and old stays valid. */
typedef void *(*weft_alloc_fn)(void *user, void *old, size_t size);

/* The number 0 as a floating-point option whose default is another number: .beta1 = WEFT_ZERO is 0, and
 * .beta1 = 0 is the default, 0.9. It is the negative zero. Where an option cannot be 0, this is an error.
 *
 * Whole numbers have no such zero: 0 is the default, and a comment tells which negative number means none or
 * all, where there is one. Enums have a name for the default where 0 is another value, as
 * WEFT_ACTIVATION_DEFAULT. */
#define WEFT_ZERO (-0.0)

#ifdef __cplusplus
}
#endif
#endif
