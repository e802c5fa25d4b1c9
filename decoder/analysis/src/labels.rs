//! Figures by the label that the program gave its launches.

use std::collections::BTreeMap;

use crate::order::OrderItems;
use serde::Serialize;
use warptrace_decoder::TraceFile;

use crate::counts::Counts;
use crate::figures::Analysis;

/// Sums over the launches with one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LabelFigures {
    /// Label; `None` for launches without one.
    pub label: Option<String>,
    /// Launches with events.
    pub launches: u64,
    /// Warps with events.
    pub warps: u64,
    /// Sums over these warps.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Returns the figures of each label, by idle slots, descending. Empty if no launch has a label.
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
