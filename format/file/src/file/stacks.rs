//! The `STCK` section: call stacks of the host threads that made launches.
//!
//! The body is a structure in the metadata's encoding: the number of its first frame (varint32), frames
//! (function and file as strings, line as varint32), the number of its first stack (varint32), stacks (number
//! of the caller's stack plus one or 0, number of the innermost frame; varint32 each), and launches (number
//! of the launch, number of its stack; varint32 each). Numbers are unique in the file. The section is
//! optional and not in the index.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::labels::fitting;
use super::limits::{
    MAX_INDEXED_SECTIONS, MAX_STACK_DEPTH, MAX_STACK_FRAMES, MAX_STACK_TEXT_BYTES, MAX_STACKS,
};
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};

const SECTION: &str = "STCK";
/// Launches per section, which bounds its size.
const LAUNCHES_AT_ONCE: usize = 128;
const TOO_MANY: &str = "(more call stacks than the file can number)";

/// A frame of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackFrame {
    /// The function, qualified by its class where it has one.
    pub function: String,
    /// Path of the source file, as the program names it.
    pub file: String,
    /// Line in the file, from 1; 0 if unknown.
    pub line: u32,
}

/// Parts of paths of packages, of the Python standard library, and of code that PyTorch generates.
const LIBRARY_PATHS: [&str; 4] = ["/site-packages/", "/dist-packages/", "/lib/python3.", "/torchinductor_"];

impl StackFrame {
    /// Returns true if the frame is in an installed package, in generated code, or without a file.
    pub fn is_of_library(&self) -> bool {
        self.file.is_empty()
            || self.file.starts_with('<')
            || LIBRARY_PATHS.iter().any(|path| self.file.contains(path))
    }

    /// Returns the frame without the folder of its file: `model.py:31 in forward`.
    pub fn short(&self) -> String {
        let file = self.file.rsplit('/').next().unwrap_or_default().to_owned();
        Self { file, ..self.clone() }.to_string()
    }
}

impl fmt::Display for StackFrame {
    /// Writes `FILE:LINE in FUNCTION`, without unknown parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, file, line } = self;
        match (file.is_empty(), line) {
            (true, _) => f.write_str(function),
            (_, 0) => write!(f, "{file} in {function}"),
            _ => write!(f, "{file}:{line} in {function}"),
        }
    }
}

/// One section's part of a file's call stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchStacks {
    first_frame: u32,
    #[serde(deserialize_with = "bounded::<_, _, MAX_STACK_FRAMES>")]
    frames: Vec<StackFrame>,
    first_stack: u32,
    /// The caller's stack plus one, or 0, and the innermost frame.
    #[serde(deserialize_with = "bounded::<_, _, MAX_STACKS>")]
    stacks: Vec<(u32, u32)>,
    #[serde(deserialize_with = "bounded::<_, _, { MAX_INDEXED_SECTIONS as usize }>")]
    launches: Vec<(u32, u32)>,
}

impl LaunchStacks {
    fn encode_section(&self) -> Vec<u8> {
        let body = postcard::to_allocvec(self).expect("strings and integers in sequences of known length");
        encode_section(SectionKind::Stacks, &body)
    }

    /// Decodes the body of a section at file offset `at`. Rejects too many frames or stacks, a text over
    /// [`MAX_STACK_TEXT_BYTES`] bytes, and a stack whose caller has no smaller number.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let found: Self = decode_body((SECTION, "stacks"), body, at)?;
        let ends = |first: u32, count: usize| (first as usize).saturating_add(count);
        let (frames, stacks) =
            (ends(found.first_frame, found.frames.len()), ends(found.first_stack, found.stacks.len()));
        let mut texts = found.frames.iter().flat_map(|frame| [frame.function.len(), frame.file.len()]);
        let message = if frames > MAX_STACK_FRAMES || stacks > MAX_STACKS {
            format!(
                "frames up to number {frames} and stacks up to {stacks}, over the limits of \
                 {MAX_STACK_FRAMES} and {MAX_STACKS}"
            )
        } else if let Some(bytes) = texts.find(|bytes| *bytes > MAX_STACK_TEXT_BYTES) {
            format!("a name of {bytes} bytes, over the limit of {MAX_STACK_TEXT_BYTES}")
        } else if let Some((number, (caller, _))) =
            (found.first_stack..).zip(&found.stacks).find(|(number, (caller, _))| caller > number)
        {
            format!("stack {number} is called by stack {}, which is not before it", caller - 1)
        } else {
            drop(texts);
            return Ok(found);
        };
        Err(FormatError::Contents { section: SECTION, offset: at, message })
    }
}

