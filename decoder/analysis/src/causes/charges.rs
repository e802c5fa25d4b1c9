//! Idle lane slots by their cause and by the location of the active lanes.

use super::{LANES, Latest};
use crate::pairs::{Pairs, Sum};

/// Places that are counted in tables.
const PLACES: usize = 256;
/// Counters per place. Many lanes have the same cause, and additions to one counter wait for each other.
const COUNTERS: usize = 4;
/// Repetitions of an event from which on it is not counted in tables.
const FEW: u64 = 1 << 16;
/// Events until the tables are emptied. A counter gets at most 8 slots per event.
const MOST: u64 = 1 << 29;

type ChargeTable = [[u32; PLACES]; COUNTERS];

/// Sums of charges. Each location has a *place*, from 1 in the order of first use; 0 is for active lanes.
#[derive(Debug)]
pub(super) struct Charges {
    /// Place by location id; 0 if it has none.
    places: Vec<u32>,
    locations: Vec<u16>,
    /// For each place of active lanes: lane slots by counter and by place of the cause. The sum over the
    /// counters is the number of idle slots; cause 0 is active lanes.
    tables: Vec<Option<Box<ChargeTable>>>,
    events: u64,
    /// Charges that are not in the tables: amounts, but not counts.
    sums: Pairs,
}

impl Default for Charges {
    fn default() -> Self {
        let (places, tables, sums) = (Vec::new(), Vec::new(), Pairs::default());
        Self { places, locations: vec![0], tables, events: 0, sums }
    }
}

impl Charges {
    #[inline]
    pub(super) fn place(&mut self, location: u16) -> u32 {
        match self.places.get(usize::from(location)) {
            Some(&place) if place != 0 => place,
            _ => self.new_place(location),
        }
    }

    #[cold]
    fn new_place(&mut self, location: u16) -> u32 {
        if self.places.len() <= usize::from(location) {
            self.places.resize(usize::from(location) + 1, 0);
        }
        // At most one per id, and place 0.
        let place = self.locations.len() as u32;
        self.locations.push(location);
        self.places[usize::from(location)] = place;
        place
    }

    #[inline(always)]
    pub(super) fn charge(&mut self, latest: &Latest, at: u32, times: u64) {
        if self.locations.len() > PLACES || times >= FEW {
            return self.charge_each(latest, at, times);
        }
        self.events += times;
        if self.events >= MOST {
            self.empty_tables();
            self.events = times;
        }
        let at = at as usize;
        if self.tables.len() <= at {
            self.tables.resize(at + 1, None);
        }
        let table: &mut ChargeTable =
            self.tables[at].get_or_insert_with(|| Box::new([[0; PLACES]; COUNTERS]));
        for lane in (0..LANES).step_by(COUNTERS) {
            for counter in 0..COUNTERS {
                // There are at most `PLACES` places, and fewer than `FEW` repetitions.
                table[counter][usize::from(latest.cause(lane + counter) as u8)] += times as u32;
            }
        }
    }

    #[inline(never)]
    fn charge_each(&mut self, latest: &Latest, at: u32, times: u64) {
        for cause in (0..LANES).map(|lane| latest.cause(lane)).filter(|cause| *cause != 0) {
            let [cause, at] = [cause, at].map(|place| self.locations[place as usize]);
            self.sums.count(cause, at, Sum { times, amount: times });
        }
    }

    #[cold]
    fn empty_tables(&mut self) {
        self.events = 0;
        for (at, table) in self.tables.iter_mut().enumerate() {
            let Some(table) = table else { continue };
            for cause in 0..PLACES {
                let amount = table.iter_mut().map(|slots| u64::from(std::mem::take(&mut slots[cause]))).sum();
                if amount > 0 && cause > 0 {
                    self.sums.count(self.locations[cause], self.locations[at], Sum { times: 1, amount });
                }
            }
        }
    }

    pub(super) fn sorted(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.empty_tables();
        self.sums.sorted()
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        self.empty_tables();
        other.empty_tables();
        self.sums.merge(other.sums);
    }
}
