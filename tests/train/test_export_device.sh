#!/usr/bin/env bash
# weft export --to c --training: wishes that are refused, and the source under the address sanitizer. If there is a
# compiler for ARM, the source is compiled for a Cortex-M4; with qemu-system-arm it learns on a Cortex-M3 as here.
# tests/train/test_export_training.c compares the source with the library.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
command -v gcc >/dev/null || { echo "skipped: needs gcc" && exit 0; }
warnings=(-std=c99 -Wall -Wextra -Werror -pedantic)
skip=0

awk 'BEGIN { for (c = 0; c < 64; c++) printf "p%d,", c; print "kind"
             for (i = 0; i < 40; i++) { for (c = 0; c < 64; c++) printf "%d,", (i * 31 + c * c * 7) % 256; print i % 3 } }' >wide.csv
tiny=(--set model.layers=1 --set model.width=8 --set model.context=6 --set train.steps=2 --quiet)
expect 0 '' "$weft" train mlp --data table.csv --run mlp --set model.hidden=[4] --set train.epochs=2 --quiet
expect 0 '' "$weft" train cnn --data wide.csv --run cnn --set model.image=[1,8,8] --set model.filters=[3] --set model.hidden=[5] \
    --set train.epochs=2 --quiet
for type in gpt lstm gru; do expect 0 '' "$weft" train $type --data text.txt --run $type "${tiny[@]}"; done
expect 0 '' "$weft" train gpt --data text.txt --run half "${tiny[@]}" --set train.precision=f16

# ---- what is refused ----
expect 2 'export: --training: only --to c writes a training step' "$weft" export mlp --to safetensors --training
one_line
expect 2 'export: --batch is for --training' "$weft" export mlp --to c --batch 4
one_line
for batch in 0 65537; do
    expect 2 "export: --batch $batch: give a number from 1 to 65536" "$weft" export mlp --to c --training --batch $batch
    one_line
done
expect 2 '' "$weft" export mlp --to c --training --batch many
expect 1 'the run has train.precision f16, which scales the loss' "$weft" export half --to c --training
one_line
check "and nothing was written" test ! -e mlp/export -a ! -e half/export
expect 0 '' "$weft" export half --to c # predicting needs no scale

# ---- the source here and on ARM ----
cat >main.c <<'END'
#include <stdio.h>
#include "model.h"

#ifdef MODEL_WINDOW
static int32_t in[MODEL_BATCH * MODEL_WINDOW];
#else
static float in[MODEL_BATCH * MODEL_INPUTS], out[MODEL_OUTPUTS];
static int32_t targets[MODEL_BATCH];
#endif
static unsigned char state[MODEL_STATE];

static float learn(int step) {
    const int size = (int)(sizeof in / sizeof *in);
#ifdef MODEL_WINDOW
    for (int i = 0; i < size; i++) in[i] = (i * 7 + step) % MODEL_VOCABULARY;
    return model_train(in, 0.01f);
#else
    for (int i = 0; i < size; i++) in[i] = (float)((i * 7 + step) % 11);
    for (int i = 0; i < MODEL_BATCH; i++) targets[i] = (i + step) % MODEL_OUTPUTS;
    return model_train(in, targets, 0.01f);
#endif
}

int main(void) {
    float sum = 0.0f;
    for (int i = 0; i < 6; i++) {
        printf("%.6f\n", (double)learn(i));
        if (i == 3) model_save(state);
    }
    if (model_load(state, sizeof state) != 0) return 1;
    printf("%.6f\n", (double)learn(4)); /* as before */
    for (int i = 0; i < MODEL_PARAMETERS; i++)
        for (int k = 0; k < model_parameters[i].count; k++) sum += model_parameters[i].values[k];
    printf("%.4f\n", (double)sum);
#ifndef MODEL_WINDOW
    model_forward(in, out);
    printf("%.5f\n", (double)out[0]);
#endif
    return 0;
}
END
# The processor reads its stack and its first instruction from address 0.
cat >start.c <<'END'
extern void _start(void);
__attribute__((section(".vectors"), used)) static void (*const vectors[2])(void) = {(void (*)(void))0x3ffff0, _start};
END
arm="arm-none-eabi-gcc"
for run in mlp cnn gpt lstm gru; do
    expect 0 'bytes of a saved state' "$weft" export $run --to c --training --batch 2 --out $run-c
    check "$run: the address sanitizer finds nothing" bash -c "gcc ${warnings[*]} -O1 -g -fsanitize=address,undefined \
        -fno-sanitize-recover=all -I$run-c main.c $run-c/model.c -lm -o $run-here && ./$run-here >$run.here"
    check "$run: a loaded state goes on as before" test "$(sed -n 5p $run.here)" = "$(sed -n 7p $run.here)"
    check "$run: only libm is called" bash -c "gcc -std=c99 -O2 -c $run-c/model.c -o x.o && nm -u x.o |
        grep -Ev ' ([a-z0-9]+f|pow|sqrt|memcpy|memset|memcmp|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_)$' | (! grep .)"
    if ! command -v $arm >/dev/null || ! echo '#include <math.h>' | $arm -E - >/dev/null 2>&1; then
        echo "skipped: $run for ARM: needs gcc-arm-none-eabi and libnewlib-arm-none-eabi"
        skip=$((skip + 1))
        continue
    fi
    check "$run: compiles for a Cortex-M4" $arm "${warnings[@]}" -mcpu=cortex-m4 -mthumb -Os -c $run-c/model.c -o m4.o
    if ! command -v qemu-system-arm >/dev/null; then
        echo "skipped: $run on ARM: needs qemu-system-arm"
        skip=$((skip + 1))
        continue
    fi
    check "$run: links for a Cortex-M3" $arm -std=c99 -mcpu=cortex-m3 -mthumb -O1 -I$run-c --specs=rdimon.specs start.c main.c \
        $run-c/model.c -lm -o m3.elf -Wl,--section-start=.vectors=0
    check "$run: learns on a Cortex-M3" bash -c "timeout 100 qemu-system-arm -M mps2-an385 -nographic -semihosting \
        -kernel m3.elf </dev/null >$run.arm"
    check "$run: and the numbers are the same" bash -c "paste $run.here $run.arm |
        awk '{ d = \$1 - \$2; if (d < 0) d = -d; if (NF != 2 || d > 2e-4 * (1 + (\$1 < 0 ? -\$1 : \$1))) exit 1 }'"
done

echo "test_export_device: cells=$cells fail=$fail skip=$skip"
[ "$fail" = 0 ]
