#!/usr/bin/env bash
# Tests images in tar files: the same bits as from a folder, for one file, several files, members of the two forms, and
# names of all kinds; resuming, other commands, and tar files that are wrong or change while a run trains.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

python3 - <<'PYTHON'
import io, os, random, tarfile
from pictures import png
random.seed(4)
def noise(base): return lambda y, x, c: (base + 5 * y + 3 * x + 31 * c + random.randrange(60)) % 256
classes = ("cat", "dog", "owl")
for i in range(41):  # of several sizes, some grey, in folders, with names that pax and GNU store in other ways
    name = ["%02d", "%02d-b", "deep/%02d", "deep.er/more/%02d", "\u00e9-%02d", "l" * 120 + "%02d"][i % 6] % i
    png("photos/%s/%s.png" % (classes[i % 3], name), 9 + i % 4, 11 + i % 3, noise(70 * (i % 3)), i % 5 > 0)
for i in range(14):
    png("tests/%s/%02d.png" % (classes[i % 3], i), 10, 10, noise(70 * (i % 3)))
for i in range(200):
    png("many/%s/%03d.png" % ("ab"[i % 2], i), 8, 8, noise(90 * (i % 2)))

def write(path, members, format=tarfile.PAX_FORMAT):  # members: name, bytes
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with tarfile.open(path, "w", format=format) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
def read(path): return open(path, "rb").read()
def walk(folder):  # all files, in the order in which Weft reads a folder
    for name in sorted(n for n in os.listdir(folder) if os.path.isfile(os.path.join(folder, n))): yield os.path.join(folder, name)
    for name in sorted(n for n in os.listdir(folder) if os.path.isdir(os.path.join(folder, n))): yield from walk(os.path.join(folder, name))
files = list(walk("photos"))
inner = [(f[len("photos/"):], read(f)) for f in files]
mixed = inner[:]
random.shuffle(mixed)
write("pax.tar", mixed)
write("gnu.tar", mixed, tarfile.GNU_FORMAT)
write("dotted.tar", [("./" + n, d) for n, d in mixed] + [("./cat/notes.txt", b"no"), ("./cat/._a.png", b"no")])
write("rooted.tar", [("/data/photos/" + n, d) for n, d in mixed])
for i in range(3):  # each with its own order
    piece = inner[i * 14:(i + 1) * 14]
    random.shuffle(piece)
    write("shards/part-%d.tar" % i, piece)
for i in range(14): write("single/%02d.tar" % i, inner[i * 3:(i + 1) * 3])  # most of one class
write("tests.tar", [(f, read(f)) for f in walk("tests")])

def dataset(name, text):  # WebDataset: a stem for each sample, numbered in the order of the folder
    members = []
    for i, (path, data) in enumerate(inner):
        key = "%s%06d" % ("set.a/" if i < 20 else "set.b/", i)
        members += [(key + ".png", data), (key + ".cls", text(path.split("/")[0])), (key + ".json", b"{}")]
        if i % 4 == 0: members.append((key + ".mask.png", b"no image"))
    write(name + ".tar", members)
    cut = next(i for i, (n, d) in enumerate(members) if n.startswith("set.b"))
    write(name + "/0.tar", members[:cut])
    write(name + "/1.tar", members[cut:])
dataset("names", lambda c: c.encode() + b"\n")
dataset("numbers", lambda c: b"%02d" % classes.index(c))

