#!/usr/bin/env bash
# weft train with a published encoder: classes of texts and of pairs, from csv, tsv and JSON lines; resume, use of the run,
# export, heads that are kept or new, and what is refused. The model is a small BERT.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_encoder_runs: skipped, python3 is missing"
    exit 77
fi
python3 "$tree/tests/train/make_published.py" bert --encoder || exit 1
python3 "$tree/tests/train/make_published.py" llama || exit 1

# The class of a text is told by one word of it; that of a pair, by whether both texts have the same word.
python3 - <<'END'
import json
import random
draw = random.Random(1)


def text(word, longest=9):
    words = [draw.choice(["the", "a", "under", ".", "goes"]) for _ in range(draw.randint(1, longest))]
    words.insert(draw.randrange(len(words) + 1), word)
    return " ".join(words)


rows = [(i, text(word), {"warp": "fine", "loom": "poor"}[word]) for i, word in enumerate(draw.choice(["warp", "loom"]) for _ in range(200))]
with open("reviews.csv", "w") as f:
    f.write("id,text,label\n" + "".join(f'{i},"{t}",{label}\n' for i, t, label in rows))
with open("reviews.tsv", "w") as f:
    f.write("id\ttext\tlabel\n" + "".join(f"{i}\t{t}\t{label}\n" for i, t, label in rows))
with open("reviews.jsonl", "w") as f:
    f.write("".join(json.dumps({"text": t, "label": label, "id": i}) + "\n" for i, t, label in rows))
with open("numbers.jsonl", "w") as f:
    f.write("".join(json.dumps({"label": int(label == "fine"), "text": t}) + "\n" for i, t, label in rows))
with open("stars.csv", "w") as f:
    f.write("text,label\n" + "".join(f'"{t}",{10 if label == "fine" else 9}\n' for _, t, label in rows))
pairs = []
for _ in range(300):
    a, b = draw.choice(["warp", "loom"]), draw.choice(["warp", "loom"])
    pairs.append((text(a, 3), text(b, 3), "same" if a == b else "other"))
with open("pairs.csv", "w") as f:
    f.write("premise,hypothesis,label\n" + "".join(f'"{a}","{b}",{label}\n' for a, b, label in pairs))
with open("pairs.txt", "w") as f:
    f.write("".join(f"{a}\t{b}\n" for a, b, _ in pairs))
END
tune=(--set model.init=bert --set optimizer.lr=0.003)

# ---- texts ----
expect 0 'validation accuracy 100.00 %' "$weft" train --data reviews.csv "${tune[@]}" --set train.epochs=8 --run run
check "the summary counts texts" grep -q '^data: 200 texts, [0-9]* tokens each on average, from reviews.csv$' out
check "the summary names the text" grep -qx 'text: text' out
check "the summary names the classes" grep -qE '^target: label, 2 classes, .*fine \([0-9]+\), poor \([0-9]+\)$' out
check "the summary tells of the head" grep -q '^head: new and random, since that of the model is for 3 other classes$' out
check "the split" grep -q '^training: 180 texts, validation: 20 texts' out
cp run/metrics.jsonl csv.jsonl
for form in tsv jsonl; do
    expect 0 '' "$weft" train encoder --data "reviews.$form" "${tune[@]}" --set train.epochs=8 --run "run-$form" --quiet
    check "$form gives the same weights as csv" cmp {run,"run-$form"}/checkpoints/best/model.safetensors
done
gzip -k reviews.jsonl
expect 0 '' "$weft" train encoder --data reviews.jsonl.gz "${tune[@]}" --set train.epochs=8 --run run-gz --quiet
check "gzip gives the same weights" cmp run{,-gz}/checkpoints/best/model.safetensors

