#!/usr/bin/env bash
# Trains under a real Slurm with one node, which the test starts in its folder: two tasks by PMIx (Open MPI) and by PMI-2
# (MPICH), signals, and a batch job that is requeued and goes on by itself. Skipped without Slurm, or if the user is not root.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"
unset OMP_NUM_THREADS
for program in slurmctld slurmd srun munged; do
    if ! command -v $program >/dev/null; then
        echo "skipped: training under Slurm: $program is not installed"
        exit 0
    fi
done
if [ "$(id -u)" != 0 ]; then
    echo "skipped: training under Slurm: only root can start its daemons"
    exit 0
fi

# ---- one node ----
mkdir munge state spool
dd if=/dev/urandom of=munge/key bs=128 count=1 status=none
chmod 700 munge
chmod 600 munge/key
chmod 755 "$work"
port=$((20000 + $$ % 20000)) name=$(hostname)
export SLURM_CONF=$work/slurm.conf
cat >slurm.conf <<END
ClusterName=weft
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/ctld.pid
SlurmdPidFile=$work/d.pid
SlurmctldLogFile=$work/ctld.log
SlurmdLogFile=$work/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
KillWait=20
MinJobAge=2
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=500 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
END
echo >cgroup.conf
stop_daemons() {
    scancel --full --state=running --user=root 2>/dev/null
    for file in d.pid ctld.pid munge/pid; do
        if [ -s "$work/$file" ]; then kill "$(cat "$work/$file")" 2>/dev/null; fi
    done
    sleep 0.5
    rm -rf "$work"
}
trap stop_daemons EXIT
munged --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed"
slurmctld && slurmd -N "$name" 2>/dev/null
for _ in $(seq 100); do
    if sinfo -h -o %T 2>/dev/null | grep -q idle; then break; fi
    sleep 0.2
done
if ! sinfo -h -o %T 2>/dev/null | grep -q idle; then
    echo "skipped: training under Slurm: its daemons do not start here"
    tail -n 3 ctld.log d.log 2>/dev/null
    exit 0
fi

# wait_for_end JOB: waits until a job runs no more, at most half a minute.
wait_for_end() {
    local _
    for _ in $(seq 150); do
        [ -z "$(squeue -h -j "$1" --states=PENDING,RUNNING,COMPLETING,STOPPED,SUSPENDED 2>/dev/null)" ] && return
        sleep 0.2
    done
    echo "job $1 does not end"
}

cat >gpt.yaml <<'END'
task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 1, heads: 2, width: 16, context: 16}
schedule: {type: constant, warmup: 0}
train: {steps: 12, batch: 4, accumulate: 4, exact_sum: true, eval_every: 0, save_every: 500, log_every: 3}
END
expect 0 '' "$weft" train gpt.yaml --run one --quiet

for kind in openmpi:pmix mpich:pmi2; do
    mpi=${kind%:*} how=${kind#*:}
    if [ ! -e "$(dirname "$weft")/libweft-$mpi.so" ] || ! srun --mpi=list 2>&1 | grep -q "$how"; then
        echo "skipped: Slurm with $mpi"
        continue
    fi
    expect 0 '2 processes by' srun -n 2 --mpi=$how "$weft" train gpt.yaml --run $mpi
    check "$mpi: the same weights" cmp one/checkpoints/step-12/model.safetensors $mpi/checkpoints/step-12/model.safetensors

    # ---- signals ----
    sbatch -n 2 --output=$mpi.out --wrap "srun --mpi=$how $weft train gpt.yaml --set train.steps=100000000 --run $mpi-long --quiet" >submitted
    job=$(grep -o '[0-9]*$' submitted)
    wait_for_line '"step": 30,' $mpi-long/metrics.jsonl
    scancel --signal=USR1 "$job"
    wait_for_line 'saving' $mpi-long/log.txt
    check "$mpi: SIGUSR1 saves" grep -q 'saving' $mpi-long/log.txt
    scancel --signal=TERM "$job"
    wait_for_line 'stopped by a signal' $mpi-long/log.txt
    check "$mpi: SIGTERM stops and saves" grep -q 'stopped by a signal' $mpi-long/log.txt
    check "$mpi: the run is sound" "$weft" info $mpi-long --check

    # ---- a job that is requeued ----
    cat >job.sh <<END
#!/bin/bash
if [ -e $mpi-again/config.yaml ]; then
    srun --mpi=$how $weft resume $mpi-again --quiet
else
    srun --mpi=$how $weft train gpt.yaml --set train.steps=100000000 --set train.save_every=200 --run $mpi-again --quiet
fi
END
    sbatch --requeue -n 2 --output=$mpi-job.out job.sh >submitted
    job=$(grep -o '[0-9]*$' submitted)
    wait_for_line 'step 200: saving' $mpi-again/log.txt
    scontrol requeue "$job"
    sleep 1
    scontrol release "$job" 2>/dev/null
    scontrol update jobid="$job" starttime=now 2>/dev/null
    wait_for_line 'resumed' $mpi-again/log.txt
    check "$mpi: the requeued job resumes: $(tail -n 5 $mpi-job.out)" grep -q 'resumed' $mpi-again/log.txt
    for _ in $(seq 150); do # a process that still starts would end without a word
        sed '1,/resumed/d' $mpi-again/log.txt | grep -q saving && break
        sleep 0.2
    done
    scancel --full "$job"
    wait_for_end "$job" # the log may hold 'stopped by a signal' already, from before the job was requeued
    check "$mpi: the resumed run stops and saves" sh -c "sed '1,/resumed/d' $mpi-again/log.txt | grep -q 'stopped by a signal'"
    check "$mpi: the run is sound" "$weft" info $mpi-again --check
done

expect 1 'srun started 2 tasks without MPI' srun -n 2 --mpi=none "$weft" train gpt.yaml
echo "$cells checks, $fail failures"
[ "$fail" = 0 ]
