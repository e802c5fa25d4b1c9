//! What `warptrace run` and the library that it loads into a program say to each other: environment
//! variables, and files with which processes report.

/// Names the environment variable with the path of the trace; without it nothing is traced.
pub const RUN_FILE: &str = "WARPTRACE_RUN_FILE";
/// Names the environment variable with the folder in which each process says what it did.
pub const RUN_REPORT: &str = "WARPTRACE_RUN_REPORT";
/// Names the environment variable with what is recorded, as text; without it the default holds.
pub const RUN_SPEC: &str = "WARPTRACE_RUN_SPEC";
/// Names the environment variable with the assembler that is to be used; without it one is looked for.
pub const RUN_PTXAS: &str = "WARPTRACE_RUN_PTXAS";

/// The name of the file in the folder by which processes are asked where their launches hang. It holds a
/// number, another one each time.
pub const ASKED: &str = "asked";
/// The name of the file in the folder with the path of a trace that tells where a launch hangs, before the
/// process's number.
pub const HANG_PREFIX: &str = "hang-";
/// The name of a process's report in the folder, before the process's number. Its first line names the
/// process, each other one is a sentence.
pub const REPORT_PREFIX: &str = "process-";
