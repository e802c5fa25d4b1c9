#!/usr/bin/env bash
# Compares two builds of the tool in turns: own times of programs alone and traced, for results/nvidia-h200/drains.md.
#
#     [ROAD=road.gr] [CC="cc grid.egr 1"] [MIS="mis grid.egr 1"] [ROUNDS=3] scripts/gpu-drains.sh OLD NEW
#
# OLD and NEW are builds of `warptrace`. Needs nvcc, and PyTorch for the training step. ROAD: a road network in DIMACS' format.
# CC and MIS: commands of Indigo2's connected components and independent set, which print their `runtime`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
old=$(realpath "$1") new=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for name in graphs accesses; do nvcc -O3 -arch="${ARCH:-sm_90}" -lineinfo -o "$name" "$here/gpu-$name.cu"; done

# Prints a line: the name, the program's own time, and the tool's report.
row() {
    local name=$1
    shift
    "$@" >out 2>err
    echo "ROW $name | $(grep -oE 'runtime: [0-9.]*|.step_ms.: [0-9.]*' out | head -1) $(grep kernel_ms err || true)" \
        "| $(grep -oE '[0-9]+ events of [0-9]+ launches|[0-9]+ launch(es)? waited [0-9.]* ms' err | tr '\n' ' ')"
}

# Traces a program by both builds: NAME OPTIONS COMMAND...
both() {
    local name=$1 options=$2
    shift 2
    # shellcheck disable=SC2086
    for tool in old new; do row "$name $tool" "${!tool}" run $options -o "$tool-${name// /-}.wtrc" -- "$@"; done
}

for _ in $(seq "${ROUNDS:-3}"); do
    for name in CC MIS; do
        read -ra command <<<"${!name:-}"
        [ ${#command[@]} -gt 0 ] || continue
        row "$name alone" "${command[@]}"
        for points in functions blocks; do both "$name $points" "--points $points" "${command[@]}"; done
    done
    kernels=(gather histogram transpose_naive spmv_row_rmat)
    [ -z "${ROAD:-}" ] || kernels+=(spmv_warp_road spmv_row_road)
    for kernel in "${kernels[@]}"; do
        program=./accesses
        [[ $kernel != spmv* ]] || program=./graphs
        row "$kernel alone" $program "$kernel" 20
        both "$kernel" "--points functions --accesses all" $program "$kernel" 20
    done
    if python3 -c "import torch" 2>&1; then
        train=(python3 "$here/gpu-training-step.py" --steps=40)
        row "train alone" "${train[@]}"
        both "train functions" "--points functions" "${train[@]}"
        both "train blocks" "--points blocks" "${train[@]}"
        both "train times" "--points blocks --times blocks" "${train[@]}"
    fi
done
for trace in new-*.wtrc; do echo "$trace: $(stat -c %s "$trace") bytes, $("$new" verify "$trace" | tail -1)"; done
