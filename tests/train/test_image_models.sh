#!/usr/bin/env bash
# Tests image models with the command: cnn, resnet and autoencoder from idx, CIFAR-10's batches and csv. Also shifted and
# mirrored images after a resume, predict and eval, and truncated files.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

# Twelve records of CIFAR-10: label i % 3; the pixels are brighter for higher labels, with a little noise.
record() {
    printf '%b' "$(printf '\\x%02x' "$1")"
    awk -v c="$1" -v s="$2" 'BEGIN {for (i = 0; i < 3072; i++) printf "%c", 33 + c * 30 + (i * 7 + s * 5) % 11}'
}
for i in $(seq 0 11); do record $((i % 3)) "$i"; done >train.bin
gzip -k train.bin
check "twelve records" test "$(wc -c <train.bin)" = 36876

# the first 64 pixels of each as an idx file: (12, 8, 8)
{
    printf '\0\0\x08\x03\0\0\0\x0c\0\0\0\x08\0\0\0\x08'
    for i in $(seq 0 11); do tail -c +$((i * 3073 + 2)) train.bin | head -c 64; done
} >small-images-idx3-ubyte
{
    printf '\0\0\x08\x01\0\0\0\x0c'
    for i in $(seq 0 11); do printf '%b' "\\x0$((i % 3))"; done
} >small-labels-idx1-ubyte

quick=(--quiet --set train.batch=4 --set data.val_fraction=0)

# ---- resnet ----
expect 0 '' "$weft" init resnet --data train.bin.gz --out resnet.yaml
check "its data are of CIFAR-10" grep -q '^  source: cifar10$' resnet.yaml
small=("${quick[@]}" --set model.depth=8 --set model.width=2)
expect 0 '' "$weft" train resnet.yaml --run whole "${small[@]}" --set train.epochs=4
expect 0 '' "$weft" train resnet.yaml --run plain "${small[@]}" --set train.epochs=4 --set data.path=train.bin
check "packed and plain give the same bits" cmp {whole,plain}/checkpoints/step-12/model.safetensors
expect 0 '' "$weft" train resnet.yaml --run still "${small[@]}" --set train.epochs=4 --set data.shift=0 --set data.flip=false
check "images are moved" bash -c '! cmp -s {whole,still}/checkpoints/step-12/model.safetensors'
cp -r whole part
rm -r part/checkpoints/step-9 part/checkpoints/step-12
expect 0 '' "$weft" resume part --quiet
check "resumed to the same bits, running statistics too" cmp {whole,part}/checkpoints/step-12/model.safetensors
changes=(--set data.crop=0.5 --set data.rotate=15 --set data.brightness=0.2 --set data.contrast=0.2 --set data.saturation=0.2
    --set data.erase=0.3 --set data.mixup=0.2 --set data.cutmix=1)
expect 0 '' "$weft" train resnet.yaml --run changed "${small[@]}" --set train.epochs=4 "${changes[@]}"
check "images are changed" bash -c '! cmp -s {whole,changed}/checkpoints/step-12/model.safetensors'
expect 0 '' env OMP_NUM_THREADS=3 "$weft" train resnet.yaml --run threads "${small[@]}" --set train.epochs=4 "${changes[@]}"
check "by threads alike" cmp {changed,threads}/checkpoints/step-12/model.safetensors
cp -r changed part-changed
rm -r part-changed/checkpoints/step-9 part-changed/checkpoints/step-12
expect 0 '' "$weft" resume part-changed --quiet
check "and after a resume" cmp {changed,part-changed}/checkpoints/step-12/model.safetensors
"$weft" predict changed train.bin >first
expect 0 '' "$weft" predict changed train.bin
check "predictions see the images as they are" cmp first out
for key in crop rotate brightness contrast saturation erase mixup cutmix; do
    expect 0 '' "$weft" train resnet.yaml --run "only-$key" "${small[@]}" --set train.epochs=4 --set data.$key=0.9
    check "data.$key has an effect" bash -c "! cmp -s {whole,only-$key}/checkpoints/step-12/model.safetensors"
done
expect 2 'data.mixup' "$weft" train resnet.yaml --run bad "${small[@]}" --set data.mixup=2
check "they are saved" grep -aq 'bn1.running_var' whole/checkpoints/step-12/model.safetensors
check "the scale of channels is kept" grep -q '"pixel_deviation"' whole/data.json
expect 0 '^[0-2]	' "$weft" predict whole train.bin
expect 0 '' "$weft" train resnet.yaml --run tested "${small[@]}" --set train.epochs=1 --set data.test_path=train.bin
expect 0 'accuracy' "$weft" eval tested

