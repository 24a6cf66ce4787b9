/* The launches of a training step of every kind of model, at sizes at which a launch moves much memory, as an
 * H200 would get them: with the libraries, and with Weft's own kernels alone. A launch that moves more than
 * LARGE bytes must
 *
 *   blocks   have as many blocks as the card has multiprocessors,
 *   width    access 16 bytes at once where alignment allows it,
 *   again    not read an operand twice, unless its multiprocessor still has it,
 *   sums     not keep sums in memory that fit into registers.
 *
 * The table `allowed` has what is known to break a rule. An entry that nothing needs any more fails, too:
 * remove it together with its cause. No card and no library is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

#include "device/gpu/backend/program.h"
#include "device/gpu/card/card.h"
#include "device/null/null.h"
#include "train/analysis/planning.h"

#define LARGE 50e6
#define PART  0.1 /* of its bytes that a launch may read again or keep as sums */

typedef enum rule_kind { BLOCKS, WIDTH, AGAIN, SUMS, RULES } rule_kind;
static const char *const rule_names[RULES] = {"blocks", "width", "again", "sums"};

/* ---- what is known ---- */

static struct allowance {
    const char *launch; /* its name, or the start of it with a star */
    rule_kind rule;
    const char *reason;
    int met;
} allowed[] = {
    {"row_sum", WIDTH, "the same: lanes along the rows that are added have no spans", 0},
    {"row_mul_sub_mul_sum", WIDTH, "gradient of a batch norm: no spans where each lane adds its own column",
     0},
    {"row_mul_sub_mul_add_relu", WIDTH, "mean of an image after a batch norm: no spans", 0},
    {"row_mul_sub_mul_add_rsqrt", WIDTH,
     "weight and bias gradient of a layer norm whose input needs none: the same as of a batch norm", 0},
    {"map_add_relu_where", WIDTH, "the kernel around a max pool has no spans", 0},
    {"matmul", BLOCKS, "Weft's own matmul divides k by the shape alone, into 64 tiles", 0},
};
enum { ALLOWED = sizeof allowed / sizeof *allowed };

/* ---- the rules ---- */

static weft_card card;
static const char *net_name;
static int checked, broken, masked; /* masked: launches of attention with a mask */

static bool is_meant(const char *pattern, const char *name) {
    const size_t n = strlen(pattern);
    return pattern[n - 1] == '*' ? strncmp(pattern, name, n - 1) == 0 : strcmp(pattern, name) == 0;
}

static void check_rule(const weft_launch *l, rule_kind rule, bool holds, const char *path,
                       const char *found) {
    if (holds) return;
    for (int i = 0; i < ALLOWED; i++) {
        if (allowed[i].rule != rule || !is_meant(allowed[i].launch, l->name)) continue;
        allowed[i].met++;
        return;
    }
    broken++;
    printf("FAIL %s: %s%s%s breaks the rule \"%s\": it moves %.0f MB and %s\n", net_name, l->name,
           path[0] ? ", " : "", path, rule_names[rule], 1e-6 * l->facts.bytes, found);
}

static void check_launch(const weft_launch *l, const char *path) {
    const weft_launch_facts *f = &l->facts;
    const weft_card_price p = weft__card_price(&card, l, false);
    char found[96];
    if (l->call || f->bytes <= LARGE) return;
    checked++;
    snprintf(found, sizeof found, "has %lld blocks for %d multiprocessors", (long long)p.blocks, card.units);
    check_rule(l, BLOCKS, p.blocks >= card.units, path, found);
    snprintf(found, sizeof found, "accesses %d bytes at once; %d are allowed", f->width, f->allowed);
    check_rule(l, WIDTH, f->width >= 16 || f->width >= f->allowed, path, found);
    snprintf(found, sizeof found, "reads %.0f MB again", 1e-6 * p.again);
    check_rule(l, AGAIN, p.again <= PART * f->bytes, path, found);
    snprintf(found, sizeof found, "moves %.0f MB of sums", 1e-6 * f->sums);
    check_rule(l, SUMS, f->sums <= PART * f->bytes, path, found);
}

