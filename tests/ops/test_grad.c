/* Gradient checks on one device, for every op of ops.def that a program can call. An op without cases is a
 * link error. An op that is not differentiable must report it. */
#include "ops/matrix.h"

#define W_ELEM1(id, name, ...) void ops_grad_##name(matrix *m);
#define W_ELEM2(id, name, ...) void ops_grad_##name(matrix *m);
#define W_ELEM3(id, name, ...) void ops_grad_##name(matrix *m);
#define W_FUNC(name, ...)      void ops_grad_##name(matrix *m);
#include "ops/ops.def"

void ops_grad_defined(matrix *m); /* ops that a program defines */

static const op_cases table[] = {
#define W_ELEM1(id, name, ...) {#name, ops_grad_##name},
#define W_ELEM2(id, name, ...) {#name, ops_grad_##name},
#define W_ELEM3(id, name, ...) {#name, ops_grad_##name},
#define W_FUNC(name, ...)      {#name, ops_grad_##name},
#include "ops/ops.def"
    {"defined", ops_grad_defined},
};

int main(int argc, char **argv) { return ops_main(argc, argv, "grad", table, COUNT(table)); }
