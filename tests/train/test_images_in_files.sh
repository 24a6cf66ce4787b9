#!/usr/bin/env bash
# Tests images that stay in their files (data.in_files): the same bits as from memory, for all kinds of models, changes of
# images, parts of data and commands. Also files that change, vanish or break while a run trains, and the memory of a set
# that is much larger decoded.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

python3 - <<'PYTHON'
import random
from pictures import png
random.seed(4)
def noise(base): return lambda y, x, c: (base + 5 * y + 3 * x + 31 * c + random.randrange(60)) % 256
for i in range(41):  # of several sizes, some grey
    png("photos/%s/%02d.png" % (("cat", "dog", "owl")[i % 3], i), 9 + i % 4, 11 + i % 3, noise(70 * (i % 3)), i % 5 > 0)
for i in range(14):
    png("tests/%s/%02d.png" % (("cat", "dog", "owl")[i % 3], i), 10, 10, noise(70 * (i % 3)))
for i in range(20):
    png("same/%s/%02d.png" % ("ab"[i % 2], i), 7, 6, noise(90 * (i % 2)))
    png("mixed/%s/%02d.png" % ("ab"[i % 2], i), 7, 6, noise(90 * (i % 2)))
png("mixed/b/z.png", 5, 5, noise(0))
for i in range(400):
    png("many/%s/%03d.png" % ("ab"[i % 2], i), 8, 8, noise(90 * (i % 2)))
PYTHON

quick=(--set train.batch=7 --set train.epochs=2 --set train.save_every=3 --set data.val_fraction=0.2 --set train.seed=5)
size=(--set 'model.image=[3,8,8]')

# both NAME ARGUMENT...: trains twice, and compares everything that the data decide.
both() {
    local name=$1 mode file
    shift
    for mode in true false; do
        expect 0 '' "$weft" train "$@" --run "$name-$mode" --set data.in_files=$mode
    done
    check "$name: there are weights" test -n "$(find "$name-true/checkpoints" -name model.safetensors)"
    while read -r file; do
        check "$name: $file" cmp "$file" "${file/-false/-true}"
    done < <(find "$name-false" -path '*/step-*' -name '*.safetensors' -o -name data.json)
    [ -e "$name-false/scores.json" ] && check "$name: scores" cmp "$name-true/scores.json" "$name-false/scores.json"
    [ -e "$name-false/pictures.json" ] && check "$name: pictures" cmp "$name-true/pictures.json" "$name-false/pictures.json"
}

# ---- the same bits ----
changes=(--set data.crop=0.5 --set data.rotate=15 --set data.brightness=0.2 --set data.contrast=0.2 --set data.saturation=0.2
    --set data.erase=0.3 --set data.mixup=0.2 --set data.cutmix=1 --set data.shift=1 --set data.flip=true)
both cnn cnn --data photos "${quick[@]}" "${size[@]}" --set model.filters=[4] --set data.test_path=tests
check "it is told" grep -q 'decoded for each batch (data.in_files): [0-9.e-]* GB$' <("$weft" plan cnn --data photos "${size[@]}" --set data.in_files=true)
check "the report has pictures" grep -q '"png"' cnn-true/pictures.json
both changed cnn --data photos "${quick[@]}" "${size[@]}" --set model.filters=[4] "${changes[@]}"
both resnet resnet --data photos "${quick[@]}" "${size[@]}" --set model.depth=8 --set model.width=2
both rows mlp --data photos "${quick[@]}" "${size[@]}" --set model.hidden=[5]
both bytes mlp --data photos "${quick[@]}" "${size[@]}" --set model.hidden=[5] --set data.standardize=false --set optimizer.lr=1e-5
both auto autoencoder --data photos "${quick[@]}" "${size[@]}" --set model.hidden=[6,3]
both plainauto autoencoder --data photos "${quick[@]}" "${size[@]}" --set model.hidden=[6,3] --set data.standardize=false
both grey cnn --data photos "${quick[@]}" --set 'model.image=[1,6,9]' --set model.filters=[4]
both ownsize cnn --data same "${quick[@]}" --set model.filters=[4]
both full cnn --data photos "${quick[@]}" "${size[@]}" --set model.filters=[4] --set train.batch=full "${changes[@]}"
both given cnn --data photos "${quick[@]}" "${size[@]}" --set model.filters=[4] --set data.val_fraction=0 --set data.val_path=tests
both balanced cnn --data photos "${quick[@]}" "${size[@]}" --set model.filters=[4] --set train.class_weights=balanced --set train.accumulate=2
expect 0 '' env OMP_NUM_THREADS=3 "$weft" train cnn --data photos "${quick[@]}" "${size[@]}" --set model.filters=[4] "${changes[@]}" \
    --run threads --set data.in_files=true
check "by threads alike" cmp {threads,changed-true}/checkpoints/step-10/model.safetensors
check "three channels of different statistics" grep -q '"pixel_mean"' cnn-true/data.json

# ---- resume: the same continuation, also from memory ----
for mode in true false; do
    cp -r changed-true part-$mode
    rm -r part-$mode/checkpoints/step-9 part-$mode/checkpoints/step-10
    expect 0 'resumed' "$weft" resume part-$mode --set data.in_files=$mode
    check "resumed to the same bits, $mode" cmp {changed-false,part-$mode}/checkpoints/step-10/model.safetensors
