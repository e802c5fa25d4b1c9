//! Reference implementation of causes, with a matrix of the last event that each two lanes shared.

use std::collections::BTreeMap;

use warptrace_decoder::TraceFile;
use warptrace_format::Event;

use crate::transitions::OUTSIDE;
use crate::{Analysis, points};

/// Number of reconvergences and events in between, by cause and location of the reconvergence.
type Reconvergences = BTreeMap<(u16, u16), (u64, u64)>;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct ChargeSums {
    pub(crate) charges: BTreeMap<(u16, u16), u64>,
    pub(crate) reconvergences: Reconvergences,
    pub(crate) divergences: BTreeMap<u16, u64>,
}

impl ChargeSums {
    /// Adds the events of a warp with these lanes. Each event must have at least one of them.
    pub(crate) fn add(&mut self, events: &[Event], lanes: u32) {
        // Number of the last event that two lanes shared, from 1; 0 for the start, which all lanes share.
        let mut last = [[0_usize; 32]; 32];
        let location = |number: usize| if number == 0 { OUTSIDE } else { events[number - 1].location };
        let mask = |number: usize| if number == 0 { lanes } else { events[number - 1].mask };
        // Open divergences by event: lanes ahead and lanes behind.
        let mut open: BTreeMap<usize, Option<(u32, u32)>> = BTreeMap::new();
        let is_in = |mask: u32, lane: &usize| mask >> *lane & 1 == 1;
        for (number, event) in (1..).zip(events) {
            for (&parted, sides) in &mut open {
                if let Some((ahead, behind)) = *sides
                    && event.mask & ahead != 0
                    && event.mask & behind != 0
                {
                    *sides = None;
                    let met = self.reconvergences.entry((location(parted), event.location)).or_default();
                    *met = (met.0 + 1, met.1 + (number - parted - 1) as u64);
                }
            }
            let mut charged: BTreeMap<usize, u32> = BTreeMap::new();
            for idle in (0..32).filter(|lane| is_in(lanes & !event.mask, lane)) {
                let active = (0..32).filter(|lane| is_in(event.mask, lane));
                let cause = active.map(|lane| last[idle][lane]).max().expect("some lane is active");
                *charged.entry(cause).or_default() |= 1 << idle;
            }
            for (cause, idle) in charged {
                *self.charges.entry((location(cause), event.location)).or_default() +=
                    u64::from(idle.count_ones());
                open.entry(cause).or_insert_with(|| {
                    *self.divergences.entry(location(cause)).or_default() += 1;
                    Some((mask(cause) & event.mask, idle))
                });
            }
            for one in (0..32).filter(|lane| is_in(event.mask, lane)) {
                (0..32).filter(|lane| is_in(event.mask, lane)).for_each(|other| last[one][other] = number);
            }
        }
    }

    /// Adds all events of a trace; `None` if an event has no lanes, or lanes that its warp does not have.
    fn new(trace: &TraceFile) -> Option<Self> {
        let mut found = Self::default();
        for info in trace.launches() {
            for warp in 0..info.warps() {
                let events = trace.decode_warp(info.number(), warp, 0).ok()?;
                let events = events.collect::<Result<Vec<Event>, _>>().ok()?;
                let lanes = info.lane_mask(warp)?;
                if events.iter().any(|event| event.mask == 0 || event.mask & !lanes != 0) {
                    return None;
                }
                found.add(&events, lanes);
            }
        }
        Some(found)
    }
}

/// Compares the causes of a trace with the reference implementation, with and without weights. Skips traces
/// with events of lanes that do not exist. Panics if they differ.
pub(super) fn check(trace: &TraceFile, analysis: &Analysis) {
    let Some(found) = ChargeSums::new(trace) else { return };
    let weights = points::weights(trace).unwrap_or_default();
    let weight = |location: u16| weights.get(usize::from(location)).map_or(1, |&weight| u64::from(weight));
    let mut rest = found.charges.clone();
    let mut reconvergences = Reconvergences::new();
    for cause in &analysis.causes {
        let id = cause.point.location;
        for place in &cause.places {
            let lanes = rest.remove(&(id, place.location)).expect("lanes were idle there for that");
            assert_eq!(place.idle, lanes * weight(place.location), "{id} at {}", place.location);
        }
        assert_eq!(cause.divergences, found.divergences[&id], "{id}");
        for met in &cause.reconvergences {
            reconvergences.insert((id, met.location), (met.times, met.events));
        }
    }
    assert!(rest.is_empty(), "no cause has {rest:?}");
    assert_eq!(reconvergences, found.reconvergences);
    let mut idle: BTreeMap<u16, u64> = BTreeMap::new();
    for (&(_, place), lanes) in &found.charges {
        *idle.entry(place).or_default() += lanes;
    }
    for location in &analysis.locations {
        let id = location.point.location;
        let lanes = idle.get(&id).copied().unwrap_or(0);
        assert_eq!(location.counts.idle, lanes * weight(id), "{id}");
    }
    let weighed: u64 = idle.iter().map(|(&id, lanes)| lanes * weight(id)).sum();
    assert_eq!(analysis.lines.iter().map(|line| line.counts.idle).sum::<u64>(), weighed);
    assert_eq!(analysis.kernels.iter().flat_map(|kernel| kernel.causes.values()).sum::<u64>(), weighed);
}
