#!/usr/bin/env bash
# The summary of the data that train and plan print first: tables, images and text, and what was skipped.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"

# summary COMMAND...: the lines under the first one, up to the one about the device. They go to the file "summary".
summary() {
    expect 0 '' "$weft" "$@"
    awk 'NR > 1 {if (/^(device )?(cpu|cuda)/) exit; print}' out >summary
    check "8 lines at most: $*" awk 'END {exit !(NR >= 2 && NR <= 8)}' summary
    check "80 columns at most: $*" python3 -c "assert all(len(line) < 81 for line in open('summary', encoding='utf-8'))"
}

# says LINE...: the summary is these lines.
says() {
    cells=$((cells + 1))
    if ! diff <(printf '%s\n' "$@") summary >differs; then
        fail=$((fail + 1))
        echo "FAIL: the summary differs (> is what was printed):"
        cat differs
    fi
}

# ---- tables ----
summary plan mlp --data table.csv
says 'data: 60 rows, 3 columns, from table.csv' 'inputs: 2 columns of numbers: a, b' \
    'target: kind, 2 classes, 30 rows each: even, odd' 'training: 54 rows, validation: 6 rows (drawn at random)'
cp summary planned
summary train mlp --data table.csv --set train.epochs=1 --run table
check "train and plan say the same" cmp summary planned
summary resume table --set train.epochs=2
check "and so does resume" cmp summary planned
expect 0 '' "$weft" train mlp --data table.csv --set train.epochs=1 --run quiet --quiet
check "--quiet prints nothing" test ! -s out

{
    echo 'id,a,year,kind,note'
    for i in $(seq 21); do echo "$i,$((i * i % 10)),2026,$([ $((i % 3)) = 0 ] && echo rare || echo frequent),some text"; done
} >notes.csv
head -12 notes.csv >later.csv
summary plan logistic --data notes.csv --set data.target=kind --set 'data.columns=[a,year]' --set data.val_path=later.csv \
    --set data.val_fraction=0
says 'data: 21 rows, 5 columns, from notes.csv' 'inputs: 2 columns of numbers: a, year' \
    'no effect: 1 column with the same value in all training rows: year' 'not used: 2 columns: id, note' \
    'target: kind, 2 classes, 7 to 14 rows each: frequent (14), rare (7)' 'training: 21 rows, validation: 11 rows'
tail -n +2 table.csv | cut -d, -f1,2 >bare.csv
summary plan linear --data bare.csv --set data.val_fraction=0
says 'data: 60 rows, 2 columns without names, from bare.csv' \
    'header: none (--set data.header=yes takes line 1 for names)' 'inputs: 1 column of numbers' \
    'target: the last column, 1 number' 'training: 60 rows, validation: none'
python3 - <<'END'
with open("many.csv", "w", encoding="utf-8") as f:
    print(*[f"a rather long name {i}" for i in range(40)], "za\u017c\u00f3\u0142\u0107 g\u0119\u015bl\u0105 jaj\u017a\u0144", sep=",", file=f)
    for row in range(120):
        print(*[row * i % 7 for i in range(40)], f"\u017c\u00f3\u0142w {row % 60}", sep=",", file=f)
END
summary plan mlp --data many.csv
check "long lists are shortened" grep -q '^inputs: 40 columns of numbers: a rather long name 0, a rather long name 1, \.\.\.$' summary
check "a long name is cut between two characters" grep -q '^target: zażółć gęślą jaj\.\.\., 60 classes, 2 rows each: żółw 0, .*, \.\.\.$' summary
summary plan autoencoder --data bare.csv
check "an autoencoder has no target" grep -q '^target: the input itself$' summary

