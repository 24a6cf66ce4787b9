#!/usr/bin/env bash
# weft embed and weft classify: vectors and classes of lines, and what is refused. The model is a small BERT.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_embed: skipped, python3 is missing"
    exit 77
fi
python3 "$tree/tests/train/make_published.py" bert --encoder || exit 1
python3 "$tree/tests/train/make_published.py" llama || exit 1

# ---- vectors ----
for i in $(seq 19); do echo "the weft goes under the warp $([ $((i % 3)) = 0 ] && echo over the loom.)"; done >lines.txt
printf 'A loom\r\n\nno newline at the end, so it is long: %s' "$(seq -s ' the ' 30)" >>lines.txt
expect 0 '' "$weft" embed bert lines.txt
cp out vectors.tsv
check "one vector for each line, each of length 1" python3 -c '
rows = [[float(x) for x in line.split("\t")] for line in open("vectors.tsv")]
assert len(rows) == 22 and all(len(row) == 32 for row in rows), len(rows)
assert all(abs(sum(x * x for x in row) - 1) < 1e-5 for row in rows)
near = lambda a, b: max(abs(x - y) for x, y in zip(rows[a], rows[b]))
assert near(0, 1) < 1e-5 and near(2, 5) < 1e-5, "equal lines, unequal vectors"
assert near(0, 2) > 0.01 and near(0, 19) > 0.01 and near(19, 20) > 0.01, "unequal lines, equal vectors"'
check "a long text is named" grep -q 'embed: 1 texts have more than 24 tokens' err
expect 0 '' "$weft" embed bert - --json < <(printf 'A loom\n')
check "JSON, and the same vector alone" python3 -c '
import json
found = json.load(open("out"))
want = [float(x) for x in open("vectors.tsv").read().splitlines()[19].split("\t")]
assert found["text"] == "A loom" and max(abs(a - b) for a, b in zip(found["embedding"], want)) < 1e-5'
expect 0 '' "$weft" embed bert lines.txt --pooling cls
check "the first token has another vector" bash -c '! cmp -s out vectors.tsv'
cp out first.tsv
mkdir bert/1_Pooling
echo '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}' >bert/1_Pooling/config.json
expect 0 '' "$weft" embed bert lines.txt
check "the file of sentence-transformers chooses" cmp out first.tsv
echo '{"pooling_mode_max_tokens": true}' >bert/1_Pooling/config.json
expect 3 'bert/1_Pooling/config.json: Weft knows pooling_mode_cls_token' "$weft" embed bert lines.txt
one_line
rm -r bert/1_Pooling
echo '{"max_seq_length": 5}' >bert/sentence_bert_config.json
expect 0 '20 texts have more than 5 tokens' "$weft" embed bert lines.txt
rm bert/sentence_bert_config.json
expect 0 '' "$weft" embed bert </dev/null
check "no lines, no vectors" test ! -s out

# ---- classes ----
expect 0 '^(bad|good|so so).0\.[0-9]{4}$' "$weft" classify bert lines.txt
check "one class for each line" bash -c '[ $(wc -l <out) = 22 ]'
cp out classes.tsv
expect 0 '' "$weft" classify bert lines.txt --json
check "all probabilities" python3 -c '
import json
rows = [json.loads(line) for line in open("out")]
for row, line in zip(rows, open("classes.tsv")):
    each = row["probabilities"]
    assert set(each) == {"bad", "good", "so so"} and abs(sum(each.values()) - 1) < 1e-5, each
    assert row["class"] == max(each, key=each.get) == line.split("\t")[0] and row["probability"] == each[row["class"]]
assert rows[19]["text"] == "A loom" and len(rows) == 22'

# ---- what is refused ----
expect 0 'bert' "$weft" info bert
expect 2 'a model of type bert makes no text: use weft embed' "$weft" generate bert --prompt a
one_line
expect 2 'a model of type llama is no encoder: use weft generate' "$weft" embed llama lines.txt
one_line
expect 2 'nowhere is no published model' "$weft" classify nowhere lines.txt
one_line
expect 2 'pooling max: give mean or cls' "$weft" embed bert --pooling max
one_line
expect 8 'nowhere.txt' "$weft" embed bert nowhere.txt
one_line
expect 3 'does not write the architecture bert to GGUF files' "$weft" quantize bert --to f16
one_line
cp -r bert plain
sed -i 's/BertForSequenceClassification/BertModel/' plain/config.json
expect 2 'plain: the model has no classes' "$weft" classify plain lines.txt
one_line
expect 3 "'classifier.bias' is not a tensor of the model" "$weft" embed plain lines.txt
one_line
sed -i 's/"hidden_act"/"problem_type": "regression", "hidden_act"/' bert/config.json
expect 3 'problem_type' "$weft" classify bert lines.txt
one_line

echo "test_embed: cells=$cells fail=$fail"
[ "$fail" = 0 ]
