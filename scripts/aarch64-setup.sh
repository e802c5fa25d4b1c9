#!/bin/sh
# Installs what `scripts/aarch64.sh` needs, on Debian 12: a cross compiler, the standard library for the compiler
# `rustc-web`, and QEMU. Programs for aarch64 that tests start go to `.toolchain/aarch64`. Needs root.
set -eu
cd "$(dirname "$0")/.."
tools=$PWD/.toolchain/aarch64
export DEBIAN_FRONTEND=noninteractive
dpkg --add-architecture arm64
apt-get update --quiet
# `--no-remove`: packages for arm64 must not replace others.
apt-get install --quiet --yes --no-remove --no-install-recommends rustc-web gcc-aarch64-linux-gnu \
    libc6-dev-arm64-cross libstd-rust-web-dev:arm64 qemu-user-static libexpat1:arm64 libssl3:arm64
rm -rf "$tools" && mkdir -p "$tools/debs" && cd "$tools/debs"
apt-get download --quiet busybox:arm64 python3.11-minimal:arm64 libpython3.11-minimal:arm64 \
    libpython3.11-stdlib:arm64
for package in *.deb; do dpkg -x "$package" "$tools"; done
cd "$tools" && rm -r debs
python3 -m pip install --quiet --no-deps --target cuda --platform manylinux_2_17_aarch64 \
    --only-binary=:all: 'nvidia-cuda-nvcc>=13,<14'
ln -s python3.11 usr/bin/python3
ln -s /usr/bin/aarch64-linux-gnu-gcc bin/cc
for name in sh cat echo sleep touch true; do ln -s busybox "bin/$name"; done
