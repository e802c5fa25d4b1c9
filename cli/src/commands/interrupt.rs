//! Ctrl-C while a kernel runs.

use std::collections::BTreeMap;
use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use warptrace_host::{Interrupted, TracedProgram};

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

/// Says where the warps of an interrupted kernel stand, and ends the process: nothing else ends a kernel that hangs.
pub(super) fn end(interrupted: &Interrupted, program: &TracedProgram<'_>, file: &str) -> ! {
    eprint!("{}", describe(interrupted, program, file));
    process::exit(i32::from(exit::FINDINGS));
}

fn describe(interrupted: &Interrupted, program: &TracedProgram<'_>, file: &str) -> String {
    let Interrupted { kernel, launch, warps, running, .. } = interrupted;
    let all = output::count(u64::from(*warps));
    let left = output::count(running.len() as u64);
    let mut text =
        format!("interrupted: kernel `{kernel}`, launch {launch}: {left} of {all} warps have not ended\n");
    // By the last run that each warp has left.
    let mut places: BTreeMap<Option<u16>, Vec<u32>> = BTreeMap::new();
    for standing in running {
        places.entry(standing.last.map(|(location, _)| location)).or_default().push(standing.warp);
    }
    let mut places: Vec<(Option<u16>, Vec<u32>)> = places.into_iter().collect();
    places.sort_by_key(|(_, warps)| std::cmp::Reverse(warps.len()));
    for (location, warps) in places.iter().take(PLACES) {
        let count = output::count(warps.len() as u64);
        let warp_word = if warps.len() == 1 { "warp" } else { "warps" };
        let last = match location {
            Some(id) => format!("last came past {}", place(*id, program)),
            None => "have not begun, or are still where they came first".to_owned(),
        };
        let first = warps.first().copied().unwrap_or_default();
        text += &format!("  {count} {warp_word} {last}; the first is warp {first}\n");
    }
    if places.len() > PLACES {
        text += &format!("  and others at {} further places\n", places.len() - PLACES);
    }
    text + &format!("the trace up to here is in {file}\n")
}

/// A location as a person names it.
fn place(id: u16, program: &TracedProgram<'_>) -> String {
    for points in program.points {
        if let Some(point) = points.points.iter().find(|point| point.id == id) {
            let (line, _) = points.position(point).unwrap_or((0, 0));
            return format!("{} ({}:{line})", point.name, points.file);
        }
    }
    format!("location {id}")
}
