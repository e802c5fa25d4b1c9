//! Adds `-lineinfo` to assemblers that the program starts, so that `ptxas` keeps the PTX in its machine code.
//!
//! No other option changes, so machine code in the caches of frameworks also serves untraced runs. Calls of
//! `ptxas` that ask for its version stay unchanged: frameworks use that text in the keys of their caches.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const NAME: &[u8] = b"ptxas";
const LINES: &str = "-lineinfo";
/// Options with which the assembler already keeps the PTX, must not keep lines, or assembles nothing.
const NOT_WITH: [&str; 10] = [
    LINES,
    "--generate-line-info",
    "-g",
    "--device-debug",
    "-V",
    "--version",
    "-h",
    "--help",
    "-suppress-debug-info",
    "--suppress-debug-info",
];

/// Runs when this library is loaded. Restarts an assembler with one more option.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static STARTED: extern "C" fn() = started;

#[cfg(not(test))]
extern "C" fn started() {
    let _ = crate::inside::guarded(start_again);
}

/// Restarts the process's program if it is an assembler without line info. Returns otherwise.
fn start_again() -> Option<()> {
    std::env::var_os("WARPTRACE_RUN_FILE").filter(|file| !file.is_empty())?;
    let program = std::fs::read_link("/proc/self/exe").ok()?;
    let arguments = std::fs::read("/proc/self/cmdline").ok()?;
    let arguments = with_lines(&program, &arguments)?;
    let to_c = |text: OsString| CString::new(text.into_vec()).ok();
    let program = to_c(program.into_os_string())?;
    let arguments: Vec<CString> = arguments.into_iter().map(to_c).collect::<Option<_>>()?;
    let mut pointers: Vec<*const libc::c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: C strings, and a list of C strings that ends in null. The process has one thread.
    unsafe {
        libc::execv(program.as_ptr(), pointers.as_ptr());
    }
    None
}

/// Adds the option to an assembler's arguments, each ended by a zero byte; `None` if nothing is to change.
fn with_lines(program: &Path, arguments: &[u8]) -> Option<Vec<OsString>> {
    if !program.file_name()?.as_bytes().starts_with(NAME) {
        return None;
    }
    let words = arguments.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    let mut words: Vec<OsString> = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    let is_asked = words.iter().skip(1).any(|word| NOT_WITH.iter().any(|known| word == known));
    if is_asked || words.len() < 2 {
        return None;
    }
    words.push(LINES.into());
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assemblers_keep_lines_and_nothing_else_changes() {
        let of = |program: &str, arguments: &[u8]| with_lines(Path::new(program), arguments);
        let expected = ["ptxas", "a.ptx", "-lineinfo"].map(OsString::from).to_vec();
        assert_eq!(of("/usr/bin/ptxas-blackwell", b"ptxas\0a.ptx\0"), Some(expected));
        for arguments in [&b"ptxas\0--version\0"[..], b"ptxas\0-lineinfo\0a.ptx\0", b"ptxas\0", b""] {
            assert_eq!(of("/usr/bin/ptxas", arguments), None);
        }
        assert_eq!(of("/usr/bin/nvdisasm", b"nvdisasm\0a.cubin\0"), None);
    }
}
