//! Text for figures: names of locations and warps, numbers, and sentences that summarize a trace.

mod accesses;
mod causes;
mod hangs;
mod schedule;
mod sentences;
mod set;
mod times;
mod values;
mod waits;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use warptrace_decoder::TraceFile;
/// Returns a number with separators: `1,234,567`.
pub use warptrace_decoder::grouped as count;
use warptrace_format::file::{LaunchInfo, LocationInfo, StackFrame};

pub use self::accesses::{
    access_doubt, access_finding, access_lacks, access_place, accesses_of, buffer, buffer_name, heat_bars,
    outside_finding, per_request, site_name, touched_part, unwritten, unwritten_lack, used_part,
};
pub use self::causes::{apart, cause_of};
pub use self::hangs::hang;
pub use self::schedule::{findings, nanoseconds, schedule, tail};
pub use self::sentences::{
    DominantWarp, causing, changed_place, changes, differences, early_end, farthest, finding, greatest,
    groups, holds, hottest, losses, missing, other_event, ratios, roles, signed, work,
};
pub use self::set::{outlier_file, set_losses};
pub use self::times::{latest, time};
pub use self::values::value_finding;
pub use self::waits::{barrier, copies};
use crate::counts::share;
use crate::figures::Point;

const NAME_WIDTH: usize = 24;
const SAID_WIDTH: usize = 48;

const FILE_WIDTH: usize = 120;

/// Display names of locations.
#[derive(Debug)]
pub struct Names {
    points: BTreeMap<u16, Named>,
    /// Files that are shown as their last component, because it is unique.
    short: BTreeMap<String, String>,
    width: usize,
}

#[derive(Debug)]
struct Named {
    name: String,
    file: String,
    line: u32,
    /// Call of the inlined function that the location is in, as in [`Names::called_at`].
    called_at: String,
}

impl Names {
    /// Reads the location table of a trace.
    pub fn new(trace: &TraceFile) -> Self {
        Self::from_locations(&trace.metadata().locations)
    }

    /// Creates the names of these locations.
    pub fn from_locations<'a>(locations: impl IntoIterator<Item = &'a LocationInfo>) -> Self {
        let mut by_last: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut points = BTreeMap::new();
        for info in locations {
            let (name, file) = (info.name.clone(), info.file.clone());
            let last =
                Path::new(&file).file_name().map_or_else(String::new, |last| last.display().to_string());
            let files = by_last.entry(last).or_default();
            if !files.contains(&file) {
                files.push(file.clone());
            }
            let called_at = call_site(info);
            points.insert(info.id, Named { name, file, line: info.line, called_at });
        }
        let unique = by_last.into_iter().filter(|(_, files)| files.len() == 1);
        let short = unique.map(|(last, mut files)| (files.remove(0), last)).collect();
        Self { points, short, width: NAME_WIDTH }
    }

    /// Sets the width limit of names in a table, in characters.
    #[must_use]
    pub fn with_width(self, width: usize) -> Self {
        Self { width, ..self }
    }

    /// Returns the name of a location for a table.
    pub fn name(&self, id: u16) -> String {
        cut(&self.said(id), self.width).into_owned()
    }

    /// Returns the name of a location for a sentence.
    pub fn said(&self, id: u16) -> String {
        match self.points.get(&id) {
            Some(named) if !named.name.is_empty() => cut(&named.name, SAID_WIDTH).into_owned(),
            _ if id == Point::BEGIN => "(begin)".to_owned(),
            _ => format!("location {id}"),
        }
    }

    /// Returns file and line, `-` if they are unknown. Of a long path, returns the end.
    pub fn line(&self, file: &str, line: u32) -> String {
        let short = self.short.get(file).map_or(file, String::as_str);
        match (&*end(short, FILE_WIDTH), line) {
            ("", _) => "-".to_owned(),
            (file, 0) => file.to_owned(),
            (file, line) => format!("{file}:{line}"),
        }
    }

    /// Returns name, file, line and call of a location: `find: loop 3 (a.cu:146, inlined at :231)`.
    pub fn full(&self, id: u16) -> String {
        let name = self.said(id);
        match (self.line_at(id).as_str(), self.called_at(id)) {
            ("-", _) => name,
            (line, "") => format!("{name} ({line})"),
            (line, call) => format!("{name} ({line}, {call})"),
        }
    }

    /// Returns where the function of a location was called, if the compiler inlined it: `inlined at :231`, or
    /// with the file if it is another one. Otherwise empty.
    pub fn called_at(&self, id: u16) -> &str {
        self.points.get(&id).map_or("", |named| &named.called_at)
    }

    /// Returns the names of several locations for one column of a table.
    pub fn names(&self, ids: &[u16]) -> String {
        let names: Vec<String> = ids.iter().map(|&id| self.name(id)).collect();
        cut(&names.join(", "), self.width).into_owned()
    }

    /// Returns file and line of a location.
    pub fn line_of(&self, point: &Point) -> String {
        self.line(&point.file, point.line)
    }

    /// Returns the full path and the line of a location, as a sort key; `None` if the location is unknown.
    pub fn place(&self, id: u16) -> Option<(&str, u32)> {
        self.points.get(&id).map(|named| (named.file.as_str(), named.line))
    }

    /// Returns file and line of the location with this id.
    pub fn line_at(&self, id: u16) -> String {
        self.points.get(&id).map_or_else(|| "-".to_owned(), |named| self.line(&named.file, named.line))
    }
}

