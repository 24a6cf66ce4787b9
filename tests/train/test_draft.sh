#!/usr/bin/env bash
# weft generate --draft and weft chat --draft: with temperature 0 the text is that without a draft. Drafts are the model itself,
# a smaller run, and models that do not fit.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_draft: skipped, python3 is missing"
    exit 77
fi
python3 "$tree/tests/train/make_published.py" model || exit 1
train() { # train RUN DATA MODEL OPTION ...
    local run=$1 data=$2 kind=$3
    shift 3
    expect 0 '' "$weft" train "$kind" --data "$data" --run "$run" --set data.tokenizer=character --set train.batch=4 --set train.steps=30 "$@"
}
train large text.txt gpt --set model.layers=2 --set model.heads=2 --set model.width=32 --set model.context=64
train small text.txt gpt --set model.layers=1 --set model.heads=1 --set model.width=16 --set model.context=32
train states text.txt lstm --set model.layers=1 --set model.width=16 --set model.context=32
tr a-z b-za <text.txt | tr -d ' ' >other.txt
train other other.txt gpt --set model.layers=1 --set model.heads=1 --set model.width=16 --set model.context=32

# ---- the same text ----
for prompt in "the weft" "x1" ""; do
    expect 0 '' "$weft" generate large --prompt "$prompt" --tokens 100 --temperature 0
    mv out alone
    for draft in large small; do
        for tokens in 1 4 7; do
            expect 0 '' "$weft" generate large --prompt "$prompt" --tokens 100 --temperature 0 --draft $draft --draft-tokens $tokens
            check "$draft proposes $tokens: the same text" cmp -s alone out
        done
    done
done
printf 'hello\nand again\n' >lines.txt
expect 0 '' "$weft" chat model --temperature 0 --tokens 20 <lines.txt
mv out alone
expect 0 '' "$weft" chat model --temperature 0 --tokens 20 --draft model <lines.txt
check "weft chat: the same answers" cmp -s alone out

# ---- sampling: the seed decides ----
expect 0 '' "$weft" generate large --prompt the --tokens 60 --draft small --seed 3
mv out alone
expect 0 '' "$weft" generate large --prompt the --tokens 60 --draft small --seed 3
check "the same seed, the same text" cmp -s alone out
expect 0 '' "$weft" generate large --prompt the --tokens 60 --draft small --seed 4
check "another seed, another text" bash -c '! cmp -s alone out'

# ---- what is refused ----
expect 2 'other: a draft must have the tokens of the model, but' "$weft" generate large --draft other
one_line
expect 2 'model: a draft must have the tokens of the model, but it has 263 tokens, and the model' "$weft" generate large --draft model
one_line
expect 2 'the states of a recurrent model cannot be taken back' "$weft" generate large --draft states
one_line
expect 2 'the states of a recurrent model cannot be taken back' "$weft" generate states --draft small
expect 2 'draft_tokens 8: give 1 to 7' "$weft" generate large --draft small --draft-tokens 8
expect 2 '\-\-draft is for one prompt' "$weft" generate large --draft small --prompts lines.txt
expect 2 'absent' "$weft" generate large --draft absent
one_line
expect 2 'a draft must have the tokens' "$weft" chat model --draft large <lines.txt

echo "test_draft: cells=$cells fail=$fail"
[ "$fail" = 0 ]