done
cp -r photos kept
rm photos/cat/03.png
expect 3 'data' "$weft" resume part-true --set train.epochs=3
cp kept/cat/03.png photos/cat/03.png
expect 0 '' "$weft" resume part-true --set train.epochs=3

# ---- predict, eval, export ----
for model in cnn rows auto; do
    for mode in true false; do
        expect 0 '' "$weft" predict $model-$mode tests --out $model-$mode.tsv
        expect 0 '' "$weft" eval $model-$mode --json
        sed 's/"run": *"[^"]*"//' out >$model-$mode.eval
        expect 0 '' "$weft" export $model-$mode --to c --out $model-$mode.code
        grep -rhv "$model-$mode" $model-$mode.code >$model-$mode.c
    done
    check "$model: predictions" cmp $model-{true,false}.tsv
    check "$model: evaluation" cmp $model-{true,false}.eval
    check "$model: export" cmp $model-{true,false}.c
done
check "predictions of all images" test "$(wc -l <cnn-true.tsv)" = 15
expect 0 '^tests/cat/00.png	' "$weft" predict cnn-true tests/cat/00.png
for mode in true false; do
    expect 0 'accuracy' "$weft" eval cnn-$mode tests
    sed 's/cnn-[a-z]*//' out >new-$mode
done
check "new data" cmp new-true new-false

# ---- several runs ----
for mode in true false; do
    expect 0 '' "$weft" cv cnn --data photos "${quick[@]}" "${size[@]}" --set model.filters=[4] --folds 3 --run cv-$mode --set data.in_files=$mode
    expect 0 '' "$weft" sweep cnn optimizer.lr=0.001,0.002 --data photos "${quick[@]}" "${size[@]}" --set model.filters=[4] \
        --run sweep-$mode --set data.in_files=$mode
done
check "runs of several folds" test "$(find cv-true -name model.safetensors | wc -l)" -ge 3
while read -r file; do
    check "$file" cmp "$file" "${file/-false/-true}"
done < <(find cv-false sweep-false -name model.safetensors)

# ---- images that cannot be read ----
head -c 60 photos/cat/03.png >photos/cat/cut.png
: >photos/dog/zero.jpg
echo 'not an image' >photos/owl/text.gif
for mode in true false; do
    expect 3 'photos: 3 images cannot be read: repair or remove them, or set data.skip_bad: true to train without them' \
        "$weft" train cnn --data photos --run bad "${quick[@]}" "${size[@]}" --set data.in_files=$mode
    cp err bad-$mode
done
check "the same list" cmp bad-true bad-false
check "all of them" test "$(grep -c '^weft: ' bad-true)" = 4
both skipped cnn --data photos "${quick[@]}" "${size[@]}" --set model.filters=[4] --set data.skip_bad=true
check "the others train as without the bad ones" cmp {skipped,cnn}-true/checkpoints/step-10/model.safetensors
expect 3 'cannot be read' "$weft" predict cnn-true photos
rm photos/cat/cut.png photos/dog/zero.jpg photos/owl/text.gif
for mode in true false; do
    expect 3 'mixed/b/z.png: this image has 3 channels, 5 rows and 5 columns, but the first image has 3, 7 and 6' \
        "$weft" train cnn --data mixed --run bad --set data.in_files=$mode
done

# ---- files that change while a run trains ----
during photos moving 'mv moving/dog/04.png moving/dog/gone' 'moving/dog/04.png: '
during photos moving 'cp photos/dog/07.png x.png; mv x.png moving/dog/04.png' 'moving/dog/04.png: the image has changed since it was read first'
during photos moving 'head -c 70 photos/dog/04.png >x.png; mv x.png moving/dog/04.png' 'moving/dog/04.png: the image is damaged, or cut off at byte 70'

# ---- more than memory ----
large=(--data many --set 'model.image=[3,512,512]' --set model.hidden=[2] --set optimizer.type=sgd --set train.batch=8 --set train.steps=20
    --set train.epochs=0 --set optimizer.lr=0.001)
expect 0 '' "$weft" train mlp "${large[@]}" --run limited --set data.in_files=true
cp out told
check "315 MB of pixels" grep -q '(data.in_files): 0.315 GB$' told
expect 2 'data.in_files' "$weft" train mlp "${large[@]}" --run bad --set data.in_files=maybe
expect 0 'data.in_files' "$weft" train mlp --data table.csv --run csv --quiet --set train.steps=3 --set data.in_files=true
if ! grep -q __asan "$weft" && ! grep -q __tsan "$weft"; then
    expect 0 '' peak 200 "$weft" train mlp "${large[@]}" --run small --set data.in_files=true
    expect 1 '' peak 315 "$weft" train mlp "${large[@]}" --run big --set data.in_files=false
    expect 0 'data.in_files.: 0.315 GB, 0[.][0-9]* GB of memory are free$' \
        bash -c 'ulimit -v 900000 && "$@"' - "$weft" train mlp "${large[@]}" --run automatic
    check "with the same weights" cmp {automatic,limited}/checkpoints/step-20/model.safetensors
    expect 0 '^many/a/000.png	' bash -c 'ulimit -v 900000 && "$@"' - "$weft" predict automatic many
fi
expect 0 '' "$weft" train cnn --data photos "${quick[@]}" "${size[@]}" --run few
check "few images are in memory" bash -c '! grep -q "decoded for each batch" out'

echo "test_images_in_files: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
