//! Environment variables and files between `warptrace run` and the library that it loads into a program.

/// Environment variable with the path of the trace. If it is not set, nothing is traced.
pub const RUN_FILE: &str = "WARPTRACE_RUN_FILE";
/// Environment variable with the folder for reports and requests.
pub const RUN_REPORT: &str = "WARPTRACE_RUN_REPORT";
/// Environment variable with the recording options as text. If it is not set, the defaults apply.
pub const RUN_SPEC: &str = "WARPTRACE_RUN_SPEC";
/// Environment variable with the path of the assembler. If it is not set, the library searches for one.
pub const RUN_PTXAS: &str = "WARPTRACE_RUN_PTXAS";

/// File in the folder that requests the positions of hanging launches: a number, new for each request.
pub const ASKED: &str = "asked";
/// Name prefix of a file with the path of a trace of a hanging launch. Process id and a number follow.
pub const HANG_PREFIX: &str = "hang-";
/// Name prefix of a report, before the process id. Its first line names the process; others are sentences.
pub const REPORT_PREFIX: &str = "process-";
