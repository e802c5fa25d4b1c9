//! Source lines with their heat.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use warptrace_analysis::words::{self, count, percent, ratio};
use warptrace_analysis::{Analysis, LineFigures, NoSource, OrderItems, SourceCode, share, source_code};
use warptrace_decoder::TraceFile;
use warptrace_format::file::LocationInfo;

use crate::functions::lines_of;
use crate::guide::{Guide, by_heat};
use crate::limits::Limits;
use crate::page::cut;
use crate::svg::{Histogram, lane_histogram};

/// Lines of context before and after each trace point.
const CONTEXT: usize = 5;
/// Bytes of source in memory after which no further files are read.
const MAX_SOURCE_BYTES: usize = 32 << 20;
/// Maximum number of targets, and of locations with targets, that are named for a line.
const TARGETS: usize = 4;

/// A source file, or the locations in a file that was not found.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Path in the trace; empty if the locations have none.
    pub(crate) path: String,
    pub(crate) is_found: bool,
    pub(crate) lack: String,
    /// Share of all idle slots that its lines caused.
    pub(crate) caused: String,
    pub(crate) rows: Vec<LineRow>,
}

#[derive(Debug)]
pub(crate) enum LineRow {
    /// Folded lines, preceded by their number in words. The list is empty if the lines are not on the page.
    Fold(String, Vec<Folded>),
    Line(Box<Line>),
}

#[derive(Debug)]
pub(crate) struct Line {
    /// Line number; empty if it is not known.
    pub(crate) number: String,
    pub(crate) code: String,
    pub(crate) heat: Option<Heat>,
    /// Names of unvisited trace points on this line.
    pub(crate) unvisited: String,
}

#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) number: usize,
    pub(crate) code: String,
}

#[derive(Debug)]
pub(crate) struct LineTime {
    pub(crate) cycles: String,
    pub(crate) part_of_all: String,
    pub(crate) idle: String,
}

#[derive(Debug)]
pub(crate) struct Heat {
    pub(crate) rank: usize,
    /// Heat relative to the hottest line.
    pub(crate) heat: String,
    /// Idle slots at this line, relative to the line with the most.
    pub(crate) shows: String,
    /// Whether the line has no heat, has no idle slots and caused none.
    pub(crate) is_cold: bool,
    pub(crate) time: Option<LineTime>,
    pub(crate) names: String,
    pub(crate) descriptions: String,
    /// First of its locations that is a loop head.
    pub(crate) head: Option<u16>,
    pub(crate) kernels: String,
    pub(crate) caused: String,
    pub(crate) part_of_all: String,
    pub(crate) idle: String,
    pub(crate) part_of_slots: String,
    pub(crate) visits: String,
    pub(crate) warps: String,
    pub(crate) lanes: String,
    pub(crate) histogram: Histogram,
    pub(crate) splits: String,
    pub(crate) split_visits: String,
    pub(crate) went: String,
}

pub(crate) struct SourceSection {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) notes: Vec<String>,
}

/// Returns the heat of a line: its warp-cycles, or the idle slots that it caused if the trace has no times.
fn heat_of(line: &LineFigures) -> u64 {
    line.time.map_or(line.caused, |time| time.warp_cycles)
}

struct Lines<'a> {
    guide: &'a Guide<'a>,
    /// Most heat and most idle slots of a line.
    most: [u64; 2],
    /// Remaining lines of source that may be shown, and that may be folded.
    budget: [usize; 2],
}

pub(crate) type Files = BTreeMap<String, Result<SourceCode, NoSource>>;

pub(crate) fn read_files(
    trace: &TraceFile,
    analysis: &Analysis,
    folders: &[PathBuf],
    limits: Limits,
) -> Files {
    let (mut files, mut bytes) = (Files::new(), 0);
    for line in by_heat(analysis).into_iter().take(limits.lines) {
        if line.line > 0 && !line.file.is_empty() && !files.contains_key(&line.file) {
            let lines = if bytes < MAX_SOURCE_BYTES {
                source_code(trace, &line.file, folders)
            } else {
                Err(NoSource::Refused("the page has 32 MiB of others"))
            };
            bytes += lines.as_ref().map_or(0, SourceCode::bytes);
            files.insert(line.file.clone(), lines);
        }
    }
    files
}

