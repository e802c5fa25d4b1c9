//! The table of a module of kernels, for the host.

use warptrace_format::SourceLocation;

/// A value that a kernel names: `trace!("length", end - start)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceValue {
    /// Its id, at least 1. Values of modules that go into one trace have ids of their own.
    pub id: u16,
    /// Its name.
    pub name: &'static str,
    /// The location that it lies in; 0 if there is none.
    pub location: u16,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// What `#[warptrace::kernels]` knows of a module: its kernels, where they can be traced, and their code for
/// a GPU.
#[derive(Clone, Copy, Debug)]
pub struct KernelModule {
    /// Path of the module, such as `program::kernels`. With its name it says which kernel one is.
    pub name: &'static str,
    /// Source file, as the compiler names it.
    pub file: &'static str,
    /// Names of the kernels' entries, in order of declaration.
    pub kernels: &'static [&'static str],
    /// The locations, by id.
    pub locations: &'static [SourceLocation],
    /// The locations at which lanes wait, by id, behind the others: recorded with times of runs only.
    pub waits: &'static [SourceLocation],
    /// The values that the source names, by id.
    pub values: &'static [SourceValue],
    /// The file's text; empty where the compiler does not tell where it is.
    pub source: &'static str,
    /// The kernels' PTX, of all files that the package's build script compiles:
    /// `std::fs::write("kernels.ptx", spmv::MODULE.ptx)`. Empty without such a build script, or where there
    /// was no device compiler: then they run on the simulator only.
    pub ptx: &'static str,
    /// Why there is no PTX, as the end of a sentence; empty if there is some.
    pub without_ptx: &'static str,
}
