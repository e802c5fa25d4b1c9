//! Handles SIGINT (Ctrl-C) and SIGTERM while a kernel runs.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use warptrace_host::{Interrupted, Policy};

use crate::opened::said_of;
use crate::output::{self, shown_name};

/// State of a request to end the recording by a signal.
#[derive(Clone, Debug)]
pub struct Asked {
    /// True after a signal has arrived.
    pub flag: Arc<AtomicBool>,
    /// Number of the last signal.
    signal: Arc<AtomicUsize>,
}

/// Makes the first SIGINT or SIGTERM set the flag, and a second one end the process at once. Fails if the
/// handlers cannot be registered.
pub fn watch() -> io::Result<Asked> {
    let asked = Asked { flag: Arc::default(), signal: Arc::new(AtomicUsize::new(SIGINT as usize)) };
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the default action applies only if an earlier signal has set the flag.
        flag::register_conditional_default(signal, Arc::clone(&asked.flag))?;
        flag::register_usize(signal, Arc::clone(&asked.signal), signal as usize)?;
        flag::register(signal, Arc::clone(&asked.flag))?;
    }
    Ok(asked)
}

impl Asked {
    /// Returns the exit code that a shell expects after the signal: 128 plus its number.
    pub fn code(&self) -> u8 {
        u8::try_from(128 + self.signal.load(Ordering::Relaxed)).unwrap_or(u8::MAX)
    }

    /// If a signal has arrived, prints where the trace is, and ends the process as [`end`](Self::end).
    pub(super) fn end_if_set(&self, place: impl FnOnce() -> String) {
        if self.flag.load(Ordering::Relaxed) {
            output::tell!("interrupted: no kernel ran then; {}", place());
            self.end();
        }
    }

    /// Ends the process by the default action of the signal: a shell sees 128 plus its number.
    fn end(&self) -> ! {
        let _ = io::stdout().flush();
        let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or(SIGINT);
        let _ = low_level::emulate_default_handler(signal);
        // Reached only where the system has no signals.
        std::process::exit(128 + signal)
    }
}

/// Prints where the warps of an interrupted kernel are, if the trace contains it, and ends the process,
/// because nothing else ends a kernel that hangs.
pub(super) fn end(interrupted: &Interrupted, path: &Path, policy: Policy, asked: &Asked) -> ! {
    let Interrupted { kernel, launch, .. } = interrupted;
    // A pipe cannot be read back.
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