# ---- use of the run ----
expect 0 'validation +loss .*accuracy 100.00' "$weft" eval run
expect 0 'accuracy 9[0-9]|accuracy 100' "$weft" eval run reviews.csv
expect 0 'intact' "$weft" info run --check
check "info names the model" grep -q 'encoder-L2-H4-E32' out
expect 0 '' "$weft" predict run reviews.csv --id id
check "one line for each text" bash -c '[ $(wc -l <out) = 201 ] && head -1 out | grep -qx "id.class.probability"'
check "it tells how right it is" grep -q 'accuracy' err
expect 0 '' "$weft" predict run-jsonl - --no-header <reviews.jsonl
expect 0 '' "$weft" predict run reviews.jsonl --no-header
cut -f1 out >predicted.txt
python3 -c '
import json
print("\n".join(json.loads(line)["text"] for line in open("reviews.jsonl")))' >texts.txt
expect 0 '' "$weft" classify run texts.txt
cut -f1 out >classified.txt
check "classify and predict agree" cmp predicted.txt classified.txt
expect 0 '' "$weft" embed run texts.txt
check "vectors of the fine-tuned model" bash -c '[ $(wc -l <out) = 200 ]'
expect 0 'wrote folder/config.json' "$weft" export run --to huggingface --out folder
expect 0 '' "$weft" classify folder texts.txt
cut -f1 out >exported.txt
check "the exported folder gives the same classes" cmp classified.txt exported.txt
check "config.json is that of a classifier" python3 -c '
import json
c = json.load(open("folder/config.json"))
assert c["architectures"] == ["BertForSequenceClassification"] and c["id2label"] == {"0": "fine", "1": "poor"}, c
assert c["label2id"] == {"fine": 0, "poor": 1} and c["problem_type"] == "single_label_classification"'
expect 1 'an encoder needs its tokenizer' "$weft" export run --to c
one_line
expect 0 'step' "$weft" plan --data reviews.csv "${tune[@]}"
expect 0 'accuracy .* of 2 folds' "$weft" cv --data reviews.csv "${tune[@]}" --folds 2 --set train.epochs=1 --run folds
expect 0 'every node agrees' "$weft" verify --data reviews.csv "${tune[@]}" --devices cpu,interp --steps 2

expect 0 'train.batch [0-9]+: the largest' "$weft" train --data reviews.csv "${tune[@]}" --set train.batch=auto --set train.steps=1 \
    --set train.recompute=block --run auto
expect 0 'lora.rank has no effect: an encoder does not use it' "$weft" plan --data reviews.csv "${tune[@]}" --set lora.rank=4
expect 0 'best: accuracy' "$weft" sweep encoder --data reviews.csv "${tune[@]}" --set train.steps=2 optimizer.lr=0.001,0.002 --run swept

# ---- heads ----
expect 0 'head: the one that the model has for these classes' "$weft" train --data reviews.csv --set model.init=folder --set train.epochs=1 --run again
check "a kept head knows the classes at once" python3 -c '
import json
first = json.loads(open("again/metrics.jsonl").readline())
assert first["loss"] < 0.2, first'
sed 's/fine/Fine/; s/poor/awful/' reviews.csv >others.csv
expect 0 'head: new and random, since that of the model is for 2 other classes' "$weft" train --data others.csv --set model.init=folder --set train.epochs=1 --run other-names
sed 's/fine/POOR/; s/poor/FINE/; s/POOR/x/' reviews.csv | sed 's/x/Poor/' >turned.csv
expect 0 'head: the one that the model has' "$weft" train --data turned.csv --set model.init=folder --set train.epochs=1 --run turned
expect 0 'classes' "$weft" train --data numbers.jsonl "${tune[@]}" --set train.epochs=1 --run numbers
expect 0 '^[01]' "$weft" predict numbers numbers.jsonl --no-header
expect 0 '9 \([0-9]+\), 10 \([0-9]+\)' "$weft" train --data stars.csv "${tune[@]}" --set train.epochs=1 --run stars
python3 - <<'END'
import json
import pathlib
config = json.loads(pathlib.Path("bert/config.json").read_text())
config["architectures"] = ["BertForMaskedLM"]
for kind in ("masked",):
    folder = pathlib.Path(kind)
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (folder / name).write_bytes(pathlib.Path("bert", name).read_bytes())
    (folder / "config.json").write_text(json.dumps(config))
END
expect 0 'head: new and random, since the model has none' "$weft" train --data reviews.csv --set model.init=masked --set train.epochs=1 --run from-masked

# ---- pairs ----
expect 0 'data: 300 pairs of texts' "$weft" train --data pairs.csv "${tune[@]}" --set train.epochs=20 --set train.label_smoothing=0.02 \
    --set train.class_weights=balanced --run pairs
