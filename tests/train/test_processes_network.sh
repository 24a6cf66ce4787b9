#!/usr/bin/env bash
# Trains with two processes in two network namespaces, over a link with a delay of 20 ms that loses 1 % of the packets. The
# weights must be those of one process. Skipped if the user may not make namespaces, or without an MPI.
# shellcheck source=tests/train/command.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/command.sh"
# shellcheck source=tests/train/processes.sh
. "$here/processes.sh"
one=weft-$$-1 two=weft-$$-2 link=
remove() {
    if [ -n "$link" ]; then kill "$link" 2>/dev/null; fi
    ip netns del $one 2>/dev/null
    ip netns del $two 2>/dev/null
    rm -rf "$work"
}
skip() {
    echo "skipped: training over a slow network: $1"
    exit 0
}
trap remove EXIT
if [ "$(id -u)" != 0 ]; then skip "only root can make network namespaces"; fi
for program in ip unshare python3; do
    command -v $program >/dev/null || skip "$program is not installed"
done
if ! ip netns add $one 2>why || ! ip netns add $two 2>>why; then skip "no network namespace: $(head -n 1 why)"; fi
if ! unshare -u true 2>why; then skip "no name of its own for a process: $(head -n 1 why)"; fi

python3 "$here/lossy_link.py" $one $two 0.02 0.01 1 >link.out 2>link.err &
link=$!
wait_for_line ready link.out
if ! grep -q ready link.out; then skip "no device: $(tail -n 1 link.err)"; fi
for side in 1 2; do
    ip -n weft-$$-$side addr add 10.213.7.$side/24 dev weft0
    ip -n weft-$$-$side link set weft0 up
    ip -n weft-$$-$side link set lo up
done

# inside SIDE COMMAND...: runs a command as if on a machine of its own.
cat >inside.sh <<'END'
#!/usr/bin/env bash
namespace=$1 name=$2
shift 2
exec ip netns exec "$namespace" unshare -u bash -c 'hostname "$0" && exec "$@"' "$name" "$@"
END
# What mpirun calls in place of ssh: HOST COMMAND...
cat >agent.sh <<END
#!/usr/bin/env bash
while [ "\${1#-}" != "\$1" ]; do shift; done
shift
exec "$work/inside.sh" $two weft-two bash -c "\$*"
END
chmod +x inside.sh agent.sh

cat >gpt.yaml <<'END'
task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 2, heads: 2, width: 64, context: 32}
train: {steps: 8, batch: 4, accumulate: 2, exact_sum: true, eval_every: 4, save_every: 4, log_every: 4, timeout: 30}
END
expect 0 '' "$weft" train gpt.yaml --run one --quiet

found=0
for mpi in openmpi mpich; do
    if [ ! -e "$(dirname "$weft")/libweft-$mpi.so" ] || ! command -v mpirun.$mpi >/dev/null; then continue; fi
    found=1
    if [ $mpi = openmpi ]; then
        how="--host 10.213.7.1,10.213.7.2 --mca plm_rsh_agent $work/agent.sh --mca btl tcp,self --mca btl_tcp_if_include weft0 --mca oob_tcp_if_include weft0"
    else
        how="-hosts 10.213.7.1,10.213.7.2 -launcher ssh -launcher-exec $work/agent.sh -iface weft0"
    fi
    for shard in none optimizer; do
        # shellcheck disable=SC2086
        expect 0 '' timeout 240 ./inside.sh $one weft-one mpirun.$mpi -n 2 $how "$weft" train gpt.yaml --set train.shard=$shard --run $mpi-$shard --quiet
        check "$mpi, $shard: two machines" test "$(grep -Eo '"machine": "weft-(one|two)"' $mpi-$shard/processes.json | sort -u | wc -l)" = 2
        check "$mpi, $shard: the same model" cmp one/checkpoints/step-8/model.safetensors $mpi-$shard/checkpoints/step-8/model.safetensors
        check "$mpi, $shard: the same states" python3 "$here/same_states.py" one/checkpoints/step-8 $mpi-$shard/checkpoints/step-8
    done
done
if [ $found = 0 ]; then skip "neither Open MPI nor MPICH is installed"; fi
kill "$link"
wait "$link" 2>/dev/null
link=
cat link.out
check "packets were lost" grep -Eq '[0-9]{3,} packets carried, [1-9][0-9]* lost' link.out

echo "$cells checks, $fail failures"
[ "$fail" = 0 ]
