#!/usr/bin/env bash
# Sourced by tests of several processes, after command.sh: rank.sh starts weft as one of them. A process notes its number
# in pid.RANK before it becomes weft, and the one that OTHER_RANK names gets OTHER_ARGUMENTS and the environment variable
# OTHER_VARIABLE (NAME=VALUE), too. $mpirun is the launcher that the functions below use.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
cat >rank.sh <<END
#!/usr/bin/env bash
rank=\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-0}}
echo \$\$ >pid.\$rank
if [ "\$rank" = "\${OTHER_RANK:-none}" ]; then
    set -- "\$@" \$OTHER_ARGUMENTS
    export \${OTHER_VARIABLE:-OTHER=}
fi
exec "${weft:?}" "\$@"
END
chmod +x rank.sh

# has_mpi NAME: is openmpi or mpich there? Says so if it is not.
has_mpi() {
    [ -e "$(dirname "$weft")/libweft-$1.so" ] && command -v "mpirun.$1" >/dev/null && return
    echo "skipped: $1 is not installed"
    return 1
}

# same A B STEP: compares weights, optimizer state and scores of two runs, and the losses of their metrics.
same() {
    check "$2: the same weights" cmp "$1/checkpoints/step-$3/model.safetensors" "$2/checkpoints/step-$3/model.safetensors"
    check "$2: the same states" python3 "${here:?}/same_states.py" "$1/checkpoints/step-$3" "$2/checkpoints/step-$3"
    check "$2: the same losses" cmp <(cut -d, -f1,2,3,4,7,8 "$1/metrics.csv") <(cut -d, -f1,2,3,4,7,8 "$2/metrics.csv")
    check "$2: the same scores" cmp "$1/scores.json" "$2/scores.json"
}

# begin N RUN ARGUMENTS...: starts a long training in the background, and waits until it has saved.
begin() {
    local n=$1 run=$2
    shift 2
    "${mpirun:?}" -n "$n" ./rank.sh train long.yaml --run "$run" --quiet "$@" >"$run.out" 2>&1 &
    job=$!
    wait_for_line '"step": 50,' "$run/metrics.jsonl"
}

# gone PID...: the launcher has ended these processes, or ends them within some seconds.
gone() {
    local pid _
    for pid; do
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || continue 2
            sleep 0.1
        done
        return 1
    done
}

# ended NAME PATTERN RUN: the job must end with an error, and say what the pattern says. ctest ends a test that hangs.
ended() {
    local name=$1 pattern=$2
    wait "$job"
    local code=$?
    check "$name: an error, not $code" test "$code" != 0
    check "$name: no process is left" gone "$(cat pid.0)" "$(cat pid.1)"
    check "$name: '$pattern' is said: $(cat "$3.out")" grep -Eq -- "$pattern" "$3.out"
    check "$name: the run is sound" "$weft" info "$3" --check
}
