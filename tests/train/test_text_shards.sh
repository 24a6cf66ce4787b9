#!/usr/bin/env bash
# Trains language models on texts in tar files, on texts that stay in their files, and on several files of tokens: the same
# bits as from one file, in memory or not, in one process or several, and after a resume. Also tests messages, and the
# peak of memory with texts that are larger.
# shellcheck source=tests/train/command.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/command.sh"
# shellcheck source=tests/train/processes.sh
. "$here/processes.sh"

cat >gpt.yaml <<'YAML'
model: {layers: 1, heads: 2, width: 16, context: 16}
train: {steps: 12, batch: 4, accumulate: 4, exact_sum: true, eval_every: 6, save_every: 6, log_every: 3}
schedule: {warmup: 2, type: constant}
YAML

# The same texts as a folder, as one file, in four tar files, and as .jsonl.
python3 - <<'PYTHON'
import io, json, os, random, tarfile
random.seed(5)
words = "the weft goes over and under the warp, don't stop é 日本 12 345".split() + ["\n", "\n", "\n\n", " ", "\t"]
texts = []
for i in range(60):
    text = " ".join(random.choices(words, k=4000 if i % 10 == 7 else random.choice([3, 40, 400])))
    texts.append(text + random.choice(["", "\n", ".", "\n\n"]))
