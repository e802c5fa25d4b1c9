//! What `warptrace run` loads into a CUDA program: a library that records the kernels of the program, which
//! need not know of it.
//!
//! ```text
//!  program ── dlsym, cuGetProcAddress ──▶ shim: our functions instead of the driver's
//!  program ── cuLibraryLoadData(image) ──▶ shim: finds the PTX in it ──▶ driver
//!  program ── cuLaunchKernel ────────────▶ shim: makes the kernel's traced copy, once; a session launches that on the
//!                                                program's stream ──▶ driver
//!                                                 └▶ FILE.wtrc
//! ```
//!
//! - `real`, `interpose`: how the program comes here.
//! - `hooks`: the driver's functions that this library stands in for.
//! - `fatbin`, `cubin`, `image`: what the program loads, and the PTX in it.
//! - `copies`, `exchange`, `assemble`: traced copies of its kernels, and what the driver loads for them.
//! - `state`, `trace`: what is known of the program's modules and kernels, and the sessions that record them.
//! - `graphs`: graphs that the program launches, and the kernels in them.
//! - `nvtx`, `ranges`: ranges that the program opens, by which launches are called.
//! - `python`: call stacks of the Python code that launches.
//! - `api`: what a program may call that knows of warptrace.
//! - `summary`: what `warptrace run` says in the end.
//!
//! - `assembler`: what it does in an assembler that the program starts.
//!
//! Loading it does nothing else: a program without CUDA never notices. What goes wrong here must never break
//! the program, so each hook ends with the program's own call.
//!
//! It is for Linux on x86-64 with the GNU C library; elsewhere the library is empty.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
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