static void on_program(const weft_gpu_program *p, const weft_commands *commands) {
    for (int i = 0; i < p->launches.count; i++) {
        const weft_command *c = &commands->list[p->commands[i]];
        masked += c->kind == WEFT_COMMAND_HEAVY && c->heavy.kind == WEFT_HEAVY_ATTENTION &&
                  c->heavy.as.attention.masked && p->launches.list[i].facts.bytes > LARGE;
        check_launch(&p->launches.list[i], weft__gpu_path(c));
    }
}

/* ---- models ---- */

enum { SAMPLES = 2048, SETTINGS = 12 };

#define TOKENS "data.source=tokens", "data.path=none.bin"
#define DIGITS                                                                                               \
    "task=classification", "data.source=idx", "data.path=x.idx", "data.labels=y.idx", "data.val_fraction=0", \
        "train.batch=2048"
#define COLOURS                                                                                              \
    "task=classification", "data.source=cifar10", "data.path=c.bin", "data.val_fraction=0", "train.batch=2048"
#define GPT2                                                                                                 \
    TOKENS, "model.type=gpt", "model.layers=2", "model.heads=12", "model.width=768", "model.context=1024",   \
        "model.vocab=50304"

static const struct net {
    const char *name, *settings[SETTINGS];
} nets[] = {
    {"gpt2, bf16", {GPT2, "train.batch=64", "train.precision=bf16"}},
    {"gpt2, f32", {GPT2, "train.batch=64"}},
    {"gpt2 with dropout, recomputed",
     {GPT2, "train.batch=64", "train.precision=bf16", "model.dropout=0.1", "train.recompute=block"}},
    {"gpt2, logits in parts", {GPT2, "train.batch=64", "train.precision=bf16", "train.head_chunks=8"}},
    {"lstm", {TOKENS, "model.type=lstm", "model.vocab=8192", "train.batch=512", "model.context=128"}},
    {"gru, bf16",
     {TOKENS, "model.type=gru", "model.vocab=8192", "train.batch=512", "model.context=128",
      "train.precision=bf16"}},
    {"mlp", {DIGITS, "model.type=mlp", "model.hidden=[8192]"}},
    {"mlp, bf16, dropout",
     {DIGITS, "model.type=mlp", "model.hidden=[8192]", "model.dropout=0.1", "train.precision=bf16"}},
    {"logistic", {DIGITS, "model.type=logistic"}},
    {"autoencoder",
     {"task=regression", "data.source=idx", "data.path=x.idx", "data.val_fraction=0", "train.batch=2048",
      "model.type=autoencoder", "model.hidden=[8192,32]"}},
    {"cnn", {DIGITS, "model.type=cnn"}},
    {"resnet", {COLOURS, "model.type=resnet", "model.depth=8"}},
    {"resnet, bf16",
     {COLOURS, "model.type=resnet", "model.depth=8", "model.width=64", "train.precision=bf16"}},
};

static void write_data(void) {
    static const unsigned char images[16] = {0, 0, 8, 3, 0, 0, SAMPLES >> 8, 0, 0, 0, 0, 28, 0, 0, 0, 28};
    static const unsigned char labels[8] = {0, 0, 8, 1, 0, 0, SAMPLES >> 8, 0};
    FILE *x = fopen("x.idx", "wb"), *y = fopen("y.idx", "wb"), *c = fopen("c.bin", "wb"), *f;
    assert_true(x && y && c);
    fwrite(images, 1, sizeof images, x);
    fwrite(labels, 1, sizeof labels, y);
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < 28 * 28; k++) putc((i * 7 + k * 3) % 251, x);
        putc(i % 10, c);
        for (int k = 0; k < 3072; k++) putc((i * 5 + k) % 251, c);
        putc(i % 10, y);
    }
    fclose(x), fclose(y), fclose(c);
    f = fopen("own.json", "w");
    assert_non_null(f);
    fputs("{\"like\": \"h200\", \"libraries\": false}", f);
    fclose(f);
}

static void plan(const struct net *net, const char *spec) {
    weft__config config;
    weft__dataset data;
    weft__planned planned;
    weft__config_init(&config);
    net_name = net->name;
    for (int i = 0; i < SETTINGS && net->settings[i]; i++)
        if (weft__config_set(&config, net->settings[i]) != WEFT_OK)
            fail_msg("%s: %s", net->name, weft_last_error(NULL));
    weft_status status = weft__config_resolve(&config);
    if (status == WEFT_OK) status = weft__planning_data(&config, &data);
    if (status == WEFT_OK) status = weft__planning_step(&config, &data, spec, &planned);
    if (status != WEFT_OK) fail_msg("%s: %s", net->name, weft_last_error(NULL));
    weft__dataset_free(NULL, &data);
    weft__config_free(&config);
}

