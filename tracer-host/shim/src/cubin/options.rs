//! How a cubin was assembled, as far as the assembler says it there.

use super::{Cubin, number};

/// The section in which assemblers of CUDA 13 name themselves and their options.
const NOTE: &str = ".note.nv.tkinfo";
/// Bytes of a note before its name: the length of the name, that of the content, and a type.
const NOTE_HEADER_BYTES: usize = 12;
/// Offsets in the note's content of four numbers: where the strings begin that name the tool, its version,
/// its build and its options.
const STRINGS: [usize; 4] = [8, 12, 16, 20];
/// Bytes of the content before the strings.
const CONTENT_BYTES: usize = 24;
/// How the names of assemblers begin; the linker is `nvlink`.
const ASSEMBLER: &str = "ptxas";
/// Options with which the PTX is kept.
const LINES: [&str; 4] = ["-lineinfo", "--generate-line-info", "-g", "--device-debug"];
/// Options that leave the code as it is, and those of them that have a value.
const HARMLESS: [&str; 6] =
    ["-v", "-lineinfo", "-suppress-debug-info", "--verbose", "--generate-line-info", "-c"];
const HARMLESS_WITH_VALUE: [&str; 6] = ["-arch", "--gpu-name", "-o", "--output-file", "-m", "--machine"];

/// How a cubin was assembled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assembled {
    /// The assembler's name, such as `ptxas-blackwell`; empty if the cubin does not say.
    pub(crate) tool: String,
    /// Its options that may change the code.
    pub(crate) options: Vec<String>,
}

impl Assembled {
    /// Reads how a cubin was assembled. What the linker says of itself is passed over. Of parts that were linked, those
    /// count whose PTX is there: they were assembled with line info. If these have different options, none are known.
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
        // Of parts that were assembled in different ways it is not known which is whose.
        let are_alike = found.iter().all(|(_, other)| code_options(other) == options);
        Self { tool: tool.to_owned(), options: if are_alike { options } else { Vec::new() } }
    }
}

/// Splits the content of the first note from the notes after it.
fn note(notes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = |at| usize::try_from(number(notes, at)?).ok()?.checked_next_multiple_of(4);
    let content = NOTE_HEADER_BYTES.checked_add(length(0)?)?;
    let end = content.checked_add(length(4)?)?;
    // The last one may lack the bytes that fill it up.
    Some((notes.get(content..end.min(notes.len()))?, notes.get(end..).unwrap_or_default()))
}

/// Reads the tool that a note names, and its options.
fn tool_and_options(content: &[u8]) -> Option<(&str, &str)> {
    let strings = content.get(CONTENT_BYTES..)?;
    let string = |at: usize| {
        let from = strings.get(usize::try_from(number(content, at)?).ok()?..)?;
        std::str::from_utf8(from.split(|byte| *byte == 0).next()?).ok()
    };
    let [tool, _, _, options] = STRINGS.map(string);
    Some((tool?, options?))
}

/// Lists the options that may change the code.
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
