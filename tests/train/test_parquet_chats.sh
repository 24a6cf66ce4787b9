#!/usr/bin/env bash
# Conversations, preferences, and texts with classes in Parquet files: published models have the same bits as from JSON lines
# and csv. The models are small.
# shellcheck source=tests/train/command.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/command.sh"
# shellcheck source=tests/train/duckdb.sh
. "$here/duckdb.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$here/../.." && pwd)}
need_duckdb test_parquet_chats

python3 "$tree/tests/train/make_published.py" model || exit 1
python3 "$tree/tests/train/make_published.py" bert --encoder || exit 1
in_duckdb <<'PYTHON'
import csv, json, os, duckdb


def says(role, text):
    return {"role": role, "content": text}


files = {
    "chats": [{"id": i, "messages": [says("user", "thread %d" % i), says("assistant", "the weft goes over")]} for i in range(40)],
    "shares": [{"conversations": [{"from": "human", "value": "thread %d" % i}, {"from": "gpt", "value": "over"}]} for i in range(40)],
    "answers": [{"prompt": "thread %d" % i, "completion": " goes \"over\"\nand under é"} for i in range(40)],
    "pairs": [{"prompt": [says("user", "thread %d" % i)], "chosen": [says("assistant", "the weft goes over")],
               "rejected": [says("assistant", "no idea %d" % i)]} for i in range(40)],
}
for name, lines in files.items():
    with open(name + ".jsonl", "w") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
    duckdb.sql("COPY (FROM read_json('%s.jsonl')) TO '%s.parquet' (FORMAT parquet)" % (name, name))
os.makedirs("many")
for k in range(2):
    duckdb.sql("COPY (FROM 'chats.parquet' WHERE id // 20 = %d ORDER BY id) TO 'many/train-0000%d.parquet'" % (k, k))
duckdb.sql("COPY (SELECT CASE WHEN id = 3 THEN NULL ELSE messages END AS messages FROM 'chats.parquet' ORDER BY id) TO 'absent.parquet'")
with open("reviews.csv", "w") as file:
    rows = csv.writer(file)
    rows.writerow(["text", "label"])
    rows.writerows([["the %s goes, \"%d\"" % ("warp" if i % 3 else "loom", i), i % 3 > 0] for i in range(60)])
duckdb.sql("COPY (FROM 'reviews.csv') TO 'reviews.parquet' (FORMAT parquet)")
PYTHON
tune=(--set model.init=model --set optimizer.lr=0.01 --set schedule.warmup=0 --set train.epochs=2 --device cpu --quiet)
last() { compgen -G "$1/checkpoints/step-*/model.safetensors" | sort -V | tail -1; }
for data in chats shares answers pairs; do
    expect 0 '' "$weft" train gpt --data $data.jsonl "${tune[@]}" --run $data-lines
    expect 0 '' with_python "$weft" train gpt --data $data.parquet "${tune[@]}" --run $data-rows
    check "$data: the same weights" cmp "$(last $data-lines)" "$(last $data-rows)"
    check "$data: the same source" cmp <(grep '^ *source:' $data-lines/config.yaml) <(grep '^ *source:' $data-rows/config.yaml)
done
expect 0 '' with_python "$weft" train gpt --data many "${tune[@]}" --run many-rows
check "a folder has the same conversations" cmp "$(last chats-lines)" "$(last many-rows)"
expect 0 'new data' with_python "$weft" eval pairs-rows pairs.parquet
expect 3 'absent.parquet: row 3: ' with_python "$weft" train gpt --data absent.parquet "${tune[@]}" --run absent
one_line
expect 0 '' "$weft" train encoder --data reviews.csv --set model.init=bert --quiet --set train.epochs=2 --run reviews-csv
expect 0 '' with_python "$weft" train encoder --data reviews.parquet --set model.init=bert --quiet --set train.epochs=2 --run reviews-rows
check "classes: the same weights" cmp {reviews-csv,reviews-rows}/checkpoints/best/model.safetensors

echo "test_parquet_chats: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
