//! Sums by kernel, function and loop: rows of the flame graph and of its table.

use std::cmp::Reverse;

use askama::Template;
use serde::Serialize;
use warptrace_analysis::words::{count, percent};
use warptrace_analysis::{OrderItems, Part, PartKind, Time, roll_up};

use crate::guide::{Guide, LocationLink};
use crate::page::cut;
use crate::table::{Columns, PageTable};

/// A part and its nesting depth. Enclosing parts come before it and have lower depths.
#[derive(Debug, Serialize)]
pub(crate) struct Nested {
    pub(crate) depth: usize,
    pub(crate) kernel: usize,
    #[serde(flatten)]
    pub(crate) part: Part,
}

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rows: Vec<Nested>,
    pub(crate) more: usize,
    pub(crate) table: PageTable,
}

#[derive(Template)]
#[template(ext = "html", source = r#"<span style="padding-left:{{ depth }}em">{{ place|safe }}</span>"#)]
struct PartPlace {
    depth: usize,
    place: LocationLink,
}

/// Sums the figures by part. Keeps the parts with the most cycles (or slots without times), and their
/// parents.
pub(crate) fn parts(guide: &Guide<'_>) -> Parts {
    let mut all = Vec::new();
    for (kernel, part) in roll_up(guide.trace, guide.analysis).into_iter().enumerate() {
        flatten(part, kernel, 0, &mut all);
    }
    // A containing part has at least as many cycles or slots and comes first, so it is always kept.
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

fn table(guide: &Guide<'_>, rows: &[Nested]) -> PageTable {
    let (counts, all_time) = (guide.analysis.counts, guide.analysis.time);
    let kind = |nested: &Nested| match nested.part.kind {
        PartKind::Kernel => Some("kernel"),
        PartKind::Function => Some("function"),
        PartKind::Loop => Some("loop"),
        _ => None,
    };
    let rows: Vec<&Nested> = rows.iter().filter(|nested| kind(nested).is_some()).collect();
    Columns::new()
        .html("part", |Nested { depth, part, .. }: &&Nested| PartPlace {
            depth: *depth,
            place: guide.place(part.location, &cut(&part.name, guide.limits.text)),
        })
        .text("", |nested| kind(nested).unwrap_or_default().to_owned())
        .label("is a")
        .when(all_time.is_some(), |columns| {
            let cycles = |time: Option<Time>| time.map_or(0, |time| time.warp_cycles);
            let column = columns.number("of all cycles", move |Nested { part, .. }| {
                percent(cycles(part.time), cycles(all_time))
            });
            column.title("of all warps' cycles, with what is inside: inclusive")
        })
        .number("of all slots", |Nested { part, .. }| percent(part.counts.slots, counts.slots))
        .number("idle slots", |Nested { part, .. }| count(part.counts.idle))
        .title("with what is inside: inclusive")
        .number("idle", |Nested { part, .. }| percent(part.counts.idle, part.counts.slots))
        .number("own idle slots", |Nested { part, .. }| count(part.own.idle))
        .title("without loops and functions inside: exclusive")
        .number("caused", |Nested { part, .. }| percent(part.caused, counts.idle))
        .title("idle slots, here and elsewhere, whose cause is inside, as part of all")
        .table(rows.into_iter(), guide.limits.nodes, |nested| Some(nested.kernel.to_string()))
}
