#!/usr/bin/env bash
# Runs every model type of src/train/model/models.def with every command that applies to it. The table of models in the
# README must equal the results, or the test fails. WEFT_UPDATE=1 writes the table.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
source=$(cd "$OLDPWD" && cd "${WEFT_SOURCE_DIR:-.}" && pwd)

if ! python3 -c '' 2>/dev/null; then
    echo "test_models: skipped, python3 is missing"
    exit 77
fi

# Eight images of 8 x 8 with labels 0 and 1, as idx files and in CIFAR-10's format
bytes() { awk -v n="$1" -v s="$2" 'BEGIN {for (i = 0; i < n; i++) printf "%c", 33 + (i * 7 + s * 31) % 90}'; }
{
    printf '\0\0\x08\x03\0\0\0\x08\0\0\0\x08\0\0\0\x08'
    for i in $(seq 8); do bytes 64 "$i"; done
} >some-images-idx3-ubyte
printf '\0\0\x08\x01\0\0\0\x08\0\1\0\1\0\1\0\1' >some-labels-idx1-ubyte
for i in $(seq 8); do
    printf '%b' "\\x0$((i % 2))"
    bytes 3072 "$i"
done >some.bin
python3 "$source/tests/train/make_published.py" bert --encoder || exit 1
{
    echo "text,label"
    for i in $(seq 40); do echo "the $([ $((i % 2)) = 0 ] && echo warp || echo loom) goes under,$((i % 2))"; done
} >texts.csv
sed 's/odd/1/; s/even/0/' table.csv >numbers.csv

# recipe NAME KIND: sets $data, $what (a description of the data), and $small (settings for a small model).
recipe() {
    small=() data=table.csv from="classes of rows"
    [ "$2" = LANGUAGE ] && data=text.txt from=text small=(--set model.layers=1 --set model.width=16 --set model.context=16)
    case $1 in
    gpt) what="transformer of the GPT-2 kind" ;;
    lstm | gru) what="recurrent network" ;;
    mlp) what="linear layers with a nonlinearity between them" small=(--set model.hidden=[8]) ;;
    linear) what="linear and ridge regression" data=numbers.csv from="numbers of rows" ;;
    logistic) what="logistic regression, of two classes and more" ;;
    cnn) what="convolutional net" data=some-images-idx3-ubyte from="classes of images" small=(--set model.filters=[4]) ;;
    resnet) what="residual net" data=some.bin from="classes of images" small=(--set model.depth=8 --set model.width=2) ;;
    autoencoder) what="autoencoder" data=some-images-idx3-ubyte from="images or rows, no targets" small=(--set model.hidden=[8,2]) ;;
    encoder) what="published BERT, RoBERTa or DistilBERT" data=texts.csv from="classes of texts and of pairs" small=(--set model.init=bert) ;;
    *) return 1 ;;
    esac
}

# cell COMMAND...: adds an entry to the row, "yes" if the command succeeds.
cell() {
    cells=$((cells + 1))
    if "$@" >out 2>err; then
        row="$row yes |"
        return
    fi
    row="$row no |"
    fail=$((fail + 1))
    echo "FAIL: $*"
    head -c 2000 out err
}

# A run that is stopped half-way and resumed must equal the other run, except for the folder's name.
resumes() {
    "$weft" train "$1.yaml" --run "$1-whole" "${steps[@]}" --set train.steps=4 --quiet &&
        "$weft" train "$1.yaml" --run "$1-part" "${steps[@]}" --set train.steps=2 --quiet &&
        "$weft" resume "$1-part" --set train.steps=4 --quiet &&
        cmp "$1"-{whole,part}/checkpoints/step-4/model.safetensors && cmp "$1"-{whole,part}/checkpoints/step-4/optimizer.safetensors
}
uses() {
    if [ "$2" = LANGUAGE ]; then "$weft" generate "$1-whole" --prompt the --tokens 5; else "$weft" predict "$1-whole" "$data"; fi
}

{
    echo "| \`model.type\` | is | learns from | trains, resumes to the same bits | \`eval\` | \`predict\`, \`generate\` | a step is that of \`interp\` |"
    echo "| --- | --- | --- | --- | --- | --- | --- |"
} >table
while read -r name kind; do
    recipe "$name" "$kind" || {
        check "there is a recipe for $name in test_models.sh" false
        continue
    }
    row="| \`$name\` | $what | $from |"
    steps=(--set schedule.type=constant --set schedule.warmup=0 --set data.val_fraction=0.25 "${small[@]}")
    # Over all rows the gradient of a linear model's bias is 0 but for rounding, which Adam would make a step of.
    [ "$name" = logistic ] || steps+=(--set train.batch=2)
    expect 0 '' "$weft" init "$name" --data "$data" --out "$name.yaml"
    cell resumes "$name"
    cell "$weft" eval "$name-whole"
    cell uses "$name" "$kind"
    cell "$weft" verify "$name.yaml" --devices cpu,interp --steps 2 "${steps[@]}" --set train.steps=4
    echo "$row" >>table
done < <(sed -n 's/^MODEL([A-Z]*, \([a-z0-9]*\), \([A-Z]*\), .*)$/\1 \2/p' "$source/src/train/model/models.def")

# the table in the README, between the two marks
if [ -n "${WEFT_UPDATE:-}" ]; then
    awk 'FNR == NR {table = table $0 "\n"; next} /<!-- models: end -->/ {on = 0} !on {print}
        /<!-- models: begin/ {on = 1; printf "%s", table}' table "$source/README.md" >README && cp README "$source/README.md"
fi
awk '/<!-- models: end -->/ {on = 0} on {print} /<!-- models: begin/ {on = 1}' "$source/README.md" >there
check "README's table of models is what was run: WEFT_UPDATE=1 tests/train/test_models.sh writes it" diff there table

echo "test_models: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
