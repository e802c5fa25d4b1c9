//! Reads from a cubin how it was assembled, if the assembler noted it.

use super::{Cubin, number};

/// The section in which assemblers of CUDA 13 store their name and options.
const NOTE: &str = ".note.nv.tkinfo";
/// Bytes of a note's header: length of the name, length of the content, and a type.
const NOTE_HEADER_BYTES: usize = 12;
/// Offsets in a note's content of string offsets: the tool's name, its version, its build, its options.
const STRINGS: [usize; 4] = [8, 12, 16, 20];
/// Bytes of the content before the strings.
const CONTENT_BYTES: usize = 24;
/// Prefix of assemblers' names. The linker's name is `nvlink`.
const ASSEMBLER: &str = "ptxas";
/// Options with which the assembler keeps the PTX in the cubin.
const LINES: [&str; 4] = ["-lineinfo", "--generate-line-info", "-g", "--device-debug"];
/// Options that do not change the code: without a value here, with a value below.
const HARMLESS: [&str; 6] =
    ["-v", "-lineinfo", "-suppress-debug-info", "--verbose", "--generate-line-info", "-c"];
const HARMLESS_WITH_VALUE: [&str; 6] = ["-arch", "--gpu-name", "-o", "--output-file", "-m", "--machine"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assembled {
    /// The assembler's name, such as `ptxas-blackwell`; empty if the cubin has no note.
    pub(crate) tool: String,
    /// The options that may change the code.
    pub(crate) options: Vec<String>,
}

impl Assembled {
    /// Reads a cubin's notes, except the linker's. If any part was assembled with line info, only such parts
    /// count, since only they have PTX. If the counted parts have different options, `options` is empty.
    pub(super) fn new(cubin: &Cubin<'_>) -> Self {
        let mut notes = cubin.section(NOTE).unwrap_or_default();
        let mut found = Vec::new();
        while let Some((content, rest)) = note(notes) {
            notes = rest;
            found.extend(tool_and_options(content).filter(|(tool, _)| tool.starts_with(ASSEMBLER)));
        }
        let has_lines = |options: &str| options.split_whitespace().any(|word| LINES.contains(&word));
        if found.iter().any(|(_, options)| has_lines(options)) {
            found.retain(|(_, options)| has_lines(options));
        }
        let Some((tool, options)) = found.first().copied() else { return Self::default() };
        let options = code_options(options);
        // The notes do not say which options belong to which part.
        let are_alike = found.iter().all(|(_, other)| code_options(other) == options);
        Self { tool: tool.to_owned(), options: if are_alike { options } else { Vec::new() } }
    }
}

/// Splits off the first note. Returns its content and the notes after it.
fn note(notes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = |at| usize::try_from(number(notes, at)?).ok()?.checked_next_multiple_of(4);
    let content = NOTE_HEADER_BYTES.checked_add(length(0)?)?;
    let end = content.checked_add(length(4)?)?;
    // The last note may lack its padding bytes.
    Some((notes.get(content..end.min(notes.len()))?, notes.get(end..).unwrap_or_default()))
}

fn tool_and_options(content: &[u8]) -> Option<(&str, &str)> {
    let strings = content.get(CONTENT_BYTES..)?;
    let string = |at: usize| {
        let from = strings.get(usize::try_from(number(content, at)?).ok()?..)?;
        std::str::from_utf8(from.split(|byte| *byte == 0).next()?).ok()
    };
    let [tool, _, _, options] = STRINGS.map(string);
    Some((tool?, options?))
}

fn code_options(options: &str) -> Vec<String> {
    let mut words = options.split_whitespace();
    let mut found: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or(word);
        if HARMLESS_WITH_VALUE.contains(&name) {
            if name == word {
                words.next();
            }
        } else if !HARMLESS.contains(&word) {
            found.push(word.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_change_the_code_are_kept() {
        for (options, kept) in [
            ("-v  -lineinfo  -arch sm_90a ", &[][..]),
            ("-lineinfo -arch sm_90 -m 64", &[]),
            ("--gpu-name=sm_90 -fmad false -O1 -o x.cubin", &["-fmad", "false", "-O1"]),
        ] {
            assert_eq!(code_options(options), kept);
        }
    }
}
