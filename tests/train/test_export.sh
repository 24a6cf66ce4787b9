#!/usr/bin/env bash
# weft export: its formats, names and paths that are refused, files that exist, and failures that leave nothing behind.
# tests/train/test_export_c.c compares the exported C source with the library.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
command -v gcc >/dev/null || { echo "skipped: needs gcc" && exit 0; }
warnings=(-std=c99 -Wall -Wextra -Werror -pedantic)
small=(--set model.layers=1 --set model.width=16 --set model.context=16 --set train.steps=2 --quiet)

expect 0 '' "$weft" train mlp --data table.csv --run 'we*/ird "run"' --set model.hidden=[4] --set train.epochs=2 --quiet
mv 'we*/ird "run"' run
expect 0 '' "$weft" train gpt --data text.txt --run gpt "${small[@]}"
expect 0 '' "$weft" train gpt --data text.txt --run wide "${small[@]}" --set train.precision=f64

# ---- what is asked for ----
expect 2 "export: --to is missing: give c, safetensors, gpt2, huggingface, peft, gguf or gguf-lora" "$weft" export run
one_line
expect 2 "export: --to onnx: give c, safetensors, gpt2, huggingface, peft, gguf or gguf-lora" "$weft" export run --to onnx
expect 2 'is not a run folder' "$weft" export nowhere --to c
expect 2 '--to gpt2 needs a gpt, .*: use --to safetensors' "$weft" export run --to gpt2
one_line
expect 1 'train.precision f64, and C source computes in f32' "$weft" export wide --to c
one_line
for name in '' 3d 'a b' 'a"b' 'a*/b' a-b ../a _a "$(printf 'a\nb')" "$(printf '%041d' 0 | tr 0 x)"; do
    expect 2 'give a C identifier' "$weft" export run --to c --name "$name"
    one_line
    expect 2 'give a C identifier' "$weft" export run --to safetensors --name "$name"
done
check "and nothing was written" test ! -e run/export
expect 0 'wrote run/export/model.c' "$weft" export run --to c

# ---- a program of two models, in C and C++ ----
expect 0 'wrote src/deep/Flowers_2.c' "$weft" export run --to c --out src/deep --name Flowers_2
expect 0 'wrote src/deep/writer.c' "$weft" export gpt --to c --out src/deep --name writer
cat >main.c <<'END'
#include <stdio.h>
#include "Flowers_2.h"
#include "writer.h"
int main(void) {
    const float in[FLOWERS_2_INPUTS] = {2.5f, 3.0f};
    const int32_t tokens[3] = {1, 2, 3};
    float out[FLOWERS_2_OUTPUTS], logits[WRITER_VOCABULARY];
    Flowers_2_forward(in, out);
    printf("%s %s %.4f\n", Flowers_2_columns[1], Flowers_2_classes[Flowers_2_best(out)], (double)out[Flowers_2_best(out)]);
    return writer_forward(tokens, 3, logits);
}
END
cp main.c main.cc
printf 'a,b\n2.5,3\n' >row.csv
for cc in gcc clang g++; do
    command -v $cc >/dev/null || continue
    options=("${warnings[@]}")
    [ $cc = g++ ] && options=(-Wall -Wextra -Werror)
    ext=${cc/g++/cc} && ext=${ext/gcc/c} && ext=${ext/clang/c}
    for part in Flowers_2 writer; do check "$cc compiles $part" gcc "${warnings[@]}" -O2 -Isrc/deep -c "src/deep/$part.c" -o "$part.o"; done
    check "$cc links two models" $cc "${options[@]}" -Isrc/deep "main.$ext" Flowers_2.o writer.o -lm -o main
    check "$cc runs them" bash -c './main >said'
    "$weft" predict run row.csv --no-header >predicted
    check "$cc predicts what weft predict does" test "$(cut -d' ' -f2,3 said)" = "$(tr '\t' ' ' <predicted)"
done
check "only libm is called" bash -c 'nm -u Flowers_2.o | grep -Ev " (expf|memcpy|memset|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_)$" | (! grep .)'

# ---- files that exist ----
expect 0 'wrote run/export/model.c' "$weft" export run --to c # its own files are replaced
mkdir taken
echo "int main(void) { return 0; }" >taken/model.h
expect 2 'taken/model.h exists already and was not written by weft export: .*--force' "$weft" export run --to c --out taken
one_line
check "and it is as it was" test "$(cat taken/model.h)" = "int main(void) { return 0; }"
check "and nothing lies beside it" test "$(ls -A taken)" = model.h
expect 8 'main.c' "$weft" export run --to c --out main.c/below
one_line
cp src/deep/writer.h src/deep/Flowers_2.h
check "header and source of two exports do not compile" bash -c '! gcc -Isrc/deep -c src/deep/Flowers_2.c -o x.o'

awk 'BEGIN {for (i = 0; i < 5000; i++) printf "a"; print ",b,kind"; for (i = 0; i < 30; i++) print i "," i % 7 "," i % 3}' >long.csv
expect 0 '' "$weft" train mlp --data long.csv --run long --set model.hidden=[4] --set train.epochs=1 --quiet
expect 1 'the name of column 0 is longer than the 4,095 bytes that C99 allows' "$weft" export long --to c
one_line
check "and nothing was written" test ! -e long/export

# ---- a failure leaves nothing behind ----
full() { (trap '' XFSZ && ulimit -f 2 && exec "$weft" "$@"); }
expect 8 'model.c' full export gpt --to c --out full
check "a source that does not fit leaves nothing" test -z "$(ls -A full)"
expect 8 'model.safetensors' full export gpt --to safetensors --out full
check "and neither do weights" test -z "$(ls -A full)"

# ---- safetensors ----
expect 0 'wrote run/export/model.safetensors' "$weft" export run --to safetensors
expect 0 'wrote one.safetensors' "$weft" export run --to safetensors --out one.safetensors
check "the same model, the same bytes" cmp one.safetensors run/export/model.safetensors
expect 0 'wrote gpt/export/text.safetensors' "$weft" export gpt --to safetensors --name text
cat >read.py <<'END'
import json, struct, sys
def metadata(path):
    with open(path, "rb") as f:
        return json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
table, text = metadata("one.safetensors"), metadata("gpt/export/text.safetensors")
m, t = table.pop("__metadata__"), text.pop("__metadata__")
data = json.loads(m["data"])
assert m["format"] == "pt" and m["task"] == "classification" and m["model"] == "mlp-2-4-2" and int(m["step"]) > 0
assert data["classes"] == ["even", "odd"] and data["columns"] == ["a", "b"] and len(data["mean"]) == 2 and len(data["deviation"]) == 2
assert m["config"] == open("run/config.yaml").read() and m["weft"] and "tokenizer" not in m
assert sorted(table) == ["0.bias", "0.weight", "2.bias", "2.weight"] and table["0.weight"]["shape"] == [4, 2]
assert t["task"] == "language-model" and t["tokenizer"] == "character" and t["tokenizer.json"] == open("gpt/tokenizer.json").read()
assert json.loads(t["tokenizer.json"]) and json.loads(t["data"])["vocabulary"] == text["wte.weight"]["shape"][0]
try:
    from safetensors import safe_open
except ImportError:
    sys.exit(0)  # the rest needs the package safetensors
with safe_open("one.safetensors", framework="np") as f:
    assert f.metadata() == m and f.get_tensor("0.weight").shape == (4, 2)
END
check "its metadata hold how to use it" python3 read.py

echo "test_export: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
