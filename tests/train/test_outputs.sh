#!/usr/bin/env bash
# Outputs that exist: each command with an output meets its own output of before, a foreign file, its input, links to the
# input, a read-only file, a pipe and devices. Also folders with foreign files, and what stopped processes leave.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_outputs: skipped, python3 is missing"
    exit 77
fi
python3 "$tree/tests/train/make_published.py" model || exit 1
tune=(gpt --data text.txt --set model.init=model --set train.batch=4 --set model.context=32 --set train.steps=1 --quiet)
"$weft" train "${tune[@]}" --run tuned || exit 1
"$weft" train "${tune[@]}" --set lora.rank=2 --run lora || exit 1
"$weft" train gpt --data text.txt --set train.steps=1 --set model.width=16 --set model.layers=1 --run plain --quiet || exit 1
"$weft" init mlp --data table.csv --out mlp.yaml
"$weft" train mlp.yaml --set train.epochs=2 --run table --quiet || exit 1
"$weft" quantize model --to f32 --out base.gguf >/dev/null
mknod full c 1 7 2>/dev/null && mknod null c 1 3 # of our own: a command run by root must not meet those of the system
: >>full 2>/dev/null                             # where devices are forbidden, these cannot be opened
[ -c full ] && ! (echo >full) 2>/dev/null && (: >null) 2>/dev/null && devices=1

# refused WHAT PATTERN COMMAND...: the command must fail, and the file or folder WHAT stay as it was.
sum() { find "$1/" "$1" -type f -exec md5sum {} + 2>/dev/null | sort -u; }
refused() {
    local what=$1 pattern=$2 before
    before=$(sum "$what")
    shift 2
    expect 2 "$pattern" "$@"
    check "$what is as it was after: $*" test "$before" = "$(sum "$what")"
}

