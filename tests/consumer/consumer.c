/* A program outside Weft's tree: it uses only the installed headers and library. It opens a context,
 * multiplies two matrices, and reads the sum of the result and its gradient. */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

/* sum(a b) = 1 * (1 + 2) + 3 * (1 + 2) + ..., and d sum / d a[i][k] = sum over j of b[k][j]. */
static int multiply(weft_context *ctx) {
    const float a_data[4] = {1, 2, 3, 4}, b_data[4] = {1, 2, 3, 4};
    const int64_t shape[2] = {2, 2};
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *a = weft_from(ctx, WEFT_F32, 2, shape, a_data);
    weft_tensor *b = weft_from(ctx, WEFT_F32, 2, shape, b_data);
    weft_tensor *ones = weft_full(ctx, WEFT_F32, 2, (const int64_t[]){1, 2}, 1);
    weft_tensor *product = weft_matmul(a, b); /* (2, 2): 7 10 15 22 */
    weft_tensor *sum =
        weft_matmul(weft_matmul(ones, product), weft_full(ctx, WEFT_F32, 2, (const int64_t[]){2, 1}, 1));
    weft_tensor *gradient;
    float found[4];
    bool good = weft_gradient(sum, &a, 1, &gradient) == WEFT_OK && weft_item(sum) == 54 &&
                weft_read(gradient, found, sizeof found) == WEFT_OK && found[0] == 3 && found[1] == 7 &&
                found[2] == 3 && found[3] == 7;
    weft_scope_close(scope);
    return good;
}

int main(void) {
    char headers[32];
    snprintf(headers, sizeof headers, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
    weft_context *ctx;
    if (weft_open(NULL, &ctx) != WEFT_OK) {
        printf("%s\n", weft_last_error(NULL));
        return 1;
    }
    int good = multiply(ctx);
    if (!good) printf("wrong: %s\n", weft_last_error(ctx));
    weft_close(ctx);
    printf("weft %s\n", weft_version());
    return !good || strcmp(headers, weft_version()) != 0;
}
