//! Terminal input and output.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::style::force_color_output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};
use warptrace_analysis::Selection;
use warptrace_decoder::TraceFile;

use crate::app::{App, Reading};
use crate::draw::{draw, remove_colours};
use crate::error::TuiError;
use crate::work::Worker;

/// Time to wait for a key before answers are checked.
const WAIT: Duration = Duration::from_millis(50);
/// Redraw interval while figures fill in.
const REDRAW: Duration = Duration::from_millis(200);

/// Time after a signal in which the screen may end by itself.
const GRACE: Duration = Duration::from_millis(500);

#[cfg(unix)]
const ENDING: [i32; 3] = [signal_hook::consts::SIGHUP, SIGINT, SIGTERM];
#[cfg(not(unix))]
const ENDING: [i32; 2] = [SIGINT, SIGTERM];

/// Options of the terminal interface.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Name of the trace on the screen: its file name.
    pub name: String,
    /// Warps to analyse.
    pub selection: Selection,
    /// Folders to search for sources. The current directory is searched after them.
    pub sources: Vec<PathBuf>,
}

impl Options {
    /// Returns options for a whole trace called `name`.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// Checks that standard input and output are terminals; fails with [`TuiError::NoTerminal`] if not.
pub fn check_terminal() -> Result<(), TuiError> {
    if io::stdin().is_terminal() && io::stdout().is_terminal() { Ok(()) } else { Err(TuiError::NoTerminal) }
}

/// Shows a trace until the user quits, and restores the terminal, also after an error, a panic or a signal.
/// Ctrl-C in the terminal quits without a signal.
///
/// # Errors
/// If there is no terminal or it fails, the trace does not have what was selected, a thread that reads the
/// trace panics, or on SIGINT, SIGTERM and SIGHUP.
pub fn run(trace: TraceFile, options: Options) -> Result<(), TuiError> {
    check_terminal()?;
    // Selection errors are reported before the screen opens.
    options.selection.launches(&trace)?;
    let trace = Arc::new(trace);
    let worker = Worker::start(&trace);
    let Options { name, selection, sources } = options;
    let mut app = App::new(trace, name, selection, &sources);
    let signals = Signals::catch()?;
    let mut terminal = match ratatui::try_init() {
        Ok(terminal) => terminal,
        Err(error) => {
            ratatui::restore();
            return Err(error.into());
        }
    };
    let result = show(&mut terminal, &mut app, &worker, &signals);
    ratatui::restore();
    if let Reading::Going { watch, .. } = &app.reading {
        watch.stop();
    }
    result
}

fn show(
    terminal: &mut DefaultTerminal,
    app: &mut App,
    worker: &Worker,
    signals: &Signals,
) -> Result<(), TuiError> {
    let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // Without colours, crossterm would write codes that remove the mark of the selected row.
    force_color_output(true);
    let mut drawn: Option<Instant> = None;
    loop {
        while let Some(answer) = worker.answer().map_err(|_| TuiError::Worker)? {
            app.take(answer);
            drawn = None;
        }
        for request in app.requests.drain(..) {
            worker.ask(request).map_err(|_| TuiError::Worker)?;
        }
        let fills = matches!(app.reading, Reading::Going { .. });
        if drawn.is_none_or(|at| fills && at.elapsed() >= REDRAW) {
            terminal.draw(|frame| {
                draw(frame, app);
                if !has_colours {
                    remove_colours(frame);
                }
            })?;
            drawn = Some(Instant::now());
        }
        if event::poll(WAIT)? {
            match event::read()? {
                Event::Key(key) => app.key(key),
                Event::Resize(..) => {}
                _ => continue,
            }
            drawn = None;
        }
        if app.quits {
            return Ok(());
        }
        if let Some(signal) = signals.caught() {
            return Err(TuiError::Signal { signal });
        }
    }
}

/// Caught signals, so that the terminal can be restored before the process ends.
struct Signals {
    caught: Arc<AtomicUsize>,
    /// Cleared when the screen has ended.
    are_noted: Arc<AtomicBool>,
    ids: Vec<SigId>,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        let (caught, are_noted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
        let mut signals = Self { caught, are_noted, ids: Vec::new() };
        for signal in ENDING {
            let number = usize::try_from(signal).unwrap_or(1);
            signals.ids.push(flag::register_usize(signal, Arc::clone(&signals.caught), number)?);
        }
        let (caught, are_noted) = (Arc::clone(&signals.caught), Arc::clone(&signals.are_noted));
        thread::spawn(move || end_by_signal(&caught, &are_noted));
        Ok(signals)
    }

    fn caught(&self) -> Option<i32> {
        match self.caught.load(Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

/// Ends the process if the screen does not end in time: crossterm reads a vanished terminal forever.
fn end_by_signal(caught: &AtomicUsize, are_noted: &AtomicBool) {
    while are_noted.load(Ordering::Relaxed) {
        thread::sleep(GRACE);
        let signal = i32::try_from(caught.load(Ordering::Relaxed)).unwrap_or(0);
        if signal == 0 {
            continue;
        }
        thread::sleep(GRACE);
        if are_noted.load(Ordering::Relaxed) {
            let _ = low_level::emulate_default_handler(signal);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.are_noted.store(false, Ordering::Relaxed);
        for id in self.ids.drain(..) {
            low_level::unregister(id);
        }
    }
}
