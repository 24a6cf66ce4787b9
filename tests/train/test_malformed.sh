#!/usr/bin/env bash
# Runs whose files are malformed, though their seals are right: see malformed.py.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_malformed: skipped, python3 is missing"
    exit 77
fi
small=(--set train.batch=2 --set train.steps=2 --set schedule.warmup=0 --quiet)
expect 0 '' "$weft" train mlp --data table.csv --run table --set model.hidden=4 "${small[@]}"
expect 0 '' "$weft" train gpt --data text.txt --run text --set model.layers=1 --set model.heads=2 --set model.width=16 \
    --set model.context=16 "${small[@]}"
check "a published model" python3 "$tree/tests/train/make_published.py" llama
expect 0 '' "$weft" train gpt --data text.txt --run adapters --set model.init=llama --set lora.rank=2 "${small[@]}"
python3 "$tree/tests/train/malformed.py" "$weft" || fail=$((fail + 1))
echo "$cells checks, $fail failures"
exit $((fail > 0))
