//! Reads the PTX that `ptxas` embeds in cubins, in section `.nv_debug_ptx_txt`, if line info is on
//! (`-lineinfo`, or `.loc` in the PTX).
//!
//! Zero bytes separate the lines. Removed comments and `.loc` leave empty lines, so lines keep their numbers.
//! Two line tables ([`super::lines`]) map each instruction of machine code to a line of the PTX and to a line
//! of the source.
//!
//! Between two empty lines the original had no `.loc`, so all lines of such a run share one source line: that
//! of any instruction of the run with a known line. An instruction without a source line has no row in the
//! table, and seems to have the line of the instruction before it. So a line counts as known only if its row
//! begins at an instruction of the same run. Runs without a known line are left out. Columns are lost.

use std::collections::HashMap;
use std::sync::Arc;

use warptrace_ptx::points::{CallSite, LineTable, SourcePlace};
use warptrace_ptx::{LinkError, link};

use super::lines::{AddressTable, CodePlace};
use super::{Assembled, Cubin};

/// Section of the PTX. A linked cubin has one for each part with PTX, with a number appended to the name.
const TEXT: &str = ".nv_debug_ptx_txt";
const SOURCE_LINES: &str = ".debug_line";
const PTX_LINES: &str = ".nv_debug_line_sass";
const STRINGS: &str = ".debug_str";
const MAX_TEXT_BYTES: usize = 1 << 28;
/// Reasons why a cubin has no readable PTX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoText {
    #[error("there is none")]
    Missing,
    #[error("the PTX in its machine code cannot be read: {0}")]
    Damaged(&'static str),
    #[error("the PTX of the parts that its machine code was linked of cannot be put together: {0}")]
    Parts(#[from] LinkError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Embedded {
    pub(crate) text: String,
    /// Source places, by line of the text.
    pub(crate) lines: LineTable,
    pub(crate) assembled: Assembled,
}

/// Reads the PTX of a cubin. Links the texts if the cubin has several.
pub(crate) fn ptx(cubin: &[u8]) -> Result<Embedded, NoText> {
    let cubin = Cubin::parse(cubin).ok_or(NoText::Missing)?;
    let (mut names, mut texts) = (Vec::new(), Vec::new());
    for (name, bytes) in cubin.sections_of(TEXT).filter(|(_, bytes)| !bytes.is_empty()) {
        if bytes.len() > MAX_TEXT_BYTES {
            return Err(NoText::Damaged("it is longer than any that is read"));
        }
        let text =
            std::str::from_utf8(bytes).map_err(|_| NoText::Damaged("it is no text"))?.replace('\0', "\n");
        if text.lines().filter(|line| line.trim_start().starts_with(".version")).count() != 1 {
            return Err(NoText::Damaged("it has no .version, or several"));
        }
        names.push(name);
        texts.push(text);
    }
    let assembled = Assembled::new(&cubin);
    let tables = tables(&names, &texts, &cubin);
    let (text, lines) = match (texts.pop(), &*tables) {
        (None, _) => return Err(NoText::Missing),
        (Some(text), [table]) => (text, table.clone()),
        (Some(last), _) => {
            texts.push(last);
            let linked = link(&texts.iter().map(String::as_str).collect::<Vec<_>>())?;
            let mut lines = LineTable::new();
            for (part, table) in tables.iter().enumerate() {
                let moved =
                    |(line, place): (&usize, &_)| Some((linked.line(part, *line)?, Clone::clone(place)));
                lines.extend(table.iter().filter_map(moved));
            }
            (linked.text, lines)
        }
    };
    Ok(Embedded { text, lines, assembled })
}

/// Returns the source places of the lines of each text. `names` has the texts' sections.
fn tables(names: &[&str], texts: &[String], cubin: &Cubin<'_>) -> Vec<LineTable> {
    let (of_source, places) = AddressTable::read(cubin, SOURCE_LINES);
    let (of_ptx, _) = AddressTable::read(cubin, PTX_LINES);
    let mut files = Names { strings: cubin.section(STRINGS).unwrap_or_default(), known: HashMap::new() };
    let mut made = HashMap::new();
    let mut table = |(name, text): (&&str, &String)| {
        // For each line of the PTX, from 0: the number of its run, which an empty line begins.
        let runs: Vec<usize> = text
            .lines()
            .scan(0, |run, line| {
                *run += usize::from(line.trim().is_empty());
                Some(*run)
            })
            .collect();
        let run_of = |line: u32| runs.get((line as usize).checked_sub(1)?).copied();
        // By run: the source row of the first instruction with a known line.
        let mut known = HashMap::new();
        // Only a linked cubin's table names the text to which a line belongs.
        for (address, line) in of_ptx.lines(Some(*name).filter(|_| names.len() > 1)) {
            let Some((begins, _, row)) = of_source.at(address) else { continue };
            let is_own = begins == address
                || of_ptx.at(begins).is_some_and(|(_, first, _)| run_of(first) == run_of(line));
            if let Some(run) = run_of(line).filter(|_| is_own) {
                known.entry(run).or_insert(row);
            }
        }
        let mut table = LineTable::new();
        for (at, run) in runs.iter().enumerate() {
            if let Some(row) = known.get(run) {
                let place = made.entry(*row).or_insert_with(|| files.place(&places[*row], &of_source));
                table.insert(at + 1, place.clone());
            }
        }
        table
    };
    names.iter().zip(texts).map(&mut table).collect()
}

/// Caches file names, and looks up names of inlined functions.
struct Names<'a> {
    strings: &'a [u8],
    known: HashMap<(usize, u64), Arc<str>>,
}

impl Names<'_> {
    fn place(&mut self, place: &CodePlace, table: &AddressTable) -> (SourcePlace, Arc<[CallSite]>) {
        let mut at = |file: u64, line: u32| {
            let name = || {
                let names = table.files.get(place.unit);
                let name = names.and_then(|names| names.get(usize::try_from(file).ok()?));
                Arc::from(name.map_or("", String::as_str))
            };
            let file = Arc::clone(self.known.entry((place.unit, file)).or_insert_with(name));
            SourcePlace { file, line, column: 0 }
        };
        let calls = place.calls.iter().map(|(function, (file, line))| {
            let from = usize::try_from(*function).ok().and_then(|from| self.strings.get(from..));
            let name = from.and_then(|from| from.split(|byte| *byte == 0).next()).unwrap_or_default();
            CallSite { function: String::from_utf8_lossy(name).into(), place: at(*file, *line) }
        });
        let calls = calls.collect();
        (at(place.file, place.line), calls)
    }
}