# ---- images ----
python3 - <<'END'
from pictures import png
def shade(path, value): png(path, 4, 6, lambda y, x, c: value)
for i in range(10): shade(f"photos/cat/{i}.png", 10 + i)
for i in range(8): shade(f"photos/dog/{i}.png", 200 + i)
END
small=(--set 'model.filters=[2]' --set 'model.hidden=[4]')
images=('classes: 2, 8 to 10 images each: cat (10), dog (8)' 'training: 17 images, validation: 1 image (drawn at random)')
summary plan cnn --data photos "${small[@]}"
says 'data: 18 images, 4 x 6, 3 channels, from photos' "${images[@]}"
summary plan cnn --data photos/ "${small[@]}" --set 'model.image=[1,4,4]'
says 'data: 18 images, scaled to 4 x 4, 1 channel, from photos/' "${images[@]}"
summary plan mlp --data photos
says 'data: 18 images, 4 x 6, 3 channels, from photos' "${images[@]}"
touch photos/cat/a.heic photos/cat/{a,b,c}.TIF photos/dog/d.tif photos/dog/{e,f}.psd photos/README photos/.DS_Store photos/dog/._0.png
mkdir photos/dog/puppies photos/.cache
summary train cnn --data photos "${small[@]}" --set train.epochs=1 --run photo
says 'data: 18 images, 4 x 6, 3 channels, from photos' \
    'skipped: 8 files of other kinds: 4 .tif, 2 .psd, 1 without ending, 1 .heic' \
    'skipped: 3 hidden names (with a dot in front), 1 empty folder' "${images[@]}"
for i in $(seq 12); do touch "photos/cat/note.kind$i"; done
summary plan resnet --data photos --set train.batch=4 --set model.depth=8 --set model.width=2 --set data.shift=0
check "the number of all skipped files is right" grep -q '^skipped: 20 files of other kinds: 4 .tif, 2 .psd, ' summary
check "a resnet leaves out a part of a batch" grep -q '^left out in each epoch: 1 image that would not fill a batch$' summary

# ---- text ----
summary plan gpt --data text.txt
bytes=$(wc -c <text.txt)
letters=$(python3 -c "print(len(set(open('text.txt').read())))")
says "data: $bytes bytes, $bytes tokens (character), from text.txt" "vocabulary: $letters tokens" \
    "training: $((bytes * 9 / 10)) tokens, validation: $((bytes - bytes * 9 / 10)) tokens (the end of the data)"
summary plan lstm --data text.txt --set model.context=10 --set train.batch=7
check "a stream ends with a whole batch" \
    grep -q "^left out in each epoch: $((bytes * 9 / 10 - 7 * (10 * ((bytes * 9 / 10 / 7 - 1) / 10) + 1))) tokens" summary
mkdir -p letters/old
for i in 1 2 3; do cp text.txt "letters/$i.txt"; done
touch letters/.1.txt.swp letters/.git
summary plan gpt --data letters
says "data: 3 files, $((3 * bytes)) bytes, $((3 * bytes)) tokens (character), from letters" "vocabulary: $letters tokens" \
    'skipped: 2 hidden names (with a dot in front), 1 folder inside the folder' \
    "training: $((3 * bytes * 9 / 10)) tokens, validation: $((3 * bytes - 3 * bytes * 9 / 10)) tokens (the end of the data)"
summary plan gpt --data 'letters/[12].txt'
check "a pattern skips nothing" sh -c 'grep -q "^data: 2 files, " summary && ! grep -q skipped summary'
python3 -c "
import array
array.array('H', [i % 50 for i in range(1000)]).tofile(open('tokens.bin', 'wb'))"
summary plan gpt --data tokens.bin
says 'data: 1000 tokens, from tokens.bin' 'vocabulary: 50 tokens, up to the largest in the data' \
    'training: 900 tokens, validation: 100 tokens (the end of the data)'
expect 0 '^data: none was read; a vocabulary of 300 is assumed$' "$weft" plan gpt --data absent.txt --set model.vocab=300

echo "test_data_summary: cells=$cells fail=$fail skip=0"
[ $fail = 0 ]
