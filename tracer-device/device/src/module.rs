//! The table of a module of kernels, for the host.

use warptrace_format::SourceLocation;

/// A named value of a kernel: `trace!("length", end - start)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceValue {
    /// Id, at least 1. Modules in the same trace have disjoint ids.
    pub id: u16,
    /// Name of the value.
    pub name: &'static str,
    /// The enclosing location; 0 for none.
    pub location: u16,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Description of a module with `#[warptrace::kernels]`: its kernels, their trace points, and their GPU code.
#[derive(Clone, Copy, Debug)]
pub struct KernelModule {
    /// Path of the module, such as `program::kernels`. With a kernel's name, it identifies the kernel.
    pub name: &'static str,
    /// Source file, as named by the compiler.
    pub file: &'static str,
    /// Names of the kernels' entries, in declaration order.
    pub kernels: &'static [&'static str],
    /// The locations, by id.
    pub locations: &'static [SourceLocation],
    /// The locations of waits, with ids after the ids in `locations`. Recorded only with times of runs.
    pub waits: &'static [SourceLocation],
    /// The named values, by id.
    pub values: &'static [SourceValue],
    /// Text of the source file. Empty if the compiler does not report the file's path.
    pub source: &'static str,
    /// PTX of all files that the package's build script compiles. Empty without such a build script or
    /// without a device compiler; the kernels then run only on the simulator.
    pub ptx: &'static str,
    /// Reason for missing PTX, as the end of a sentence. Empty if PTX exists.
    pub without_ptx: &'static str,
}