/// Frames and stacks already in a file, for its writer.
#[derive(Clone, Debug, Default)]
pub struct WrittenStacks {
    frames: HashMap<StackFrame, u32>,
    stacks: HashMap<(u32, u32), u32>,
    /// Stacks by the address of their frames, which are held so that it stays unique.
    known: HashMap<usize, (Arc<[StackFrame]>, u32)>,
}

impl WrittenStacks {
    /// Encodes the sections, each with header and body, for stacks with the innermost frame first. Writes at
    /// most [`MAX_STACK_DEPTH`] frames of each, and cuts names. One frame replaces stacks over the limits.
    pub fn encode_sections(&mut self, launches: &[(u32, Arc<[StackFrame]>)]) -> Vec<Vec<u8>> {
        let section = |launches: &[(u32, Arc<[StackFrame]>)]| {
            let mut part = LaunchStacks {
                first_frame: number(self.frames.len()),
                first_stack: number(self.stacks.len()),
                ..LaunchStacks::default()
            };
            for (launch, frames) in launches {
                let stack = self.stack(frames, &mut part);
                part.launches.push((*launch, stack));
            }
            part.encode_section()
        };
        launches.chunks(LAUNCHES_AT_ONCE).map(section).collect()
    }

    fn stack(&mut self, frames: &Arc<[StackFrame]>, new: &mut LaunchStacks) -> u32 {
        let address = frames.as_ptr().addr();
        if let Some((_, number)) = self.known.get(&address) {
            return *number;
        }
        let depth = frames.len().min(MAX_STACK_DEPTH);
        // The last numbers belong to the frame that stands for stacks over the limits.
        let has_room = self.frames.len() + depth < MAX_STACK_FRAMES && self.stacks.len() + depth < MAX_STACKS;
        let number = if has_room {
            frames[..depth].iter().rev().fold(None, |caller, frame| Some(self.add(caller, frame, new)))
        } else {
            None
        };
        let over = || StackFrame { function: TOO_MANY.to_owned(), ..StackFrame::default() };
        let number = number.unwrap_or_else(|| self.add(None, &over(), new));
        if has_room {
            self.known.insert(address, (Arc::clone(frames), number));
        }
        number
    }

    fn add(&mut self, caller: Option<u32>, frame: &StackFrame, new: &mut LaunchStacks) -> u32 {
        let [function, file] = [&frame.function, &frame.file].map(|text| fitting(text, MAX_STACK_TEXT_BYTES));
        let frame = StackFrame { function, file, line: frame.line };
        let next = number(self.frames.len());
        let frame = *self.frames.entry(frame).or_insert_with_key(|frame| {
            new.frames.push(frame.clone());
            next
        });
        let next = number(self.stacks.len());
        *self.stacks.entry((caller.map_or(0, |caller| caller + 1), frame)).or_insert_with_key(|stack| {
            new.stacks.push(*stack);
            next
        })
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("limits are below 2^32")
}

/// Call stacks of a file's launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownStacks {
    frames: BTreeMap<u32, StackFrame>,
    stacks: BTreeMap<u32, (u32, u32)>,
    launches: BTreeMap<u32, u32>,
}

impl KnownStacks {
    /// Adds a section. A later entry replaces an earlier one with the same number.
    pub fn add(&mut self, part: LaunchStacks) {
        self.frames.extend((part.first_frame..).zip(part.frames));
        self.stacks.extend((part.first_stack..).zip(part.stacks));
        self.launches.extend(part.launches);
    }

    /// Returns the number of a launch's stack. Launches with equal stacks have one number.
    pub fn number_of(&self, launch: u32) -> Option<u32> {
        self.launches.get(&launch).copied()
    }

    /// Returns a launch's stack, innermost frame first, up to a frame whose section is missing.
    pub fn of(&self, launch: u32) -> impl Iterator<Item = &StackFrame> {
        let stack = self.number_of(launch);
        let callers = std::iter::successors(stack, |stack| self.stacks.get(stack)?.0.checked_sub(1));
        callers.map_while(|stack| self.frames.get(&self.stacks.get(&stack)?.1)).take(MAX_STACK_DEPTH)
    }

