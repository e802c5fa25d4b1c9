//! Sums by kernel, function and loop: the rows of the flame graph and of its table.

use std::cmp::Reverse;

use serde::Serialize;
use warptrace_analysis::words::{count, percent};
use warptrace_analysis::{OrderItems, Part, PartKind, roll_up};

use crate::guide::{Guide, Place};
use crate::page::cut;

/// A part, and how many are around it: those before it that are less deep.
#[derive(Debug, Serialize)]
pub(crate) struct Nested {
    pub(crate) depth: usize,
    /// The kernel's place in the analysis.
    pub(crate) kernel: usize,
    #[serde(flatten)]
    pub(crate) part: Part,
}

/// The parts that are shown, each behind the one that it is in.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rows: Vec<Nested>,
    /// Parts that are left out.
    pub(crate) more: usize,
    pub(crate) table: Vec<PartRow>,
}

/// A kernel, function or loop in words.
#[derive(Debug)]
pub(crate) struct PartRow {
    pub(crate) depth: usize,
    pub(crate) kind: &'static str,
    pub(crate) place: Place,
    pub(crate) kernel: usize,
    /// Its part of all warp-cycles, of a trace with times.
    pub(crate) part_of_cycles: Option<String>,
    pub(crate) part_of_slots: String,
    pub(crate) idle: String,
    pub(crate) idle_share: String,
    pub(crate) own_idle: String,
    pub(crate) caused: String,
}

/// Rolls the figures up; of all parts those with the most cycles, or without times the most slots, with what
/// they are in.
pub(crate) fn parts(guide: &Guide<'_>) -> Parts {
    let mut all = Vec::new();
    for (kernel, part) in roll_up(guide.trace, guide.analysis).into_iter().enumerate() {
        flatten(part, kernel, 0, &mut all);
    }
    // What is around a part has as many cycles or slots or more, and comes before it.
    let weight = |part: &Part| part.time.map_or(part.counts.slots, |time| time.warp_cycles);
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.order_by_key(|&at| (Reverse(weight(&all[at].part)), at));
    let more = order.len().saturating_sub(guide.limits.edges);
    let mut is_shown = vec![false; all.len()];
    order.iter().take(guide.limits.edges).for_each(|&at| is_shown[at] = true);
    let mut shown = is_shown.into_iter();
    all.retain(|_| shown.next() == Some(true));
    let table = table(guide, &all);
    Parts { rows: all, more, table }
}

fn flatten(mut part: Part, kernel: usize, depth: usize, rows: &mut Vec<Nested>) {
    let inside = std::mem::take(&mut part.parts);
    rows.push(Nested { depth, kernel, part });
    inside.into_iter().for_each(|part| flatten(part, kernel, depth + 1, rows));
}

fn table(guide: &Guide<'_>, rows: &[Nested]) -> Vec<PartRow> {
    let (slots, idle) = (guide.analysis.counts.slots, guide.analysis.counts.idle);
    let row = |Nested { depth, kernel, part }: &Nested| {
        let kind = match part.kind {
            PartKind::Kernel => "kernel",
            PartKind::Function => "function",
            PartKind::Loop => "loop",
            _ => return None,
        };
        let name = cut(&part.name, guide.limits.text);
        Some(PartRow {
            depth: *depth,
            kind,
            place: guide.place(part.location, &name),
            kernel: *kernel,
            part_of_cycles: part
                .time
                .zip(guide.analysis.time)
                .map(|(time, all)| percent(time.warp_cycles, all.warp_cycles)),
            part_of_slots: percent(part.counts.slots, slots),
            idle: count(part.counts.idle),
            idle_share: percent(part.counts.idle, part.counts.slots),
            own_idle: count(part.own.idle),
            caused: percent(part.caused, idle),
        })
    };
    rows.iter().filter_map(row).take(guide.limits.nodes).collect()
}
