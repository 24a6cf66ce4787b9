#!/usr/bin/env bash
# Output of weft generate and weft chat that is held to JSON or to a schema. The model is a Llama of random weights, so it
# does not know JSON.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_json: skipped, python3 is missing"
    exit 77
fi
python3 "$tree/tests/train/make_published.py" model || exit 1
cat >person.json <<'END'
{
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 6},
    "age": {"type": "integer", "minimum": 0, "maximum": 130},
    "kind": {"enum": ["warp", "weft"]}
  },
  "required": ["name", "age", "kind"]
}
END
cat >valid.py <<'END'
import json, sys
for line in sys.stdin:
    value = json.loads(line)
    assert list(value) == ["name", "age", "kind"], value
    assert len(value["name"]) <= 6 and 0 <= value["age"] <= 130 and value["kind"] in ("warp", "weft"), value
END

# ---- a schema ----
for seed in 1 2 3 4 5; do
    expect 0 '^\{"name": ?"' "$weft" generate model --json-schema person.json --seed "$seed" --prompt "the weft"
    check "seed $seed is valid" bash -c 'python3 valid.py <out'
done
expect 0 '^\{"name": ?"' "$weft" generate model --json-schema person.json --temperature 0 --prompt "the weft" --device cpu
check "the likeliest text is valid" bash -c 'python3 valid.py <out'

# ---- too few tokens ----
expect 10 'the JSON value was not complete after 5 tokens. Give more with --tokens' "$weft" generate model \
    --json-schema person.json --tokens 5
one_line
check "what was made is there" grep -q '^{"na' out

# ---- any JSON ----
expect 10 '' "$weft" generate model --json --tokens 30
check "it begins as an object or a list" grep -q '^[[{]' out
echo '{"type": "array", "maxItems": 0}' >empty.json
expect 0 '^\[\]$' "$weft" generate model --json-schema empty.json

# ---- chat ----
printf 'hello\nand again\n' >lines.txt
expect 0 '' "$weft" chat model --json-schema person.json --system "be kind" <lines.txt
check "each answer is valid" bash -c 'python3 valid.py <out && test $(wc -l <out) = 2'
expect 10 'chat: the JSON value was not complete after 3 tokens' "$weft" chat model --json-schema person.json --tokens 3 <lines.txt

# ---- what is refused ----
echo '{"properties": {"age": {"multipleOf": 3}}}' >multiple.json
expect 3 "multiple.json: #/properties/age: Weft does not know the keyword 'multipleOf'" "$weft" generate model --json-schema multiple.json
one_line
expect 3 "multiple.json: #/properties/age" "$weft" chat model --json-schema multiple.json
one_line
echo '{"type": "object"' >cut.json
expect 3 'cut.json: ' "$weft" generate model --json-schema cut.json
one_line
expect 8 'absent.json' "$weft" generate model --json-schema absent.json
one_line
expect 2 'json-schema' "$weft" generate model --json-schema
sed -n 's/.*--json/--json/p' <("$weft" generate --help) >help
check "the help has both" bash -c 'test $(wc -l <help) -ge 2'

echo "test_json: cells=$cells fail=$fail"
[ "$fail" = 0 ]