# ---- cnn ----
expect 0 '' "$weft" init cnn --data small-images-idx3-ubyte --out cnn.yaml
expect 0 '' "$weft" train cnn.yaml --run cnn "${quick[@]}" --set model.filters=[4] --set train.epochs=60
expect 0 '' "$weft" predict cnn small-images-idx3-ubyte
check "it has learned them" awk 'NR > 1 && $1 != (NR - 2) % 3 {wrong++} END {exit wrong > 0 || NR != 13}' out
{
    echo a,b,c,d,class
    for i in $(seq 8); do echo "$((i % 2)),$((1 - i % 2)),$((i % 2)),0,$((i % 2))"; done
} >square.csv
expect 2 'model.image' "$weft" train cnn.yaml --run csv "${quick[@]}" --set data.path=square.csv
expect 0 '' "$weft" train cnn.yaml --run csv "${quick[@]}" --set data.path=square.csv --set model.image=[1,2,2] --set model.filters=[2] --set train.epochs=2
expect 3 'not images of 1 x 3 x 2' "$weft" train cnn.yaml --run bad "${quick[@]}" --set data.path=square.csv --set model.image=[1,3,2]
expect 2 'model.image' "$weft" train cnn.yaml --run bad "${quick[@]}" --set model.image=[1,3]
expect 3 'not images of 1 x 8 x 8' "$weft" predict cnn small-labels-idx1-ubyte
expect 2 'a resnet has no dropout' "$weft" train resnet.yaml --run bad "${small[@]}" --set model.dropout=0.1

# trains on 32-bit numbers, tests and predicts on bytes
{
    printf '\0\0\x0d\x02\0\0\0\x04\0\0\0\x02'
    printf '\x3f\x80\0\0\0\0\0\0%.0s' 1 2
    printf '\0\0\0\0\x3f\x80\0\0%.0s' 1 2
} >wide-idx2
printf '\0\0\x08\x02\0\0\0\x02\0\0\0\x02\x01\0\0\x01' >narrow-idx2
printf '\0\0\x08\x01\0\0\0\x04\0\0\x01\x01' >wide-labels
printf '\0\0\x08\x01\0\0\0\x02\0\x01' >narrow-labels
expect 0 '' "$weft" init mlp --data wide-idx2 --out wide.yaml
expect 0 '' "$weft" train wide.yaml --run wide "${quick[@]}" --set data.test_path=narrow-idx2 --set data.labels=[wide-labels,x,narrow-labels] \
    --set model.hidden=[4] --set optimizer.lr=0.1
expect 0 'accuracy 100.00' "$weft" eval wide
expect 0 '^1' "$weft" predict wide narrow-idx2
check "in their order" awk '{said = said $1} END {exit said != "class01"}' out

# ---- autoencoder ----
expect 0 '' "$weft" init autoencoder --data small-images-idx3-ubyte --out code.yaml
expect 0 '' "$weft" train code.yaml --run code "${quick[@]}" --set model.hidden=[16,4] --set train.epochs=200 --set optimizer.lr=0.01
expect 0 '' "$weft" predict code small-images-idx3-ubyte
check "it gives pixels back" awk 'NR == 2 {exit !(NF == 64 && $1 > 20 && $1 < 60)}' out

# ---- folders of images ----
python3 -c '
from pictures import png
def animal(path, value): png(path, 5, 6, lambda y, x, c: (value + 7 * (3 * x + c) + 3 * y) % 256)
for i in range(12):
    animal("animals/" + ("cat", "dog", "owl")[i % 3] + "/%02d.png" % i, 20 + 80 * (i % 3) + i)
    animal("others/" + ("dog", "owl")[i % 2] + "/%02d.png" % i, 100 + 80 * (i % 2) + i)
animal("more/bat/0.png", 1)'
expect 0 '' "$weft" init cnn --data animals --out animals.yaml
check "a folder has images" grep -q '^  source: images$' animals.yaml
animals=("${quick[@]}" --set model.filters=[4])
expect 0 '' "$weft" train animals.yaml --run animal "${animals[@]}" --set train.epochs=40 --set data.test_path=others
expect 0 'owl' "$weft" eval animal
expect 0 '^animals/dog/01.png	dog	0[.]' "$weft" predict animal animals/dog
expect 0 '^animals/owl/02.png	owl	0[.]' "$weft" predict animal animals/owl/02.png
expect 0 '' "$weft" train animals.yaml --run tiny "${animals[@]}" --set train.epochs=1 --set model.image=[1,3,3]
expect 0 '^animals/cat/00.png	' "$weft" predict tiny animals/cat
expect 0 '' "$weft" init mlp --data animals --out rows.yaml
expect 0 '' "$weft" train rows.yaml --run rows "${quick[@]}" --set train.epochs=2
expect 0 '^animals/cat/00.png	' "$weft" predict rows animals
expect 3 'more/bat: no class' "$weft" train animals.yaml --run bad "${animals[@]}" --set data.test_path=more
expect 2 'images take their classes from the names of their folders' "$weft" train animals.yaml --run bad "${animals[@]}" --set data.labels=[small-labels-idx1-ubyte]
expect 2 'not numbers to predict' "$weft" train animals.yaml --run bad "${animals[@]}" --set task=regression

