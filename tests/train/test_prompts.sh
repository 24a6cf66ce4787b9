#!/usr/bin/env bash
# weft generate --prompts: several prompts at once give the texts that they have alone. The model is a Llama of random
# weights with a chat template.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_prompts: skipped, python3 is missing"
    exit 77
fi
python3 "$tree/tests/train/make_published.py" model || exit 1
cat >alone.py <<'END'
"""alone.py OUT PROMPTS WEFT ARGUMENT ...: expects a line of JSON for each prompt, with the text that it has alone."""
import json, subprocess, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
prompts = open(sys.argv[2]).read().split("\n")[:-1]
assert [line["line"] for line in lines] == list(range(1, len(prompts) + 1)), lines
for number, (line, prompt) in enumerate(zip(lines, prompts)):
    assert line["seed"] == 5 + number, line
    command = [*sys.argv[3:], "--prompt", prompt, "--seed", str(line["seed"])]
    alone = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert alone == prompt + line["text"] + "\n", (prompt, line["text"], alone)
END
printf 'the weft\n\nwarp and weft and the warp\nthe\na\nthe warp the warp the warp the warp the warp the warp\nweft\n' >prompts.txt

# ---- the texts of the prompts alone ----
# alone BATCH OPTION ...: the texts of a batch are those of weft generate --prompt with the same options.
alone() {
    local batch=$1
    shift
    expect 0 '"line":1' "$weft" generate model --prompts prompts.txt --seed 5 --tokens 20 --batch "$batch" "$@"
    cp out got
    check "$*: each text is that of its prompt alone" python3 alone.py got prompts.txt "$weft" generate model --tokens 20 "$@"
}
alone 3 --temperature 0
alone 1 --temperature 1.1
alone 8 --temperature 0.9 --top-k 20
alone 64 --temperature 1 --repetition-penalty 1.2 --stop e
cp prompts.txt crlf.txt && sed -i 's/$/\r/' crlf.txt
expect 0 '' "$weft" generate model --prompts prompts.txt --tokens 6
mv out plain
expect 0 '' "$weft" generate model --prompts crlf.txt --tokens 6
check "lines may end with CR LF" cmp -s plain out
expect 0 '' bash -c "gzip -c prompts.txt >prompts.gz && '$weft' generate model --prompts prompts.gz --tokens 6"
check "a file may be packed" cmp -s plain out
expect 0 '' bash -c "'$weft' generate model --prompts - --tokens 6 <prompts.txt"
check "standard input is a file, too" cmp -s plain out
expect 0 '' bash -c "printf '%s' \"\$(cat prompts.txt)\" >open.txt && '$weft' generate model --prompts open.txt --tokens 6"
check "the last line needs no newline" cmp -s plain out

# ---- JSON lines ----
cat >prompts.jsonl <<'END'
{"prompt": "the weft"}

{"messages": [{"role": "user", "content": "hello"}]}
{"prompt": "a\nb", "label": 7}
END
expect 0 '"line":4' "$weft" generate model --prompts prompts.jsonl --temperature 0 --tokens 8
check "blank lines are skipped" bash -c 'test "$(cut -c1-9 out | tr "\n" " ")" = "{\"line\":1 {\"line\":3 {\"line\":4 "'
python3 -c 'import json; print(json.loads(open("out").read().split("\n")[1])["text"])' >answer
expect 0 '' bash -c "echo hello | '$weft' chat model --temperature 0 --tokens 8"
check "messages are answered as weft chat answers" cmp -s answer out
echo '{"type": "array", "maxItems": 0}' >empty.json
expect 0 '"text":"\[\]".*"complete":true' "$weft" generate model --prompts prompts.jsonl --json-schema empty.json
expect 10 '"complete":false' "$weft" generate model --prompts prompts.txt --json --tokens 3

# ---- what is refused ----
printf '{"prompt": "a"}\n{"prompt": 7}\n' >number.jsonl
expect 3 'number.jsonl:2: the line must be an object with "prompt", a text, or "messages", a list' "$weft" generate model --prompts number.jsonl
one_line
printf '{"prompt": "a"}\n\n{"prompt": "b"\n' >cut.jsonl
expect 3 'cut.jsonl:3: column ' "$weft" generate model --prompts cut.jsonl
one_line
printf '{"prompt": "a", "messages": []}\n' >both.jsonl
expect 3 'both.jsonl:1: the line must be' "$weft" generate model --prompts both.jsonl
printf '{"messages": [7]}\n' >seven.jsonl
expect 3 'seven.jsonl:1: ' "$weft" generate model --prompts seven.jsonl
printf 'a\0b\n' >nul.txt
expect 3 'nul.txt:1: the line has a NUL byte' "$weft" generate model --prompts nul.txt
one_line
: >nothing.txt
expect 3 'nothing.txt: there are no prompts' "$weft" generate model --prompts nothing.txt
expect 8 'absent.txt' "$weft" generate model --prompts absent.txt
one_line
expect 2 'give --prompt or --prompts, not both' "$weft" generate model --prompts prompts.txt --prompt a
expect 2 '\-\-batch is for a file of prompts' "$weft" generate model --prompt a --batch 2
expect 2 '\-\-batch 0: give 1 to 64' "$weft" generate model --prompts prompts.txt --batch 0
expect 2 '\-\-batch 65: give 1 to 64' "$weft" generate model --prompts prompts.txt --batch 65

# ---- a run of another model: characters that it does not know; its states ----
printf 'abcabcabcacbacbabcab%.0s' {1..40} >letters.txt
expect 0 '' "$weft" train lstm --data letters.txt --run run --set model.layers=1 --set model.width=8 --set train.steps=2 \
    --set data.tokenizer=character --set model.context=8 --set train.batch=2
printf 'ab\nXY\ncXb\n' >some.txt
expect 3 "some.txt:2: " "$weft" generate run --prompts some.txt --tokens 4
printf 'ab\ncXb\n' >some.txt
expect 0 'some.txt:2: the model has never seen these characters, so they are left out of the prompt: X' "$weft" generate run --prompts some.txt --tokens 4
check "both have a text" bash -c 'test $(wc -l <out) = 2'
printf '{"messages": [{"role": "user", "content": "a"}]}\n' >chat.jsonl
expect 2 'chat.jsonl:1: messages need a published model with a chat template' "$weft" generate run --prompts chat.jsonl

# ---- a reader that leaves, and a kill: whole lines were printed ----
expect 8 '' bash -c "set -o pipefail; '$weft' generate model --prompts prompts.txt --tokens 20 --batch 1 | head -n 1"
for _ in {1..300}; do echo 'the weft'; done >many.txt
"$weft" generate model --prompts many.txt --tokens 60 --batch 2 >killed 2>killed.err &
child=$!
for _ in {1..200}; do [ -s killed ] && break; sleep 0.05; done
kill "$child"
wait "$child" 2>/dev/null
code=$?
check "a killed command ends with 128 + 15" test "$code" = 143
check "its output has whole lines" python3 -c 'import json; [json.loads(line) for line in open("killed")]'

echo "test_prompts: cells=$cells fail=$fail"
[ "$fail" = 0 ]