# file_case NAME MARKED INPUT COMMAND...: the last argument of the command, which is still missing, is its output. MARKED: a
# file tells who wrote it. INPUT: a file that the command reads; + before it: in a folder that the command reads.
file_case() {
    local name=$1 marked=$2 input=${3#+} in_folder=${3%%[!+]*} ending=
    shift 3
    case $name in *.*) ending=.${name##*.} ;; esac
    expect 0 '' "$@" "$name"
    cp "$name" first
    if [ "$marked" = yes ]; then
        expect 0 '' "$@" "$name"
    else
        refused "$name" "$name exists already: choose another output, or replace it with --force" "$@" "$name"
        one_line
    fi
    expect 0 '' "$@" "$name" --force
    echo mine >"$name"
    refused "$name" "$name exists already.*--force" "$@" "$name"
    one_line
    ln -s "$name" "link$ending"
    refused "$name" "link$ending exists already.*--force" "$@" "link$ending"
    rm "link$ending"
    chmod a-w "$name"
    refused "$name" "$name is read-only.*--force" "$@" "$name"
    expect 0 '' "$@" "$name" --force
    check "--force replaces $name" bash -c "! grep -qx mine '$name'"
    : >"$name"
    expect 0 '' "$@" "$name" # an empty file, as mktemp makes, holds nothing
    mkdir "folder$ending"
    expect 2 'folder' "$@" "folder$ending"
    rmdir "folder$ending"
    local path paths=("$input" "link$ending")
    ln -sf "$input" "link$ending"
    [ -z "$in_folder" ] && ln -f "$input" "hard$ending" && paths+=("hard$ending")
    for path in "${paths[@]}"; do
        refused "$input" 'which is never replaced' "$@" "$path"
        refused "$input" 'which is never replaced' "$@" "$path" --force
        one_line
    done
    rm -f "link$ending" "hard$ending"
    mkfifo pipe
    timeout 60 cat pipe >got &
    expect 0 '' "$@" pipe
    wait $!
    check "a pipe stays a pipe" test -p pipe
    rm pipe
    [ $name = answers.csv ] && tr '\t' , <got >commas && mv commas got # a pipe gets tabs
    case $name in *.trace) check "$name goes through a pipe" grep -q traceEvents got ;; *) check "$name goes through a pipe" cmp got first ;; esac
    if [ "${devices:-}" ]; then
        expect 8 'full' "$@" full
        check "full is still a device" test -c full
        expect 0 '' "$@" null --force
        check "null is still a device" test -c null
    fi
    check "no temporary file is left" bash -c '! ls -A | grep -q "tmp$"'
    rm -f "$name"
}
file_case out.safetensors yes +table/checkpoints/best/model.safetensors "$weft" export table --to safetensors --out
file_case weights.safetensors yes +plain/checkpoints/step-1/model.safetensors "$weft" export plain --to gpt2 --out
file_case a.gguf yes base.gguf "$weft" export base.gguf --to gguf --out
file_case q.gguf yes base.gguf "$weft" quantize base.gguf --to q8_0 --out
file_case q yes +model/model.safetensors "$weft" quantize model --to q8_0 --out
file_case t.bin no text.txt "$weft" tokenize text.txt --tokenizer model --out
file_case new.yaml no table.csv "$weft" init mlp --data table.csv --out
file_case answers.csv no table.csv "$weft" predict table table.csv --out
file_case page.html yes +table/report.html "$weft" compare table plain --out
file_case steps.trace yes mlp.yaml "$weft" profile mlp.yaml --steps 2 --trace
gguf=(export tuned --to gguf --out a.gguf)
expect 0 '' "$weft" "${gguf[@]}"
expect 0 '' "$weft" "${gguf[@]}"
expect 0 '' "$weft" quantize model --to q8_0 --out q.gguf
refused q.gguf 'was not written by weft export' "$weft" export tuned --to gguf --out q.gguf
refused a.gguf 'was not written by weft quantize' "$weft" quantize model --to q8_0 --out a.gguf
refused a.gguf 'a.gguf is the input a.gguf, which is never replaced' "$weft" quantize a.gguf --to q8_0 --out a.gguf --force
expect 0 '' "$weft" export lora --to gguf-lora --out l.gguf
expect 0 '' "$weft" export lora --to gguf-lora --out l.gguf
refused table 'never replaced' "$weft" export table --to safetensors --out table/checkpoints/best/model.safetensors --force
refused model 'model/tokenizer.json belongs to the input model' "$weft" predict model table.csv --out model/tokenizer.json --force
check "standard output" bash -c "'$weft' predict table table.csv --out /dev/stdout 2>/dev/null >got; '$weft' predict table table.csv 2>/dev/null | cmp - got"

# a tokenizer, and files of tokens
expect 0 '' "$weft" tokenize --train 280 text.txt --out tokens
refused tokens 'tokens/tokenizer.json exists already.*--force' "$weft" tokenize --train 290 text.txt --out tokens
refused model 'model/tokenizer.json exists already.*--force' "$weft" tokenize --train 280 text.txt --out model
expect 0 '290 tokens' "$weft" tokenize --train 290 text.txt --out tokens --force
echo mine >part-000001.bin
refused part-000001.bin 'part-000001.bin exists already' "$weft" tokenize text.txt --tokenizer model --shard 1000 --out part.bin
expect 0 'in [0-9]+ files' "$weft" tokenize text.txt --tokenizer model --shard 1000 --out part.bin --force

# ---- folders ----
# folder_case COMMAND...: the output, a folder, is missing at the end.
folder_case() {
    rm -rf d e
    expect 0 '' "$@" d
    check "the folder is marked" grep -qx 'weft export 1' d/.weft
    expect 0 '' "$@" d
    mkdir e
    expect 0 '' "$@" e
    rm -r d/.weft
    echo mine >d/config.json
    refused d 'd holds .*, which weft export did not write: .*--force' "$@" d
    one_line
    expect 0 '' "$@" d --force
    for path in model "$3" "$3/checkpoints/step-1" "$3/checkpoints" .; do
        refused "${path/#./model}" 'never replaced' "$@" "$path" --force
    done
    refused text.txt 'text.txt is a file' "$@" text.txt
}
folder_case "$weft" export tuned --to huggingface --out
folder_case "$weft" export lora --to peft --out
for to in safetensors gguf huggingface huggingface; do expect 0 'wrote tuned/export' "$weft" export tuned --to $to; done
refused model 'never replaced' "$weft" export tuned --to huggingface --out model --force