/// Returns the innermost call in a description: `...; find inlined at a.cu:231; ...`.
fn call_site(info: &LocationInfo) -> String {
    const AT: &str = " inlined at ";
    let Some((_, rest)) = info.description.split_once(AT) else { return String::new() };
    let place = rest.split(';').next().unwrap_or_default();
    match place.rsplit_once(':') {
        Some((file, line)) if file == info.file => format!("inlined at :{line}"),
        _ => format!("inlined at {}", end(place, SAID_WIDTH)),
    }
}

const LABEL_WIDTH: usize = 60;

/// Returns the first `width` characters. The last one is an ellipsis if the text is longer.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    match text.char_indices().nth(width) {
        None => text.into(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn end(text: &str, width: usize) -> Cow<'_, str> {
    match text.char_indices().rev().nth(width) {
        None => text.into(),
        Some(_) => {
            let (at, _) = text.char_indices().rev().nth(width - 2).unwrap_or_default();
            format!("…{}", &text[at..]).into()
        }
    }
}

/// Returns a rounded number for a sentence: `1,234`, `31 M`, `1.2 G`.
pub fn rough(number: u64) -> String {
    let unit = [(1e12, "T"), (1e9, "G"), (1e6, "M")].into_iter().find(|(unit, _)| number as f64 >= *unit);
    match unit.map(|(unit, name)| (number as f64 / unit, name)) {
        None => count(number),
        Some((few, name)) if few < 9.95 => format!("{few:.1} {name}"),
        Some((many, name)) => format!("{} {name}", count(many.round() as u64)),
    }
}

/// Returns a percentage: `41.2%`.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * share(part, whole))
}

/// Returns a rounded percentage for a sentence: `41%`, or `0.4%`.
pub fn about(part: u64, whole: u64) -> String {
    match 100.0 * share(part, whole) {
        0.0 => "0%".to_owned(),
        percent if percent < 0.1 => "under 0.1%".to_owned(),
        percent if percent < 9.95 => format!("{percent:.1}%"),
        percent if percent > 99.0 && part < whole => format!("{:.1}%", (percent - 0.05).min(99.9)),
        percent => format!("{percent:.0}%"),
    }
}

/// Returns a rounded ratio: `3.2`, or `1,234`.
pub fn ratio(number: f64) -> String {
    if number < 99.95 { format!("{number:.1}") } else { count(number.round() as u64) }
}

