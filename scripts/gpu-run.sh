#!/usr/bin/env bash
# Checks and measures the tracer on a machine with a GPU. The binaries are built elsewhere.
#
#   scripts/gpu-run.sh [FOLDER]
#
# FOLDER (default .device) contains `warptrace-bench` and `warptrace`, both built with GPU code, and
# optionally `inputs` with real graphs and meshes. Rust and a network are not needed. Results are written to
# $OUT (default out), with run.log.
#
#   step       does                                                                 writes
#   check      checks results, events and lanes                                     check.md
#   sanitizer  compute-sanitizer's memcheck and racecheck on small inputs           sanitizer.log
#   fidelity   compares with Nsight Compute's counts of traced and untraced kernels fidelity.md, fidelity*.csv
#   profile    Nsight Compute on one launch of the traced fractal and N-body        ncu-*.txt, ncu-*.csv
#   bench      times, sizes, other compressors, and figures                         bench.*, figure-*, overview-*
#   grid192    the bench of MIS, MST and DMR on the thesis's grid                   grid192/bench.*
#
# After a step fails or reaches its limit, the next step runs. The script returns the first nonzero code.
# An interrupted run keeps its results: run.log has the output so far, and check, fidelity and bench write
# their tables after each program and input.
# Variables:
#   OUT        folder for the results
#   DEVICE     cuda (default), cuda:N or sim; sim uses small inputs and skips NVIDIA's tools
#   LIMIT      time limit of the whole run in seconds (default 510)
#   CHECK_LIMIT  time limit of the checks in seconds (default 420); 30 s before it, the remaining checks are
#              skipped and count as failed
#   STEPS      steps to run, always in the order above (default "check sanitizer fidelity bench")
#   FIDELITY_LIMIT  time limit of fidelity in seconds (default 180); 40 s before it, the remaining parts are
#              skipped and count as failed
#   RUNS       measured runs of each codec (default 5)
#   CHECKERS   compute-sanitizer's tools (default "memcheck racecheck")
#   PROFILE_CODECS  codecs to profile (default "predict")
#   GRID       grid of the step grid192 (default 192x256, on the simulator 6x64)
#   PREFIX_MIB maximum MiB of a raw trace for other compressors (default 256)
#   PROGRAMS   programs to check, compare and measure, separated by commas (default all)
#   CODECS     codecs to check and bench in addition to `raw`, separated by semicolons (default all), as in
#              "predict;predict, counted loops"
#   SCRATCH    folder for traces (default: the system's)
#   WARPTRACE_COMMIT   commit of the binaries, for the tables (default: the checkout's)
set -uo pipefail

folder=${1:-.device}
OUT=${OUT:-out}
DEVICE=${DEVICE:-cuda}
LIMIT=${LIMIT:-510}
STEPS=${STEPS:-check sanitizer fidelity bench}
RUNS=${RUNS:-5}
export WARPTRACE_COMMIT=${WARPTRACE_COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}

