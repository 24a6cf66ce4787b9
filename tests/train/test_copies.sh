#!/usr/bin/env bash
# weft eval, predict, generate and chat on several devices: the output is that of one device of the kind, byte for byte. Lists of
# devices that cannot be, and failures of one device.
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/train/command.sh
source "$tree/tests/train/command.sh"
if ! python3 -c '' 2>/dev/null; then
    echo "test_copies: skipped, python3 is missing"
    exit 77
fi

# ---- models, each with more than one batch to evaluate and to predict; the images stay in their files ----
python3 - <<'END'
import random
from pictures import png
random.seed(1)
rows = [(random.uniform(-1, 1), random.choice("xyz"), random.uniform(0, 9)) for _ in range(900)]
with open("kinds.csv", "w") as kinds, open("sizes.csv", "w") as sizes:
    kinds.write("a,b,c,kind\n")
    sizes.write("a,b,c,size\n")
    for a, b, c in rows:
        kinds.write(f"{a:.4f},{b},{c:.4f},{'big' if a * c > 1 else 'small' if b == 'x' else 'odd'}\n")
        sizes.write(f"{a:.4f},{b},{c:.4f},{a * c + (b == 'y') + random.gauss(0, 0.1):.5f}\n")
for i in range(600):
    png(f"photos/{'ab'[i % 2]}/{i:03}.png", 6, 6, lambda y, x, c: i % 2 * 70 + random.randrange(90), False)
END
few=(--quiet --set train.batch=16 --set train.steps=12 --set train.eval_every=12 --set schedule.warmup=2)
expect 0 '' "$weft" train mlp --data kinds.csv --run kinds "${few[@]}"
expect 0 '' "$weft" train mlp --data sizes.csv --run sizes "${few[@]}"
expect 0 '' "$weft" train cnn --data photos --run images "${few[@]}" --set data.in_files=true --set data.val_fraction=0.2
expect 0 '' "$weft" train gpt --data text.txt --run gpt "${few[@]}" --set model.layers=1 --set model.heads=2 --set model.width=16 \
    --set model.context=16 --set train.batch=4

# words: what Weft said to the user. Clang in PoCL adds a line when it compiles a kernel first.
words() { grep -v ' warnings* generated[.]$' err; }

# same NAME DEVICES COMMAND...: the command prints the same on these devices as on the first of them, and the same errors.
same() {
    local name=$1 devices=$2
    shift 2
    expect 0 '' "$@" --device "${devices%%,*}"
    cp out one && words >one.err
    expect 0 '' "$@" --devices "$devices"
    words >two.err
    check "$name on $devices: the output of one device" cmp one out
    check "$name on $devices: the same words to the user" cmp one.err two.err
    check "$name on $devices: there is output" test -s out
}
printf 'the weft\nwarp\na line\nthe warp, line 7\nunder\nover and\n' >prompts.txt
for devices in cpu,cpu cpu,cpu,cpu cpu; do
    for run in kinds sizes images gpt; do same "eval $run" $devices "$weft" eval $run --json; done
    same "predict kinds" $devices "$weft" predict kinds kinds.csv --probabilities
    same "predict sizes" $devices "$weft" predict sizes sizes.csv
    same "predict images" $devices "$weft" predict images photos --json
    same "generate" $devices "$weft" generate gpt --prompts prompts.txt --tokens 12 --seed 4
done
same "eval of new data" cpu,cpu "$weft" eval kinds kinds.csv
same "eval of a new text" cpu,cpu "$weft" eval gpt text.txt
same "a batch of 1" cpu,cpu "$weft" generate gpt --prompts prompts.txt --tokens 12 --batch 1 --temperature 0
echo '{"type": "boolean"}' >yes.json
same "JSON that a grammar holds" cpu,cpu,cpu "$weft" generate gpt --prompts prompts.txt --tokens 400 --json-schema yes.json
expect 0 '' bash -c "'$weft' predict kinds - --devices cpu,cpu --no-header <kinds.csv"
check "standard input is divided, too" test "$(wc -l <out)" = 900
head -n 3 kinds.csv >two.csv
same "fewer rows than devices" cpu,cpu,cpu "$weft" predict kinds two.csv
head -n 1 prompts.txt >one.txt
same "fewer prompts than devices" cpu,cpu "$weft" generate gpt --prompts one.txt --tokens 4
expect 0 '' "$weft" generate gpt --devices cpu --tokens 4

# a published model with a tokenizer of words
python3 "$tree/tests/train/make_published.py" model || exit 1
same "a published model" cpu,cpu "$weft" generate model --prompts prompts.txt --tokens 12 --seed 4
same "a published model measured" cpu,cpu "$weft" eval model text.txt

# ---- one prompt: the layers are divided ----
expect 0 '' "$weft" train gpt --data text.txt --run deep "${few[@]}" --set model.layers=5 --set model.heads=2 --set model.width=16 \
    --set model.context=16 --set train.batch=4
for devices in cpu,cpu cpu,cpu,cpu cpu,cpu,cpu,cpu,cpu; do
    same "five layers" $devices "$weft" generate deep --prompt 'the weft' --tokens 40
