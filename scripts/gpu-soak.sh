#!/usr/bin/env bash
# Repeats recordings under each policy for a long time on a machine with a GPU, all policies side by side.
#
#   scripts/gpu-soak.sh [FOLDER]
#
# FOLDER (default .device) holds `warptrace-bench`, built with GPU code. The tables go to $OUT (default out):
# POLICY/soak.md, and memory.csv with the GPU memory in use each half minute, as nvidia-smi tells it.
# DEVICE=sim tries the script on the simulator. MINUTES (default 9) is the time for each policy; they run at once.
set -uo pipefail

bench=${1:-.device}/warptrace-bench
OUT=${OUT:-out}
DEVICE=${DEVICE:-cuda}
MINUTES=${MINUTES:-9}
mkdir -p "$OUT"

# soak NAME POLICY MEMORY PROGRAMS OPTIONS
soak() {
    "$bench" soak --device "$DEVICE" --policies "$2" --memory "$3" --minutes "$MINUTES" ${4:+--programs "$4"} ${5:-} \
        --out "$OUT/$1" > "$OUT/$1.log" 2>&1
    echo "$1: exit code $? after $SECONDS s" | tee -a "$OUT/$1.log"
}

soak stop stop 16MiB '' &
soak ring ring 16MiB '' &
soak stream stream 16MiB '' &
# So much that warps that have left are encoded on the card while others run.
[ "$DEVICE" = sim ] || soak rounds stream 512MiB stress --large &
if command -v nvidia-smi > /dev/null; then
    echo "second,used" > "$OUT/memory.csv"
    while [ -n "$(jobs -r)" ]; do
        echo "$SECONDS,$(nvidia-smi --query-gpu=memory.used --format=csv,noheader)" >> "$OUT/memory.csv"
        sleep 30
    done
fi
wait
