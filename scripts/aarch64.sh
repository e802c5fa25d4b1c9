#!/bin/sh
# Runs a command. In it, cargo builds for aarch64, and QEMU runs programs for aarch64:
#
#   scripts/aarch64.sh cargo nextest run -p warptrace-shim
#
# `scripts/aarch64-setup.sh` installs the tools. The command runs in a user namespace, because QEMU is registered
# for this command only. That needs Linux 6.7 or later.
set -eu
tools=$(cd "$(dirname "$0")/.." && pwd)/.toolchain/aarch64
export RUSTC=/usr/bin/rustc CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
# Programs that tests start (`cc`, `sh`, `python3`) are those for aarch64. Build scripts need this machine's `cc`.
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=/usr/bin/cc HOST_CC=/usr/bin/cc
export PATH="$tools/bin:$tools/usr/bin:$PATH" PYENV_ROOT="$tools"
# Tests that depend on times wait longer.
export WARPTRACE_TEST_SLOW=10
exec unshare --user --map-root-user --mount /bin/sh -ec '
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
    exec "$@"' sh "$@"
