//! Ctrl-C while a kernel runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use warptrace_format::file::LocationInfo;
use warptrace_host::{Interrupted, Standing};

use crate::output;

/// Places that are named.
const MAX_POSITIONS: usize = 12;

/// What has asked a recording to end.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Whether a signal has.
    pub flag: Arc<AtomicBool>,
    /// The last that has.
    signal: Arc<AtomicUsize>,
}

/// From now on the first SIGINT or SIGTERM sets the flag, and a second one ends the process at once.
///
/// # Errors
/// The system's.
pub fn watch() -> io::Result<Asked> {
    let asked = Asked { flag: Arc::default(), signal: Arc::new(AtomicUsize::new(SIGINT as usize)) };
    for signal in [SIGINT, SIGTERM] {
        // In this order: what the second does is only done where the first has set the flag before.
        flag::register_conditional_default(signal, Arc::clone(&asked.flag))?;
        flag::register_usize(signal, Arc::clone(&asked.signal), signal as usize)?;
        flag::register(signal, Arc::clone(&asked.flag))?;
    }
    Ok(asked)
}

impl Asked {
    /// Returns what a shell expects of a program that the signal has ended: 128 and its number.
    pub fn code(&self) -> u8 {
        u8::try_from(128 + self.signal.load(Ordering::Relaxed)).unwrap_or(u8::MAX)
    }

    /// Ends the process as [`end`](Self::end) if a signal has come, and says where the trace is.
    pub(super) fn end_if_set(&self, place: impl FnOnce() -> String) {
        if self.flag.load(Ordering::Relaxed) {
            output::tell!("interrupted: no kernel ran then; {}", place());
            self.end();
        }
    }

    /// Ends the process by the signal, as it would without `watch`: a shell sees 128 and its number.
    fn end(&self) -> ! {
        let _ = io::stdout().flush();
        let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or(SIGINT);
        let _ = low_level::emulate_default_handler(signal);
        // Not reached where the system has signals.
        std::process::exit(128 + signal)
    }
}

/// What a signal says before it ends a recording that writes nothing while a kernel runs.
const NOTHING_KEPT: &[u8] = b"interrupted: what the running kernel did is not in the trace; \
    record again with `--policy stream`, which writes while the kernel runs\n";

/// From now on SIGINT and SIGTERM say what to do for a trace of a kernel that does not end, and end the
/// process.
///
/// # Errors
/// The system's.
pub(super) fn explain() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        let said = move || {
            // SAFETY: the bytes are there for the whole run; `write` may be called in a handler.
            let _ =
                unsafe { libc::write(libc::STDERR_FILENO, NOTHING_KEPT.as_ptr().cast(), NOTHING_KEPT.len()) };
            // Nothing else is left to do: the process ends as without the message.
            let _ = low_level::emulate_default_handler(signal);
        };
        // SAFETY: `said` calls only what may be called in a handler.
        unsafe { low_level::register(signal, said) }?;
    }
    Ok(())
}

/// Says where the warps of an interrupted kernel stand, and ends the process: nothing else ends a kernel that
/// hangs.
pub(super) fn end(interrupted: &Interrupted, locations: &[LocationInfo], file: &str, asked: &Asked) -> ! {
    // Where that cannot be said, the file says it.
    let _ = io::stderr().write_all(describe(interrupted, locations, file).as_bytes());
    asked.end()
}

/// Where a warp is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    /// Lanes of it are in a run at this location.
    In(u16),
    /// The last run that lanes of it have left was at this location.
    Past(u16),
    Unknown,
}

/// Warps that are at a position.
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

fn describe(interrupted: &Interrupted, locations: &[LocationInfo], file: &str) -> String {
    let Interrupted { kernel, launch, warps, running, .. } = interrupted;
    let all = output::count(u64::from(*warps));
    let remaining = output::count(running.len() as u64);
    let mut text = format!(
        "interrupted: kernel `{kernel}`, launch {launch}: {remaining} of {all} warps have not ended\n"
    );
    let positions = positions_of(running);
    for (at, Warps { number, first, least, most }) in positions.iter().take(MAX_POSITIONS) {
        let warp_word = if *number == 1 { "warp" } else { "warps" };
        let words = match at {
            Position::In(id) => {
                let is = if *number == 1 { "is" } else { "are" };
                let (least, most) = (output::count((*least).into()), output::count((*most).into()));
                let times = if least == most { least } else { format!("{least} to {most}") };
                format!("{is} in {}, {times} times or more", name_of(*id, locations))
            }
            Position::Past(id) => format!("last came past {}", name_of(*id, locations)),
            Position::Unknown => "have not begun, or are still where they came first".to_owned(),
        };
        text += &format!("  {} {warp_word} {words}; the first is warp {first}\n", output::count(*number));
    }
    if positions.len() > MAX_POSITIONS {
        text += &format!("  and others at {} further trace points\n", positions.len() - MAX_POSITIONS);
    }
    text + &format!("the trace up to here is in {file}\n")
}

/// The positions at which warps are, those of the most warps first.
fn positions_of(running: &[Standing]) -> Vec<(Position, Warps)> {
    let mut positions: BTreeMap<Position, Warps> = BTreeMap::new();
    for standing in running {
        // Diverged groups of a warp are at several positions, or at the same one in runs of their own.
        let mut at: BTreeMap<Position, u32> = BTreeMap::new();
        for run in &standing.open {
            let count = at.entry(Position::In(run.location)).or_default();
            *count = (*count).max(run.count);
        }
        if at.is_empty() {
            at.insert(standing.last.map_or(Position::Unknown, |(location, _)| Position::Past(location)), 0);
        }
        for (position, count) in at {
            positions.entry(position).or_insert_with(|| Warps::first(standing.warp)).add(count);
        }
    }
    let mut positions: Vec<(Position, Warps)> = positions.into_iter().collect();
    positions.sort_by_key(|(_, warps)| Reverse(warps.number));
    positions
}

/// A location as a person names it.
fn name_of(id: u16, locations: &[LocationInfo]) -> String {
    match locations.iter().find(|location| location.id == id) {
        Some(location) => format!("{} ({}:{})", location.name, location.file, location.line),
        None => format!("location {id}"),
    }
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
        let positions = positions_of(&running);
        let found: Vec<_> = positions
            .iter()
            .map(|(at, warps)| (*at, warps.number, warps.first, warps.least, warps.most))
            .collect();
        let expected = [
            (Position::In(7), 2, 4, 64, 1024),
            (Position::In(6), 1, 4, 1, 1),
            (Position::Past(5), 1, 3, 0, 0),
            (Position::Unknown, 1, 2, 0, 0),
        ];
        assert_eq!(found, expected);
    }
}
