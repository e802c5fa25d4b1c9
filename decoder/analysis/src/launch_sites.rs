//! Sums over the launches that one line of the host program made.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use warptrace_decoder::TraceFile;

use crate::counts::Counts;
use crate::figures::Analysis;
use crate::order::OrderItems;

/// Launches made by one line, or with one call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LaunchSiteFigures {
    /// The program's line and function ([`TraceFile::launch_site`]); `None` for launches without a call stack.
    pub site: Option<String>,
    /// The call stack, innermost frame first. If the line has several, one of them.
    pub stack: Vec<String>,
    /// Launches, traced or not.
    pub launches: u64,
    /// Launches that were traced.
    pub traced: u64,
    /// Launches of each kernel, most first.
    pub kernels: Vec<(String, u64)>,
    /// Sums over warps with events.
    #[serde(flatten)]
    pub counts: Counts,
}

impl LaunchSiteFigures {
    fn add(&mut self, other: Self) {
        if self.stack.is_empty() {
            self.stack = other.stack;
        }
        self.launches += other.launches;
        self.traced += other.traced;
        for (kernel, launches) in other.kernels {
            match self.kernels.iter_mut().find(|(name, _)| *name == kernel) {
                Some((_, sum)) => *sum += launches,
                None => self.kernels.push((kernel, launches)),
            }
        }
        self.counts.add(&other.counts);
    }
}

/// Returns figures for each line that launches kernels, or with `by_stack` for each call stack, by idle slots
/// and launches, descending. Empty if no launch has a call stack. Launches are all of the file; counts are
/// over the warps of the analysis.
pub fn by_launch_site(trace: &TraceFile, analysis: &Analysis, by_stack: bool) -> Vec<LaunchSiteFigures> {
    let mut of_stacks: BTreeMap<Option<u32>, (u32, LaunchSiteFigures, BTreeMap<u32, u64>)> = BTreeMap::new();
    for info in trace.launches() {
        let launch = info.number();
        let new = || (launch, LaunchSiteFigures::default(), BTreeMap::new());
        let (_, figures, kernels) = of_stacks.entry(trace.stack_number(launch)).or_insert_with(new);
        figures.launches += 1;
        figures.traced += u64::from(info.is_recorded());
        *kernels.entry(info.kernel()).or_default() += 1;
    }
    if of_stacks.keys().all(Option::is_none) {
        return Vec::new();
    }
    for (warp, warps) in analysis.warps.distinct() {
        if let Some((_, figures, _)) = of_stacks.get_mut(&trace.stack_number(warp.launch)) {
            figures.counts.add(&warp.counts.of_all(warps));
        }
    }
    let mut found: BTreeMap<(Option<String>, Option<u32>), LaunchSiteFigures> = BTreeMap::new();
    for (number, (launch, mut figures, kernels)) in of_stacks {
        let name = |kernel: u32| trace.metadata().kernels.get(kernel as usize).map_or("", |of| &of.name);
        figures.kernels =
            kernels.into_iter().map(|(kernel, launches)| (name(kernel).to_owned(), launches)).collect();
        figures.stack = trace.stack(launch).map(ToString::to_string).collect();
        let site = trace.launch_site(launch).map(ToString::to_string);
        found.entry((site, number.filter(|_| by_stack))).or_default().add(figures);
    }
    let mut found: Vec<LaunchSiteFigures> = found
        .into_iter()
        .map(|((site, _), mut figures)| {
            figures.kernels.sort_by_key(|(_, launches)| Reverse(*launches));
            LaunchSiteFigures { site, ..figures }
        })
        .collect();
    found.order_by_key(|figures| Reverse((figures.counts.idle, figures.launches)));
    found
}
