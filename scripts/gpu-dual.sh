#!/usr/bin/env bash
# Records fractal, 2048 x 2048, at the thesis's three depths with a codec and raw side by side in one launch, and compares
# them: the same events, in the same order for each lane.
#
#   scripts/gpu-dual.sh TOOL [DEVICE [CODEC...]]
#
# DEVICE is cuda if not given, CODEC ecl. The raw twin has every iteration of its own, 16 bytes each until it is encoded, hence so much memory.
# The picture is checked by `warptrace-bench check`.
set -uo pipefail
tool=$1
device=${2:-cuda}
codecs=("${@:3}")
[ "${#codecs[@]}" -eq 0 ] && codecs=(ecl)
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
code=0
for codec in "${codecs[@]}"; do
    for depth in 1024 2048 4096; do
        echo "== fractal 2048 x 2048, depth $depth, $codec beside raw"
        "$tool-bench" record fractal --width 2048 --depth "$depth" --device "$device" --codec "$codec" --dual \
            --memory 100GiB --no-check -o "$trace" || code=$?
        "$tool" verify "$trace" || code=$?
    done
done
exit "$code"
