/* The op matrix on one device: runs the cases of every op of ops.def. An op without cases is a link error. */
#include "ops/matrix.h"

#define W_ELEM1(id, name, ...) void ops_case_##name(matrix *m);
#define W_ELEM2(id, name, ...) void ops_case_##name(matrix *m);
#define W_ELEM3(id, name, ...) void ops_case_##name(matrix *m);
#define W_NODE(id, name, grad) void ops_case_##name(matrix *m);
#define W_FUNC(name, ...)      void ops_case_##name(matrix *m);
#include "ops/ops.def"

/* An integer division by 0 can be detected only from the values. */
void ops_case_division_by_zero(matrix *m);

/* Ops that a program defines. */
void ops_case_defined(matrix *m);

/* The names also cover reductions and most nodes. If such an op shares its cases with another op, both
 * entries name the same function. */
static const op_cases table[] = {
#define W_ELEM1(id, name, ...) {#name, ops_case_##name},
#define W_ELEM2(id, name, ...) {#name, ops_case_##name},
#define W_ELEM3(id, name, ...) {#name, ops_case_##name},
#define W_FUNC(name, ...)      {#name, ops_case_##name},
#define W_NODE(id, name, grad) {#name, ops_case_##name},
#include "ops/ops.def"
    {"division_by_zero", ops_case_division_by_zero},
    {"defined", ops_case_defined},
};

int main(int argc, char **argv) { return ops_main(argc, argv, "ops", table, COUNT(table)); }
