//! Interface between `warptrace run` and the library that it loads into a program: environment variables, and
//! the files in which processes report.

/// Environment variable with the path of the trace. If it is not set, nothing is traced.
pub const RUN_FILE: &str = "WARPTRACE_RUN_FILE";
/// Environment variable with the folder for reports and requests.
pub const RUN_REPORT: &str = "WARPTRACE_RUN_REPORT";
/// Environment variable with the recording options as text. If it is not set, the defaults apply.
pub const RUN_SPEC: &str = "WARPTRACE_RUN_SPEC";
/// Environment variable with the path of the assembler. If it is not set, the library searches for one.
pub const RUN_PTXAS: &str = "WARPTRACE_RUN_PTXAS";

/// File in the folder that requests the positions of launches that hang. It contains a number, different for
/// each request.
pub const ASKED: &str = "asked";
/// Name prefix of a file in the folder. The process id and a number follow. The file contains the path of a
/// trace that shows where a launch hangs.
pub const HANG_PREFIX: &str = "hang-";
/// Name prefix of a process's report in the folder. The process id follows. The first line of the report
/// names the process; each other line is a sentence.
pub const REPORT_PREFIX: &str = "process-";
