//! Words and small pictures for figures.

use std::collections::BTreeMap;
use std::path::Path;

use warptrace_analysis::{Analysis, Point, share};
use warptrace_decoder::TraceFile;
use warptrace_format::file::LaunchInfo;

use crate::output::count;

/// Longest name that a table shows.
const NAME_WIDTH: usize = 24;

/// How locations are called in tables.
pub(super) struct Names {
    points: BTreeMap<u16, Named>,
    /// Files that are shown as their last part, because no other file has it.
    short: BTreeMap<String, String>,
}

struct Named {
    name: String,
    file: String,
    line: u32,
}

impl Names {
    pub(super) fn new(trace: &TraceFile) -> Self {
        let mut by_last: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut points = BTreeMap::new();
        for info in &trace.metadata().locations {
            let (name, file) = (plain(&info.name), plain(&info.file));
            let last =
                Path::new(&file).file_name().map_or_else(String::new, |last| last.display().to_string());
            let files = by_last.entry(last).or_default();
            if !files.contains(&file) {
                files.push(file.clone());
            }
            points.insert(info.id, Named { name, file, line: info.line });
        }
        let unique = by_last.into_iter().filter(|(_, files)| files.len() == 1);
        let short = unique.map(|(last, mut files)| (files.remove(0), last)).collect();
        Self { points, short }
    }

    /// The name of a location, at most as wide as a column.
    pub(super) fn name(&self, id: u16) -> String {
        match self.points.get(&id) {
            Some(named) if !named.name.is_empty() => cut(&named.name),
            _ => format!("location {id}"),
        }
    }

    /// File and line, `-` if they are not known.
    pub(super) fn line(&self, file: &str, line: u32) -> String {
        let file = plain(file);
        let short = self.short.get(&file).unwrap_or(&file);
        match (short.as_str(), line) {
            ("", _) => "-".to_owned(),
            (file, 0) => file.to_owned(),
            (file, line) => format!("{file}:{line}"),
        }
    }

    /// Name, file and line of a location.
    pub(super) fn full(&self, id: u16) -> String {
        let name = self.name(id);
        match self.points.get(&id).map(|named| self.line(&named.file, named.line)) {
            Some(line) if line != "-" => format!("{name} ({line})"),
            _ => name,
        }
    }

    /// The names of several locations in one column.
    pub(super) fn names(&self, ids: &[u16]) -> String {
        let names: Vec<String> = ids.iter().map(|&id| self.name(id)).collect();
        cut(&names.join(", "))
    }

    /// File and line of a location.
    pub(super) fn line_of(&self, point: &Point) -> String {
        self.line(&point.file, point.line)
    }
}

/// A text that cannot move the cursor or begin a line.
pub(super) fn plain(text: &str) -> String {
    if text.contains(char::is_control) { text.escape_debug().to_string() } else { text.to_owned() }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= NAME_WIDTH {
        return text.to_owned();
    }
    text.chars().take(NAME_WIDTH - 1).chain(['…']).collect()
}

/// `41.2%`.
pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * share(part, whole))
}

/// `41%`, or `0.4%`: as a sentence says it.
pub(super) fn about(part: u64, whole: u64) -> String {
    match 100.0 * share(part, whole) {
        0.0 => "0%".to_owned(),
        percent if percent < 0.1 => "under 0.1%".to_owned(),
        percent if percent < 9.95 => format!("{percent:.1}%"),
        percent if percent > 99.0 && part < whole => format!("{:.1}%", (percent - 0.05).min(99.9)),
        percent => format!("{percent:.0}%"),
    }
}

/// `3.2`, or `1,234`.
pub(super) fn ratio(number: f64) -> String {
    if number < 99.95 { format!("{number:.1}") } else { count(number.round() as u64) }
}

/// `1 warp`, `2 warps`.
pub(super) fn many(number: u64, word: &str) -> String {
    format!("{} {word}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A bar for each number, as high as the number is; a dot for 0.
pub(super) fn bars(numbers: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = numbers.iter().copied().max().unwrap_or(0);
    let bar = |&number: &u64| match number {
        0 => '·',
        number => BARS[((7.0 * share(number, most)).round() as usize).min(7)],
    };
    numbers.iter().map(bar).collect()
}

/// Visits by 1 to 4, 5 to 8 ... 29 to 32 lanes, as bars.
pub(super) fn lane_bars(active: &[u64]) -> String {
    let sum = |lanes: &[u64]| lanes.iter().fold(0_u64, |sum, &visits| sum.saturating_add(visits));
    bars(&active.get(1..).unwrap_or(&[]).chunks(4).map(sum).collect::<Vec<_>>())
}

/// `launch 0 block 3 warp 1`, as `decode` takes them.
pub(super) fn warp(trace: &TraceFile, launch: u32, warp: u32) -> String {
    let Some(id) = trace.launch(launch).and_then(|info| info.stream_id(warp)) else {
        return format!("launch {launch} warp {warp}");
    };
    let block = trace.launch(launch).map_or_else(String::new, |info| block(info, id.block));
    format!("launch {launch} block {block} warp {}", id.warp_in_block)
}

/// A block's coordinates, as many as its grid has.
pub(super) fn block(info: &LaunchInfo, block: [u32; 3]) -> String {
    match (info.grid(), block) {
        ([_, 1, 1], [x, ..]) => x.to_string(),
        ([_, _, 1], [x, y, _]) => format!("{x},{y}"),
        (_, [x, y, z]) => format!("{x},{y},{z}"),
    }
}

/// What the trace holds, and what it lacks.
pub(super) fn losses(analysis: &Analysis) -> String {
    let Analysis { losses, kernels, counts, launches, .. } = analysis;
    let warps = kernels.iter().map(|kernel| kernel.warps).sum();
    let mut wants = Vec::new();
    if losses.lost_events > 0 {
        let (events, warps) = (many(losses.lost_events, "event"), many(losses.lossy_warps, "warp"));
        wants.push(format!("{events} of {warps} lost"));
    }
    if losses.unfinished_warps > 0 {
        wants.push(format!("{} not finished", many(losses.unfinished_warps, "warp")));
    }
    if losses.unaccounted_warps > 0 {
        wants.push(format!("{} without an account of losses", many(losses.unaccounted_warps, "warp")));
    }
    if let Some(why) = &losses.cut_off {
        wants.push(plain(why));
    }
    let holds = format!(
        "{} by {} of {}",
        many(counts.visits, "event"),
        many(warps, "warp"),
        if *launches == 1 { "1 launch".to_owned() } else { format!("{} launches", count(*launches)) }
    );
    let mut text = if wants.is_empty() {
        format!("whole trace: {holds}")
    } else {
        format!("INCOMPLETE trace: {}\nfigures are of what is there: {holds}", wants.join("; "))
    };
    if losses.unchosen_warps > 0 {
        text += &format!("\nnot chosen to be recorded: {}", many(losses.unchosen_warps, "warp"));
    }
    text
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
    fn bars_show_what_is_there() {
        assert_eq!(bars(&[0, 1, 500, 1000]), "·▁▅█");
        let mut active = vec![0; 33];
        (active[1], active[4], active[32]) = (1, 1, 2);
        assert_eq!(lane_bars(&active), "█······█");
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(cut("a_name_of_more_than_24_characters"), "a_name_of_more_than_24_…");
        assert_eq!(plain("a\nb"), "a\\nb");
    }
}
