#!/usr/bin/env bash
# Texts in Parquet files, and in JSON lines outside of tar files: language models have the same bits as from plain texts, in
# memory or not, in one process or several, and after a process was killed. Also tests messages, and the peak of memory with
# texts that are larger.
# shellcheck source=tests/train/command.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/command.sh"
# shellcheck source=tests/train/processes.sh
. "$here/processes.sh"
# shellcheck source=tests/train/duckdb.sh
. "$here/duckdb.sh"

cat >gpt.yaml <<'YAML'
model: {layers: 1, heads: 2, width: 16, context: 16}
train: {steps: 12, batch: 4, accumulate: 4, exact_sum: true, eval_every: 6, save_every: 6, log_every: 3}
schedule: {warmup: 2, type: constant}
YAML
weights=checkpoints/step-12/model.safetensors
train() { with_python "$weft" train gpt.yaml --quiet "$@"; }
same() { check "$2: the weights of $1" cmp "$1/$weights" "$2/$weights"; }

# ---- JSON lines: these need no library ----
python3 - <<'PYTHON'
import json, os, random
random.seed(5)
words = "the weft goes over and under the warp, don't stop é 日本 12 345".split() + ["\n", "\n", "\n\n", " ", "\t"]
texts = []
for i in range(300):
    text = " ".join(random.choices(words, k=4000 if i % 10 == 7 else random.choice([0, 3, 40, 400])))
    texts.append(text + random.choice(["", "\n", ".", "\n\n"]))
json.dump(texts, open("texts.json", "w"))
open("whole.txt", "w").write("".join(t if t.endswith("\n") or not t else t + "\n" for t in texts))
os.makedirs("lines")
for k in range(3):
    with open("lines/part-%d.jsonl" % k, "w") as file:
        file.write("\n".join(json.dumps({"id": i, "text": texts[i]}) for i in range(100 * k, 100 * k + 100)))
PYTHON
bpe=${WEFT_TEST_DATA:-}/gpt2-bpe
expect 0 '' "$weft" tokenize --train 300 whole.txt --out pipeline
for tokenizer in character byte word bpe; do
    options=(--set "data.tokenizer=$tokenizer")
    [ $tokenizer != bpe ] || [ -d "$bpe" ] || continue
    [ $tokenizer != bpe ] || options+=(--set data.tokenizer_path="$bpe")
    expect 0 '' train --run $tokenizer --set data.path=whole.txt "${options[@]}"
done
for mode in auto true; do
    expect 0 '' train --run lines-$mode --set data.path=lines --set data.in_files=$mode
    same character lines-$mode
done
expect 0 '' train --run lines-range --set 'data.path=lines/part-{0..2}.jsonl'
same character lines-range
expect 0 'data: 1 files?, |data: [0-9]+ bytes' "$weft" plan gpt.yaml --set data.path=lines/part-0.jsonl
expect 0 '' "$weft" init gpt --data lines/part-0.jsonl --out init.yaml
check "init chooses texts" grep -q '^  source: text' init.yaml

# packed lines, and lines in files named .json, are the same texts
mkdir packed json
cp lines/part-* packed
gzip packed/part-0.jsonl packed/part-2.jsonl
for k in 0 1 2; do cp lines/part-$k.jsonl json/part-$k.json; done
gzip json/part-1.json
for folder in packed json 'json/*.json*'; do
    expect 0 '' train --run "texts-${folder//[^a-z]/}" --set "data.path=$folder"
    same character "texts-${folder//[^a-z]/}"
done
cat lines/part-0.jsonl <(echo) lines/part-1.jsonl <(echo) lines/part-2.jsonl | gzip >whole.json.gz
expect 0 '' train --run texts-whole --set data.path=whole.json.gz
same character texts-whole
expect 0 '' "$weft" tokenize --tokenizer pipeline lines --out tokens-lines.bin
expect 0 '' "$weft" tokenize --tokenizer pipeline packed --out tokens-packed.bin
check "tokens of packed lines" cmp tokens-lines.bin tokens-packed.bin
expect 3 'packed/part-0.jsonl.gz: the file is packed with gzip, .*leave out data.in_files' train --run none --set data.path=packed --set data.in_files=true
one_line
printf '{"a": {"text": 1},\n "b": 2}\n' >pretty.json
expect 0 'data: 28 bytes' "$weft" plan gpt.yaml --set data.path=pretty.json --set model.context=4 --set data.val_fraction=0

