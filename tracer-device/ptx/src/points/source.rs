//! Source positions of instructions, from `.file`, `.loc` and the names in `.debug_str`.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use warptrace_abi::marker::ValueMarker;

use super::named::name_of;
use crate::{Body, Directive, Function, ItemKind, Module, Position, StatementKind};

/// Maximum number of calls in a chain of inlined functions.
const MAX_CALLS: usize = 64;

/// A position in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// The file as the compiler wrote it; empty if the PTX does not name it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

/// A call that the compiler inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallSite {
    /// Mangled name of the called function; empty if the PTX does not name it.
    pub function: Arc<str>,
    /// Position of the call.
    pub place: SourcePlace,
}

/// Source positions of a PTX text from another origin than `.loc`. Maps a line (from 1) to the position of
/// its instructions and to the inlined calls that lead there, innermost first.
pub type LineTable = HashMap<usize, (SourcePlace, Arc<[CallSite]>)>;

/// Files and function names of a module that `.loc` refers to.
pub(super) struct Sources<'a> {
    text: &'a str,
    table: Option<&'a LineTable>,
    files: HashMap<u32, Arc<str>>,
    strings: Vec<u8>,
    /// Offsets of the labels in `strings`.
    labels: HashMap<&'a str, usize>,
    empty: Arc<str>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(module: &Module<'a>, table: Option<&'a LineTable>) -> Self {
        let mut sources = Self {
            text: module.text,
            table,
            files: HashMap::new(),
            strings: Vec::new(),
            labels: HashMap::new(),
            empty: Arc::from(""),
        };
        for item in &module.items {
            match item.kind {
                ItemKind::File { index, name } => {
                    sources.files.entry(index).or_insert_with(|| unescape(name).into());
                }
                ItemKind::Section { name: ".debug_str" } => sources.read_strings(item.span.text(module.text)),
                _ => {}
            }
        }
        sources
    }

    /// Reads `.section .debug_str { label: .b8 95,90,0 }`.
    fn read_strings(&mut self, section: &'a str) {
        let Some((_, content)) = section.split_once('{') else { return };
        let mut width = 1;
        for line in content.lines() {
            let line = line.split("//").next().unwrap_or_default();
            for word in line.split(|char: char| char.is_whitespace() || ",;{}".contains(char)) {
                if let Some(label) = word.strip_suffix(':') {
                    self.labels.entry(label).or_insert(self.strings.len());
                } else if let Some(bits) = word.strip_prefix(".b") {
                    width = match bits {
                        "16" => 2,
                        "32" => 4,
                        "64" => 8,
                        _ => 1,
                    };
                } else if let Some(number) = parse_number(word) {
                    self.strings.extend_from_slice(&number.to_le_bytes()[..width]);
                }
            }
        }
    }

    fn name(&self, label: &str) -> Arc<str> {
        let (label, offset) = label.split_once('+').unwrap_or((label, "0"));
        let start = self.labels.get(label.trim()).zip(parse_number(offset.trim()));
        let start = start.and_then(|(start, offset)| start.checked_add(usize::try_from(offset).ok()?));
        let Some(bytes) = start.and_then(|start| self.strings.get(start..)) else {
            return Arc::clone(&self.empty);
        };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into()
    }

    fn place(&self, (file, line, column): (u32, u32, u32)) -> SourcePlace {
        let file = Arc::clone(self.files.get(&file).unwrap_or(&self.empty));
        SourcePlace { file, line, column }
    }

    pub(super) fn lines(&self, function: &Function<'a>, body: &Body<'a>) -> Lines {
        let mut lines =
            Lines { of_function: None, places: Vec::new(), place_of: Vec::new(), none: Arc::from([]) };
        if let Some(table) = self.table {
            let line = Position::new(self.text, function.span.start).line;
            lines.of_function = table.get(&line).cloned();
            let starts: Vec<usize> = body.statements.iter().map(|statement| statement.span.start).collect();
            for (statement, at) in body.statements.iter().zip(positions(self.text, &starts)) {
                let known = statement.instruction().and_then(|_| table.get(&at.line));
                lines.place_of.push(known.map(|_| lines.places.len()));
                lines.places.extend(known.cloned());
            }
            return lines;
        }
        // The last `.loc` of each position. It gives the outer calls of a function inlined at that position.
        let mut latest: HashMap<(u32, u32, u32), usize> = HashMap::new();
        let mut names: HashMap<&str, Arc<str>> = HashMap::new();
        let mut current = None;
        for statement in &body.statements {
            if let StatementKind::Directive(Directive::Loc(loc)) = statement.kind {
                let calls = match loc.inlined_at {
                    None => Arc::clone(&lines.none),
                    Some(at) => {
                        let name = loc.function_name.unwrap_or_default();
                        let function = names.entry(name).or_insert_with(|| self.name(name));
                        let call = CallSite { function: Arc::clone(function), place: self.place(at) };
                        let outer = latest.get(&at).map_or(&lines.none, |index| &lines.places[*index].1);
                        std::iter::once(call).chain(outer.iter().cloned()).take(MAX_CALLS).collect()
                    }
                };
                let at = (loc.file, loc.line, loc.column);
                latest.insert(at, lines.places.len());
                current = (loc.line != 0).then_some(lines.places.len());
                lines.places.push((self.place(at), calls));
            }
            let is_value = statement.comment().and_then(ValueMarker::parse).is_some();
            let has_line = statement.instruction().is_some() || is_value || name_of(statement).is_some();
            lines.place_of.push(current.filter(|_| has_line));
        }
        lines
    }
}