pub(crate) fn source(guide: &Guide<'_>, sources: &Files) -> SourceSection {
    let (analysis, limits) = (guide.analysis, guide.limits);
    let order = by_heat(analysis);
    let most = |of: fn(&LineFigures) -> u64| order.iter().map(|line| of(line)).max().unwrap_or(0);
    let most = [most(heat_of), most(|line| line.counts.idle)];
    let mut lines = Lines { guide, most, budget: [limits.source_lines; 2] };
    let mut notes = Vec::new();
    if order.len() > limits.lines {
        notes.push(format!(
            "The {} hottest of {} lines are shown; warptrace lines --limit 0 prints all.",
            count(limits.lines as u64),
            count(order.len() as u64)
        ));
    }
    let mut by_file: BTreeMap<&str, Vec<(usize, &LineFigures)>> = BTreeMap::new();
    for (rank, line) in (1..).zip(order).take(limits.lines) {
        by_file.entry(&line.file).or_default().push((rank, line));
    }
    let caused = |lines: &[(usize, &LineFigures)]| -> u64 {
        lines.iter().fold(0, |sum, (_, line)| sum.saturating_add(line.caused))
    };
    let mut by_file: Vec<_> = by_file.into_iter().collect();
    by_file.order_by_key(|(_, lines)| Reverse(caused(lines)));
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for (file, mut of_file) in by_file {
        of_file.order_by_key(|(_, line)| line.line);
        let code = sources.get(file).map(Result::as_ref);
        let lack = code.and_then(Result::err).filter(|_| of_file.iter().any(|(_, line)| line.line > 0));
        missing.extend(lack.filter(|lack| **lack != NoSource::OfCuda).map(|lack| (file, *lack)));
        let caused = percent(caused(&of_file), analysis.counts.idle);
        let rows = match code {
            Some(Ok(code)) => lines.with_code(file, &of_file, code, &mut notes),
            _ => {
                of_file.order_by_key(|(rank, _)| *rank);
                lines.without_code(&of_file)
            }
        };
        let lack = lack.map_or_else(String::new, NoSource::to_string);
        files.push(SourceFile {
            path: cut(file, limits.text),
            is_found: matches!(code, Some(Ok(_))),
            lack,
            caused,
            rows,
        });
    }
    let whys: BTreeSet<String> = missing.iter().map(|(_, lack)| lack.to_string()).collect();
    for why in whys {
        let of_one: Vec<_> = missing.iter().filter(|(_, lack)| lack.to_string() == why).collect();
        let others = match of_one.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let (first, lack) = of_one[0];
        let first = cut(first, limits.text);
        notes.push(match lack {
            NoSource::NotFound => format!(
                "Source not found: {first}{others}. Run the command in the folder from which the kernel was compiled, or \
                 name one that has the file with --source FOLDER."
            ),
            _ => format!("Source {why}: {first}{others}."),
        });
    }
    SourceSection { files, notes }
}