os.makedirs("texts"), os.makedirs("shards"), os.makedirs("lines")
whole = b""
def member(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
for i, text in enumerate(texts):
    data = text.encode()
    open("texts/%03d.txt" % i, "wb").write(data)
    whole += data if data.endswith(b"\n") else data + b"\n"
open("whole.txt", "wb").write(whole)
for k in range(4):
    order = list(range(15 * k, 15 * k + 15))
    random.shuffle(order) # the names decide, not the order in the tar file
    with tarfile.open("shards/part-%02d.tar" % k, "w") as tar:
        for i in order:
            member(tar, "%03d.txt" % i, texts[i].encode())
            member(tar, "%03d.json" % i, b"{}")
        member(tar, "._000.txt", b"\0\1")
    rows = [json.dumps({"text": texts[i], "id": i}, ensure_ascii=i % 2 == 0) for i in sorted(order)]
    with tarfile.open("lines/part-%02d.tar" % k, "w") as tar:
        member(tar, "a.jsonl", "\n".join(rows[:7]).encode())
        member(tar, "b.jsonl", ("\r\n".join(rows[7:]) + "\n\n").encode())
PYTHON
if "$weft" plan gpt.yaml --set data.path=shards 2>&1 | grep -q 'built without libarchive: install libarchive-dev'; then
    echo "test_text_shards: cells=$cells fail=$fail skip=1 (this Weft was built without libarchive)"
    exit 0
fi

weights=checkpoints/step-12/model.safetensors
train() { "$weft" train gpt.yaml --quiet "$@"; }
same() { check "$2: the weights of $1" cmp "$1/$weights" "$2/$weights"; }

# ---- the same bits, wherever the texts are ----
expect 0 '' "$weft" tokenize --train 300 whole.txt --out pipeline
bpe=${WEFT_TEST_DATA:-}/gpt2-bpe
for tokenizer in character byte word bpe; do
    options=(--set "data.tokenizer=$tokenizer")
    [ $tokenizer != bpe ] || [ -d "$bpe" ] || continue
    [ $tokenizer != bpe ] || options+=(--set data.tokenizer_path="$bpe")
    expect 0 '' train --run $tokenizer --set data.path=whole.txt "${options[@]}"
    for data in texts shards 'shards/*.tar' 'shards/part-{00..03}.tar' lines; do
        for mode in auto true; do
            [ $tokenizer$mode != wordtrue ] || continue
            [ $tokenizer != bpe ] || [[ $data$mode = lines* ]] || [ "$data" = shards ] || continue
            run=$tokenizer-${data//[^a-z]/}-$mode
            expect 0 '' train --run "$run" --set data.path="$data" "${options[@]}" --set data.in_files=$mode
            same $tokenizer "$run"
            rm -r "$run"
        done
    done
done
expect 0 '' train --run pipe-auto --set data.path=shards --set data.tokenizer_path=pipeline
expect 0 '' train --run pipe-true --set data.path=lines --set data.tokenizer_path=pipeline --set data.in_files=true
same pipe-auto pipe-true
expect 0 '' "$weft" train lstm --data whole.txt --quiet --run lstm --set train.steps=12 --set train.batch=4 --set model.width=16
expect 0 '' "$weft" train lstm --data shards --quiet --run lstm-files --set train.steps=12 --set train.batch=4 --set model.width=16 \
    --set data.in_files=true
same lstm lstm-files

# ---- what is told ----
expect 0 'data: 60 files, [0-9]+ bytes, [0-9]+ tokens \(byte\), from shards' "$weft" plan gpt.yaml --set data.path=shards --set data.tokenizer=byte
check "what was skipped" grep -q 'skipped: 4 hidden names (with a dot in front), 60 files of other kinds' out
check "no file is missing" bash -c '! grep -q missing out'
expect 0 'the text stays in its files \(data.in_files\)' "$weft" plan gpt.yaml --set data.path=shards --set data.in_files=true
expect 0 'data: 30 files' "$weft" plan gpt.yaml --set 'data.path=shards/part-{01..02}.tar'
expect 8 'shards/part-04.tar: this file of /.*shards/part-[{]02..05[}].tar cannot be found .*: restore it, or change the range' \
    train --run none --set 'data.path=shards/part-{02..05}.tar'
one_line
expect 2 'a range goes from the smaller number to the larger one' train --run none --set 'data.path=shards/part-{3..2}.tar'
expect 0 'data: 3 files' "$weft" plan gpt.yaml --set 'data.path=texts/{008..010}.txt'
mkdir gap
cp shards/part-0[013].tar gap
expect 0 'missing: gap/part-02.tar, by the numbers of the other files' "$weft" plan gpt.yaml --set data.path='gap/*.tar'

# ---- separate validation and test data, and a resume in either way ----
parts=(--set data.path='shards/part-0[012].tar' --set data.val_path=shards/part-03.tar --set data.test_path=lines/part-00.tar)
expect 0 '' train --run parts "${parts[@]}"
for first in true false; do
    second=true
    [ $first = false ] || second=false
    expect 0 '' train --run parts-$first "${parts[@]}" --set data.in_files=$first --set train.steps=6
    expect 0 '' "$weft" resume parts-$first --quiet --set train.steps=12 --set data.in_files=$second
    same parts parts-$first
    check "and scores" test "$("$weft" eval parts --json)" = "$("$weft" eval parts-$first --json)"
done
cp -r shards moved
expect 0 '' train --run half --set data.path=moved --set train.steps=6
cp moved/part-00.tar moved/part-01.tar
expect 3 'the data is not what' "$weft" resume half --set train.steps=12

# ---- tokens: one file or several, and from tar files ----
if [ -d "$bpe" ]; then
    expect 0 'in 1 file' "$weft" tokenize whole.txt --tokenizer "$bpe" --out one.bin
    for data in texts shards lines 'shards/part-*.tar'; do
        expect 0 'in 1 file' "$weft" tokenize "$data" --tokenizer "$bpe" --out other.bin --force
        check "$data: the same tokens" cmp one.bin other.bin
    done
    expect 0 'in [0-9]+ files' "$weft" tokenize shards --tokenizer "$bpe" --out token.bin --shard 9000
    for mode in auto true; do
        expect 0 '' train --run tokens-$mode --set data.path='token-*.bin' --set data.tokenizer_path="$bpe" --set data.in_files=$mode
        same bpe tokens-$mode
    done
    expect 0 '' train --run tokens-range --set 'data.path=token-{000000..000003}.bin' --set data.tokenizer_path="$bpe"
    expect 0 '' "$weft" resume tokens-range --quiet --set train.steps=15
    rm token-000001.bin
    expect 8 'token-000001.bin: this file of .*token-[{]000000..000003[}].bin cannot be found' \
        train --run none --set 'data.path=token-{000000..000003}.bin'
    expect 0 'missing: token-000001.bin, by the numbers of the other files' "$weft" plan gpt.yaml --set data.path='token-*.bin'
    # shellcheck disable=SC2016 # the inner shell expands $1
    expect 3 'token-000002.bin: the text has token [0-9]+, but the model knows only 0 to [0-9]+: this file is of another tokenizer' \
        bash -c '"$1" tokenize whole.txt --tokenizer byte/tokenizer.json --out token-000000.bin --force && mv token-000003.bin kept && rm token-0000*[3-9].bin
            "$1" train gpt.yaml --set data.path="token-*.bin" --set data.tokenizer_path=byte/tokenizer.json' - "$weft"
fi
expect 0 '' "$weft" tokenize shards --tokenizer pipeline --out pipe.bin
expect 0 '' train --run pipe-tokens --set data.path=pipe.bin --set data.tokenizer_path=pipeline
same pipe-auto pipe-tokens

# ---- several processes ----
for mpi in openmpi mpich; do
    if [ -e "$(dirname "$weft")/libweft-$mpi.so" ] && command -v mpirun.$mpi >/dev/null; then
        expect 0 '' train --run alone --set data.path=shards --set data.in_files=true
        for n in 2 4; do
            expect 0 '' mpirun.$mpi -n $n "$weft" train gpt.yaml --quiet --run $mpi-$n --set data.path=shards --set data.in_files=true
            same alone $mpi-$n
        done
        break
    fi
done

# ---- bad input ----
python3 - <<'PYTHON'
import io, os, tarfile
os.makedirs("bad")
def write(path, members):
    with tarfile.open("bad/" + path, "w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
text = b"the weft goes over and under the warp\n" * 40
write("latin.tar", [("a.txt", text), ("b.txt", text + b"caf\xe9!")])
write("binary.tar", [("a.txt", text), ("b.md", text[:50] + b"\0\0" + text)])
write("none.tar", [("a.jpg", text), ("b.json", b"{}")])
write("empty.tar", [("a.txt", b"")])
write("twice.tar", [("a.txt", text), ("a.txt", text)])
write("keys.tar", [("a.jsonl", b'{"text": "good"}\n{"texts": "bad"}\n')])
write("json.tar", [("a.jsonl", b'{"text": "good"}\n{"text": \n')])
whole = open("shards/part-00.tar", "rb").read()
open("bad/cut.tar", "wb").write(whole[:len(whole) // 2])
open("bad/noise.tar", "wb").write(whole[:1024] + bytes(range(256)) * 40)
with tarfile.open("bad/link.tar", "w") as tar:
    info = tarfile.TarInfo("a.txt")
    info.type, info.linkname = tarfile.SYMTYPE, "b.txt"
    tar.addfile(info)
PYTHON
refused() { # refused FILE CODE PATTERN
    for mode in auto true; do
        expect "$2" "$3" train --run none --set data.path="$1" --set data.in_files=$mode
        one_line
    done
}
refused bad/latin.tar 3 'bad/latin.tar/b.txt: byte 1523: \(0xe9\) is not UTF-8: convert the text'
refused bad/binary.tar 3 'bad/binary.tar/b.md: byte 50: this is no text: it holds a byte 0'
refused bad/none.tar 3 'bad/none.tar: this tar file holds no texts \(.txt, .md or .jsonl, not empty\)'
refused bad/empty.tar 3 'bad/empty.tar: this tar file holds no texts'
refused bad/twice.tar 3 'bad/twice.tar/a.txt: two members of the tar file have this name: remove one'
refused bad/keys.tar 3 'bad/keys.tar/a.jsonl: byte 17: this line is no object with a "text"'
refused bad/json.tar 3 'bad/json.tar/a.jsonl: byte 17: this line is no object with a "text"'
refused bad/cut.tar 3 'bad/cut.tar/.*: the tar file is cut off'
refused bad/noise.tar 3 'bad/noise.tar'
refused bad/link.tar 3 'bad/link.tar/a.txt: this member is a link'
refused bad/absent.tar 8 'bad/absent.tar'
refused 'bad/absent-*.tar' 8 'bad/absent-\*.tar: there is no such file'
gzip -k whole.txt shards/part-00.tar
refused shards/part-00.tar.gz 3 'packed with gzip, so files cannot be read from its middle'
expect 3 'whole.txt.gz: the file is packed with gzip, so it cannot be read from its middle' \
    train --run none --set data.path=whole.txt.gz --set data.in_files=true
expect 0 '' train --run packed --set data.path=whole.txt.gz
same character packed
expect 2 'this tokenizer encodes a text as a whole' train --run none --set data.path=whole.txt --set data.tokenizer_path=pipeline --set data.in_files=true
expect 2 'the words of a text are counted in memory' train --run none --set data.path=shards --set data.tokenizer=word --set data.in_files=true
rm -r shards/part-00.tar.gz

# ---- a file that changes while it is read ----
python3 - <<'PYTHON'
data = open("whole.txt", "rb").read()
data *= 8000000 // len(data) + 1 # more than is kept of what was encoded
open("long.txt", "wb").write(data)
PYTHON
tar cf moving.tar long.txt
timeout 60 "$weft" train gpt.yaml --run live --set data.path=moving.tar --set data.in_files=true --set train.steps=1000000 --set train.save_every=1000000 \
    --set train.eval_every=1000000 >live.out 2>&1 &
job=$!
wait_for_line 'step 3' live.out
cat shards/part-0[12].tar >moving.tar
wait $job
code=$?
check "the run ends with an error, not $code" test $code = 3
check "which is told" grep -q 'moving.tar: the tar file has changed since its members were listed' live.out

# ---- more than memory ----
if ! grep -q __asan "$weft" && ! grep -q __tsan "$weft"; then # 60 MB of text, 300 MB with its ids
    python3 - <<'PYTHON'
import tarfile
data = open("whole.txt", "rb").read()
data *= 20000000 // len(data) + 1
open("large.txt", "wb").write(data)
PYTHON
    for k in 1 2 3; do tar cf large-$k.tar large.txt; done
    rm large.txt
    expect 0 '' peak 100 "$weft" train gpt.yaml --quiet --run lean --set data.path='large-*.tar' --set data.in_files=true
    expect 1 '' peak 100 "$weft" train gpt.yaml --quiet --run fat --set data.path='large-*.tar' --set data.in_files=false
    same lean fat
    expect 0 '' peak 60 "$weft" tokenize 'large-*.tar' --tokenizer character/tokenizer.json --out large.bin --shard 1000000
fi

echo "test_text_shards: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
