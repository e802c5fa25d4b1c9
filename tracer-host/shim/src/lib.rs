//! The library that `warptrace run` loads into an unchanged CUDA program to record its kernels.
//!
//! ```text
//!  program ── dlsym, cuGetProcAddress ──▶ shim: returns hooks instead of the driver's functions
//!  program ── cuLibraryLoadData(image) ──▶ shim: finds the PTX in the image ──▶ driver
//!  program ── cuLaunchKernel ────────────▶ shim: makes the kernel's traced copy at its first launch; a
//!                                                session launches it on the program's stream ──▶ driver
//!                                                 └▶ FILE.wtrc
//! ```
//!
//! - `real`, `interpose`: replacement of `dlsym` and `dlvsym`.
//! - `hooks`: replacements of the driver's functions.
//! - `fatbin`, `cubin`, `image`: images that the program loads, and their PTX.
//! - `copies`, `exchange`, `assemble`: traced copies of kernels, and the images that contain them.
//! - `state`, `trace`: the program's modules and kernels, and the sessions that record them.
//! - `graphs`: graphs that the program launches, and their kernels.
//! - `nvtx`, `ranges`: NVTX ranges of the program, which label its launches.
//! - `python`: call stacks of the Python code that launches.
//! - `api`: functions that the program may call.
//! - `summary`: the report for `warptrace run`.
//! - `assembler`: changes the options of assemblers that the program starts.
//!
//! Loading the library has no other effect: a program without CUDA runs unchanged. Errors in the library must
//! not break the program, so each hook falls back to the program's own call. The library is empty on targets
//! other than Linux on x86-64 or aarch64 with the GNU C library.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), target_env = "gnu"))]
#![cfg_attr(test, allow(dead_code, reason = "unit tests do not stand in for the system's functions"))]

mod api;
mod assemble;
mod assembler;
mod copies;
mod cubin;
mod driver;
mod exchange;
mod fatbin;
mod graphs;
mod hooks;
mod image;
mod inside;
mod interpose;
mod names;
mod nvtx;
mod python;
mod ranges;
mod real;
mod settings;
mod state;
mod summary;
mod trace;
