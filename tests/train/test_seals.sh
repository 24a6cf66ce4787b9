#!/usr/bin/env bash
# Changes one digit in each file of a run folder that affects results. Every command that reads the file must end with exit
# code 3 and name the file. A damaged summary.json only loses its own contents.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"

expect 0 '' "$weft" init gpt --out gpt.yaml --data text.txt
small=(--set model.layers=1 --set model.heads=2 --set model.width=16 --set model.context=16 --set train.steps=8 --set train.batch=4
    --set schedule.warmup=1 --set train.eval_every=4 --set train.save_every=4 --quiet)
expect 0 '' "$weft" train gpt.yaml --run text "${small[@]}"
cat >mlp.yaml <<'YAML'
task: classification
data: {source: csv, path: table.csv, val_fraction: 0.2, standardize: true}
model: {type: logistic}
train: {steps: 4}
YAML
expect 0 '' "$weft" train mlp.yaml --run table --quiet
printf '\1\0\2\0\3\0\4\0\5\0\6\0\7\0\1\0\2\0\3\0\4\0\5\0\6\0\7\0\1\0\2\0\3\0\4\0\5\0\6\0\7\0\1\0\2\0\3\0\4\0\5\0\6\0\7\0' >t.bin
for _ in 1 2 3 4; do cat t.bin t.bin >u.bin && mv u.bin t.bin; done
cat >tokens.yaml <<'YAML'
data: {source: tokens, path: t.bin}
YAML
expect 0 '' "$weft" train tokens.yaml --run tokens "${small[@]}"

for run in text table tokens; do
    expect 0 'data.json.*intact' "$weft" info $run --check
    expect 0 'summary.json  intact' "$weft" info $run --check
    expect 0 'scores.json  intact' "$weft" info $run --check
done

# damage RUN FILE EDIT: copies the run to "damaged" and edits one of its files with a sed command.
damage() {
    rm -rf damaged
    cp -r "$1" damaged
    sed -i "$3" "damaged/$2"
    check "$2 of $1 is changed" bash -c "! cmp -s $1/$2 damaged/$2"
}

# refused FILE: all commands that use the run must refuse it.
refused() {
    local file=$1
    shift
    for words in "$@" "resume damaged --set train.steps=12" "resume damaged --strict" "info damaged --check"; do
        # shellcheck disable=SC2086 # words are words
        expect 3 "$file" "$weft" $words
    done
    expect 3 'DAMAGED' "$weft" info damaged --check
}

damage text tokenizer.json 's/"7"/"8"/'
refused tokenizer.json 'generate damaged --tokens 3' 'eval damaged' 'export damaged --to gpt2 --out x.safetensors' 'show damaged'
damage text tokenizer.json 's/"7"/"?"/' # replaces a character by one that is in no token
refused tokenizer.json 'generate damaged --tokens 3' 'eval damaged' 'export damaged --to gpt2 --out x.safetensors' 'show damaged'
damage text data.json 's/"vocabulary": ./"vocabulary": 9/'
refused data.json 'generate damaged --tokens 3' 'eval damaged' 'export damaged --to gpt2 --out x.safetensors'
damage tokens data.json 's/"vocabulary": ./"vocabulary": 9/'
refused data.json 'generate damaged --tokens 3' 'eval damaged' 'export damaged --to gpt2 --out x.safetensors'
printf 'a,b\n1.5,2\n3.5,4\n' >input.csv
for number in mean deviation; do
    damage table data.json "/\"$number\"/{n;s/[0-8]/9/}"
    refused data.json 'predict damaged input.csv' 'eval damaged' 'show damaged'
done
damage table data.json 's/"even"/"evil"/'
refused data.json 'predict damaged input.csv' 'eval damaged' 'show damaged'
rm damaged/data.json
refused data.json 'predict damaged input.csv' 'eval damaged' 'show damaged'

# A run continues without its summary, with a message.
damage text summary.json 's/"parameters": ./"parameters": 7/'
expect 3 'summary.json  DAMAGED' "$weft" info damaged --check
expect 0 'summary.json: .*tuned again' "$weft" resume damaged --set train.steps=12
expect 0 'summary.json  intact' "$weft" info damaged --check
damage text scores.json '1s/[1-8]/9/'
expect 3 'scores.json  DAMAGED' "$weft" info damaged --check
expect 0 '' "$weft" generate damaged --tokens 3

# Users may edit config.yaml, but not in a way that would need other weights than the checkpoints have.
damage text config.yaml 's/heads: 2/heads: 4/'
for words in 'generate damaged --tokens 3' 'eval damaged' 'export damaged --to gpt2 --out x.safetensors' 'resume damaged --set train.steps=12'; do
    # shellcheck disable=SC2086 # words are words
    expect 2 'configuration .* is not the one' "$weft" $words
done
damage text config.yaml 's/save_every: 4/save_every: 2/'
expect 0 '' "$weft" generate damaged --tokens 3

echo "test_seals: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
