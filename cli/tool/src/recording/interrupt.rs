//! Ctrl-C while a kernel runs.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use warptrace_host::{Interrupted, Policy};

use crate::opened::said_of;
use crate::output::{self, shown_name};

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

/// Says where the warps of an interrupted kernel are, as far as the file tells, and ends the process: nothing
/// else ends a kernel that hangs.
pub(super) fn end(interrupted: &Interrupted, path: &Path, policy: Policy, asked: &Asked) -> ! {
    let Interrupted { kernel, launch, .. } = interrupted;
    // What was written to a pipe cannot be read.
    let mut said = if path.is_file() { said_of(path) } else { Vec::new() };
    if said.is_empty() {
        said.push(format!("launch {launch} of kernel `{kernel}` was interrupted"));
    }
    said.iter().for_each(|line| output::tell!("interrupted: {line}"));
    if policy != Policy::Stop {
        output::tell!("where its warps are is known with `--policy stop`");
    }
    output::tell!("the trace up to here is in {}", shown_name(path));
    asked.end()
}