# ---- tar files that are wrong ----
one, two = inner[0], inner[-1]
def samples(*changes): return [("1.png", one[1]), ("1.cls", b"a"), ("2.png", two[1]), ("2.cls", b"b")] + list(changes)
bad = {"nocls": samples(("3.png", one[1])), "flat": [("1.png", one[1]), ("2.png", two[1])], "stray": inner + [("x.png", one[1])],
       "twocls": samples(("1.CLS", b"b")), "twoimages": samples(("1.jpg", one[1])), "twice": inner + [inner[3]],
       "empty": [], "texts": [("a/1.txt", b"1"), ("b/2.txt", b"2")], "lone": [("cat/" + str(i) + ".png", one[1]) for i in range(4)],
       "nothing": samples(("3.png", one[1]), ("3.cls", b" \n")), "binary": samples(("3.png", one[1]), ("3.cls", b"\x80\x02K\x05.")),
       "zero": samples(("3.png", one[1]), ("3.cls", b"a\0b")), "long": samples(("3.png", one[1]), ("3.cls", b"x" * 300)),
       "negative": [("1.png", one[1]), ("1.cls", b"-1")], "part": [("1.png", one[1]), ("1.cls", b"2.5")],
       "large": [("1.png", one[1]), ("1.cls", b"70000"), ("2.png", one[1]), ("2.cls", b"1")],
       "kinds": samples(("3.png", one[1]), ("3.cls", b"3")), "latin": samples(("3.png", one[1]), ("3.cls", b"\xe9t\xe9")),
       "cut-image": inner + [("cat/zz.png", one[1][:60]), ("owl/zz.gif", b"")]}
