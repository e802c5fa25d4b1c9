//! `warptrace lines`.

use serde_json::json;
use warptrace_analysis::{LineFigures, SetAnalysis, SetRow};

use super::rows::{Listed, Order};
use super::set::{LINE_FIGURES, explain, with_spread};
use super::words::{lane_bars, percent, ratio};
use super::{Answer, TextTable, print_rows};
use crate::arguments::Rows;
use crate::output::count;

impl Listed for LineFigures {
    const NAME: &'static str = "lines";
    const ORDERS: &'static [Order<Self>] = &[
        Order::most("cycles", "Cycles of warps; the default of traces with times", |line| {
            line.time.map_or(0, |time| time.warp_cycles)
        }),
        Order::most(
            "caused",
            "Idle slots, here and elsewhere, whose cause the line is; the default of others",
            |line| line.caused,
        ),
        Order::most("idle", "Idle slots", |line| line.counts.idle),
        Order::most("visits", "Times that a warp came", |line| line.counts.visits),
        Order::most("lanes", "Active lanes, summed over the visits", |line| line.counts.lanes),
        Order::most("warps", "Warps that came", |line| line.warps),
        Order::most("splits", "Visits after which lanes went different ways", |line| line.splits),
        Order::unsorted("source", "File and line, the first one first"),
    ];
    const DEFAULT: &'static Order<Self> =
        &Order::most("", "", |line| line.time.map_or(line.caused, |time| time.warp_cycles));
    const TIE: fn(&Self) -> u64 = |line| line.counts.idle;

    fn is_at(&self, location: u16) -> bool {
        self.locations.contains(&location)
    }
}

pub(crate) fn run(command: &Rows<LineFigures>, summed: Option<SetAnalysis>) -> anyhow::Result<()> {
    let answer = Answer::of_rows(command, summed)?;
    let (lines, more) = command.shown(&answer, &answer.analysis.lines);
    if command.page.json {
        let row = |row| with_spread(json!(row), answer.set(), || SetRow::of_line(row));
        return answer.json_rows(json!({}), LineFigures::NAME, lines.into_iter().map(row));
    }
    answer.headline()?;
    print_rows(&line_table(&answer, &lines), more)?;
    answer.set().map_or(Ok(()), |set| explain(set, &LINE_FIGURES))
}

pub(super) fn line_table(answer: &Answer, lines: &[&LineFigures]) -> String {
    TextTable::<&LineFigures>::new()
        .left("line", |line| answer.names.line(&line.file, line.line))
        .left("what", |line| answer.names.names(&line.locations))
        .times(answer.analysis.time, |line| line.time)
        .right("caused", |line| percent(line.caused, answer.analysis.counts.idle))
        .right("idle slots", |line| count(line.counts.idle))
        .right("idle", |line| percent(line.counts.idle, line.counts.slots))
        .right("visits", |line| count(line.counts.visits))
        .right("lanes", |line| ratio(line.counts.mean_lanes()))
        .left("1..32", |line| lane_bars(&line.active))
        .right("splits", |line| percent(line.splits, line.counts.visits))
        .right("warps", |line| count(line.warps))
        .spread(answer.set(), |line| SetRow::of_line(line), &LINE_FIGURES)
        .text(lines)
}