    /// Returns all function and file names.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.frames.values_mut().flat_map(|frame| [&mut frame.function, &mut frame.file])
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    fn frame(function: &str, file: &str, line: u32) -> StackFrame {
        StackFrame { function: function.into(), file: file.into(), line }
    }

    fn read(sections: &[Vec<u8>]) -> KnownStacks {
        let mut known = KnownStacks::default();
        for section in sections {
            known.add(LaunchStacks::decode(&section[SECTION_HEADER_BYTES..], 0).unwrap());
        }
        known
    }

    #[test]
    fn stacks_share_their_callers_and_the_bytes_stay() {
        let (main, f, g) = (frame("main", "m", 9), frame("f", "a", 1), frame("g", "a", 2));
        let [in_f, in_g]: [Arc<[_]>; 2] =
            [[f.clone(), main.clone()].into(), [g.clone(), main.clone()].into()];
        let mut written = WrittenStacks::default();
        let mut sections = written.encode_sections(&[(0, Arc::clone(&in_f)), (300, Arc::clone(&in_f))]);
        let body = sections[0][SECTION_HEADER_BYTES..].to_vec();
        let frames = [0, 2, 4, b'm', b'a', b'i', b'n', 1, b'm', 9, 1, b'f', 1, b'a', 1];
        assert_eq!(body, [&frames[..], &[0, 2, 0, 0, 1, 1, 2, 0, 1, 0xac, 2, 1]].concat());
        sections.extend(written.encode_sections(&[(301, in_g)]));
        let second = &sections[1][SECTION_HEADER_BYTES..];
        assert_eq!(*second, [2, 1, 1, b'g', 1, b'a', 2, 2, 1, 1, 2, 1, 0xad, 2, 2]);
        let known = read(&sections);
        let of = |known: &KnownStacks, launch| known.of(launch).cloned().collect::<Vec<_>>();
        assert_eq!([0, 300].map(|launch| of(&known, launch)), [[f.clone(), main.clone()], [f, main.clone()]]);
        assert_eq!((of(&known, 301), of(&known, 1)), (vec![g.clone(), main], Vec::new()));
        // Without the first section the caller's frame is missing.
        assert_eq!(of(&read(&sections[1..]), 301), [g]);
        for length in 0..body.len() {
            assert!(LaunchStacks::decode(&body[..length], 9).is_err(), "length {length}");
        }
        assert!(LaunchStacks::decode(&[&body[..], &[0]].concat(), 0).is_err(), "a byte follows");
    }

    #[test]
    fn stacks_over_the_limits_say_so() {
        let mut written = WrittenStacks::default();
        let deep: Arc<[_]> = (0..40).map(|line| frame(&"é".repeat(MAX_STACK_TEXT_BYTES), "", line)).collect();
        let mut launches = vec![(0, deep)];
        let one = |line: u32| -> Arc<[StackFrame]> { [frame("f", "a", line)].into() };
        launches.extend((1..=MAX_STACK_FRAMES as u32).map(|line| (line, one(line))));
        let known = read(&written.encode_sections(&launches));
        let first: Vec<_> = known.of(0).collect();
        assert_eq!((first.len(), first[31].line), (MAX_STACK_DEPTH, 31));
        assert!(first[0].function.len() <= MAX_STACK_TEXT_BYTES && first[0].function.ends_with("é…"));
        let last = MAX_STACK_FRAMES as u32 - 1;
        assert_eq!(known.of(last).map(ToString::to_string).collect::<Vec<_>>(), [TOO_MANY]);
        assert_eq!(known.of(9).map(ToString::to_string).collect::<Vec<_>>(), ["a:9 in f"]);
        let bad = |part: LaunchStacks| {
            LaunchStacks::decode(&part.encode_section()[SECTION_HEADER_BYTES..], 7).unwrap_err().to_string()
        };
        let none = LaunchStacks::default;
        for (part, said) in [
            (LaunchStacks { first_frame: u32::MAX, ..none() }, "over the limits"),
            (LaunchStacks { frames: vec![frame(&"x".repeat(1025), "", 0)], ..none() }, "1025 bytes"),
            (LaunchStacks { stacks: vec![(0, 0), (2, 0)], ..none() }, "stack 1 is called by stack 1"),
        ] {
            let message = bad(part);
            assert!(message.contains(said), "{message}");
        }
    }
}
