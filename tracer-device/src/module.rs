//! The table of a module of kernels, for the host.

use warptrace_format::SourceLocation;

/// What `#[warptrace::kernels]` knows of a module: its kernels, where they can be traced, and their code for a
/// GPU.
#[derive(Clone, Copy, Debug)]
pub struct KernelModule {
    /// Name of the module.
    pub name: &'static str,
    /// Source file, as the compiler names it.
    pub file: &'static str,
    /// Names of the kernels' entries, in order of declaration.
    pub kernels: &'static [&'static str],
    /// The locations, by id.
    pub locations: &'static [SourceLocation],
    /// FNV-1a of the module's tokens: differs when the source does, comments and layout aside.
    pub source_hash: u64,
    /// The kernels' PTX. Empty without a build script that compiles them, or where there was no device
    /// compiler: then they run on the simulator only.
    pub ptx: &'static str,
}
