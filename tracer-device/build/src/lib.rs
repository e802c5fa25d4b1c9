//! Compiles traced kernels to PTX with the `nvptx64` target of upstream Rust.
//!
//! Use it in the `build.rs` of a package that depends on `warptrace`:
//!
//! ```no_run
//! warptrace_build::compile("src/kernels.rs");
//! ```
//!
//! This compiles the modules with `#[warptrace::kernels]` in that file ([`compile`](fn@compile)).
//! [`compile_all`] compiles several files.
//!
//! Kernels can also be in a separate package, compiled by the `build.rs` of another one:
//!
//! ```no_run
//! let kernels = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
//! warptrace_build::embed(&kernels, "kernels");
//! ```
//!
//! The crate then uses `include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"))`. Without a device compiler,
//! the text is empty and a warning explains what to do. Kernels are compiled once: recording instructions are
//! inserted into the PTX when a trace is requested.
//!
//! # The device compiler
//! A `rustc` with its own `rust-src`. [`Compiler::find`] searches in this order:
//! 1. the variable `WARPTRACE_RUSTC`;
//! 2. rustup's toolchains with the component `rust-src`;
//! 3. Debian's packages `rustc-web` and `rust-web-src`, as `/usr/bin/rustc`.
//!
//! `RUSTC_BOOTSTRAP=1` enables unstable features, only for this compilation.

mod compile;
mod compiler;
mod diagnostics;
mod disassembler;
mod embed;
mod error;
mod own;
mod packaged;
mod ptxas;
mod watch;

pub use compile::{Build, Compiled};
pub use compiler::{Compiler, DEVICE_COMPILER_VARIABLE, Origin};
pub use diagnostics::Diagnostic;
pub use disassembler::Disassembler;
pub use embed::{SETUP_LOCK_VARIABLE, embed, embed_assembled};
pub use error::BuildError;
pub use own::{compile, compile_all};
pub use ptxas::{ARCHITECTURES, Ptxas, TOOLCHAIN_FOLDER};