/// Returns a number with a noun: `1 warp`, `2 warps`.
pub fn many(number: u64, word: &str) -> String {
    format!("{} {word}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Returns a bar for each number, scaled to the greatest one, and a dot for 0.
pub fn bars(numbers: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = numbers.iter().copied().max().unwrap_or(0);
    let bar = |&number: &u64| match number {
        0 => '·',
        number => BARS[((7.0 * share(number, most)).round() as usize).min(7)],
    };
    numbers.iter().map(bar).collect()
}

/// Returns bars for the visits by 1 to 4, 5 to 8 ... 29 to 32 lanes.
pub fn lane_bars(active: &[u64]) -> String {
    let sum = |lanes: &[u64]| lanes.iter().fold(0_u64, |sum, &visits| sum.saturating_add(visits));
    bars(&active.get(1..).unwrap_or(&[]).chunks(4).map(sum).collect::<Vec<_>>())
}

/// Returns `launch 0 block 3 warp 1`, as in the options of `decode`, with the launch's label.
pub fn warp(trace: &TraceFile, launch: u32, warp: u32) -> String {
    let (found, launch_name) = (trace.launch(launch), self::launch(trace, launch));
    let Some((info, id)) = found.and_then(|info| Some((info, info.stream_id(warp)?))) else {
        return format!("{launch_name} warp {warp}");
    };
    format!("{launch_name} block {} warp {}", block(info, id.block), id.warp_in_block)
}

/// Returns the number of a launch with its label or the line that made it: `launch 0 (forward)`.
pub fn launch(trace: &TraceFile, launch: u32) -> String {
    let site = || trace.launch_site(launch).map(StackFrame::short);
    match trace.label(launch).map(str::to_owned).or_else(site) {
        Some(name) => format!("launch {launch} ({})", cut(&name, LABEL_WIDTH)),
        None => format!("launch {launch}"),
    }
}

/// Returns the coordinates of a block, in as many dimensions as its grid has.
pub fn block(info: &LaunchInfo, block: [u32; 3]) -> String {
    match (info.grid(), block) {
        ([_, 1, 1], [x, ..]) => x.to_string(),
        ([_, _, 1], [x, y, _]) => format!("{x},{y}"),
        (_, [x, y, z]) => format!("{x},{y},{z}"),
    }
}

/// Returns the coordinates of a block with a linear index, as [`block`] does.
pub fn block_at(trace: &TraceFile, launch: u32, index: u32) -> String {
    let found = trace.launch(launch).and_then(|info| {
        let id = info.stream_id(index.checked_mul(info.warps_per_block())?)?;
        Some(block(info, id.block))
    });
    found.unwrap_or_else(|| index.to_string())
}

/// Returns a message that a launch does not have a block, with the valid ones: `0 to 63`, or `0,0 to 7,7`.
pub fn no_block(launch: u32, grid: [u32; 3], block: [u32; 3]) -> String {
    let axes = (0..3).rfind(|&axis| grid[axis] > 1 || block[axis] > 0).map_or(1, |axis| axis + 1);
    let shown = |block: [u32; 3]| block[..axes].iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let last = grid.map(|blocks| blocks.saturating_sub(1));
    let [block, first, last] = [block, [0; 3], last].map(shown);
    format!("launch {launch} has no block {block}: its blocks are {first} to {last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_said_as_people_say_them() {
        let said = [(0, 5), (1, 5_000), (1, 300), (41, 100), (9_999, 10_000), (5, 5), (0, 0)];
        let said = said.map(|(part, whole)| about(part, whole));
        assert_eq!(said, ["0%", "under 0.1%", "0.3%", "41%", "99.9%", "100%", "0%"]);
    }

    #[test]
    fn thousands_have_commas() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        let said = [999_999, 1_000_000, 9_949_999, 31_250_208, 67_187_936_000].map(rough);
        assert_eq!(said, ["999,999", "1.0 M", "9.9 M", "31 M", "67 G"]);
    }

    #[test]
    fn bars_show_what_is_there() {
        assert_eq!(bars(&[0, 1, 500, 1000]), "·▁▅█");
        let mut active = vec![0; 33];
        (active[1], active[4], active[32]) = (1, 1, 2);
        assert_eq!(lane_bars(&active), "█······█");
    }

    #[test]
    fn blocks_are_named_as_arguments_name_them() {
        let said = |grid, block| no_block(2, grid, block);
        assert_eq!(said([64, 1, 1], [5000, 0, 0]), "launch 2 has no block 5000: its blocks are 0 to 63");
        assert_eq!(said([8, 8, 1], [8, 0, 0]), "launch 2 has no block 8,0: its blocks are 0,0 to 7,7");
        assert_eq!(said([8, 1, 1], [0, 0, 1]), "launch 2 has no block 0,0,1: its blocks are 0,0,0 to 7,0,0");
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(cut("a_name_of_more_than_24_characters", 24), "a_name_of_more_than_24_…");
    }
}
