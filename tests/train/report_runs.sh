#!/usr/bin/env bash
# Tests of the report source this file after command.sh. It makes three runs: text, table and photos. Names in their data try
# to break out of the page, and are too long for a phone. $runs lists the runs.
# shellcheck disable=SC2034,SC2154
runs=("text <b>&amp;" table photos)
long=$(printf 'x%.0s' $(seq 120))
{
    for i in $(seq 200); do echo "</pre><script>alert($((i * 7919 % 1000)))</script><img src=x onerror=alert(2)> & so on"; done
} >hostile.txt
{
    printf '"<script>a</script>","b""> onload=""x",%s,kind\n' "$long"
    for i in $(seq 90); do
        printf '%d.5,%d,%d,"%s"\n' $((i % 7)) $((i % 5)) $((i * 37 % 11)) "$(case $((i % 3)) in
        0) echo '<script>alert(1)</script>' ;;
        1) echo '""></td><img src=//x onerror=alert(1)>' ;;
        2) echo "$long" ;;
        esac)"
    done
} >hostile.csv
python3 - <<'END_OF_PHOTOS'
"""Writes 24 images each of three classes: grey, with noise. A classifier of few steps confuses them."""
import os, random, struct, zlib
random.seed(1)
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for at, name in enumerate(["dark & <i>grey</i>", "light\"", "z" * 100]):
    os.makedirs("photos-data/%s" % name.replace("/", "_"))
    for i in range(24):
        rows = b"".join(b"\0" + bytes(min(255, max(0, int(random.gauss(100 + 25 * at, 40)))) for _ in range(3 * 12)) for _ in range(12))
        with open("photos-data/%s/%02d.png" % (name.replace("/", "_"), i), "wb") as out:
            out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 12, 12, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
END_OF_PHOTOS
expect 0 '' "$weft" init gpt --data hostile.txt --out text.yaml
expect 0 '' "$weft" train text.yaml --run "${runs[0]}" --quiet --set train.steps=30 --set train.eval_every=10 --set train.log_every=1 \
    --set model.layers=1 --set model.width=16 --set model.heads=2 --set model.context=16 --set train.batch=4
expect 0 '' "$weft" init logistic --data hostile.csv --out table.yaml
expect 0 '' "$weft" train table.yaml --run table --quiet --set train.epochs=150 --set data.val_fraction=0.3 --set train.log_every=1
expect 0 '' "$weft" init cnn --data photos-data --out photos.yaml
expect 0 '' "$weft" train photos.yaml --run photos --quiet --set model.filters=[2] --set train.batch=8 --set train.epochs=3 \
    --set data.val_fraction=0.4 --set train.log_every=1
