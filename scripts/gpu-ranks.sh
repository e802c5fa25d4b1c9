#!/usr/bin/env bash
# Records ranks on two GPUs, as two processes and in one process, and measures the cost.
#
#     scripts/gpu-ranks.sh FOLDER OUT
#
# FOLDER contains `warptrace`, built with GPU code. Needs nvcc, PyTorch with Triton and NCCL, and two GPUs
# with peer access. Writes the output to OUT/ranks.md. ROUNDS (default 50): rounds in which ranks synchronise.
# TURNS (default 5): alternating runs of each kind.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tool=$(cd "$1" && pwd)/warptrace
out=$2
rounds=${ROUNDS:-50}
turns=${TURNS:-5}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec > >(tee "$out/ranks.md") 2>&1

if [ ! -x "${PROGRAM:=$work/gpu-ranks}" ]; then
    nvcc -O3 -lineinfo -gencode arch=compute_90,code=[compute_90,sm_90] -I "$here" -o "$PROGRAM" "$here/gpu-ranks.cu" || exit 1
fi
nvidia-smi --query-gpu=index,name,uuid,driver_version --format=csv,noheader
nvidia-smi topo -m | head -4
command -v mpirun || echo "no mpirun on this machine"

# ranks FOLDER SLOW TRACED [OPTION...]: runs two ranks and traces those in TRACED. The last rank has SLOW / 4
# times the work of the first. Writes files to FOLDER.
ranks() {
    local folder=$1 slow=$2 traced=$3 rank pids=()
    shift 3
    mkdir -p "$folder"
    rm -f "$folder"/memory.* "$folder"/done.*
    for rank in 0 1; do
        local before=()
        case $traced in *$rank*) before=("$tool" run -o "$folder/rank.%r.wtrc" --kernel work --kernel meet "$@" --) ;; esac
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank TORCHELASTIC_RUN_ID=ranks \
            timeout 60 "${before[@]}" "$PROGRAM" "$folder" "$rounds" "$slow" > "$folder/rank.$rank.txt" 2>&1 &
        pids+=($!)
    done
    # Waits only for the ranks, not for the background process that prints.
    wait "${pids[@]}"
}
figure() { sed -n "s/^$1 //p" "$2"; }

echo; echo "## Cost: milliseconds of $rounds rounds, ranks 0 and 1, $turns turns"
for turn in $(seq "$turns"); do
    for traced in none 0 1 01; do
        ranks "$work/cost" 4 "$traced" --times blocks
        echo "traced $traced: $(figure kernel_ms "$work/cost/rank.0.txt") $(figure kernel_ms "$work/cost/rank.1.txt") sums $(figure sum "$work/cost/rank.0.txt") $(figure sum "$work/cost/rank.1.txt")"
    done
done
echo "what rank 0 said last:"; tail -8 "$work/cost/rank.0.txt"

echo; echo "## Alignment: rank 1's timer ahead of rank 0's, by messages through peer memory"
ranks "$work/plain" 4 none
cat "$work/plain"/rank.*.txt
ranks "$work/even" 4 01 --times all
grep -h "offset_ns\|within_ns" "$work/even/rank.0.txt"
"$tool" verify "$work/even"
"$tool" info "$work/even/rank.0.wtrc" | head -30
"$tool" info "$work/even/rank.1.wtrc" --json > "$out/rank1-info.json"
"$tool" timeline "$work/even" --align meet
"$tool" timeline "$work/even" --align meet --json > "$out/timeline.json"
"$tool" top "$work/even"

echo; echo "## Alignment: messages beside what the files say, five runs"
for turn in 1 2 3 4 5; do
    ranks "$work/turn" 4 01 --times blocks
    for rank in 0 1; do "$tool" info --json "$work/turn/rank.$rank.wtrc" > "$work/turn/info.$rank"; done
    python3 - "$work/turn" <<'PYTHON'
import json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
said = dict(line.split() for line in (folder / "rank.0.txt").read_text().splitlines() if line.startswith(("offset_ns", "within_ns")))
readings = [json.loads((folder / f"info.{rank}").read_text())["host"]["readings"] for rank in range(2)]
# Difference between each device timer and its host clock, at the first and at the last reading.
ahead = [[int(reading["timer"]) - int(reading["realtime"]) for reading in (of[0], of[-1])] for of in readings]
print("messages", said["offset_ns"], "within", said["within_ns"], "first readings", ahead[1][0] - ahead[0][0], "last readings", ahead[1][1] - ahead[0][1])
PYTHON
    "$tool" timeline "$work/turn" --align meet | head -1
done

echo; echo "## Rank 1 works twice as long"
ranks "$work/slow" 8 01 --times all
"$tool" verify "$work/slow"
"$tool" top "$work/slow"
"$tool" timeline "$work/slow" --align meet
"$tool" lines "$work/slow"

echo; echo "## One process, two cards, a thread for each"
timeout 60 "$PROGRAM" threads "$rounds"
timeout 60 "$tool" run -o "$work/device.%d.wtrc" --kernel work --kernel meet --times all -- "$PROGRAM" threads "$rounds"
"$tool" verify "$work"/device.*.wtrc
for file in "$work"/device.*.wtrc; do "$tool" info "$file" | grep -i "device\|host\|rank" | head; done
"$tool" top "$work"/device.*.wtrc

echo; echo "## The same with addresses: loads of the other card's memory"
timeout 60 "$tool" run -o "$work/peer.%d.wtrc" --kernel meet --accesses global -- "$PROGRAM" threads 20
"$tool" verify "$work"/peer.*.wtrc
"$tool" accesses "$work/peer.0.wtrc"
echo; echo "## torchrun: two ranks of PyTorch, kernels of Triton around an all-reduce by NCCL"
torch() { timeout 90 "$@" python3 -m torch.distributed.run --nproc-per-node 2 "$here/gpu_torchrun.py" 2>&1 | grep -v "^W\|^$"; }
mkdir -p "$work/torch" "$work/late"
echo "alone:"; torch env
echo "alone, again:"; torch env
echo "traced:"; torch "$tool" run -o "$work/torch/step.%r.wtrc" --times all --
"$tool" verify "$work/torch"
"$tool" timeline "$work/torch" --align 'halve*'
echo "traced, rank 1 with four times the work:"; SLOW=1 torch "$tool" run -o "$work/late/step.%r.wtrc" --times all --
"$tool" verify "$work/late"
"$tool" top "$work/late"
"$tool" timeline "$work/late" --align 'halve*'
cp "$work"/late/step.*.wtrc "$work"/slow/rank.*.wtrc "$work"/device.0.wtrc "$out" 2> /dev/null
find "$out" -name "*.wtrc" -size +4M -delete
echo done
