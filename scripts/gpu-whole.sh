#!/usr/bin/env bash
# Times whole programs on a machine with a GPU, each run in a process of its own.
#
#   scripts/gpu-whole.sh [FOLDER]
#
# FOLDER (default .device) holds `warptrace-bench`, built with GPU code. Tables go to $OUT (default out): whole.md
# and whole.json. KIND=long takes inputs that run for a good part of a second. ROUNDS (default 7) rounds are run, or as
# many as fit into LIMIT seconds (default 140). WARM=1: each process runs the program untraced before the run that counts.
# PROGRAMS=fractal,mis: only these; CODECS="predict;ecl": these instead of predict and raw. Traces go to SCRATCH (default
# /dev/shm, so that no disk is measured). DEVICE=sim takes small inputs, to try the script.
set -uo pipefail

bench=${1:-.device}/warptrace-bench
OUT=${OUT:-out}
DEVICE=${DEVICE:-cuda}
mkdir -p "$OUT"
options=(--device "$DEVICE" --kind "${KIND:-short}" --rounds "${ROUNDS:-7}" --time-limit "${LIMIT:-140}")
options+=(--scratch "${SCRATCH:-/dev/shm}" --out "$OUT")
[ "$DEVICE" = sim ] && options+=(--quick)
[ -n "${WARM:-}" ] && options+=(--warm)
[ -n "${PROGRAMS:-}" ] && options+=(--programs "$PROGRAMS")
[ -d "${1:-.device}/inputs" ] && options+=(--inputs "${1:-.device}/inputs")
IFS=';' read -r -a codecs <<< "${CODECS:-}"
for codec in "${codecs[@]}"; do
    options+=(--codec "$codec")
done
# A round that hangs must not take the machine with it.
timeout $((${LIMIT:-140} + 60)) "$bench" whole "${options[@]}"