# the folder for exports that nobody named: a link in a run may lead anywhere
mv tuned/export exports
echo mine >exports/mine.txt
ln -s "$work/exports" tuned/export
for to in safetensors gguf huggingface c; do
    refused exports "tuned/export is a link to $work/exports: name a folder with --out, or write there with --force" "$weft" export tuned --to $to
    one_line
done
expect 0 'wrote tuned/export/model.gguf' "$weft" export tuned --to gguf --force
expect 0 'wrote named/model.gguf' "$weft" export tuned --to gguf --out named
ln -sfn nowhere tuned/export
expect 2 'tuned/export is a link to nowhere: ' "$weft" export tuned --to gguf
rm tuned/export

# ---- run folders ----
mlp=(mlp --data table.csv --set train.batch=60 --set train.eval_every=0 --quiet)
four=("${mlp[@]}" --set train.save_every=2 --set train.keep=1 --set train.steps=4)
expect 0 '' "$weft" train "${four[@]}" --run r
check "a run is marked" grep -qx 'weft run 1' r/.weft
refused r 'holds a run already' "$weft" train "${four[@]}" --run r
mkdir -p empty foreign/checkpoints/step-1
expect 0 '' "$weft" train "${four[@]}" --run empty
for name in log.txt data.json summary.json report.html tokenizer.json checkpoints/step-1/thesis.txt config.yaml; do echo mine >foreign/$name; done
refused foreign 'foreign: this folder is no run and holds other files, such as' "$weft" train "${four[@]}" --run foreign
one_line
rm foreign/config.yaml
refused foreign 'foreign: this folder is no run and holds other files, such as' "$weft" train "${four[@]}" --run foreign
for command in cv sweep; do
    more=() && [ $command = sweep ] && more=("optimizer.lr=0.1,0.01")
    all=(mlp "${more[@]}" --data table.csv --set train.steps=2)
    refused foreign 'holds other files, such as' "$weft" $command "${all[@]}" --run foreign
    expect 0 '' "$weft" $command "${all[@]}" --run $command
    expect 0 '' "$weft" $command "${all[@]}" --run $command # continues
    rm $command/.weft
    expect 0 '' "$weft" $command "${all[@]}" --run $command # made before there was a mark
done
cp r/config.yaml foreign/
refused foreign 'not a run folder' "$weft" resume foreign
rm r/.weft # a run of a version that made no mark
expect 0 '' "$weft" resume r --set train.steps=6
check "it is marked now" grep -qx 'weft run 1' r/.weft

# files of others in a run
echo mine >r/checkpoints/step-6/note.txt
echo mine >r/samples/step-99-note.txt
expect 0 'step-6 holds note.txt, which is not Weft.s: the folder is not removed' "$weft" resume r --set train.steps=12
check "which is said once" test "$(cat out err | grep -c 'is not removed')" = 1
check "the folder stays" test "$(cat r/checkpoints/step-6/note.txt)" = mine
check "and the others are removed" test "$(cd r/checkpoints && echo step-*)" = 'step-12 step-6'
check "samples, too" test -s r/samples/step-99-note.txt
echo mine >r/checkpoints/step-12/note.txt
echo '{}' >r/checkpoints/step-12/state.json
expect 0 'it is now called step-12.other' "$weft" resume r
check "a damaged checkpoint is replaced, and its other file kept" test "$(cat r/checkpoints/step-12.other/note.txt)" = mine
expect 0 '' "$weft" info r --check