/* No configuration has attention with a mask. So plan a step of an encoder and a decoder, whose sequences are
 * padded (bool), or whose scores get a number for each head and pair of positions (f32). */
static void plan_masked(const char *device, weft_dtype dtype, bool padded) {
    enum { SENTENCES = 64, LENGTH = 512, HEADS = 12, CHANNELS = 768 };
    const int64_t x_shape[] = {SENTENCES, LENGTH, CHANNELS}, padding[] = {SENTENCES, LENGTH},
                  pairs[] = {1, HEADS, LENGTH, LENGTH};
    weft_transformer_block_options o = {.dtype = dtype};
    weft_context *ctx;
    assert_int_equal(weft_open(&(weft_open_options){.device = device}, &ctx), WEFT_OK);
    weft_module *encoder = weft_nn_transformer_block(ctx, CHANNELS, HEADS, &o);
    o.cross = true;
    weft_module *decoder = weft_nn_transformer_block(ctx, CHANNELS, HEADS, &o);
    weft_module *net = weft_nn_sequential(ctx, "net", encoder, decoder, NULL);
    weft_optimizer *sgd = weft_sgd(net, &(weft_sgd_options){.lr = 0.1});
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *source = weft_variable_new(ctx, "source", dtype, 3, x_shape, NULL);
    weft_tensor *target = weft_variable_new(ctx, "target", dtype, 3, x_shape, NULL);
    weft_tensor *mask = padded ? weft_variable_new(ctx, "mask", WEFT_BOOL, 2, padding, NULL)
                               : weft_variable_new(ctx, "mask", WEFT_F32, 4, pairs, NULL);
    weft_tensor *memory = weft_attend(encoder, source, &(weft_attend_options){.mask = mask});
    weft_tensor *y = weft_attend(decoder, target,
                                 &(weft_attend_options){.mask = mask, .memory = memory, .memory_mask = mask});
    weft_tensor *loss = weft_mean(weft_square(weft_cast(y, WEFT_F32)), WEFT_ALL_AXES, false);
    if (weft_optimizer_step(sgd, loss) != WEFT_OK) fail_msg("%s", weft_last_error(ctx));
    weft_free(source), weft_free(target), weft_free(mask);
    weft_scope_close(scope);
    weft_close(ctx);
}

static void plan_all_masked(void) {
    static const char *const devices[] = {"null:card:h200", "null:card:own.json"};
    for (int i = 0; i < 8; i++) {
        const int before = checked, masked_before = masked;
        net_name = i & 1 ? "masked, bf16" : "masked, f32";
        plan_masked(devices[i >> 1 & 1], i & 1 ? WEFT_BF16 : WEFT_F32, i >> 2);
        printf("%s, %s: %d launches of more than %.0f MB\n", net_name, i >> 2 ? "padded" : "added",
               checked - before, 1e-6 * LARGE);
        assert_true(masked > masked_before);
    }
}

static void test_rules(void **state) {
    char folder[] = "/tmp/weft-launches-XXXXXX";
    (void)state;
    assert_true(mkdtemp(folder) && chdir(folder) == 0);
    write_data();
    assert_int_equal(weft__card_find(NULL, "h200", &card), WEFT_OK);
    weft__null_watch = on_program;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        const int before = checked;
        plan(&nets[i], "card:h200");
        plan(&nets[i], "card:own.json");
        printf("%s: %d launches of more than %.0f MB\n", nets[i].name, checked - before, 1e-6 * LARGE);
    }
    plan_all_masked();
    weft__null_watch = NULL;
    unlink("x.idx"), unlink("y.idx"), unlink("c.bin"), unlink("own.json");
    assert_int_equal(chdir("/") + rmdir(folder), 0);
    for (int i = 0; i < ALLOWED; i++) {
        if (!allowed[i].met)
            printf("FAIL nothing needs the allowance of %s for %s: remove it\n", rule_names[allowed[i].rule],
                   allowed[i].launch);
        broken += !allowed[i].met;
    }
    assert_int_equal(broken, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