check "both columns are named" grep -qx 'first text: premise, second text: hypothesis' out
check "it learns what pairs have in common" bash -c 'grep -oE "validation accuracy [0-9.]+" out | awk "{exit !(\$3 > 80)}"'
expect 0 '^(same|other)' "$weft" classify pairs pairs.txt
cut -f1 out >by-lines.txt
expect 0 '' "$weft" predict pairs pairs.csv --no-header
cut -f1 out >by-rows.txt
check "pairs of lines and of rows agree" cmp by-lines.txt by-rows.txt
expect 0 '' "$weft" export pairs --to huggingface --out pairs-folder
expect 0 '' "$weft" classify pairs-folder pairs.txt --pairs
cut -f1 out >by-folder.txt
check "--pairs of a folder" cmp by-lines.txt by-folder.txt
echo 'no tab here' >bad.txt
expect 3 'line 1: a pair is two texts with one tab between them, and there is no tab' "$weft" classify pairs bad.txt
one_line
expect 0 'data: 300 pairs' "$weft" train --data pairs.csv "${tune[@]}" --set 'data.columns=[hypothesis, premise]' --set train.steps=2 --run swapped
check "data.columns gives the order" grep -qx 'first text: hypothesis, second text: premise' out

# ---- resume: the same bits; freezing, bf16, texts that are too long ----
set=("${tune[@]}" --set train.steps=12 --set train.eval_every=4 --set train.save_every=6 --set train.keep=9 --set train.accumulate=2 --quiet)
expect 0 '' "$weft" train --data pairs.csv "${set[@]}" --run whole
expect 0 '' "$weft" train --data pairs.csv "${set[@]}" --run parts
rm -rf parts/checkpoints/step-12
mv bert away # the run needs the model no more
expect 0 '' "$weft" resume parts --quiet
mv away bert
check "the same weights" cmp {whole,parts}/checkpoints/step-12/model.safetensors
check "the same states" cmp {whole,parts}/checkpoints/step-12/optimizer.safetensors
check "the same scores" cmp {whole,parts}/scores.json
rm -r parts/checkpoints
expect 0 '' "$weft" resume parts --quiet
check "a run without a checkpoint begins again" cmp {whole,parts}/checkpoints/step-12/model.safetensors
expect 0 '' "$weft" train --data reviews.csv "${tune[@]}" --set 'train.freeze=[*, !classifier.*, !pooler.*]' --set train.steps=6 --run head --quiet
check "the body is frozen" python3 -c '
import json, struct
def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    return {k: data[8 + size:][slice(*v["data_offsets"])] for k, v in json.loads(data[8:8 + size]).items() if k != "__metadata__"}
import glob
trained, begun = read(glob.glob("head/checkpoints/step-6/model.safetensors")[0]), read("bert/model.safetensors")
assert trained["wte.weight"] == begun["bert.embeddings.word_embeddings.weight"]
assert trained["pooler.weight"] != begun["bert.pooler.dense.weight"]'
expect 0 'validation accuracy' "$weft" train --data reviews.csv "${tune[@]}" --set train.precision=bf16 --set train.epochs=4 --run half
expect 0 'longer than model.context: [0-9]+ texts, of which the first 6 tokens count' "$weft" train --data reviews.csv "${tune[@]}" \
    --set model.context=6 --set train.epochs=1 --run short
expect 0 'texts have more than 6 tokens' "$weft" predict short reviews.csv
expect 0 'texts have more than 6 tokens' "$weft" classify short texts.txt

few=("${tune[@]}" --set train.accumulate=2 --set train.steps=4 --set train.batch=4 --set train.log_every=1 --set model.dropout=0 --quiet)
expect 0 '' "$weft" train --data pairs.csv "${few[@]}" --set "devices=[cpu, cpu]" --run two
expect 0 '' "$weft" train --data pairs.csv "${few[@]}" --run one
check "two devices learn what one does" python3 -c '
import json
def losses(run):
    return [json.loads(line)["loss"] for line in open(run + "/metrics.jsonl")]
assert len(losses("one")) == 4 and max(abs(a - b) for a, b in zip(losses("one"), losses("two"))) < 1e-4, (losses("one"), losses("two"))'