for name, members in bad.items(): write("bad/%s.tar" % name, members)
whole = read("pax.tar")
last = whole.rstrip(b"\0")
open("bad/member.tar", "wb").write(whole[:len(last) - 40])
open("bad/end.tar", "wb").write(whole[:(len(last) + 511) // 512 * 512])
open("bad/header.tar", "wb").write(whole[:700])
open("bad/short.tar", "wb").write(whole[:300])
open("bad/joined.tar", "wb").write(whole + whole)
open("bad/damaged.tar", "wb").write(whole[:(len(last) + 511) // 512 * 512] + b"\1" * 1024)
open("bad/text.tar", "wb").write(b"this is no tar file\n" * 100)
open("bad/none.tar", "wb").close()
with tarfile.open("bad/link.tar", "w") as tar:
    for name, data in inner:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    info = tarfile.TarInfo("owl/again.png")
    info.type, info.linkname = tarfile.LNKTYPE, inner[-1][0]
    tar.addfile(info)
PYTHON
tar cf posix.tar -C photos .
tar cf whole.tar photos
tar cf ustar.tar --format=v7 tests
gzip -k <pax.tar >packed.tar.gz
cp packed.tar.gz packed.tar
cp pax.tar kept.tar

quick=(--set train.batch=7 --set train.epochs=2 --set train.save_every=3 --set data.val_fraction=0.2 --set train.seed=5)
size=(--set 'model.image=[3,8,8]')
small=("${quick[@]}" "${size[@]}" --set model.filters=[4])

if "$weft" plan cnn --data pax.tar 2>&1 | grep -q 'built without libarchive: install libarchive-dev'; then
    expect 3 'pax.tar: this is a tar file, and this Weft was built without libarchive' "$weft" train cnn --data pax.tar --run none
    one_line
    echo "test_image_shards: cells=$cells fail=$fail skip=1 (this Weft was built without libarchive)"
    [ "$fail" = 0 ]
    exit
fi

# same NAME FOLDER-RUN ARGUMENT...: trains on tar files, in memory and not, and compares all that the data decide with a run
# that read a folder.
same() {
    local name=$1 with=$2 mode file
    shift 2
    for mode in true false; do
        expect 0 '' "$weft" train "$@" --run "$name-$mode" --set data.in_files=$mode
        while read -r file; do
            check "$name $mode: $file" cmp "$file" "${file/#$with/$name-$mode}"
        done < <(find "$with" -path '*/step-*' -name '*.safetensors' -o -name data.json)
        check "$name: metrics" cmp <(metrics "$with") <(metrics "$name-$mode")
        [ -e "$with/scores.json" ] && check "$name: scores" cmp {"$with","$name-$mode"}/scores.json
        [ -e "$with/pictures.json" ] && check "$name: pictures" cmp {"$with","$name-$mode"}/pictures.json
    done
}
metrics() { python3 -c '
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    print({k: v for k, v in json.loads(line).items() if "loss" in k or "acc" in k or k in ("step", "epoch")})' "$1"; }

# ---- the same bits as from the folder ----
expect 0 '' "$weft" train cnn --data photos "${small[@]}" --set data.test_path=tests --run folder
check "weights to compare" test -n "$(find folder/checkpoints -name model.safetensors)"
check "metrics to compare" grep -q loss <(metrics folder)
check "pictures to compare" grep -q '"png"' folder/pictures.json
for data in pax.tar gnu.tar dotted.tar rooted.tar posix.tar whole.tar shards 'shards/part-*.tar' single names.tar names; do
    same "tar-${data//[\/*]/_}" folder cnn --data "$data" "${small[@]}" --set data.test_path=tests.tar
done
same test-folder folder cnn --data pax.tar "${small[@]}" --set data.test_path=ustar.tar
for form in numbers.tar numbers; do
    expect 0 'classes: 3, 13 to 14 images each: 0 .14., 1 .14., 2 .13.' "$weft" train cnn --data $form "${small[@]}" --run "$form-run"
    check "$form: numbers give the weights of names" cmp {folder,$form-run}/checkpoints/step-10/model.safetensors
done
changes=(--set data.crop=0.5 --set data.rotate=15 --set data.brightness=0.2 --set data.erase=0.3 --set data.mixup=0.2 --set data.cutmix=1
    --set data.shift=1 --set data.flip=true --set train.class_weights=balanced)
expect 0 '' "$weft" train cnn --data photos "${small[@]}" "${changes[@]}" --run folder-changed
same changed folder-changed cnn --data shards "${small[@]}" "${changes[@]}"
expect 0 '' "$weft" train autoencoder --data photos "${quick[@]}" "${size[@]}" --set model.hidden=[6,3] --run folder-auto
same auto folder-auto autoencoder --data shards "${quick[@]}" "${size[@]}" --set model.hidden=[6,3]
expect 0 '' "$weft" train mlp --data photos "${quick[@]}" "${size[@]}" --set model.hidden=[5] --set data.val_path=tests --set data.val_fraction=0 --run folder-val
same val folder-val mlp --data pax.tar "${quick[@]}" "${size[@]}" --set model.hidden=[5] --set data.val_path=tests.tar --set data.val_fraction=0
expect 0 '' env OMP_NUM_THREADS=3 "$weft" train cnn --data shards "${small[@]}" "${changes[@]}" --run threads --set data.in_files=true
check "by threads alike" cmp {threads,folder-changed}/checkpoints/step-10/model.safetensors
expect 0 '' bash -c 'ulimit -n 40 && "$@"' - "$weft" train cnn --data single "${small[@]}" --run few-files --set data.in_files=true
check "few open files" cmp {few-files,folder}/checkpoints/step-10/model.safetensors

# ---- what is told ----
expect 0 'data: 41 images, scaled to 8 x 8, 3 channels, from part-[*].tar .3 tar files.$' "$weft" plan cnn --data 'shards/part-*.tar' "${size[@]}"
expect 0 'skipped: 1 file of other kinds: 1 .txt' "$weft" plan cnn --data dotted.tar "${size[@]}"
check "hidden names" grep -q 'skipped: 1 hidden name' out
expect 0 'skipped: 52 files of other kinds: 41 .json, 11 .png' "$weft" plan cnn --data names "${size[@]}"
expect 0 'cnn' "$weft" info tar-shards-true
check "the report" test -s tar-shards-true/report.html

# ---- resume ----
for mode in true false; do
    cp -r changed-true part-$mode
    rm -r part-$mode/checkpoints/step-9 part-$mode/checkpoints/step-10
    expect 0 'resumed' "$weft" resume part-$mode --set data.in_files=$mode
    check "resumed to the same bits, $mode" cmp {folder-changed,part-$mode}/checkpoints/step-10/model.safetensors
done
cp -r shards moved
rm shards/part-1.tar
expect 3 'data' "$weft" resume part-true --set train.epochs=3
cp moved/part-1.tar shards/part-1.tar # a newer file with the same images
expect 0 '' "$weft" resume part-true --set train.epochs=3
python3 - <<'PYTHON' # the first image gets the pixels of the last one
data = open("shards/part-2.tar", "rb").read()
first, second = data.index(b"\x89PNG"), data.rindex(b"\x89PNG")
piece = data[second:data.index(b"IEND", second) + 8]
room = data.index(b"ustar", first) - 257 - first  # up to the next header
assert len(piece) <= room and data[first:first + len(piece)] != piece
open("shards/part-2.tar", "wb").write(data[:first] + piece + data[first + len(piece):])
PYTHON
expect 3 'data' "$weft" resume part-true --set train.epochs=4
cp moved/part-2.tar shards/part-2.tar
long=(--set train.epochs=400 --set train.save_every=100 --set train.eval_every=100)
"$weft" train cnn --data shards "${small[@]}" "${changes[@]}" "${long[@]}" --quiet --run killed --set data.in_files=true &
process=$! tries=0
until compgen -G 'killed/checkpoints/step-*' >/dev/null || [ $((tries++)) = 300 ]; do sleep 0.1; done
kill -9 $process
wait $process 2>/dev/null
expect 0 'resumed' "$weft" resume killed
expect 0 '' "$weft" train cnn --data photos "${small[@]}" "${changes[@]}" "${long[@]}" --run unkilled
check "a killed run goes on as from the folder" cmp {killed,unkilled}/checkpoints/step-2000/model.safetensors

# ---- predict, eval, cv ----
for run in folder tar-names-true tar-shards-false; do
    expect 0 'accuracy' "$weft" eval $run --json
    sed 's/"run": *"[^"]*"//' out >"$run.eval"
    check "$run: evaluation" cmp folder.eval "$run.eval"
    expect 0 '' "$weft" predict $run tests --out a.tsv --force
    expect 0 '' "$weft" predict $run tests.tar --out b.tsv --force
    check "$run: predictions" cmp a.tsv <(sed 's=^tests.tar/==' b.tsv)
done
expect 0 '^tests.tar/tests/cat/00.png	' "$weft" predict folder tests.tar
expect 0 'accuracy' "$weft" eval folder tests.tar
for data in photos names; do
    expect 0 '' "$weft" cv cnn --data $data "${small[@]}" --folds 3 --run cv-$data --set data.in_files=true
done
while read -r file; do check "$file" cmp "$file" "${file/cv-photos/cv-names}"; done < <(find cv-photos -name model.safetensors)

# ---- tar files that are wrong ----
wrong() { # wrong NAME CODE PATTERN
    for mode in true false; do
        expect "$2" "$3" "$weft" train cnn --data "bad/$1.tar" "${small[@]}" --run bad-run --set data.in_files=$mode
        one_line
    done
}
wrong nocls 3 'bad/nocls.tar/3.png: this image has no class: others have one in a member with the ending .cls'
wrong flat 3 'bad/flat.tar/1.png: this image has no class: put it into the folder of a class, or add a member'
wrong stray 3 'bad/stray.tar/x.png: this image has no class'
wrong twocls 3 'bad/twocls.tar/1.cls: this image has a second class, in 1.CLS: remove one'
wrong twoimages 3 'bad/twoimages.tar/1.png: this sample has another image, 1.jpg'
wrong twice 3 'bad/twice.tar/cat/.*: two members of the tar file have this name'
wrong empty 3 'bad/empty.tar: this tar file holds no images'
wrong texts 3 'bad/texts.tar: this tar file holds no images'
wrong lone 3 'bad/lone.tar: all 4 samples are of one class'
wrong nothing 3 'bad/nothing.tar/3.cls: this file of a class is empty: write a name, or a number from 0 on'
wrong binary 3 'bad/binary.tar/3.cls: this file holds bytes that are no class'
wrong zero 3 'bad/zero.tar/3.cls: this file holds bytes that are no class'
wrong long 3 'bad/long.tar/3.cls: this file is too large for a class'
wrong negative 3 'bad/negative.tar/1.cls: this number is no class'
wrong part 3 'bad/part.tar/1.cls: this number is no class'
wrong large 3 'bad/large.tar/1.png: its class is 70000, but numbers of classes are 0 to 65535'
wrong kinds 3 'bad/kinds.tar/1.png: its class is "a", but others are numbers, as 3: use one kind'
wrong latin 3 'UTF-8'
wrong member 3 'bad/member.tar/.*: the tar file is cut off in or after this member, at byte [0-9]*: copy it again'
wrong end 3 'bad/end.tar: the tar file has no end mark .* at byte [0-9]*: it is cut off, or still being written'
wrong header 3 'bad/header.tar'
wrong short 3 'bad/short.tar: 300 bytes are too few for a tar file'
wrong none 3 'bad/none.tar: 0 bytes are too few'
wrong text 3 'bad/text.tar: '
wrong joined 3 'bad/joined.tar: more follows the end of the tar file, at byte [0-9]*'
wrong damaged 3 'bad/damaged.tar: the tar file is damaged after byte [0-9]*'
wrong link 3 'bad/link.tar/owl/again.png: this member is a link'
wrong missing 8 'cannot open bad/missing.tar: No such file'
wrong 'missing-*' 8 'bad/missing-[*].tar: there is no such file'
wrong 'part-{0,3}' 8 'write a pattern with [*] or [?] instead of [{]'
wrong 'part-{0..3}' 8 'bad/part-0.tar: this file of /.*bad/part-[{]0..3[}].tar cannot be found'
for packed in packed.tar.gz packed.tar; do
    expect 3 "$packed: the tar file is packed with gzip, .* unpack it with gzip -d" "$weft" train cnn --data $packed --run bad-run
    one_line
done
mkdir forms folder.tar
cp names.tar pax.tar forms
expect 3 'forms/pax.tar: this tar file has no members with the ending .cls, unlike .*forms/names.tar' "$weft" train cnn --data forms --run bad-run
expect 3 'tests.tar/tests/owl/02.png: no class of the training data is called "owl"' \
    "$weft" train cnn --data 'single/0[0-7].tar' --run bad-run "${small[@]}" --set data.val_fraction=0 --set data.val_path=tests.tar
for mode in true false; do
    expect 3 'bad/cut-image.tar: 2 images cannot be read: repair or remove them, or set data.skip_bad' \
        "$weft" train cnn --data bad/cut-image.tar --run bad-run "${small[@]}" --set data.in_files=$mode
    check "the first bad image" grep -q 'bad/cut-image.tar/cat/zz.png: the image is damaged, or cut off at byte 60' err
    check "the second bad image" grep -q 'bad/cut-image.tar/owl/zz.gif: ' err
done
same skipped folder cnn --data bad/cut-image.tar "${small[@]}" --set data.skip_bad=true --set data.test_path=tests

# ---- a tar file that changes while a run trains ----
during kept.tar moving.tar 'touch moving.tar' 'moving.tar: the tar file has changed since its members were listed: restore it, or begin again'
during kept.tar moving.tar 'truncate -s 5000 moving.tar' 'moving.tar: the tar file has changed since its members were listed'
during kept.tar moving.tar 'cat names.tar >moving.tar' 'moving.tar: the tar file has changed since its members were listed'

# ---- more than memory ----
tar cf many.tar many
if ! grep -q __asan "$weft" && ! grep -q __tsan "$weft"; then # 200 images of 786 kB
    large=(--data many.tar --set 'model.image=[3,512,512]' --set model.hidden=[2] --set optimizer.type=sgd --set train.batch=8 --set train.steps=20
        --set train.epochs=0 --set optimizer.lr=0.001)
    expect 0 '' peak 200 "$weft" train mlp "${large[@]}" --run lean --set data.in_files=true
    expect 1 '' peak 200 "$weft" train mlp "${large[@]}" --run fat --set data.in_files=false
    check "with the same weights" cmp {lean,fat}/checkpoints/step-20/model.safetensors
fi

echo "test_image_shards: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