pub(super) struct Lines {
    /// Position of the function, if a table has it.
    of_function: Option<(SourcePlace, Arc<[CallSite]>)>,
    places: Vec<(SourcePlace, Arc<[CallSite]>)>,
    /// Index in `places` for each statement with a line that is an instruction or names a point or a value.
    place_of: Vec<Option<usize>>,
    none: Arc<[CallSite]>,
}

impl Lines {
    /// Returns the position of the function; `None` if only its instructions have positions.
    pub(super) fn of_function(&self) -> Option<(Option<SourcePlace>, Arc<[CallSite]>)> {
        self.of_function.as_ref().map(|(place, calls)| (Some(place.clone()), Arc::clone(calls)))
    }

    /// Returns the position of a branch: that of its predicate, since compilers lose the lines of branches more
    /// often than of comparisons. If an inlined function of another file computes the predicate for a branch
    /// outside of it, the position of the call. Takes the statements of predicate and branch.
    pub(super) fn of_branch(&self, statements: [usize; 2]) -> Option<(Option<SourcePlace>, Arc<[CallSite]>)> {
        let [predicate, branch] = statements.map(|it| Some(&self.places[(*self.place_of.get(it)?)?]));
        let (place, calls) = predicate?;
        match branch.and_then(|(_, outer)| calls.len().checked_sub(outer.len() + 1)) {
            Some(inside) if calls[inside].place.file != place.file => {
                Some((Some(calls[inside].place.clone()), calls[inside + 1..].into()))
            }
            _ => Some((Some(place.clone()), Arc::clone(calls))),
        }
    }

    /// Returns the first position among the statements, and the inlined calls that lead there.
    pub(super) fn first_of(&self, mut statements: Range<usize>) -> (Option<SourcePlace>, Arc<[CallSite]>) {
        match statements.find_map(|statement| *self.place_of.get(statement)?) {
            None => (None, Arc::clone(&self.none)),
            Some(index) => {
                let (place, calls) = &self.places[index];
                (Some(place.clone()), Arc::clone(calls))
            }
        }
    }
}

/// Returns the position in the user's code, and its number of `calls` inside the function that has it. For
/// inlined functions of CUDA's headers, this is the position of the first call outside of them.
pub fn users_place(place: SourcePlace, calls: &[CallSite]) -> (SourcePlace, usize) {
    let is_cudas = |SourcePlace { file, .. }: &SourcePlace| {
        // The toolkit's headers are in `targets/x86_64-linux`, `targets/sbsa-linux` or `targets/aarch64-linux`.
        let is_toolkits = file.contains("/targets/") && file.contains("-linux/include/");
        is_toolkits || file.starts_with("/usr/local/cuda") || file.contains("/site-packages/nvidia/")
    };
    if !is_cudas(&place) {
        return (place, 0);
    }
    let own = calls.iter().position(|call| !is_cudas(&call.place));
    own.map_or((place, 0), |at| (calls[at].place.clone(), at + 1))
}

/// Returns the positions of offsets, in the order of the offsets, in one pass over the text.
pub(super) fn positions(text: &str, offsets: &[usize]) -> Vec<Position> {
    let mut order: Vec<usize> = (0..offsets.len()).collect();
    order.sort_unstable_by_key(|index| offsets[*index]);
    let mut positions = vec![Position { line: 1, column: 1 }; offsets.len()];
    let (mut at, mut now) = (0, Position { line: 1, column: 1 });
    for index in order {
        let between = text.get(at..offsets[index]).unwrap_or_default();
        match between.rfind('\n') {
            None => now.column += between.chars().count(),
            Some(last) => {
                now.line += between.bytes().filter(|byte| *byte == b'\n').count();
                now.column = 1 + between[last + 1..].chars().count();
            }
        }
        at = offsets[index];
        positions[index] = now;
    }
    positions
}

fn parse_number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Resolves a string's escapes: `\\`, `\"` and octal bytes.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let digits = rest.iter().take(3).take_while(|digit| (b'0'..b'8').contains(*digit)).count();
        if digits == 3 {
            let code = rest[..3].iter().fold(0_u32, |code, digit| code * 8 + u32::from(digit - b'0'));
            bytes.push(u8::try_from(code).unwrap_or(b'?'));
            rest = &rest[3..];
        } else if let Some((escaped, behind)) = rest.split_first() {
            bytes.push(*escaped);
            rest = behind;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_file_names_are_resolved() {
        assert_eq!(unescape(r"C:\\src\\a.cu"), r"C:\src\a.cu");
        assert_eq!(unescape(r#"a\"b\303\244.cu"#), "a\"bä.cu");
        assert_eq!(unescape(r"odd\"), "odd");
    }

    #[test]
    fn positions_are_those_of_one_offset_at_a_time() {
        let text = "a\nβγ x\n\n  yz";
        let offsets = [7, 0, text.len(), 2, 11, 7];
        assert_eq!(positions(text, &offsets), offsets.map(|offset| Position::new(text, offset)));
    }
}
