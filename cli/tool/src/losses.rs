//! What a trace lacks, in words, and as JSON with all its warps.

use std::collections::BTreeMap;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use warptrace_analysis::words::early_end;
use warptrace_analysis::{LossRow, LossSum};
use warptrace_decoder::{LaunchLosses, Loss, LossyWarps, TraceFile};
use warptrace_format::file::LossReason;

use crate::output::count;

/// What a trace lacks.
#[derive(Debug)]
pub(crate) struct Losses {
    /// By reason.
    totals: BTreeMap<LossReason, LossSum>,
    /// A line for each launch and track that lacks something, and for each launch that ended early.
    lines: Vec<String>,
}

impl Losses {
    /// Reads the accounts of all launches, whose sums are known.
    pub(crate) fn of(trace: &TraceFile, totals: BTreeMap<LossReason, LossSum>) -> anyhow::Result<Self> {
        let tracks = trace.metadata().tracks.len() as u32;
        let mut found = Self { totals, lines: Vec::new() };
        for info in trace.launches() {
            let launch = info.number();
            found.lines.extend(early_end(trace, launch));
            for track in 0..tracks {
                let losses = trace.losses(launch, track)?;
                let name = if tracks > 1 {
                    format!("launch {launch}, track {track}")
                } else {
                    format!("launch {launch}")
                };
                for loss in &losses.losses {
                    found.lines.extend(describe(&losses, loss).map(|words| format!("{name}: {words}")));
                }
            }
        }
        Ok(found)
    }

    /// Says what is missing: nothing if nothing is.
    pub(crate) fn describe(&self) -> Vec<String> {
        if self.lines.is_empty() {
            return Vec::new();
        }
        let mut lines = vec!["losses".to_owned()];
        lines.extend(self.lines.iter().map(|line| format!("  {line}")));
        let totals = self.totals.iter().filter_map(|(&reason, &LossSum { warps, events, .. })| {
            let warps = format!("{} {}", count(warps), if warps == 1 { "warp" } else { "warps" });
            match reason {
                LossReason::NotChosen => None,
                LossReason::Died => Some(format!("{warps} did not finish")),
                LossReason::Unknown if events == 0 => Some(format!("{warps} without account")),
                _ => Some(format!("{} events of {warps} ({reason})", count(events))),
            }
        });
        let totals = totals.collect::<Vec<_>>().join("; ");
        if !totals.is_empty() {
            lines.push(format!("  in all: {totals}"));
        }
        lines
    }
}

/// Says what warps of a launch lack; `None` if they were not to be recorded.
fn describe(losses: &LaunchLosses, loss: &Loss) -> Option<String> {
    let warps = format!("{} of {} warps", count(loss.warps), count(losses.chosen_warps.into()));
    let reason = loss.reason;
    match (reason, loss.events) {
        (LossReason::NotChosen, _) => None,
        (_, Some(events)) => {
            let (lost, of) = (count(events), count(losses.recorded.saturating_add(losses.lost())));
            let remedy = reason.remedy().map_or_else(String::new, |remedy| format!("; {remedy}"));
            Some(format!("lost {lost} of {of} events in {warps}: {}{remedy}", reason.describe()))
        }
        (LossReason::Died, None) => {
            Some(format!("{warps} did not finish; how many of their last events are missing is not known"))
        }
        (_, None) => Some(format!("{warps} have no account: what they lack is not known")),
    }
}

/// What a trace lacks, with all warps: written while it is read, since they may be many.
pub(crate) struct Streamed<'a>(pub(crate) &'a TraceFile);

/// A row with its warps.
#[derive(Serialize)]
struct RowWithWarps<'a> {
    #[serde(flatten)]
    row: LossRow,
    in_warps: InWarps<'a>,
}

struct InWarps<'a> {
    trace: &'a TraceFile,
    launch: u32,
    track: u32,
    reason: LossReason,
    is_counted: bool,
}

/// Warps that follow each other, of which the chosen ones are meant; one warp where events were counted.
#[derive(Serialize)]
struct Warps {
    first: u32,
    last: u32,
    events: Option<u64>,
}

impl Serialize for Streamed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let trace = self.0;
        let tracks = trace.metadata().tracks.len() as u32;
        let pairs = trace.launches().flat_map(|info| (0..tracks).map(|track| (info.number(), track)));
        let rows = pairs.flat_map(|(launch, track)| {
            // The file has the launch and the track.
            let losses = trace.losses(launch, track).map_or_else(|_| Vec::new(), |losses| losses.losses);
            losses.into_iter().map(move |loss| {
                let (reason, is_counted) = (loss.reason, loss.events.is_some());
                RowWithWarps {
                    row: LossRow::new(launch, track, &loss),
                    in_warps: InWarps { trace, launch, track, reason, is_counted },
                }
            })
        });
        serializer.collect_seq(rows)
    }
}

impl Serialize for InWarps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let &Self { trace, launch, track, reason, is_counted } = self;
        let all = trace.lossy_warps(launch, track).map_err(serde::ser::Error::custom)?;
        let is_one = |warps: &LossyWarps| warps.reason == reason && warps.events.is_some() == is_counted;
        let mut rows = serializer.serialize_seq(None)?;
        for warps in all {
            let warps = warps.map_err(serde::ser::Error::custom)?;
            if is_one(&warps) {
                let LossyWarps { first, last, events, .. } = warps;
                rows.serialize_element(&Warps { first, last, events })?;
            }
        }
        rows.end()
    }
}