# ---- images with more pixels than are allowed ----
for files in true false; do
    expect 3 'animals: 12 of 12 images cannot be read' "$weft" train animals.yaml --run bad "${animals[@]}" --set data.image_pixels=29 \
        --set model.image=[3,4,4] --set data.in_files=$files
    check "each is named" grep -q 'animals/cat/00.png: the image declares 6 x 5 pixels; 1 to 29 are allowed: .*data.image_pixels' err
done
expect 0 '' "$weft" train animals.yaml --run exact "${animals[@]}" --set data.image_pixels=30 --set train.epochs=1 --set data.in_files=true
sed 's/^  image_pixels: 30 /  image_pixels: 29 /' exact/config.yaml >config.new && mv config.new exact/config.yaml
expect 3 '1 of 1 images cannot be read' "$weft" predict exact animals/cat/00.png
check "and why" grep -q 'animals/cat/00.png: the image declares 6 x 5 pixels; 1 to 29 are allowed' err
expect 0 '' "$weft" resume exact --set data.image_pixels=30 --set train.epochs=2 --quiet
expect 2 'data.image_pixels' "$weft" train animals.yaml --run bad "${animals[@]}" --set data.image_pixels=0

# ---- images that cannot be read ----
expect 0 '' "$weft" train animals.yaml --run clean "${animals[@]}" --set train.epochs=2
head -c 60 animals/cat/03.png >animals/cat/cut.png
: >animals/dog/zero.jpg
echo 'not an image' >animals/owl/text.gif
expect 3 'animals: 3 images cannot be read: repair or remove them, or set data.skip_bad: true to train without them' \
    "$weft" train animals.yaml --run bad "${animals[@]}"
check "all of them are listed" sh -c 'grep -q "^weft: .*animals/cat/cut.png: the image is damaged, or cut off at byte 60: " err &&
    grep -q "^weft: .*animals/dog/zero.jpg: this is not a PNG, JPEG, GIF, WebP or BMP image" err && grep -q "^weft: .*animals/owl/text.gif: this is not a PNG" err'
for threads in 1 3; do
    expect 0 '^weft: left out: .*animals/cat/cut.png: the image is damaged' env OMP_NUM_THREADS=$threads "$weft" train animals.yaml --run skip$threads \
        "${animals[@]}" --set data.skip_bad=true --set train.epochs=2
    check "the others train as without the bad ones" cmp {clean,skip$threads}/checkpoints/step-6/model.safetensors
done
expect 0 '^left out: 3 images that cannot be read$' "$weft" plan animals.yaml --set data.skip_bad=true
expect 0 '' "$weft" resume skip1 --set train.epochs=3
for i in $(seq 30); do : >"animals/owl/empty$i.webp"; done
expect 3 '^weft: and 13 more$' "$weft" train animals.yaml --run bad "${animals[@]}"
rm animals/owl/*.png
expect 3 'animals: no image of a class can be read; the first: .*animals/owl/empty1.webp' \
    "$weft" train animals.yaml --run bad "${animals[@]}" --set data.skip_bad=true

# ---- truncated files ----
head -c 36875 train.bin >short.bin
expect 3 'short.bin: byte 36875: .*record 11' "$weft" train resnet.yaml --run bad "${small[@]}" --set data.path=short.bin
{ head -c 3073 train.bin && printf '\xff' && tail -c +3075 train.bin; } >label.bin
expect 3 'label.bin: byte 3073: record 1 has the label 255' "$weft" train resnet.yaml --run bad "${small[@]}" --set data.path=label.bin
head -c 700 small-images-idx3-ubyte >short-images-idx3-ubyte
cp small-labels-idx1-ubyte short-labels-idx1-ubyte
expect 3 'byte 700' "$weft" train cnn.yaml --run bad "${quick[@]}" --set data.path=short-images-idx3-ubyte
head -c "$(($(wc -c <train.bin.gz) - 9))" train.bin.gz >short.bin.gz
expect 3 'short.bin.gz: byte' "$weft" train resnet.yaml --run bad "${small[@]}" --set data.path=short.bin.gz

echo "test_image_models: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
