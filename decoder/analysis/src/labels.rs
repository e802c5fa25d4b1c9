//! What the program called its launches, and what was done under each name.

use std::collections::BTreeMap;

use crate::order::OrderItems;
use serde::Serialize;
use warptrace_decoder::TraceFile;

use crate::counts::Counts;
use crate::figures::Analysis;

/// The launches with one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LabelFigures {
    /// What the program called them; `None` for those that it did not name.
    pub label: Option<String>,
    /// Launches with events.
    pub launches: u64,
    /// Warps with events.
    pub warps: u64,
    /// Sums over these warps.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Returns what was done under each label, the most idle slots first; nothing if no launch has one.
pub fn by_label(trace: &TraceFile, analysis: &Analysis) -> Vec<LabelFigures> {
    let mut found: BTreeMap<Option<&str>, LabelFigures> = BTreeMap::new();
    let mut last = None;
    for (warp, warps) in analysis.warps.distinct() {
        let label = trace.label(warp.launch);
        let figures = found.entry(label).or_insert_with(|| LabelFigures {
            label: label.map(str::to_owned),
            launches: 0,
            warps: 0,
            counts: Counts::default(),
        });
        // Those of a launch follow each other.
        figures.launches += u64::from(last.replace(warp.launch) != Some(warp.launch));
        figures.warps += warps;
        figures.counts.add(&warp.counts.of_all(warps));
    }
    if found.keys().all(Option::is_none) {
        return Vec::new();
    }
    let mut found: Vec<LabelFigures> = found.into_values().collect();
    found.order_by_key(|figures| std::cmp::Reverse(figures.counts.idle));
    found
}