# Default folder of nvcc, ncu and compute-sanitizer.
[ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin

mkdir -p "$OUT"
exec > >(tee "$OUT/run.log") 2>&1
logger=$!

bench=$folder/warptrace-bench
tool=$folder/warptrace
for binary in "$bench" "$tool"; do
    if [ ! -f "$binary" ]; then
        echo "error: $binary is not there: build it and copy it into $folder"
        exit 2
    fi
    chmod +x "$binary" 2>/dev/null
done

common=(--device "$DEVICE")
[ "$DEVICE" = sim ] && common+=(--quick)
[ -d "$folder/inputs" ] && common+=(--inputs "$folder/inputs")
[ -n "${SCRATCH:-}" ] && common+=(--scratch "$SCRATCH")
IFS=';' read -ra codecs <<< "${CODECS:-}"
for codec in "${codecs[@]}"; do
    common+=(--codec "$codec")
done
traces=$(mktemp -d ${SCRATCH:+-p "$SCRATCH"}) || exit 2
trap 'rm -rf "$traces"' EXIT

code=0

left() {
    echo $((LIMIT - SECONDS))
}

wants() {
    [[ " $STEPS " == *" $1 "* ]]
}

# step NAME SECONDS COMMAND...: runs a command with a time limit, at most the remaining time.
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
    limit=${CHECK_LIMIT:-420}
    [ "$limit" -gt "$(left)" ] && limit=$(left)
    # The checks end before the limit. A check that has begun takes at most half a minute.
    enough=$((limit > 40 ? limit - 30 : limit))
    step check "$limit" "$bench" check "${common[@]}" ${PROGRAMS:+--programs "$PROGRAMS"} --out "$OUT" \
        --time-limit "$((enough > 0 ? enough : 1))"
fi

has() {
    command -v "$1" > /dev/null
}

# missing STEP TOOL: reports that a step failed because a tool is missing.
missing() {
    echo "FAILED $1: $2 is not on the path"
    [ "$code" -eq 0 ] && code=127
}

# small PROGRAM: prints arguments of `record` for an input that is fast under NVIDIA's tools too.
small() {
    case $1 in
        fractal) echo "fractal --width 64 --depth 64" ;;
        mis) echo "mis --graph internet:400 --grid 2x64" ;;
        mst) echo "mst --graph road:400 --grid 2x64" ;;
        dmr) echo "dmr --points 30 --grid 2x64" ;;
        # Three blocks: one warp has a walk for only some of its lanes, and one warp has none.
        stress) echo "stress --walks 150 --rounds 2 --block 64" ;;
    esac
}

# sanitize CHECKER PROGRAM NAME ARGUMENTS...: runs compute-sanitizer on a small recording. On the simulator,
# makes the same recording without it to test the arguments.
sanitize() {
    local checker=$1 program=$2 name=$3 prefix=() input
    shift 3
    read -ra input <<< "$(small "$program")"
    if [ "$DEVICE" != sim ]; then
        prefix=(compute-sanitizer --tool "$checker" --error-exitcode 1 --log-file "$traces/sanitizer.log")
    fi
    step "$checker: $program, $name" 60 "${prefix[@]}" \
        "$bench" record "${input[@]}" --device "$DEVICE" --memory 256MiB -o "$traces/small.wtrc" "$@"
    if [ -f "$traces/sanitizer.log" ]; then
        tail -n 1 "$traces/sanitizer.log"
        { echo "== $checker: $program, $name" && cat "$traces/sanitizer.log"; } >> "$OUT/sanitizer.log"
        rm -f "$traces/sanitizer.log"
    fi
}

if wants sanitizer; then
    rm -f "$OUT/sanitizer.log"
    if [ "$DEVICE" = sim ] || has compute-sanitizer; then
        for checker in ${CHECKERS:-memcheck racecheck}; do
            sanitize "$checker" fractal raw --codec raw
            sanitize "$checker" fractal "ecl beside raw" --codec ecl --dual
            for program in fractal mis mst dmr stress; do
                sanitize "$checker" "$program" predict --codec predict
                sanitize "$checker" "$program" "predict beside raw" --codec predict --dual
                sanitize "$checker" "$program" "predict, counted loops, beside raw" --codec predict --counted --dual
            done
        done
    else
        missing sanitizer compute-sanitizer
    fi
fi

if wants fidelity; then
    if [ "$DEVICE" = sim ]; then
        echo "SKIPPED fidelity: the simulator has no hardware counters"
    elif has ncu || compgen -G '/opt/nvidia/nsight-compute/*/ncu' > /dev/null; then
        limit=${FIDELITY_LIMIT:-180}
        [ "$limit" -gt "$(left)" ] && limit=$(left)
        # fidelity ends before the limit.
        enough=$((limit > 50 ? limit - 40 : limit))
        step fidelity "$limit" "$bench" fidelity --device "$DEVICE" ${PROGRAMS:+--programs "$PROGRAMS"} \
            ${SCRATCH:+--scratch "$SCRATCH"} --out "$OUT" --time-limit "$((enough > 0 ? enough : 1))"
    else
        missing fidelity ncu
    fi
