//! Ctrl-C while a kernel runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use warptrace_host::{Interrupted, Standing, TracedProgram};

use crate::{exit, output};

/// What a shell expects of a program that a signal has ended: 128 and its number.
const ENDED_BY: i32 = 128;
/// Places that are named.
const PLACES: usize = 12;

/// From now on the first SIGINT or SIGTERM sets the flag, and a second one ends the process at once.
///
/// # Errors
/// The system's.
pub(super) fn watch() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: what the second does is only done where the first has set the flag before.
        flag::register_conditional_shutdown(signal, ENDED_BY + signal, Arc::clone(&asked))?;
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

/// Says where the warps of an interrupted kernel stand, and ends the process: nothing else ends a kernel that
/// hangs.
pub(super) fn end(interrupted: &Interrupted, program: &TracedProgram<'_>, file: &str) -> ! {
    eprint!("{}", describe(interrupted, program, file));
    process::exit(i32::from(exit::FINDINGS));
}

/// Where a warp is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Lanes of it are in a run at this location.
    In(u16),
    /// The last run that lanes of it have left was at this location.
    Past(u16),
    Unknown,
}

/// Warps that are at a place.
struct Warps {
    number: u64,
    /// The first of them.
    first: u32,
    /// The fewest and the most events of a warp's run that are known.
    least: u32,
    most: u32,
}

impl Warps {
    /// None yet; the first to come is this one.
    fn first(warp: u32) -> Self {
        Self { number: 0, first: warp, least: u32::MAX, most: 0 }
    }

    fn add(&mut self, count: u32) {
        self.number += 1;
        (self.least, self.most) = (self.least.min(count), self.most.max(count));
    }
}

fn describe(interrupted: &Interrupted, program: &TracedProgram<'_>, file: &str) -> String {
    let Interrupted { kernel, launch, warps, running, .. } = interrupted;
    let all = output::count(u64::from(*warps));
    let left = output::count(running.len() as u64);
    let mut text =
        format!("interrupted: kernel `{kernel}`, launch {launch}: {left} of {all} warps have not ended\n");
    let places = places_of(running);
    for (at, Warps { number, first, least, most }) in places.iter().take(PLACES) {
        let warp_word = if *number == 1 { "warp" } else { "warps" };
        let words = match at {
            Place::In(id) => {
                let is = if *number == 1 { "is" } else { "are" };
                let (least, most) = (output::count((*least).into()), output::count((*most).into()));
                let times = if least == most { least } else { format!("{least} to {most}") };
                format!("{is} in {}, {times} times or more", place(*id, program))
            }
            Place::Past(id) => format!("last came past {}", place(*id, program)),
            Place::Unknown => "have not begun, or are still where they came first".to_owned(),
        };
        text += &format!("  {} {warp_word} {words}; the first is warp {first}\n", output::count(*number));
    }
    if places.len() > PLACES {
        text += &format!("  and others at {} further places\n", places.len() - PLACES);
    }
    text + &format!("the trace up to here is in {file}\n")
}

/// The places at which warps are, those of the most warps first.
fn places_of(running: &[Standing]) -> Vec<(Place, Warps)> {
    let mut places: BTreeMap<Place, Warps> = BTreeMap::new();
    for standing in running {
        // Groups of a warp that have parted are at several places, or at the same one in runs of their own.
        let mut at: BTreeMap<Place, u32> = BTreeMap::new();
        for run in &standing.open {
            let count = at.entry(Place::In(run.location)).or_default();
            *count = (*count).max(run.count);
        }
        if at.is_empty() {
            at.insert(standing.last.map_or(Place::Unknown, |(location, _)| Place::Past(location)), 0);
        }
        for (place, count) in at {
            places.entry(place).or_insert_with(|| Warps::first(standing.warp)).add(count);
        }
    }
    let mut places: Vec<(Place, Warps)> = places.into_iter().collect();
    places.sort_by_key(|(_, warps)| Reverse(warps.number));
    places
}

/// A location as a person names it.
fn place(id: u16, program: &TracedProgram<'_>) -> String {
    for points in program.points {
        if let Some(point) = points.points.iter().find(|point| point.id == id) {
            let (line, _) = points.position(point).unwrap_or((0, 0));
            return format!("{} ({}:{line})", point.name, points.file);
        }
    }
    for module in program.modules {
        if let Some(location) = module.locations.iter().find(|location| location.id == id) {
            return format!("{} ({}:{})", location.name, module.file, location.line);
        }
    }
    format!("location {id}")
}

#[cfg(test)]
mod tests {
    use warptrace_host::OpenRun;

    use super::*;

    #[test]
    fn warps_are_counted_by_where_they_are() {
        let open = |location, count| OpenRun { location, mask: 1, count };
        let standing = |warp, last, open: &[OpenRun]| Standing { warp, lanes: 1, last, open: open.to_vec() };
        let running = [
            standing(2, None, &[]),
            standing(3, Some((5, 1)), &[]),
            standing(4, Some((5, 1)), &[open(7, 1024), open(6, 1), open(7, 2)]),
            standing(5, None, &[open(7, 64)]),
        ];
        let places = places_of(&running);
        let found: Vec<_> = places
            .iter()
            .map(|(at, warps)| (*at, warps.number, warps.first, warps.least, warps.most))
            .collect();
        let expected = [
            (Place::In(7), 2, 4, 64, 1024),
            (Place::In(6), 1, 4, 1, 1),
            (Place::Past(5), 1, 3, 0, 0),
            (Place::Unknown, 1, 2, 0, 0),
        ];
        assert_eq!(found, expected);
    }
}
