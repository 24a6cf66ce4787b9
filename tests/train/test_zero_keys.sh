#!/usr/bin/env bash
# The number 0 as a value of a key: it acts as a tiny number does, and not as the default.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"

# loss NAME ARGUMENTS...: trains, and prints the loss of the end.
loss() {
    local run=$1
    shift
    "$weft" train "$@" --run "$run" --quiet >log 2>&1 || { cat log; return; }
    python3 -c "import json; print([v for k, v in json.load(open('$run/summary.json')).items() if 'loss' in k])"
}

# reaches NAME ZERO TINY ARGUMENTS...: 0 trains as the tiny number, and in another way than the default.
reaches() {
    local name=$1 zero=$2 tiny=$3 none little usual
    shift 3
    none=$(loss "$name-0" "$@" --set "$zero") little=$(loss "$name-1" "$@" --set "$tiny") usual=$(loss "$name-2" "$@")
    check "$zero: $none; $tiny: $little; else $usual" test "$none" = "$little" -a "$none" != "$usual"
}

mlp=(mlp --data table.csv --set "model.hidden=[4]" --set train.steps=30 --set train.batch=20 --set optimizer.lr=0.05)
text=(gpt --data text.txt --set model.layers=1 --set model.heads=1 --set model.width=8 --set model.context=8
    --set train.steps=3 --set train.batch=2 --set schedule.warmup=0)
reaches betas optimizer.betas=[0,0.9] optimizer.betas=[1e-30,0.9] "${mlp[@]}" --set optimizer.type=adam
reaches alpha optimizer.alpha=0 optimizer.alpha=1e-30 "${mlp[@]}" --set optimizer.type=rmsprop
reaches factor schedule.factor=0 schedule.factor=1e-30 "${mlp[@]}" --set schedule.type=step --set schedule.every=1
reaches eps model.norm_eps=0 model.norm_eps=1e-30 "${text[@]}"
expect 2 'give a number from 1 to' "$weft" train "${text[@]}" --set model.positions=rotary --set model.rotary_base=0 --run base

# of options of generate, too
expect 2 'the penalty is not 0' "$weft" generate eps-0 --tokens 3 --repetition-penalty 0
for seed in 1 2; do
    expect 0 the "$weft" generate eps-0 --prompt the --tokens 20 --temperature 2 --top-p 0 --seed $seed
    cp out text-$seed
done
check "--top-p 0 takes the likeliest tokens, whatever the seed" cmp text-1 text-2
[ $fail = 0 ] && echo "ok: $cells checks"
exit $((fail > 0))
