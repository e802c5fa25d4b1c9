//! Explains why a warp differs from the others of its launch: the location, the loop and the thread.

use std::cmp::Reverse;

use serde::Serialize;
use warptrace_decoder::{TraceFile, WarpItem};
use warptrace_format::file::WARP_LANES;

use crate::error::AnalysisError;
use crate::figures::{Analysis, LocationFigures, WarpFigures};
use crate::selection::Selection;
use crate::{analyse, words};

/// Comparison of a warp with the median warp of its launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outlier {
    /// Number of the launch.
    pub launch: u32,
    /// Label that the program gave the launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Block of the warp: x, y, z.
    pub block: [u32; 3],
    /// First and last thread of the warp, as indices in the block.
    pub threads: [u32; 2],
    /// Events of the warp.
    pub events: u64,
    /// Role, as in [`WarpFigures::role`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<u8>,
    /// Events of the median warp of the launch and role.
    pub median: u64,
    /// Location with the largest difference; `None` if all visit counts equal the median.
    pub made_by: Option<MadeBy>,
}

/// Location with the largest difference between a warp and the median.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MadeBy {
    /// Id of the location.
    pub location: u16,
    /// Visits by the warp.
    pub visits: u64,
    /// Median over the warps with visits; 0 if only this warp has visits.
    pub median: u64,
    /// Trips of the warp's lanes, if the location is the head of a loop.
    pub trips: Option<OutlierTrips>,
}

/// Trips of the lanes of one warp through a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutlierTrips {
    /// Fewest trips of a lane before it left the loop.
    pub min: u64,
    /// Most trips of a lane before it left the loop.
    pub max: u64,
    /// Median over the lanes of all warps.
    pub median: u64,
    /// First thread with the most visits of the head, as a linear index in the block.
    pub thread: u32,
    /// Visits of the head by this thread.
    pub thread_visits: u64,
}

impl Outlier {
    /// Reads the events of a warp of the trace of `analysis`. Fails if the warp does not exist or is damaged.
    pub fn new(trace: &TraceFile, analysis: &Analysis, warp: &WarpFigures) -> Result<Self, AnalysisError> {
        let unknown = AnalysisError::UnknownLaunch { launch: warp.launch, launches: trace.launches().len() };
        let info = trace.launch(warp.launch).ok_or(unknown)?;
        let per_block = info.warps_per_block();
        let unknown = AnalysisError::UnknownWarp { launch: warp.launch, warps: per_block, warp: warp.warp };
        let (Some(id), Some(lanes)) = (info.stream_id(warp.warp), info.lane_mask(warp.warp)) else {
            return Err(unknown);
        };
        let selection = Selection {
            launch: Some(warp.launch),
            block: Some(id.block),
            warp: Some(id.warp_in_block),
            ..Selection::default()
        };
        let own = analyse(trace, &selection)?;
        let all = |own: &LocationFigures| analysis.location(own.point.location);
        let median = |own: &LocationFigures| match all(own) {
            Some(all) if all.warp_visits.count() > 1 => all.warp_visits.percentile(50),
            // No other warp has visits.
            _ => 0,
        };
        let distance = |own: &LocationFigures| own.counts.visits.abs_diff(median(own));
        let most = own.locations.iter().max_by_key(|own| (distance(own), Reverse(own.point.location)));
        let first = id.warp_in_block * WARP_LANES;
        let made_by = match most.filter(|own| distance(own) > 0) {
            None => None,
            Some(at) => Some(MadeBy {
                location: at.point.location,
                visits: at.counts.visits,
                median: median(at),
                trips: match all(at).filter(|all| all.trips.max() > 1) {
                    None => None,
                    Some(all) => {
                        let (lane, thread_visits) = busiest(trace, warp, at.point.location)?;
                        let (min, max) = (at.trips.min(), at.trips.max());
                        let (median, thread) = (all.trips.percentile(50), first + lane);
                        Some(OutlierTrips { min, max, median, thread, thread_visits })
                    }
                },
            }),
        };
        Ok(Self {
            launch: warp.launch,
            label: trace.label(warp.launch).map(str::to_owned),
            warp: warp.warp,
            block: id.block,
            threads: [first, first + lanes.count_ones().saturating_sub(1)],
            events: warp.counts.visits,
            role: warp.role,
            median: warp.median,
            made_by,
        })
    }

    /// Describes the warp, the location and its trips there, in up to three lines.
    pub fn describe(&self, trace: &TraceFile, names: &words::Names) -> Vec<String> {
        let [first, last] = self.threads;
        let mut lines = vec![format!(
            "{}, threads {first} to {last}: {} events, the median of its {} {}",
            words::warp(trace, self.launch, self.warp),
            words::count(self.events),
            if self.role.is_some() { "role" } else { "launch" },
            words::count(self.median)
        )];
        let Some(made_by) = &self.made_by else { return lines };
        lines.push(format!(
            "most of it at {}: {} visits, the median of warps there {}",
            names.full(made_by.location),
            words::count(made_by.visits),
            words::count(made_by.median)
        ));
        if let Some(trips) = &made_by.trips {
            lines.push(format!(
                "its lanes made {} to {} trips, the median of all lanes {}; thread {} came there most often, {} times",
                words::count(trips.min),
                words::count(trips.max),
                words::count(trips.median),
                trips.thread,
                words::count(trips.thread_visits)
            ));
        }
        lines
    }
}

fn busiest(trace: &TraceFile, warp: &WarpFigures, location: u16) -> Result<(u32, u64), AnalysisError> {
    let mut came = [0_u64; WARP_LANES as usize];
    trace.decode_warp(warp.launch, warp.warp, 0)?.each_item(|WarpItem { item, .. }| {
        for event in item.body().iter().filter(|event| event.location == location) {
            for (lane, came) in came.iter_mut().enumerate() {
                *came = came.saturating_add(u64::from(event.mask >> lane & 1) * u64::from(item.times()));
            }
        }
    })?;
    let (lane, most) = (0..).zip(came).max_by_key(|&(lane, came)| (came, Reverse(lane))).unwrap_or_default();
    Ok((lane, most))
}
