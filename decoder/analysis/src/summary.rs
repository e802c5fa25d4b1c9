//! What a trace holds and lacks, without its events: what `warptrace info --json` prints.

use std::collections::BTreeMap;

use serde::Serialize;
use warptrace_decoder::{Completeness, DecodeError, LaunchEnd, LaunchLosses, Loss, TraceFile};
use warptrace_format::RAW_EVENT_BYTES;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::file::{LaunchInfo, LossReason, Metadata, UnrecordedLaunches};

use crate::host::HostSummary;
use crate::schedule::SpanSummary;

/// What a trace holds and lacks.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Summary<'a> {
    /// How and where it was recorded, its kernels and locations.
    pub metadata: &'a Metadata,
    /// Whether nothing is missing.
    pub whole: bool,
    /// What is missing or assumed, in a sentence.
    pub state: &'a str,
    /// Whether the file was finished.
    pub complete: bool,
    /// The same in words.
    pub completeness: String,
    /// Length of the file.
    pub file_bytes: u64,
    /// Of how many warps it says where and when they ran, if that was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans: Option<SpanSummary>,
    /// When launches ran by the host's clocks, if that was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSummary>,
    /// Addresses and values, if they were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<AccessSummary>,
    /// Launches that were not traced, if the file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_traced: Option<NotTraced<'a>>,
    /// How what was recorded differs from what the program runs alone.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub notes: &'a [String],
    /// The launches, by number.
    pub launches: Vec<LaunchSummary>,
    /// What launches lack, by launch, track and reason.
    pub losses: Vec<LossRow>,
    /// Their sums.
    pub lost_by_reason: BTreeMap<LossReason, LossSum>,
}

/// Launches that were not traced.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct NotTraced<'a> {
    /// How many in all, those that were not asked for, too.
    pub launches: u64,
    /// Of which kernels and why, those with the most launches first.
    pub kernels: &'a [UnrecordedLaunches],
}

impl<'a> NotTraced<'a> {
    /// Returns those of a trace; `None` if the file tells of none.
    pub fn new(trace: &'a TraceFile) -> Option<Self> {
        let kernels = &trace.unrecorded().launches[..];
        let launches = kernels.iter().fold(0_u64, |sum, of| sum.saturating_add(of.launches));
        (launches > 0).then_some(Self { launches, kernels })
    }
}

/// Addresses and values, in numbers.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct AccessSummary {
    /// Sites in the table.
    pub sites: u64,
    /// Of these, those whose accesses follow from recorded ones.
    pub derived_sites: u64,
    /// Accesses in the file, without what follows from them.
    pub recorded: u64,
    /// Accesses that were lost, without what follows from them.
    pub lost: u64,
    /// Buffers that kernels could access, if the file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers: Option<u64>,
    /// Whether these are all that there were.
    pub has_all_buffers: bool,
    /// Bytes of the file that they take, without their accounts.
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

/// A launch, in numbers.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct LaunchSummary {
    /// Its number.
    pub launch: u32,
    /// Index of its kernel in those of the metadata.
    pub kernel: u32,
    /// What the program called it.
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
    /// Warps that were chosen to be recorded: all, unless only a part of the launch was.
    pub recorded_warps: u32,
    /// Which ones, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// Chunks in the file.
    pub chunks: u64,
    /// Events in the file.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// How it ended: `completed`, `failed`, `interrupted` or `unknown`.
    pub ended: &'static str,
    /// What the device said, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes that the events would take uncompressed.
    pub device_bytes_raw: u64,
    /// Bytes that they take in the file.
    pub file_bytes: u64,
}

/// The warps that were chosen, as the file has them: of `blocks` blocks, `block_step` apart, `block_warps`
/// warps each.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "as the fields of ChosenWarps")]
pub struct Chosen {
    pub first_block: u32,
    pub blocks: u32,
    pub block_step: u32,
    pub first_warp: u32,
    pub block_warps: u32,
}

/// Warps of a launch and track that lack events for one reason.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct LossRow {
    /// The launch.
    pub launch: u32,
    /// The track.
    pub track: u32,
    /// Why.
    pub reason: LossReason,
    /// How many warps.
    pub warps: u64,
    /// How many events; `None` if that is not known.
    pub events: Option<u64>,
}

/// Sums of rows with the same reason.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LossSum {
    /// Warps, as often as they stand in rows.
    pub warps: u64,
    /// Events, as far as they were counted.
    pub events: u64,
}

impl LossRow {
    /// Makes the row of a loss.
    pub const fn new(launch: u32, track: u32, loss: &Loss) -> Self {
        let &Loss { reason, warps, events, .. } = loss;
        Self { launch, track, reason, warps, events }
    }
}

impl<'a> Summary<'a> {
    /// Reads the accounts of all launches, no events.
    ///
    /// # Errors
    /// The trace is damaged.
    pub fn new(trace: &'a TraceFile) -> Result<Self, DecodeError> {
        Self::with(trace, |_, _, _| ())
    }

    /// The same, which hands on what each launch lacks on each track, for those who say more of it.
    ///
    /// # Errors
    /// The trace is damaged.
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
