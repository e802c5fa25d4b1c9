//! A driver for tests, `libcuda.so.1`: device memory is the host's, kernels are interpreted, and what merges
//! and encodes logs runs natively. It has the entry points that the shim, its sessions and the test programs
//! use, and says in a file, named by `TEST_DRIVER_LOG`, which images and launches reach it.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
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