impl Lines<'_> {
    fn without_code(&self, lines: &[(usize, &LineFigures)]) -> Vec<LineRow> {
        let row = |(rank, line): &(usize, &LineFigures)| {
            let number = if line.line == 0 { String::new() } else { line.line.to_string() };
            let heat = Some(self.heat(*rank, line));
            LineRow::Line(Box::new(Line { number, code: String::new(), heat, unvisited: String::new() }))
        };
        lines.iter().map(row).collect()
    }

    /// Returns the lines with their source and context, within the budget.
    fn with_code(
        &mut self,
        file: &str,
        lines: &[(usize, &LineFigures)],
        SourceCode { lines: code, is_compiled, .. }: &SourceCode,
        notes: &mut Vec<String>,
    ) -> Vec<LineRow> {
        let Guide { trace, analysis, names, limits, .. } = *self.guide;
        let points = || trace.metadata().locations.iter().filter(|info| info.file == file);
        let mut unvisited: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for info in points().filter(|info| analysis.location(info.id).is_none()) {
            unvisited.entry(info.line as usize).or_default().push(names.name(info.id));
        }
        let of_line: BTreeMap<usize, _> =
            lines.iter().map(|(rank, line)| (line.line as usize, (*rank, *line))).collect();
        let mut functions: BTreeMap<usize, &LocationInfo> = BTreeMap::new();
        points().for_each(|info| _ = functions.entry(info.line as usize).or_insert(info));
        let mut shown: BTreeSet<usize> = BTreeSet::new();
        for &number in of_line.keys().chain(unvisited.keys()).filter(|number| **number > 0) {
            let near = number.saturating_sub(CONTEXT).max(1)..=(number + CONTEXT).min(code.len());
            // The name of a location in an inlined function begins with that function's.
            let names = functions
                .get(&number)
                .map(|info| [info.name.split(": ").next().unwrap_or_default(), info.function.as_str()]);
            let function = names.into_iter().flatten().find_map(|name| lines_of(code, number, name));
            if shown.len() < self.budget[0] {
                shown.extend(near.chain(function.into_iter().flatten()));
            }
            // A line with figures is shown even if the budget is used up.
            if of_line.contains_key(&number) {
                shown.insert(number);
            }
        }
        self.budget[0] = self.budget[0].saturating_sub(shown.len());
        if *is_compiled == Some(false) {
            notes.push(format!(
                "{} has changed since the trace was recorded: figures may stand beside other lines than theirs.",
                cut(file, limits.text)
            ));
        } else if let Some(&last) = of_line.keys().next_back().filter(|last| **last > code.len()) {
            notes.push(format!(
                "{} has {} lines now, and a trace point at line {last}: it is not the source that was recorded.",
                cut(file, limits.text),
                code.len()
            ));
        }
        let indent = |number: &usize| {
            let text = code.get(number - 1)?;
            let indent = text.len() - text.trim_start().len();
            (indent < text.len()).then_some(indent)
        };
        // Common indentation carries no information and screens are narrow.
        let common = shown.iter().filter_map(indent).min().unwrap_or(0);
        let text = |number: usize| {
            let text = code.get(number - 1).map_or("(the file has no such line)", String::as_str);
            let is_blank = text.get(..common).is_some_and(|begin| begin.trim().is_empty());
            cut(if is_blank { &text[common..] } else { text.trim_start() }, limits.text)
        };
        // A trace may name any existing file. Without a matching hash of the source, folded lines have no text.
        let is_seen = *is_compiled == Some(true);
        let (mut rows, mut before) = (Vec::new(), 0);
        for number in shown {
            if number > before + 1 {
                rows.push(self.fold(before + 1..number, is_seen, &text));
            }
            before = number;
            let line = Line {
                number: number.to_string(),
                code: text(number),
                heat: of_line.get(&number).map(|(rank, line)| self.heat(*rank, line)),
                unvisited: unvisited
                    .get(&number)
                    .map_or_else(String::new, |names| cut(&names.join(", "), limits.text)),
            };
            rows.push(LineRow::Line(Box::new(line)));
        }
        if code.len() > before {
            rows.push(self.fold(before + 1..code.len() + 1, is_seen, &text));
        }
        rows
    }

    /// Folds lines within the budget. Omits their text if the source is not the compiled one.
    fn fold(&mut self, lines: Range<usize>, is_seen: bool, text: &impl Fn(usize) -> String) -> LineRow {
        let said = words::many(lines.len() as u64, "line");
        if !is_seen || lines.len() > self.budget[1] {
            return LineRow::Fold(said, Vec::new());
        }
        self.budget[1] -= lines.len();
        LineRow::Fold(said, lines.map(|number| Folded { number, code: text(number) }).collect())
    }

    fn heat(&self, rank: usize, line: &LineFigures) -> Heat {
        let Guide { trace, analysis, names, limits, .. } = *self.guide;
        let LineFigures { locations, counts, caused, warps, active, splits, .. } = line;
        let described = locations.iter().filter_map(|&id| trace.metadata().location(id));
        let descriptions: Vec<&str> = described.map(|info| info.description.as_str()).collect();
        let went: Vec<String> = locations.iter().take(TARGETS).filter_map(|&id| self.went(id)).collect();
        let is_head = |id: &&u16| analysis.location(**id).is_some_and(|found| found.trips.max() > 1);
        let time = line.time.zip(analysis.time).map(|(time, all)| LineTime {
            cycles: count(time.warp_cycles),
            part_of_all: percent(time.warp_cycles, all.warp_cycles),
            idle: count(time.idle_lane_cycles),
        });
        Heat {
            rank,
            time,
            heat: format!("{:.3}", share(heat_of(line), self.most[0])),
            shows: format!("{:.3}", share(counts.idle, self.most[1])),
            is_cold: heat_of(line) == 0 && *caused == 0 && counts.idle == 0,
            names: names.names(locations),
            descriptions: cut(&descriptions.join("; "), limits.text).replace('`', ""),
            head: locations.iter().find(is_head).copied(),
            kernels: self.guide.kernels(locations),
            caused: count(*caused),
            part_of_all: percent(*caused, analysis.counts.idle),
            idle: count(counts.idle),
            part_of_slots: percent(counts.idle, counts.slots),
            visits: count(counts.visits),
            warps: count(*warps),
            lanes: ratio(counts.mean_lanes()),
            histogram: lane_histogram(active),
            splits: percent(*splits, counts.visits),
            split_visits: count(*splits),
            went: went.join("; "),
        }
    }

    /// Returns the next locations of the lanes at a location; `None` if there is only one.
    fn went(&self, id: u16) -> Option<String> {
        let Guide { analysis, names, .. } = *self.guide;
        let mut edges = analysis.edges_from(id).to_vec();
        let all = edges.iter().fold(0_u64, |sum, edge| sum.saturating_add(edge.lanes));
        if edges.len() < 2 {
            return None;
        }
        edges.order_by_key(|edge| Reverse(edge.lanes));
        let more = if edges.len() > TARGETS { ", …" } else { "" };
        let name = |to: Option<u16>| to.map_or_else(|| "(end)".to_owned(), |to| names.name(to));
        let to = edges
            .iter()
            .take(TARGETS)
            .map(|edge| format!("{} {}", name(edge.to), words::about(edge.lanes, all)));
        Some(format!("{} → {}{more}", names.name(id), to.collect::<Vec<_>>().join(", ")))
    }
}