# ---- chat ----
lines() { printf '%s\n' "$@" >lines.txt; }
echo 'export A=1' >bashrc
# shellcheck disable=SC2016
lines '$(touch PWNED)' '/save bashrc' '/save new.json'
expect 0 '' "$weft" chat model --tokens 2 <lines.txt
check "messages are no commands" test "$(cat bashrc)" = 'export A=1' -a ! -e new.json
expect 0 'bashrc exists already and was not written by weft chat: choose another name' "$weft" chat model --tokens 2 --commands <lines.txt
check "which replace no other file" test "$(cat bashrc)" = 'export A=1'
check "but write new ones" grep -q '"messages": \[{"role":"user","content":"$(touch PWNED)"}' new.json
lines hello '/save new.json' '/save model/config.json'
expect 0 'model/config.json belongs to the input model' "$weft" chat model --tokens 2 --commands <lines.txt
check "and replace their own" grep -q '"content":"hello"' new.json
echo '{"messages": []}' >chats.jsonl
lines hello '/save chats.jsonl' '/save null' '/save full'
expect 0 'chats.jsonl exists already' "$weft" chat model --tokens 2 --commands <lines.txt
if [ "${devices:-}" ]; then check "devices stay" test -c full -a -c null; fi

# ---- stopped processes ----
if ! command -v strace >/dev/null; then
    echo "test_outputs: what stopped processes leave skipped: strace is missing"
elif strace -o /dev/null true 2>/dev/null; then
    mkdir o
    stop() { ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -qq -o /dev/null -e trace=write -e "inject=write:signal=$1:when=$2" "${@:3}"; }
    writes=("quantize model --to q8_0 --out o/a.gguf" "export tuned --to gguf --out o/b.gguf" "export tuned --to huggingface --out o/d"
        "export table --to safetensors --out o/c.safetensors" "tokenize text.txt --tokenizer model --out o/t.bin")
    for one in "${writes[@]}"; do
        read -ra words <<<"$one"
        for signal in INT TERM HUP; do
            # stopped at its last writes, so that a temporary file is there
            for at in 1 3 6 10 15; do
                stop $signal $at "$weft" "${words[@]}" >/dev/null 2>&1
                code=$?
                check "$one: $signal at write $at gives 128 + the signal, or it was over" test $code = $((128 + $(kill -l $signal))) -o $code = 0 -o $code = 2
            done
        done
    done
    check "no temporary file is left by a stop" bash -c '! find o | grep "tmp$"'
    rm -rf o && mkdir o
    for one in "${writes[@]}"; do
        read -ra words <<<"$one"
        for at in 2 4 6 8; do stop KILL $at "$weft" "${words[@]}" >/dev/null 2>&1; done
    done
    check "a kill leaves temporary files" bash -c 'find o | grep -q "tmp$"'
    echo mine >o/.a.gguf.notes.tmp
    echo mine >o/.a.gguf.b.77.0123456789abcdef.tmp # of the output a.gguf.b
    echo mine >o/.a.gguf.77.0123456789abcdef.tmp
    python3 - <<'END2' &
import fcntl, struct, time
file = open("o/.a.gguf.77.0123456789abcdef.tmp", "r+")
fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
open("locked", "w").close()
time.sleep(600)
END2
    holder=$!
    for _ in $(seq 600); do [ -e locked ] && break || sleep 0.05; done
    for one in "${writes[@]}"; do
        read -ra words <<<"$one"
        expect 0 '' "$weft" "${words[@]}" --force
    done
    check "a later run removes them, but no others" test "$(cd o && ls -Ad .*.tmp | tr '\n' ' ')" = \
        '.a.gguf.77.0123456789abcdef.tmp .a.gguf.b.77.0123456789abcdef.tmp .a.gguf.notes.tmp '
    check "not in folders either" test -z "$(find o/d -name '*.tmp')"
    kill $holder
    wait $holder 2>/dev/null
    expect 0 '' "$weft" quantize model --to q8_0 --out o/a.gguf
    check "nor one whose writer is alive" test "$(cd o && ls -Ad .*.tmp | tr '\n' ' ')" = '.a.gguf.b.77.0123456789abcdef.tmp .a.gguf.notes.tmp '
fi
echo "$cells checks, $fail failures"
[ "$fail" = 0 ]
