#!/usr/bin/env bash
# Checks and measures the tracer on a machine with a GPU, from binaries that were built elsewhere.
#
#   scripts/gpu-run.sh [FOLDER]
#
# FOLDER (default .device) holds `warptrace-evaluation` and `warptrace`, both built with GPU code, and perhaps
# `inputs` with real graphs and meshes. Needs neither Rust nor a network. Everything goes to $OUT (default out):
# run.log, check.md, sanitizer.log, bench.csv, bench.md.
#
# A step that fails or takes too long does not keep the next from running; the exit code is that of the first
# failure. Variables:
#   OUT        folder for the results
#   DEVICE     cuda (default), cuda:N or sim; sim takes small inputs and leaves compute-sanitizer out
#   LIMIT      seconds for everything (default 510)
#   CHECK_LIMIT  seconds for the checks (default 420)
#   STEPS      which steps to run (default "check sanitizer bench")
#   RUNS       measured runs of each codec (default 5)
#   PREFIX_MIB most MiB of a raw trace that other compressors are given (default 256)
#   PROGRAMS   only these programs, separated by commas
#   SCRATCH    folder for traces; the system's if not given
#   WARPTRACE_COMMIT   commit of the binaries, for the tables; the checkout's if not given
set -uo pipefail

folder=${1:-.device}
OUT=${OUT:-out}
DEVICE=${DEVICE:-cuda}
LIMIT=${LIMIT:-510}
STEPS=${STEPS:-check sanitizer bench}
RUNS=${RUNS:-5}
export WARPTRACE_COMMIT=${WARPTRACE_COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}

mkdir -p "$OUT"
exec > >(tee "$OUT/run.log") 2>&1
logger=$!

evaluation=$folder/warptrace-evaluation
tool=$folder/warptrace
for binary in "$evaluation" "$tool"; do
    if [ ! -f "$binary" ]; then
        echo "error: $binary is not there: build it and copy it into $folder"
        exit 2
    fi
    chmod +x "$binary" 2>/dev/null
done

common=(--device "$DEVICE")
[ "$DEVICE" = sim ] && common+=(--quick)
[ -d "$folder/inputs" ] && common+=(--inputs "$folder/inputs")
[ -n "${PROGRAMS:-}" ] && common+=(--programs "$PROGRAMS")
[ -n "${SCRATCH:-}" ] && common+=(--scratch "$SCRATCH")
traces=$(mktemp -d ${SCRATCH:+-p "$SCRATCH"}) || exit 2
trap 'rm -rf "$traces"' EXIT

code=0

left() {
    echo $((LIMIT - SECONDS))
}

wants() {
    [[ " $STEPS " == *" $1 "* ]]
}

# step NAME SECONDS COMMAND...: runs a command for at most so long, and no longer than what is left.
step() {
    local name=$1 limit=$2 status
    shift 2
    [ "$limit" -gt "$(left)" ] && limit=$(left)
    if [ "$limit" -lt 3 ]; then
        echo "SKIPPED $name: the ${LIMIT} s are used up"
        [ "$code" -eq 0 ] && code=124
        return
    fi
    echo
    echo "== $name (at ${SECONDS} s, at most ${limit} s)"
    timeout --kill-after=5 "$limit" "$@"
    status=$?
    if [ "$status" -ne 0 ]; then
        echo "FAILED $name: exit code $status"
        [ "$code" -eq 0 ] && code=$status
    fi
}

echo "commit   $WARPTRACE_COMMIT"
echo "machine  $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)"
if command -v nvidia-smi > /dev/null; then
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv
fi
step devices 60 "$tool" devices

if wants check; then
    step check "${CHECK_LIMIT:-420}" "$evaluation" check "${common[@]}" --out "$OUT"
fi

# compute-sanitizer on a small picture, with each way to record. On the simulator the same recordings without it, so
# that the arguments are tried.
sanitize() {
    local checker=$1 name=$2 prefix=()
    shift 2
    if [ "$DEVICE" != sim ]; then
        prefix=(compute-sanitizer --tool "$checker" --error-exitcode 1 --log-file "$traces/sanitizer.log")
        # Its warnings are hazards inside one warp, which are by design: see docs/device.md.
        [ "$checker" = racecheck ] && prefix+=(--racecheck-detect-level error)
    fi
    step "$checker: $name" 60 "${prefix[@]}" \
        "$tool" record fractal --width 64 --depth 64 --device "$DEVICE" --pool-mib 64 -o "$traces/small.wtrc" "$@"
    if [ -f "$traces/sanitizer.log" ]; then
        tail -n 1 "$traces/sanitizer.log"
        { echo "== $checker: $name" && cat "$traces/sanitizer.log"; } >> "$OUT/sanitizer.log"
        rm -f "$traces/sanitizer.log"
    fi
}

if wants sanitizer; then
    rm -f "$OUT/sanitizer.log"
    if [ "$DEVICE" = sim ] || command -v compute-sanitizer > /dev/null; then
        for checker in memcheck racecheck; do
            sanitize "$checker" raw --codec raw
            sanitize "$checker" "ecl, tables in global memory" --codec ecl --tables global
            sanitize "$checker" "ecl, tables in shared memory" --codec ecl --tables shared
            sanitize "$checker" "ecl beside raw" --codec ecl --dual
        done
    else
        echo "FAILED sanitizer: compute-sanitizer is not on the path"
        [ "$code" -eq 0 ] && code=127
    fi
fi

if wants bench; then
    # The bench ends by itself a little before it would be stopped, so that its tables are whole.
    limit=$(left)
    if [ "$limit" -gt 20 ]; then
        step bench "$limit" "$evaluation" bench "${common[@]}" --runs "$RUNS" --out "$OUT" \
            --time-limit $((limit - 15)) ${PREFIX_MIB:+--prefix-mib "$PREFIX_MIB"}
    else
        echo "SKIPPED bench: ${limit} s are left"
        [ "$code" -eq 0 ] && code=124
    fi
fi

echo
echo "done in ${SECONDS} s, exit code $code"
exec >&- 2>&-
wait "$logger"
exit "$code"