# what the lines are for
printf '{"text": "good"}\n{"body": "bad"}\n' >keys.jsonl
expect 3 'keys.jsonl: byte 17: this line is no object with a "text"' train --run none --set data.path=keys.jsonl
one_line
for line in '{"body": "x"}' '{"messages": [], "text": "x"}' '{"prompt": "a", "completion": "the \"text\": x"}'; do
    echo "$line" >chats.jsonl
    expect 2 'data.source: chats are for published models: .* data.source=text' train --run none --set data.path=chats.jsonl
    one_line
done
echo '{"chosen": "a", "rejected": "b", "text": "x"}' >pairs.jsonl
expect 2 'data.source: preferences are for published models: .* data.source=text' train --run none --set data.path=pairs.jsonl
one_line

# files that are packed in another way
in_bytes() { printf "$1" && head -c 100 /dev/zero; }
in_bytes '\x28\xb5\x2f\xfd' >zstd.jsonl.zst
in_bytes '\xfd7zXZ\x00' >xz.jsonl.xz
in_bytes 'BZh91AY&SY\x80' >bzip2.txt
in_bytes '\x04\x22\x4d\x18\xff' >lz4.csv
in_bytes 'PK\x03\x04\xff' >unzip.json
for file in zstd.jsonl.zst xz.jsonl.xz bzip2.txt lz4.csv unzip.json; do
    expect 3 "$file: the file is packed with (${file%%.*}|zip): unpack it with ${file%%.*}" train --run none --set data.path=$file
    one_line
    expect 3 "$file: the file is packed with (${file%%.*}|zip): unpack it with ${file%%.*}" \
        train --run none --set data.path=$file --set data.in_files=true --set data.tokenizer=character
    one_line
done
expect 3 'lz4.csv: the file is packed with lz4: unpack it with lz4 -d$' "$weft" train logistic --data lz4.csv --run none --quiet
expect 3 'unzip.json: the file is packed with zip: unpack it with unzip$' "$weft" train mlp --data unzip.json --run none --quiet
expect 3 'zstd.jsonl.zst: the file is packed with zstd: unpack it with zstd -d' "$weft" train mlp --data zstd.jsonl.zst --run none --quiet
echo '(PK) 4' >text.txt
check "a plain text is not packed" "$weft" plan gpt.yaml --set data.path=text.txt --set model.context=2 --set data.val_fraction=0

# ---- without the library ----
printf 'PAR1 and so on' >bad.parquet
expect 8 'bad.parquet: .*libduckdb.*cannot be opened: Weft reads Parquet by the library of DuckDB: install libduckdb' \
    env WEFT_DUCKDB_LIB=/no/such/libduckdb.so "$weft" train gpt.yaml --run none --quiet --set data.path=bad.parquet
one_line
expect 8 'libc.so.6 has no duckdb_open: it is not the library of DuckDB 1.0 or later' \
    env WEFT_DUCKDB_LIB=libc.so.6 "$weft" train gpt.yaml --run none --quiet --set data.path=bad.parquet
one_line

# ---- with it: the same bits, in memory or not ----
need_duckdb test_parquet_texts
in_duckdb <<'PYTHON'
import json, os, duckdb
texts = json.load(open("texts.json"))
os.makedirs("parts")
duckdb.sql("CREATE TABLE t(id INT, text VARCHAR)")
duckdb.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(texts)))
duckdb.sql("COPY (FROM t ORDER BY id) TO 'one.parquet' (FORMAT parquet, ROW_GROUP_SIZE 64)")
duckdb.sql("COPY (FROM t ORDER BY id) TO 'it''s [all]*.parquet' (FORMAT parquet, COMPRESSION zstd)")
for k in range(3):
    duckdb.sql("COPY (FROM t WHERE id // 100 = %d ORDER BY id) TO 'parts/part-%d.parquet' (FORMAT parquet)" % (k, k))
