//! Contents and losses of a trace, without reading events: the output of `warptrace info --json`.

use std::collections::BTreeMap;

use serde::Serialize;
use warptrace_decoder::{Completeness, DecodeError, LaunchEnd, LaunchLosses, Loss, TraceFile};
use warptrace_format::RAW_EVENT_BYTES;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::file::{LaunchInfo, LossReason, Metadata, UnrecordedLaunches};

use crate::host::HostSummary;
use crate::schedule::SpanSummary;

/// Contents and losses of a trace.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Summary<'a> {
    /// Metadata of the recording, its kernels and its locations.
    pub metadata: &'a Metadata,
    /// True if nothing is missing.
    pub whole: bool,
    /// Sentence about missing or assumed data.
    pub state: &'a str,
    /// True if the file was finished.
    pub complete: bool,
    /// `complete` in words.
    pub completeness: String,
    /// Length of the file, in bytes.
    pub file_bytes: u64,
    /// Numbers of warps with run times; `None` if they were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans: Option<SpanSummary>,
    /// Run times of launches by the host's clocks; `None` if they were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSummary>,
    /// Counts of addresses and values; `None` if they were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<AccessSummary>,
    /// Launches that were not traced; `None` if the file lists none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_traced: Option<NotTraced<'a>>,
    /// Differences between the recorded run and a run of the program without recording.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub notes: &'a [String],
    /// Launches, by number.
    pub launches: Vec<LaunchSummary>,
    /// Losses, by launch, track and reason.
    pub losses: Vec<LossRow>,
    /// Sums of `losses` by reason.
    pub lost_by_reason: BTreeMap<LossReason, LossSum>,
}

/// Launches that were not traced.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct NotTraced<'a> {
    /// Number of these launches, including kernels that the user did not name.
    pub launches: u64,
    /// Kernels and reasons, by number of launches, descending.
    pub kernels: &'a [UnrecordedLaunches],
}

impl<'a> NotTraced<'a> {
    /// Returns the untraced launches of a trace; `None` if the file lists none.
    pub fn new(trace: &'a TraceFile) -> Option<Self> {
        let kernels = &trace.unrecorded().launches[..];
        let launches = kernels.iter().fold(0_u64, |sum, of| sum.saturating_add(of.launches));
        (launches > 0).then_some(Self { launches, kernels })
    }
}

/// Counts of addresses and values.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct AccessSummary {
    /// Sites in the table.
    pub sites: u64,
    /// Derived sites: their accesses are computed from other sites.
    pub derived_sites: u64,
    /// Accesses in the file, without derived ones.
    pub recorded: u64,
    /// Lost accesses, without derived ones.
    pub lost: u64,
    /// Buffers that kernels could access; `None` if the file has no list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers: Option<u64>,
    /// True if the list of buffers is complete.
    pub has_all_buffers: bool,
    /// Bytes of the file that accesses occupy, without warp accounts.
    pub file_bytes: u64,
}

impl AccessSummary {
    fn new(trace: &TraceFile) -> Result<Option<Self>, DecodeError> {
        if !trace.has_accesses() {
            return Ok(None);
        }
        let (sites, derived_sites) = (trace.sites().len() as u64, trace.derived_sites() as u64);
        let buffers = trace.buffers().map(|buffers| buffers.len() as u64);
        let has_all_buffers = trace.has_all_buffers();
        let mut found =
            Self { sites, derived_sites, recorded: 0, lost: 0, buffers, has_all_buffers, file_bytes: 0 };
        for launch in trace.launches() {
            let totals = trace.totals(launch.number(), trace.data_track());
            found.recorded = found.recorded.saturating_add(totals.events);
            found.file_bytes += totals.file_bytes;
            let lost = trace.losses(launch.number(), trace.data_track())?.lost();
            found.lost = found.lost.saturating_add(lost);
        }
        Ok(Some(found))
    }
}

/// Counts of a launch.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct LaunchSummary {
    /// Number of the launch.
    pub launch: u32,
    /// Index of its kernel in the metadata.
    pub kernel: u32,
    /// Label that the program gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The program's line and function that made it; `None` without a call stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launched_at: Option<String>,
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Warps.
    pub warps: u32,
    /// Warps that were chosen to be recorded. All warps, unless only a part of the launch was chosen.
    pub recorded_warps: u32,
    /// Chosen warps; `None` if all were chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// Chunks in the file.
    pub chunks: u64,
    /// Events in the file.
    pub events: u64,
    /// Lost events.
    pub lost: u64,
    /// Outcome: `completed`, `failed`, `interrupted` or `unknown`.
    pub ended: &'static str,
    /// Error message of the device, if the launch failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Uncompressed size of the events in the file, in bytes.
    pub device_bytes_raw: u64,
    /// Bytes of the events in the file.
    pub file_bytes: u64,
}

