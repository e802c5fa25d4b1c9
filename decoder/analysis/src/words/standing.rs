//! Sentences about warps that did not finish.

use warptrace_decoder::TraceFile;

use super::{Names, count, many, warp};
use crate::figures::{Analysis, Standing};

/// Says what warps do that did not finish: the loop that they go round, or where they stand.
pub fn standing(trace: &TraceFile, names: &Names, group: &Standing) -> String {
    let first = warp(trace, group.first.launch, group.first.warp);
    let warps = format!("{} of {}", many(group.warps, "warp"), group.kernel);
    let what = match (group.head, group.last.first()) {
        (Some(head), _) => {
            let (head, since, trips) = (names.full(head), count(group.since), count(group.trips));
            format!(
                "{warps}: round the loop at {head}, none left it since event {since}: {trips} trips or more"
            )
        }
        (None, Some(last)) => format!("{warps}: last event at {}", names.full(last.location)),
        (None, None) => format!("{warps}: no event yet"),
    };
    format!("{what}; first: {first}")
}

/// Says more of warps in a loop: from where they come back to its head, and where their other lanes are.
pub fn circle(analysis: &Analysis, names: &Names, group: &Standing) -> Vec<String> {
    let Some(head) = group.head else { return Vec::new() };
    let mut said = Vec::new();
    let back = analysis.edges.iter().filter(|edge| edge.to == Some(head));
    // The edge into the loop is taken once a stay, the others in each trip.
    if let Some(from) =
        back.max_by_key(|edge| edge.lanes).and_then(|edge| edge.from).filter(|from| *from != head)
    {
        said.push(format!("they come back to it from {}", names.full(from)));
    }
    if !group.others.is_empty() {
        let at = group
            .others
            .iter()
            .take(3)
            .map(|at| format!("{} after {}", count(at.lanes), names.full(at.location)));
        let more = if group.others.len() > 3 { ", and elsewhere" } else { "" };
        said.push(format!("their other lanes wait: {}{more}", at.collect::<Vec<_>>().join(", ")));
    }
    said
}