fi

# hottest CSV: prints the instructions with the most samples, from Nsight Compute's source page.
hottest() {
    # Fields contain commas, but not the three characters between two fields.
    awk -F '","' '
        function number(text) { gsub(/[",]/, "", text); return text + 0 }
        !samples {
            for (i = 1; i <= NF; i++) {
                name = $i; gsub(/"/, "", name)
                if (name == "Source") source = i
                else if (!found && name ~ /Samples/) found = i
                else if (!executed && name ~ /Instructions Executed/) executed = i
            }
            if (source && found) samples = found
            next
        }
        { gsub(/"/, "", $source); printf "%10d %14d  %s\n", number($samples), executed ? number($executed) : 0, $source }
    ' "$1" | sort -k 1,1 -rn | head -n 60
}

# profile CODEC KERNEL PROGRAM ARGUMENTS...: profiles the first launch of a kernel with Nsight Compute, as
# text.
profile() {
    local codec=$1 kernel=$2 name=$3-$1
    shift 2
    local record=("$bench" record "$@" --codec "$codec" --device "$DEVICE" --memory 4GiB --no-check
        -o "$traces/profile.wtrc")
    if [ "$DEVICE" = sim ]; then
        step "profile: $name" 60 "${record[@]}"
        return
    fi
    local report=$traces/$name.ncu-rep text=$OUT/ncu-$name.txt
    step "profile: $name" 120 ncu --kernel-name "$kernel" --launch-count 1 --set full --import-source yes \
        --force-overwrite --export "$report" "${record[@]}"
    [ -f "$report" ] || return
    ncu --import "$report" --page details --print-details all > "$text"
    ncu --import "$report" --page source --csv > "$OUT/ncu-$name-source.csv"
    {
        echo
        echo "Instructions by samples: samples, executions by warps, SASS (all of them: ncu-$name-source.csv)"
        hottest "$OUT/ncu-$name-source.csv"
    } >> "$text"
    grep -E 'Duration|SM Throughput|Theoretical Occupancy|Achieved Occupancy|Executed Ipc Active' "$text"
}

if wants profile; then
    rm -f "$OUT"/ncu-*
    if [ "$DEVICE" = sim ]; then
        for codec in ${PROFILE_CODECS:-predict}; do
            profile "$codec" fractal fractal --width 128 --depth 64
            profile "$codec" nbody_force nbody --bodies 500 --steps 1
        done
    elif has ncu; then
        for codec in ${PROFILE_CODECS:-predict}; do
            profile "$codec" fractal fractal --width 2048 --depth 1024
            profile "$codec" nbody_force nbody --bodies 50000 --steps 1
        done
    else
        missing profile ncu
    fi
fi

# bench NAME SECONDS FOLDER ARGUMENTS...: runs the bench. It ends before the limit, so that its tables are
# complete.
bench() {
    local name=$1 limit=$2 out=$3
    shift 3
    [ "$limit" -gt "$(left)" ] && limit=$(left)
    if [ "$limit" -le 20 ]; then
        echo "SKIPPED $name: ${limit} s are left"
        [ "$code" -eq 0 ] && code=124
        return
    fi
    step "$name" "$limit" "$bench" bench "$@" --runs "$RUNS" --out "$out" --time-limit $((limit - 15)) \
        ${PREFIX_MIB:+--prefix-mib "$PREFIX_MIB"}
}

if wants bench; then
    limit=$(left)
    # Reserve time for the next step.
    wants grid192 && limit=$((limit * 2 / 3))
    bench bench "$limit" "$OUT" "${common[@]}" ${PROGRAMS:+--programs "$PROGRAMS"}
fi

if wants grid192; then
    grid=${GRID:-192x256}
    [ "$DEVICE" = sim ] && grid=${GRID:-6x64}
    bench grid192 "$(left)" "$OUT/grid192" "${common[@]}" --programs mis,mst,dmr --grid "$grid"
fi

echo
echo "done in ${SECONDS} s, exit code $code"
exec >&- 2>&-
wait "$logger"
exit "$code"
