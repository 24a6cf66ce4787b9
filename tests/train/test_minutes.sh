#!/usr/bin/env bash
# Tests `weft train --minutes` and `weft train text`: the number of steps is measured, said and kept; a resume goes on to
# the same bits.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

expect 0 '^0.02 minutes: [0-9]+ steps of ' "$weft" train text --data text.txt --minutes 0.02 --run said
check "the model is said" grep -q '^model: a gpt of .* parameters that learns characters' err
check "a sample ends the run" grep -q '^the model writes:' out
check "and the next command" grep -q '^next: .* generate said ' out
steps=$(sed -n 's/^0.02 minutes: \([0-9]*\) steps.*/\1/p' err)
check "at least one step" test "$steps" -ge 1
check "they were done" grep -q "^step $steps/$steps " out
check "config.yaml keeps them" grep -q "^  steps: $steps " said/config.yaml
check "the size is that of a gpt's defaults" grep -q '^  width: 128' said/config.yaml

# the run is an ordinary one: the same number of steps gives the same bits
expect 0 '' "$weft" train gpt --data text.txt --set "train.steps=$steps" --set optimizer.lr=0.003 --run plain --quiet
check "the same bits as a run of so many steps" cmp {said,plain}/checkpoints/step-"$steps"/model.safetensors
expect 0 '' "$weft" resume said --set "train.steps=$((steps + 2))" --quiet

# any model; a file's steps give way, --set does not
expect 0 '^0.01 minutes: ' "$weft" train mlp --data table.csv --minutes 0.01 --run table
"$weft" init lstm --data text.txt --out lstm.yaml 2>err
expect 0 '^0.01 minutes: ' "$weft" train lstm.yaml --minutes 0.01 --set model.width=16 --run lstm
expect 2 'both say how long' "$weft" train gpt --data text.txt --minutes 1 --set train.steps=5
one_line
expect 0 '' "$weft" train text --data text.txt --set train.steps=3 --run three
check "three steps were asked for" grep -q '^step 3/3 ' out
expect 2 '' "$weft" train text --data text.txt --minutes -1
expect 8 'none.txt' "$weft" train text --data none.txt --minutes 1
expect 0 '' "$weft" init text --data text.txt
check "init text is a gpt" grep -q '^  type: gpt$' out

echo "test_minutes: cells=$cells fail=$fail"
[ "$fail" = 0 ]
