/* weft__each_run: every task runs once, at the same time as the others, and a failure is told with its
 * device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/each.h"

typedef struct tried {
    weft__each each;
    _Atomic int here;          /* tasks that have begun */
    int runs[WEFT__EACH_MOST]; /* of each task */
    pthread_t threads[WEFT__EACH_MOST];
    size_t fails; /* the task that fails; WEFT__EACH_MOST: none */
} tried;

static void prepare(tried *t, size_t count, weft_status (*task)(void *user, size_t index)) {
    *t = (tried){.fails = WEFT__EACH_MOST};
    t->each.count = count;
    t->each.task = task;
    t->each.user = t;
    for (size_t i = 0; i < count; i++) t->each.names[i] = i % 2 ? "odd" : "even";
}

/* Waits until all tasks have begun, so it ends only if they run at the same time. */
static weft_status meet(void *user, size_t index) {
    tried *t = user;
    t->runs[index]++;
    t->threads[index] = pthread_self();
    t->here++;
    while (t->here < (int)t->each.count) {
    }
    return WEFT_OK;
}

static void test_together(void **state) {
    (void)state;
    static tried t;
    for (size_t count = 1; count <= 8; count++) {
        prepare(&t, count, meet);
        assert_int_equal(weft__each_run(&t.each), WEFT_OK);
        assert_true(pthread_equal(t.threads[0], pthread_self()));
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(t.runs[i], 1);
            for (size_t j = 0; j < i; j++) assert_false(pthread_equal(t.threads[i], t.threads[j]));
        }
    }
}

/* One task fails. The others wait for it, and fail, too. */
static weft_status follow(void *user, size_t index) {
    tried *t = user;
    if (index == t->fails) return weft__fail(NULL, WEFT_ERR_INDEX, "what went wrong");
    while (t->fails < WEFT__EACH_MOST && !t->each.failed) {
    }
    return t->fails == WEFT__EACH_MOST ? WEFT_OK : weft__fail(NULL, WEFT_ERR_STOPPED, "another one failed");
}

static void test_failures(void **state) {
    (void)state;
    static tried t;
    for (size_t i = 0; i < 3; i++) {
        char expected[64];
        prepare(&t, 3, follow);
        t.fails = i;
        snprintf(expected, sizeof expected, "device %zu of 3 (%s): what went wrong", i + 1,
                 i % 2 ? "odd" : "even");
        assert_int_equal(weft__each_run(&t.each), WEFT_ERR_INDEX);
        assert_string_equal(weft_last_error(NULL), expected);
        assert_int_equal(weft_last_status(NULL), WEFT_ERR_INDEX);
    }
    t.fails = WEFT__EACH_MOST; /* a later run begins anew */
    assert_int_equal(weft__each_run(&t.each), WEFT_OK);
    prepare(&t, 1, follow);
    t.fails = 0;
    assert_int_equal(weft__each_run(&t.each), WEFT_ERR_INDEX);
    assert_string_equal(weft_last_error(NULL), "what went wrong"); /* one device needs no name */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_together), cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
