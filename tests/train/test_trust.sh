#!/usr/bin/env bash
# A run folder from somebody else may name any file in its config.yaml. Weft follows a path out of the folder only if this
# user has given it before, gives it now, or says --trust. A run of the user's own needs none of this.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}

expect 0 '' "$weft" train mlp --data table.csv --set train.steps=8 --set train.save_every=4 --run mine --quiet
expect 0 'accuracy' "$weft" eval mine
expect 0 '' "$weft" resume mine --set train.steps=12 --quiet
expect 0 'accuracy' env -C / "$weft" eval "$work/mine"

# foreign PATH: a copy of the run that names another path.
foreign() {
    rm -rf other
    cp -r mine other
    sed -i "s|path: .*table.csv|path: $1|" other/config.yaml
    check "the copy names $1" grep -q "path: $1" other/config.yaml
}
echo 'secret words,b,kind' >secret.csv
foreign "$work/secret.csv"
for words in "eval other" "resume other --set train.steps=20" "resume other --set train.steps=20 --set train.log_every=1"; do
    # shellcheck disable=SC2086 # words are words
    expect 2 'other: config.yaml names a path outside the run folder.*data.path: .*secret.csv.*--trust' "$weft" $words
    one_line
    check "no content" bash -c '! grep -q words err'
done
expect 0 'odd|even' "$weft" predict other table.csv
expect 0 'accuracy' "$weft" eval other table.csv
expect 0 '' "$weft" resume other --set train.steps=14 --set data.path=table.csv --quiet
expect 0 'accuracy' "$weft" eval other # given now

mkfifo pipe.csv
foreign "$work/pipe.csv"
sed -i '/ source:/d' other/config.yaml
for words in "eval other" "predict other table.csv" "resume other"; do
    # shellcheck disable=SC2086
    timeout 60 "$weft" $words >out 2>err
    check "$words opens no pipe" test $? != 124
done

cp table.csv copy.csv
foreign "$work/copy.csv"
expect 2 'copy.csv' "$weft" eval other
expect 0 'accuracy' "$weft" eval other --trust
expect 0 'accuracy' "$weft" eval other # it is remembered

foreign "$work/other/in.csv"
cp table.csv other/in.csv
expect 0 'accuracy' "$weft" eval other
ln -sf ../secret.csv other/in.csv
expect 2 'in.csv' "$weft" eval other

# adapters: the base is followed under the same rule
python3 "$tree/tests/train/make_published.py" base || exit 1
expect 0 '' "$weft" train gpt --data text.txt --set model.init=base --set lora.rank=2 --set train.steps=2 \
    --set schedule.warmup=0 --run adapters --quiet
expect 0 '' "$weft" generate adapters --tokens 2
mv "$XDG_STATE_HOME/weft/paths" known
expect 2 'model.init: .*base.*--trust' "$weft" generate adapters --tokens 2
expect 2 'model.init: .*base.*--trust' "$weft" export adapters --to gguf
expect 0 '' "$weft" generate adapters --tokens 2 --trust
expect 0 '' "$weft" generate adapters --tokens 2

# the file of known paths: a link, or a file that others may write, counts as none
mv known "$XDG_STATE_HOME/weft/paths"
chmod g+w "$XDG_STATE_HOME/weft/paths"
expect 2 'table.csv' "$weft" eval mine
chmod g-w "$XDG_STATE_HOME/weft/paths"
expect 0 '' "$weft" eval mine
mv "$XDG_STATE_HOME/weft/paths" known
ln -s "$work/known" "$XDG_STATE_HOME/weft/paths"
expect 2 'table.csv' "$weft" eval mine
rm "$XDG_STATE_HOME/weft/paths"
expect 0 'to resume it, you will need --trust' env XDG_STATE_HOME=/proc/none "$weft" train mlp --data table.csv \
    --set train.steps=1 --run unkept
python3 -c "open('$XDG_STATE_HOME/weft/paths', 'w').write('/a/very/long/path/of/another/run\n' * 32000)"
chmod 600 "$XDG_STATE_HOME/weft/paths"
expect 0 '' "$weft" eval mine --trust
expect 0 '' "$weft" eval mine
check "the file of known paths stays small" test "$(stat -c %s "$XDG_STATE_HOME/weft/paths")" -lt 800000
echo "test_trust: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