# ---- what is refused ----
printf 'te\xe4xt,label\nthe weft,fine\nthe warp,poor\n' >latin.csv
expect 3 'latin.csv: line 1, byte 3 of the line: 0xe4 is not UTF-8' "$weft" train --data latin.csv "${tune[@]}"
one_line
expect 3 'reviews.csv: no column "nope" \(data.target\); the columns are "id", "text", "label"' "$weft" train --data reviews.csv "${tune[@]}" --set data.target=nope
one_line
expect 3 'reviews.csv: no column "body" \(data.columns\)' "$weft" train --data reviews.csv "${tune[@]}" --set 'data.columns=[body]'
one_line
printf 'a,b,c,label\nthe weft,x,y,fine\nthe warp,x,y,poor\n' >many.csv
expect 2 'many.csv: which column has the texts' "$weft" train --data many.csv "${tune[@]}"
one_line
printf 'text,label\nthe weft,fine\nthe warp,poor\n  ,fine\n' >empty.csv
expect 3 'empty.csv: line 4, column "text": the text is empty' "$weft" train --data empty.csv "${tune[@]}"
one_line
expect 3 'empty.csv: line 4, column "text": the text is empty' "$weft" predict run empty.csv
printf '{"text": "the weft", "label": "fine"}\n\n{"label": "poor"}\n' >lacks.jsonl
expect 3 'lacks.jsonl: line 3, column "text": there is no text' "$weft" train --data lacks.jsonl "${tune[@]}"
one_line
printf '{"text": "the weft", "label": "fine"}\n{"text": "the warp", "label": null}\n' >null.jsonl
expect 3 'null.jsonl: line 2, column "label": the class is missing' "$weft" train --data null.jsonl "${tune[@]}"
printf '{"text": "the weft", "label": "fine"}\n{"text": "the\n' >broken.jsonl
expect 3 'broken.jsonl:2: column [0-9]+: ' "$weft" train --data broken.jsonl "${tune[@]}"
one_line
printf '["the weft", "fine"]\n' >list.jsonl
expect 3 'list.jsonl:1: each line is a JSON object' "$weft" train --data list.jsonl "${tune[@]}"
printf 'text,label\nthe weft,fine\nthe warp,new\n' >unseen.csv
expect 3 'unseen.csv: line 3, column "label": class "new", but the classes of the training data are "fine", "poor"' "$weft" eval run unseen.csv
one_line
expect 3 'unseen.csv: line 3, column "label": class "new"' "$weft" train --data reviews.csv --set data.val_path=unseen.csv "${tune[@]}"
printf '{"text": "the weft", "label": 2}\n' >two.jsonl
expect 3 'two.jsonl: line 1, column "label": class "2", but the classes of the training data are 0 to 1' "$weft" eval numbers two.jsonl
printf 'text,label\nthe weft,fine\nthe warp,fine\n' >one.csv
expect 3 'one.csv: all 2 texts are of one class, "fine", so there is nothing to learn' "$weft" train --data one.csv "${tune[@]}"
one_line
expect 2 'a model of type llama is no encoder: use weft train gpt' "$weft" train encoder --data reviews.csv --set model.init=llama
one_line
expect 2 'a model of type bert makes no text' "$weft" train gpt --data reviews.csv --set model.init=bert
one_line
expect 2 'model.init: nowhere is no published model' "$weft" train --data reviews.csv --set model.init=nowhere
one_line
expect 2 'model.init: an encoder is fine-tuned' "$weft" train encoder --data reviews.csv
one_line
expect 2 'model.context: 99 tokens are more than the 24 positions' "$weft" train --data reviews.csv "${tune[@]}" --set model.context=99
one_line
expect 2 'a sample is a text or a pair of texts' "$weft" train --data reviews.csv "${tune[@]}" --set 'data.columns=[a, b, c]'
one_line
expect 0 '' "$weft" train mlp --data table.csv --set train.epochs=1 --set model.hidden=[4] --run plain --quiet
expect 2 'the model of the run plain is no encoder' "$weft" classify plain texts.txt
one_line

echo "test_encoder_runs: cells=$cells fail=$fail"
[ "$fail" = 0 ]
