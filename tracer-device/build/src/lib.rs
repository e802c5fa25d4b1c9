//! Compiles traced kernels to PTX with upstream Rust's own `nvptx64` target.
//!
//! In the `build.rs` of a package that depends on `warptrace`:
//!
//! ```no_run
//! warptrace_build::compile("src/kernels.rs");
//! ```
//!
//! compiles the modules of that file which have `#[warptrace::kernels]` ([`compile`](fn@compile)); several
//! files go to [`compile_all`].
//!
//! Kernels that have a package of their own, in a `build.rs` of another:
//!
//! ```no_run
//! let kernels = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
//! warptrace_build::embed(&kernels, "kernels");
//! ```
//!
//! and in the crate `include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"))`. The text is empty, and a
//! warning says what to do, where there is no device compiler. Kernels are compiled once: what records is put
//! into the text when a trace is wanted.
//!
//! # The device compiler
//! A `rustc` with its own `rust-src`, looked for in this order ([`Compiler::find`]):
//! 1. the variable `WARPTRACE_RUSTC`;
//! 2. rustup's toolchains that have the component `rust-src`;
//! 3. Debian's packages `rustc-web` and `rust-web-src`, as `/usr/bin/rustc`.
//!
//! Unstable features are switched on by `RUSTC_BOOTSTRAP=1` for this compilation alone.

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