/// Chosen warps: `block_warps` warps in each of `blocks` blocks, which are `block_step` apart.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "as the fields of ChosenWarps")]
pub struct Chosen {
    pub first_block: u32,
    pub blocks: u32,
    pub block_step: u32,
    pub first_warp: u32,
    pub block_warps: u32,
}

/// Loss of a launch and track for one reason.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct LossRow {
    /// Number of the launch.
    pub launch: u32,
    /// Number of the track.
    pub track: u32,
    /// Reason of the loss.
    pub reason: LossReason,
    /// Warps with this loss.
    pub warps: u64,
    /// Lost events; `None` if unknown.
    pub events: Option<u64>,
}

/// Sums of rows with the same reason.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LossSum {
    /// Warps, counted once for each row.
    pub warps: u64,
    /// Lost events. Rows with an unknown number add 0.
    pub events: u64,
}

impl LossRow {
    /// Creates the row of a loss.
    pub const fn new(launch: u32, track: u32, loss: &Loss) -> Self {
        let &Loss { reason, warps, events, .. } = loss;
        Self { launch, track, reason, warps, events }
    }
}

impl<'a> Summary<'a> {
    /// Reads the accounts of all launches. Reads no events. Fails if the trace is damaged.
    pub fn new(trace: &'a TraceFile) -> Result<Self, DecodeError> {
        Self::with(trace, |_, _, _| ())
    }

    /// Like [`new`](Self::new), but also calls `each` with the losses of every launch and track.
    pub fn with(
        trace: &'a TraceFile,
        mut each: impl FnMut(u32, u32, &LaunchLosses),
    ) -> Result<Self, DecodeError> {
        let tracks = trace.metadata().tracks.len() as u32;
        let (mut losses, mut launches) = (Vec::new(), Vec::new());
        let mut lost_by_reason: BTreeMap<LossReason, LossSum> = BTreeMap::new();
        for info in trace.launches() {
            let mut lost = 0;
            for track in 0..tracks {
                let found = trace.losses(info.number(), track)?;
                if track == 0 {
                    lost = found.lost();
                }
                each(info.number(), track, &found);
                losses.extend(found.losses.iter().map(|loss| LossRow::new(info.number(), track, loss)));
            }
            launches.push(LaunchSummary::new(trace, info, lost));
        }
        for row in &losses {
            let sum = lost_by_reason.entry(row.reason).or_default();
            sum.warps = sum.warps.saturating_add(row.warps);
            sum.events = sum.events.saturating_add(row.events.unwrap_or(0));
        }
        let state = trace.state();
        Ok(Self {
            metadata: trace.metadata(),
            whole: state.is_whole,
            state: &state.sentence,
            complete: *trace.completeness() == Completeness::Complete,
            completeness: trace.completeness().to_string(),
            file_bytes: trace.length(),
            spans: SpanSummary::new(trace)?,
            host: HostSummary::new(trace),
            accesses: AccessSummary::new(trace)?,
            not_traced: NotTraced::new(trace),
            notes: &trace.unrecorded().notes,
            launches,
            losses,
            lost_by_reason,
        })
    }
}

impl LaunchSummary {
    fn new(trace: &TraceFile, info: &LaunchInfo, lost: u64) -> Self {
        let totals = trace.totals(info.number(), 0);
        let end = trace.launch_end(info.number()).unwrap_or(LaunchEnd::Unknown);
        Self {
            launch: info.number(),
            kernel: info.kernel(),
            label: trace.label(info.number()).map(str::to_owned),
            launched_at: trace.launch_site(info.number()).map(ToString::to_string),
            grid: info.grid(),
            block: info.block(),
            warps: info.warps(),
            recorded_warps: info.chosen().count(),
            chosen: (!info.is_whole()).then(|| Chosen::from(info.chosen())),
            chunks: totals.chunks,
            events: totals.events,
            lost,
            ended: end.name(),
            error: match end {
                LaunchEnd::Failed { message } => Some(message),
                _ => None,
            },
            device_bytes_raw: totals.events.saturating_mul(RAW_EVENT_BYTES.into()),
            file_bytes: totals.file_bytes,
        }
    }
}

impl From<ChosenWarps> for Chosen {
    fn from(chosen: ChosenWarps) -> Self {
        let ChosenWarps { first_block, blocks, block_step, first_warp, block_warps } = chosen;
        Self { first_block, blocks, block_step, first_warp, block_warps }
    }
}
