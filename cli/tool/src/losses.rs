//! Losses of a trace, as text and as JSON.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use warptrace_analysis::words::early_end;
use warptrace_analysis::{LossRow, LossSum, Summary};
use warptrace_decoder::{DecodeError, LaunchLosses, Loss, LossyWarps, TraceFile};
use warptrace_format::file::LossReason;

use crate::output::count;

#[derive(Debug)]
pub(crate) struct Losses {
    totals: BTreeMap<LossReason, LossSum>,
    /// One line for each launch and track with losses, and for each launch that ended early.
    lines: Vec<String>,
}

impl Losses {
    /// Collects the losses of all launches. Returns the summary of the trace and the losses.
    pub(crate) fn new(trace: &TraceFile) -> Result<(Summary<'_>, Self), DecodeError> {
        let tracks = trace.metadata().tracks.len();
        let mut lines = Vec::new();
        let summary = Summary::with(trace, |launch, track, losses| {
            if track == 0 {
                lines.extend(early_end(trace, launch));
            }
            let name = match tracks {
                0 | 1 => format!("launch {launch}"),
                _ => format!("launch {launch}, track {track}"),
            };
            let described = losses.losses.iter().filter_map(|loss| describe(losses, loss));
            lines.extend(described.map(|words| format!("{name}: {words}")));
        })?;
        let totals = summary.lost_by_reason.clone();
        Ok((summary, Self { totals, lines }))
    }

    /// Returns the losses as lines; empty if nothing was lost.
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

/// Describes one loss of a launch; `None` for warps that were not chosen.
fn describe(losses: &LaunchLosses, loss: &Loss) -> Option<String> {
    let warps = format!("{} of {} warps", count(loss.warps), count(losses.chosen_warps.into()));
    let reason = loss.reason;
    match (reason, loss.events) {
        (LossReason::NotChosen, _) => None,
        (_, Some(events)) => {
            let (lost, of) = (count(events), count(losses.recorded.saturating_add(losses.lost())));
            Some(format!("lost {lost} of {of} events in {warps}: {}", reason.describe_with_remedy()))
        }
        (LossReason::Died, None) => {
            Some(format!("{warps} did not finish; how many of their last events are missing is not known"))
        }
        (_, None) => Some(format!("{warps} have no account: what they lack is not known")),
    }
}

/// Maximum number of rows of warps for one loss.
const MAX_ROWS: usize = 1 << 16;

/// Losses with their warps. The warps may be many, so they are read during serialization.
pub(crate) struct Streamed<'a> {
    trace: &'a TraceFile,
    rows: Vec<LossRow>,
}

#[derive(Serialize)]
struct RowWithWarps<'a> {
    #[serde(flatten)]
    row: &'a LossRow,
    in_warps: InWarps<'a>,
    left_out: LeftOut<'a>,
}

struct InWarps<'a> {
    trace: &'a TraceFile,
    row: &'a LossRow,
    /// Number of warps listed so far.
    listed: &'a Cell<u64>,
}

/// Total minus the number of listed warps. Serialized after the list, when that number is known.
struct LeftOut<'a>(u64, &'a Cell<u64>);

/// Chosen warps of a range of consecutive warps, with the number of events that each of them lost.
#[derive(Serialize)]
struct Warps {
    first: u32,
    last: u32,
    events: Option<u64>,
}

impl<'a> Streamed<'a> {
    pub(crate) fn new(trace: &'a TraceFile) -> Result<Self, DecodeError> {
        let tracks = trace.metadata().tracks.len() as u32;
        let mut rows = Vec::new();
        for (launch, track) in
            trace.launches().flat_map(|info| (0..tracks).map(|track| (info.number(), track)))
        {
            let losses = trace.losses(launch, track)?.losses.into_iter();
            rows.extend(losses.map(|loss| LossRow::new(launch, track, &loss)));
        }
        Ok(Self { trace, rows })
    }
}

impl Serialize for Streamed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { trace, rows } = self;
        let mut all = serializer.serialize_seq(Some(rows.len()))?;
        for row in rows {
            let listed = &Cell::new(0);
            let &LossRow { reason, warps, .. } = row;
            let warps = if reason == LossReason::NotChosen { 0 } else { warps };
            let (in_warps, left_out) = (InWarps { trace, row, listed }, LeftOut(warps, listed));
            all.serialize_element(&RowWithWarps { row, in_warps, left_out })?;
        }
        all.end()
    }
}

impl Serialize for InWarps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let &Self { trace, row, listed } = self;
        let &LossRow { launch, track, reason, events, .. } = row;
        let all = trace.lossy_warps(launch, track).map_err(serde::ser::Error::custom)?;
        let is_one =
            |warps: &LossyWarps| warps.reason == reason && warps.events.is_some() == events.is_some();
        let mut rows = serializer.serialize_seq(None)?;
        // The list ends at the first error.
        for warps in all.map_while(Result::ok).filter(is_one).take(MAX_ROWS) {
            let LossyWarps { first, last, chosen, events, .. } = warps;
            rows.serialize_element(&Warps { first, last, events })?;
            listed.set(listed.get() + u64::from(chosen));
        }
        rows.end()
    }
}

impl Serialize for LeftOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0.saturating_sub(self.1.get()))
    }
}