open("parts/README.md", "w").write("# About these texts\n")
bad = {"null": "SELECT CASE WHEN id = 7 THEN NULL ELSE text END AS text FROM t ORDER BY id", "body": "SELECT id, text AS body FROM t",
       "number": "SELECT id AS text FROM t", "none": "FROM t LIMIT 0", "blob": "SELECT encode(text) AS text FROM t",
       "zero": "SELECT CASE WHEN id = 9 THEN 'a' || chr(0) ELSE 'good' END AS text FROM t ORDER BY id"}
for name, query in bad.items():
    duckdb.sql("COPY (%s) TO '%s.parquet' (FORMAT parquet)" % (query, name))
PYTHON
for tokenizer in character byte word bpe; do
    options=(--set "data.tokenizer=$tokenizer")
    [ $tokenizer != bpe ] || [ -d "$bpe" ] || continue
    [ $tokenizer != bpe ] || options+=(--set data.tokenizer_path="$bpe")
    for data in one.parquet parts 'parts/part-{0..2}.parquet' "it's [all]*.parquet"; do
        for mode in auto true; do
            [ $tokenizer$mode != wordtrue ] || continue
            [ $tokenizer = character ] || [ "$data$mode" = partsauto ] || [ "$data$mode" = one.parquettrue ] || continue
            run=$tokenizer-${data//[^a-z]/}-$mode
            expect 0 '' train --run "$run" --set data.path="$data" "${options[@]}" --set data.in_files=$mode
            same $tokenizer "$run"
            rm -r "$run"
        done
    done
done
expect 0 '' train --run pipe-lines --set data.path=lines --set data.tokenizer_path=pipeline
expect 0 '' train --run pipe-rows --set data.path=parts --set data.tokenizer_path=pipeline --set data.in_files=true
same pipe-lines pipe-rows
expect 0 'data: 3 files, [0-9]+ bytes, [0-9]+ tokens \(character\), from parts' with_python "$weft" plan gpt.yaml --set data.path=parts
check "README.md is left out" grep -q 'skipped: 1 file of other kinds' out
expect 0 'in 1 file' "$weft" tokenize whole.txt --tokenizer character/tokenizer.json --out one.bin
expect 0 'in 1 file' with_python "$weft" tokenize parts --tokenizer character/tokenizer.json --out other.bin
check "the same tokens" cmp one.bin other.bin
expect 0 '300 tokens' "$weft" tokenize --train 300 lines --out from-lines
expect 0 '300 tokens' with_python "$weft" tokenize --train 300 parts --out from-rows
check "the same tokenizer" cmp from-lines/tokenizer.json from-rows/tokenizer.json
expect 3 'number.parquet: the column "text" has the type INTEGER' with_python "$weft" tokenize --train 300 number.parquet --out none
one_line
expect 0 '' with_python "$weft" init gpt --data parts --out parts.yaml
check "init chooses texts" grep -q 'source: text' parts.yaml

# ---- killed at some step, and resumed; a resume in memory, and with other data ----
for step in 5 8; do
    run=killed-$step
    (with_python exec "$weft" train gpt.yaml --run $run --set data.path=parts --set data.in_files=true --set train.save_every=2 \
        --set train.log_every=1 --set train.steps=100000 --set train.eval_every=100000 >$run.out 2>&1) &
    job=$!
    wait_for_line "step $step/" $run.out
    kill -9 $job
    wait $job 2>/dev/null
    check "$run is not at its end" test ! -e $run/checkpoints/step-100000
    reached=$(compgen -G "$run/checkpoints/step-*" | sed 's/.*-//' | sort -n | tail -1)
    steps=$((reached + 6))
    expect 0 '' with_python "$weft" resume $run --quiet --set train.steps=$steps
    expect 0 '' train --run whole-$step --set data.path=whole.txt --set train.steps=$steps --set train.save_every=2 \
        --set train.eval_every=100000
    check "$run: the weights of an unbroken run" cmp {$run,whole-$step}/checkpoints/step-$steps/model.safetensors
done
cp -r parts moved
for first in true false; do
    second=true
    [ $first = false ] || second=false
    expect 0 '' train --run half-$first --set data.path=moved --set train.steps=6 --set data.in_files=$first
    cp -r half-$first other-$first
    expect 0 '' with_python "$weft" resume half-$first --quiet --set train.steps=12 --set data.in_files=$second
    same character half-$first
done
cp moved/part-0.parquet moved/part-1.parquet
expect 3 'the data is not what' with_python "$weft" resume other-true --set train.steps=12

# ---- several processes ----
for mpi in openmpi mpich; do
    has_mpi $mpi || continue
    for n in 1 2; do
        expect 0 '' mpirun.$mpi -n $n env LD_PRELOAD="$python" "$weft" train gpt.yaml --quiet --run $mpi-$n --set data.path=parts \
            --set data.in_files=true
        same character $mpi-$n
    done
    break
done

# ---- bad input ----
head -c 3000 one.parquet >cut.parquet
printf 'version https://git-lfs.github.com/spec/v1\n' >pointer.parquet
: >empty.parquet
refused() { # refused FILE CODE PATTERN
    for mode in auto true; do
        expect "$2" "$3" train --run none --set data.path="$1" --set data.in_files=$mode
        one_line
    done
}
refused bad.parquet 3 'bad.parquet: DuckDB cannot read it: '
refused cut.parquet 3 'cut.parquet: DuckDB cannot read it: '
refused pointer.parquet 3 'pointer.parquet: this is no Parquet file: .* git lfs pull'
refused empty.parquet 3 'empty.parquet: this is no Parquet file'
refused body.parquet 3 'body.parquet: no column "text"; the columns are "id", "body": '
refused number.parquet 3 'number.parquet: the column "text" has the type INTEGER: '
refused blob.parquet 3 'blob.parquet: the column "text" has the type BLOB: '
refused null.parquet 3 'null.parquet: row 7: the text is null: '
refused zero.parquet 3 'zero.parquet: row 9: this is no text: it holds a byte 0'
refused none.parquet 3 'none.parquet: no row holds a text'
refused absent-file.parquet 8 'absent-file.parquet'
check "no run of a bad file" test ! -e none

# ---- a file that changes while it is read ----
cp parts/part-0.parquet moving.parquet
for _ in 1 2 3; do in_duckdb <<<"import duckdb; duckdb.sql(\"COPY (SELECT text || repeat(text, 20) AS text FROM 'one.parquet') TO 'moving.parquet'\")"; done
timeout 60 env LD_PRELOAD="$python" "$weft" train gpt.yaml --run live --set data.path=moving.parquet --set data.in_files=true \
    --set train.steps=1000000 --set train.save_every=1000000 --set train.eval_every=1000000 >live.out 2>&1 &
job=$!
wait_for_line 'step 3' live.out
cat one.parquet >moving.parquet
wait $job
code=$?
check "the run ends with an error, not $code" test $code = 3
check "which is told" grep -q 'moving.parquet: the file has changed since it was opened: restore it' live.out

# ---- more than memory: 60 MB of text, 300 MB with its ids ----
in_duckdb <<'PYTHON'
import duckdb
duckdb.sql("""COPY (SELECT i AS id, (SELECT string_agg(md5((i * 100 + j)::VARCHAR), ' ') FROM range(30) t(j)) AS text
                    FROM range(60000) r(i)) TO 'large.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048)""")
PYTHON
with_python "$weft" tokenize large.parquet --tokenizer byte/tokenizer.json --out rows.bin >/dev/null
in_duckdb <<<"import duckdb; duckdb.sql(\"COPY (SELECT text FROM 'large.parquet') TO 'large.jsonl'\")"
"$weft" tokenize large.jsonl --tokenizer byte/tokenizer.json --out lines.bin >/dev/null
check "all rows, in their order" cmp rows.bin lines.bin
expect 0 '' peak 180 env LD_PRELOAD="$python" "$weft" train gpt.yaml --quiet --run lean --set data.path=large.parquet --set data.in_files=true \
    --set data.val_fraction=0.001
expect 1 '' peak 180 env LD_PRELOAD="$python" "$weft" train gpt.yaml --quiet --run fat --set data.path=large.parquet --set data.in_files=false \
    --set data.val_fraction=0.001
same fat lean

echo "test_parquet_texts: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
