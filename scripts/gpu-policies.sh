#!/usr/bin/env bash
# Compares what each policy keeps in 1 GiB of device memory, and what it takes, on a machine with a GPU.
#
#   scripts/gpu-policies.sh [FOLDER]
#
# FOLDER (default .device) holds `warptrace-bench`, built with GPU code. Tables go to $OUT (default out): policies.md
# and policies.json. ROUNDS (default 3) rounds are run, or as much of them as fits into LIMIT seconds (default 140).
# MEMORY=256MiB: in so much memory. PROGRAMS=stress,mis: only these; CODECS="predict;ecl": these instead of raw and
# predict. Traces go to SCRATCH (default /dev/shm, so that no disk is measured). DEVICE=sim takes small inputs, to try
# the script.
set -uo pipefail

bench=${1:-.device}/warptrace-bench
OUT=${OUT:-out}
DEVICE=${DEVICE:-cuda}
mkdir -p "$OUT"
options=(--device "$DEVICE" --rounds "${ROUNDS:-3}" --memory "${MEMORY:-1GiB}" --time-limit "${LIMIT:-140}")
options+=(--scratch "${SCRATCH:-/dev/shm}" --out "$OUT")
[ "$DEVICE" = sim ] && options+=(--quick)
[ -n "${PROGRAMS:-}" ] && options+=(--programs "$PROGRAMS")
IFS=';' read -r -a codecs <<< "${CODECS:-}"
for codec in "${codecs[@]}"; do
    options+=(--codec "$codec")
done
# A run that hangs must not take the machine with it.
timeout $((${LIMIT:-140} + 60)) "$bench" policies "${options[@]}"
