//! Launches of several ranks in Perfetto's format: a track for each rank, with lanes for parallel launches.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

use warptrace_analysis::Timeline;

use super::super::{Counted, UNENDED};
use super::Perfetto;
use super::arguments::{LAUNCH, number};
use super::messages::{INSTANT, InternedData, SLICE_BEGIN, TrackEvent};
use crate::error::ExportError;

/// Writes launches of ranks, with `facts` about all of them. Returns the numbers of written slices and bytes.
/// Fails if `out` cannot be written.
pub fn perfetto_ranks(
    timeline: &Timeline,
    facts: &[(String, String)],
    out: impl Write,
) -> Result<(u64, u64), ExportError> {
    let mut tracks = Perfetto::new(Counted { out, bytes: 0 }, 1);
    let words = "nanoseconds since the first launch of a rank, on one axis for all ranks";
    tracks.about(InternedData::default(), ("about this trace", words), facts.iter().cloned())?;
    let mut slices = 0;
    for ((order, file), of) in (0..).zip(&timeline.files).zip(&timeline.slices) {
        let rank = tracks.track(None, file.name.clone(), order)?;
        let mut launches: Vec<_> = (0..).zip(&of.launches).collect();
        launches.sort_by_key(|(_, (_, begin, _))| *begin);
        // The end of each lane's last launch, and the lane's track.
        let mut lanes: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
        for (launch, &(kernel, begin, end)) in launches {
            let until = end.unwrap_or(begin).max(begin);
            let track = match lanes.peek() {
                Some(Reverse((ended, track))) if *ended <= begin => {
                    let track = *track;
                    lanes.pop();
                    track
                }
                _ => {
                    let order = u32::try_from(lanes.len()).unwrap_or(u32::MAX);
                    tracks.track(Some(rank), format!("launches {}", lanes.len() + 1), order)?
                }
            };
            lanes.push(Reverse((until, track)));
            let name = of.kernels.get(kernel as usize).map_or("?", String::as_str);
            let name_iid = tracks.name(if end.is_some() { name } else { UNENDED })?;
            let event = TrackEvent {
                r#type: Some(if end.is_some() { SLICE_BEGIN } else { INSTANT }),
                track_uuid: Some(track),
                name_iid,
                debug_annotations: vec![number(LAUNCH, launch)],
                ..TrackEvent::default()
            };
            tracks.event(begin, event)?;
            if end.is_some() {
                tracks.end(track, until)?;
                slices += 1;
            }
        }
    }
    tracks.out.flush()?;
    Ok((slices, tracks.out.bytes))
}
