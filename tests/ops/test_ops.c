/* The op matrix on one device: every op of ops.def, by its cases. An op without cases does not link. */
#include "ops/matrix.h"

#define W_ELEM1(id, name, ...) void ops_case_##name(matrix *m);
#define W_ELEM2(id, name, ...) void ops_case_##name(matrix *m);
#define W_ELEM3(id, name, ...) void ops_case_##name(matrix *m);
#define W_NODE(id, name, grad) void ops_case_##name(matrix *m);
#define W_FUNC(name, ...)      void ops_case_##name(matrix *m);
#include "ops/ops.def"

/* An integer division by 0 is known only from its values. */
void ops_case_division_by_zero(matrix *m);

/* Ops that a program defines. */
void ops_case_defined(matrix *m);

/* Reductions are functions too; so are most nodes, whose cases are then the same function. */
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
