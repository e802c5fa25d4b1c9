//! How a cubin was assembled, as far as the assembler says it there.

use super::{Cubin, number};

/// The section in which assemblers of CUDA 13 name themselves and their options.
const NOTE: &str = ".note.nv.tkinfo";
/// Bytes of a note before its name, and of that name.
const NOTE_HEADER_BYTES: usize = 12;
/// Offsets in the note's content of four numbers: where the strings begin that name the tool, its version,
/// its build and its options.
const STRINGS: [usize; 4] = [8, 12, 16, 20];
/// Bytes of the content before the strings.
const CONTENT_BYTES: usize = 24;
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
    pub(super) fn new(cubin: &Cubin<'_>) -> Self {
        Self::read(cubin).unwrap_or_default()
    }

    fn read(cubin: &Cubin<'_>) -> Option<Self> {
        let note = cubin.section(NOTE)?;
        let name = usize::try_from(number(note, 0)?).ok()?;
        let content = note.get(NOTE_HEADER_BYTES.checked_add(name.checked_next_multiple_of(4)?)?..)?;
        let strings = content.get(CONTENT_BYTES..)?;
        let string = |at: usize| {
            let from = strings.get(usize::try_from(number(content, at)?).ok()?..)?;
            std::str::from_utf8(from.split(|byte| *byte == 0).next()?).ok()
        };
        let [tool, _, _, options] = STRINGS.map(string);
        Some(Self { tool: tool?.to_owned(), options: telling(options?) })
    }
}

/// Lists the options that may change the code.
fn telling(options: &str) -> Vec<String> {
    let mut words = options.split_whitespace();
    let mut found = Vec::new();
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
            assert_eq!(telling(options), kept);
        }
    }
}