done
same "a published model" cpu,cpu "$weft" generate model --prompt 'the weft' --tokens 12 --seed 4
same "a draft" cpu,cpu "$weft" generate deep --prompt 'the weft' --tokens 20 --draft gpt
printf '{"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "the weft"}]}\n%.0s' {1..20} >chats.jsonl
expect 0 '' "$weft" train gpt --data chats.jsonl --run lora "${few[@]}" --set model.init=model --set lora.rank=4 --set train.batch=2
same "adapters" cpu,cpu "$weft" generate lora --prompt hello --tokens 12
same "prompts, layers divided" cpu,cpu,cpu bash -c '"$0" "$@" $(case "$*" in *--devices*) echo --layers ;; esac)' \
    "$weft" generate deep --prompts prompts.txt --tokens 12 --seed 4 --batch 3
same "prompts of a published model, layers divided" cpu,cpu bash -c '"$0" "$@" $(case "$*" in *--devices*) echo --layers ;; esac)' \
    "$weft" generate model --prompts prompts.txt --tokens 8 --seed 4
for devices in cpu,cpu cpu,cpu,cpu; do
    same "eval, layers divided" $devices bash -c '"$0" "$@" $(case "$*" in *--devices*) echo --layers ;; esac)' "$weft" eval deep --json
    same "eval of new data, layers divided" $devices bash -c '"$0" "$@" $(case "$*" in *--devices*) echo --layers ;; esac)' \
        "$weft" eval deep text.txt --json
done
expect 2 'only a gpt can be divided between devices' "$weft" eval kinds --layers --devices cpu,cpu
expect 2 'layers is for a file of prompts' "$weft" generate deep --prompt a --layers --devices cpu,cpu
printf 'hello\nand again\n/system be brief\nthe weft\n' >lines.txt
same "chat" cpu,cpu bash -c '"$0" "$@" <lines.txt' "$weft" chat model --tokens 12
same "chat with adapters" cpu,cpu bash -c '"$0" "$@" <lines.txt' "$weft" chat lora --tokens 8 --temperature 0

# ---- other devices ----
if "$weft" devices 2>&1 | grep '^ *opencl:[0-9]' | grep -vq absent; then
    same "eval kinds" opencl,opencl "$weft" eval kinds --json
    same "predict kinds" opencl,opencl "$weft" predict kinds kinds.csv --probabilities
    same "eval gpt" opencl,opencl "$weft" eval gpt --json
    same "generate" opencl,opencl,opencl "$weft" generate gpt --prompts prompts.txt --tokens 6
fi
same "eval kinds" interp,interp "$weft" eval kinds --json

# ---- what is refused ----
expect 2 'devices: cpu and interp are of different kinds' "$weft" eval kinds --devices cpu,interp
one_line
expect 2 '\-\-device and --devices: give only one' "$weft" predict kinds kinds.csv --device cpu --devices cpu,cpu
one_line
expect 2 'devices cpu,,cpu: a name is missing' "$weft" eval kinds --devices cpu,,cpu
expect 2 'devices : a name is missing' "$weft" eval kinds --devices ''
expect 2 'auto is one device: name each' "$weft" eval kinds --devices auto,auto
expect 2 'more than 64 devices' "$weft" eval kinds --devices "$(printf 'cpu,%.0s' {1..64})cpu"
expect 2 '2 devices cannot divide the layers of the model, of which there are 1: name fewer' "$weft" generate gpt --prompt a --devices cpu,cpu
one_line
expect 2 'only a gpt can be divided between devices' "$weft" generate kinds --prompt a --devices cpu,cpu
one_line
expect 4 'device "abacus" is unknown' "$weft" eval kinds --devices abacus
expect 4 'device 2 of 2 \(cpu:1\): device "cpu:1": there is only one cpu' "$weft" eval kinds --devices cpu,cpu:1
one_line

# ---- a failure of one device ends the command, with its message ----
printf 'the weft\n\303\244\303\266\nwarp\n' >unknown.txt
expect 0 '' "$weft" train lstm --data text.txt --run letters "${few[@]}" --set model.layers=1 --set model.width=8 \
    --set data.tokenizer=character --set model.context=8
expect 3 'device 2 of 3 \(cpu\): unknown.txt:2: ' "$weft" generate letters --prompts unknown.txt --tokens 4 --devices cpu,cpu,cpu
one_line
for _ in {1..300}; do echo 'the weft'; done >many.txt
expect 8 '' bash -c "set -o pipefail; '$weft' generate gpt --prompts many.txt --tokens 20 --batch 1 --devices cpu,cpu | head -n 1"
check "a reader that leaves needs no message" test ! -s err

# ---- a kill ----
"$weft" generate gpt --prompts many.txt --tokens 60 --batch 2 --devices cpu,cpu >killed 2>killed.err &
child=$!
for _ in {1..200}; do [ -s killed ] && break; sleep 0.05; done
kill "$child"
wait "$child" 2>/dev/null
code=$?
check "a killed command ends with 128 + 15" test "$code" = 143
check "its output has whole lines" python3 -c 'import json; [json.loads(line) for line in open("killed")]'

echo "test_copies: cells=$cells fail=$fail"
[ "$fail" = 0 ]
