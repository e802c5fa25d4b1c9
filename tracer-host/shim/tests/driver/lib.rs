//! A driver for tests, `libcuda.so.1`. Device memory is host memory. Kernels are interpreted; merging and
//! encoding run natively. The driver has the entry points that the shim, its sessions and the test programs
//! use. It logs images and launches to the file in `TEST_DRIVER_LOG`.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), target_env = "gnu"))]
#![allow(unreachable_pub, missing_docs, dead_code, reason = "a double for tests")]

#[path = "../../src/cubin/mod.rs"]
mod cubin;
mod entry;
#[path = "../../src/fatbin.rs"]
mod fatbin;
mod graphs;
mod launch;
mod memory;
mod modules;
mod streams;
