#!/usr/bin/env bash
# Five first uses as a newcomer types them, on a terminal of 80 columns: a text, a table as people have them, photos, a C
# program that uses what was trained, and looking at the results.
# shellcheck source=tests/train/command.sh
here=$(dirname "$(readlink -f "$0")")
tree=$(readlink -f "$here/../..")
. "$(dirname "$0")/command.sh"
build=$(readlink -f "${WEFT_BINARY_DIR:-$(dirname "$weft")}")
type() { python3 "$here/terminal.py" 80 "$@"; } # what the newcomer types, and sees

# ---- a text ----
mkdir letters
cp text.txt letters/first.txt
cp text.txt letters/second.txt
expect 0 '^[0-9.]+ minutes: [0-9]+ steps' type "$weft" train text --data letters --minutes 0.02 --run runs/letters
check "what was read" grep -q 'data: 2 files, [0-9]* bytes, [0-9]* tokens (character), from letters' out
check "what to do next" grep -q 'next: .* generate runs/letters --prompt TEXT' out
expect 0 'the weft' type "$weft" generate runs/letters --prompt "the weft" --tokens 40
check "how to get another text" grep -q 'without --seed the text is always the same; for another text, use --seed 2' out

# ---- a table as it comes: an index, names, words, dates, missing cells ----
awk 'function random() { s = s * 16807 % 2147483647; return s / 2147483647 }
     BEGIN { s = 7; print ",survived,class,name,sex,age,sailed"
             for (i = 0; i < 300; i++) {
                 class = 1 + int(3 * random()); sex = random() < 0.6 ? "male" : "female"
                 age = random() < 0.2 ? "" : 1 + int(70 * random())
                 printf "%d,%s,%d,\"Nr. %d, Mr. X\",%s,%s,1912-04-%d\n", i, random() < 0.1 + 0.8 * (sex == "female") ? "yes" : "no",
                     class, i, sex, age, 10 + int(19 * random()) } }' >passengers.csv
expect 0 'validation accuracy [89][0-9.]+ %' type "$weft" train logistic --data passengers.csv --set data.target=survived --run runs/ship
check "what became of the columns" grep -q 'left out (hardly a value repeats): name' out
check "the classes" grep -q 'target: survived, 2 classes' out
expect 0 'sex=female' type "$weft" show runs/ship
printf 'class,sex,age,sailed\n1,female,,1912-04-12\n3,male,40,1912-04-13\n' >two.csv
expect 0 '^class	probability' "$weft" predict runs/ship two.csv
check "a woman, a man" awk 'NR == 2 && $1 != "yes" || NR == 3 && $1 != "no" {bad = 1} END {exit bad || NR != 3}' out
expect 0 'accuracy mean|mean' type "$weft" cv logistic --data passengers.csv --set data.target=survived --folds 3

# ---- photos in folders, one of them broken ----
python3 - <<'END'
import random
from pictures import png
random.seed(1)
def shape(path, inside):
    size = random.randint(20, 40)
    png(path, size, size, lambda y, x, c: 220 if inside(2 * x / size - 1, 2 * y / size - 1) else random.randint(0, 60), False)
for name, inside in (("circle", lambda x, y: x * x + y * y < 0.5), ("stripe", lambda x, y: abs(x) < 0.2)):
    for i in range(30): shape(f"photos/{name}/{i:02}.png", inside)
    shape(f"new/{name}/0.png", inside)
open("photos/circle/broken.jpg", "w").write("no picture")
open("photos/notes.txt", "w").write("not an image")
END
expect 3 'broken.jpg' type "$weft" train cnn --data photos --set 'model.image=[1,16,16]'
check "the way out is said" grep -q 'data.skip_bad' out
expect 0 'validation accuracy' type "$weft" train cnn --data photos --set 'model.image=[1,16,16]' --set data.skip_bad=true \
    --set train.batch=8 --set train.epochs=12 --run runs/photos
check "what was left out" grep -q 'left out' out
expect 0 '^new/circle/0.png	circle	' "$weft" predict runs/photos new
check "how right it is, since folders name the classes" grep -q 'accuracy 100.00 % of 2' err

# ---- a C program that uses the photo model ----
cat >ask.c <<'END'
#include <stdio.h>
#include <weft/weft.h>

int main(int argc, char **argv) {
    weft_context *ctx;
    weft_run *run = NULL;
    weft_predictions said = {0};
    if (argc < 2 || weft_open(NULL, &ctx) != WEFT_OK) return 1;
    weft_status status = weft_run_open(ctx, "runs/photos", &run);
    if (status == WEFT_OK) status = weft_run_predict_file(run, argv[1], &said);
    for (int64_t i = 0; i < said.count; i++)
        printf("%s: %s %.3f\n", said.files[i], weft_run_class_name(run, said.values[2 * i] < said.values[2 * i + 1]),
               said.values[2 * i]);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    weft_predictions_free(&said);
    weft_run_close(run);
    weft_close(ctx);
    return status != WEFT_OK;
}
END
if [ -e "$build/libweft.so" ] && ! grep -q __asan_init "$build/libweft.so"; then # a sanitizer needs its own linker flags
    check "it compiles without a warning" "${CC:-cc}" -std=c17 -Wall -Wextra -Werror ask.c -I"$tree/include" -L"$build" \
        -Wl,-rpath,"$build" -lweft -o ask
    expect 0 '^new/stripe/0.png: stripe' ./ask new
    expect 1 'nowhere.png' ./ask nowhere.png
fi

# ---- the results ----
expect 0 '' "$weft" train logistic --data passengers.csv --set data.target=survived --set optimizer.lr=0.01 --run runs/slow --quiet
expect 0 '^(runs/)?photos .*accuracy' type "$weft" runs
check "lines fit the terminal" awk 'length > 80 && !/weft runs/ {print; bad = 1} END {exit bad}' out # a command has the path of the program
expect 0 'optimizer.lr' type "$weft" compare runs/ship runs/slow
expect 0 '' type "$weft" compare runs/ship runs/slow --out curves.html
check "a page of curves" grep -q '<svg' curves.html
check "each run has its report" test -s runs/photos/report.html
check "pictures of the photos" grep -q 'data:image/png' runs/photos/report.html
expect 0 'intact' type "$weft" info runs/photos --check
expect 0 'best: ' type "$weft" sweep logistic --data passengers.csv optimizer.lr=0.01,0.1 --set data.target=survived --set train.epochs=20

echo "test_five_uses: cells=$cells fail=$fail skip=0"
[ $fail = 0 ]
