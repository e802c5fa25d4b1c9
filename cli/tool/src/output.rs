//! Formatting and printing of text, numbers and JSON.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use console::Term;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::MAGIC;
use warptrace_format::shown_lines;

/// Returns the width of the terminal in characters; `None` if standard output is not a terminal.
pub fn terminal_width() -> Option<usize> {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    Term::stdout().size_checked().map(|(_, width)| usize::from(width)).or_else(columns)
}

/// Formats a count: `1,234,567`.
pub fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// Formats a size: `1.2 MiB`.
pub fn bytes(number: u64) -> String {
    indicatif::BinaryBytes(number).to_string()
}

/// Formats a duration: `12.3 ms`.
pub fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// Formats the ratio of `more` to `less`: `38.2`, or `1,234`.
pub fn times(more: u64, less: u64) -> String {
    let ratio = more as f64 / less.max(1) as f64;
    if ratio < 99.95 { format!("{ratio:.1}") } else { count(ratio.round() as u64) }
}

/// Formats a codec with its parameters.
pub fn codec(codec: CodecSpec) -> String {
    match codec {
        CodecSpec::Ecl(params) => format!(
            "{}: {} bits of hash, shift {}, window of {}",
            codec.name(),
            params.hash_bits,
            params.shift,
            bytes(params.window().into())
        ),
        CodecSpec::Predict(params) => format!("{}: {} slots", codec.name(), params.slots()),
        CodecSpec::Raw => format!("{}: six bytes an event", codec.name()),
        _ => codec.name().to_owned(),
    }
}

/// Returns a progress bar over `total` things, drawn on standard error if that is a terminal. Panics if
/// `things` makes the template invalid.
pub fn progress_bar(message: &'static str, things: &str, total: u64) -> ProgressBar {
    let template = format!("{{msg:>12}} [{{bar:40}}] {{human_pos}}/{{human_len}} {things}{{left}}");
    let left = |state: &ProgressState, out: &mut dyn fmt::Write| {
        // No estimate exists before the first thing is done.
        if state.pos() > 0 && !state.eta().is_zero() {
            // A failure to draw the bar is ignored.
            let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
        }
    };
    let style = ProgressStyle::with_template(&template).expect("a constant template").with_key("left", left);
    ProgressBar::new(total).with_style(style).with_message(message)
}

/// Formats an error with its causes, each once: some library errors contain the text of their cause.
pub fn message(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        match parts.last_mut() {
            Some(last) if cause.starts_with(last.as_str()) => *last = cause,
            Some(last) if last.contains(&cause) => {}
            _ => parts.push(cause),
        }
    }
    parts.join(": ")
}

/// Largest integer up to which all readers of JSON keep each integer, 2^53.
const EXACT_INTEGER: u64 = 1 << 53;

/// Prints indented JSON to standard output. Integers above 2^53 become strings of digits, since many readers
/// store numbers with less precision.
pub fn print_json(value: &impl Serialize) -> io::Result<()> {
    write_json(StandardOutput, value)
}

/// Like [`print_json`], but writes to `out`.
pub fn write_json(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    value.serialize(&mut Serializer::with_formatter(&mut out, Exact::default()))?;
    writeln!(out)?;
    out.flush()
}

/// Like [`PrettyFormatter`], but writes integers as described at [`print_json`].
#[derive(Default)]
struct Exact(PrettyFormatter<'static>);

impl Formatter for Exact {
    fn write_u64<W: ?Sized + Write>(&mut self, out: &mut W, value: u64) -> io::Result<()> {
        if value > EXACT_INTEGER { write!(out, "\"{value}\"") } else { self.0.write_u64(out, value) }
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

/// Returns a path, URL or argument as one printable line. Removes secrets from URLs.
pub fn shown_name(text: impl AsRef<OsStr>) -> String {
    warptrace_store::shown_url(&text.as_ref().to_string_lossy())
}

/// Returns the last part of a file name or URL as printable text.
pub fn last_name(path: &Path) -> String {
    Path::new(&shown_name(path))
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns the path as a URL if it is one. `warptrace_store` opens URLs.
pub fn url_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| warptrace_store::is_url(text))
}

thread_local! {
    /// Captured standard output and standard error of this thread, while [`kept`] runs.
    static KEPT: RefCell<Option<[Vec<u8>; 2]>> = const { RefCell::new(None) };
}

/// Calls `run`. Returns its result, and this thread's captured standard output and standard error.
pub(crate) fn kept<T>(run: impl FnOnce() -> T) -> (T, [Vec<u8>; 2]) {
    KEPT.set(Some(Default::default()));
    let value = run();
    (value, KEPT.take().unwrap_or_default())
}

/// Appends `bytes` to the captured standard output (0) or standard error (1). Returns false if nothing is
/// captured.
fn keeps(stream: usize, bytes: &[u8]) -> bool {
    KEPT.with_borrow_mut(|kept| kept.as_mut().map(|kept| kept[stream].extend_from_slice(bytes))).is_some()
}

pub(crate) fn is_kept() -> bool {
    keeps(0, &[])
}

/// Standard output. Its errors name it.
#[derive(Clone, Copy, Debug)]
pub struct StandardOutput;

/// Adds to an error that it is from standard output.
pub fn of_standard_output<T>(done: io::Result<T>) -> io::Result<T> {
    done.map_err(|error| io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if keeps(0, bytes) {
            return Ok(bytes.len());
        }
        of_standard_output(io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        of_standard_output(io::stdout().flush())
    }
}

/// Writes lines, with characters that would act on a terminal escaped. Fails if `out` cannot be written.
pub fn write_lines(mut out: impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "{}", shown_lines(text))
}

/// Prints a line to standard output and returns the result. A broken pipe (`warptrace info … | head`) is an
/// error that `main` treats as success; `println!` would panic.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::output::write_lines($crate::output::StandardOutput, &format!($($text)*)) };
}
pub use crate::{say, tell};

/// Prints a line to standard error and ignores failures; `eprintln!` would panic.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::output::write_errors(&format!($($text)*)) };
}

/// Destination of messages: unset: standard error; true: standard output; false: none.
static DIVERTED: OnceLock<bool> = OnceLock::new();

/// Diverts messages from standard error, which is redirected to a file that the command reads: to standard
/// output if `to_output` is true, otherwise nowhere.
pub fn divert_errors(to_output: bool) {
    // The first call decides.
    let _ = DIVERTED.set(to_output);
}

/// Diverts messages if standard error is redirected to a trace, which they would damage: to standard output,
/// unless that is a trace too.
pub fn keep_errors_from_traces() {
    let is_trace = |stream: &str| {
        let starts = || {
            // Opening a pipe would add a reader.
            fs::metadata(stream).ok().filter(fs::Metadata::is_file)?;
            let mut start = [0; MAGIC.len()];
            File::open(stream).ok()?.read_exact(&mut start).ok().map(|()| start == MAGIC)
        };
        starts().unwrap_or(false)
    };
    if is_trace("/dev/fd/2") {
        divert_errors(!is_trace("/dev/fd/1"));
    }
}

/// Writes lines to standard error, or to where messages are diverted. Ignores failures.
pub fn write_errors(text: &str) {
    if is_kept() {
        keeps(1, format!("{}\n", shown_lines(text)).as_bytes());
        return;
    }
    let _ = match DIVERTED.get() {
        None => write_lines(io::stderr(), text),
        Some(true) => write_lines(io::stdout(), text),
        Some(false) => Ok(()),
    };
}

/// Returns true if the reader closed the pipe (`warptrace decode … | head`), which is not an error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_readers_round_are_texts() {
        let value =
            serde_json::json!({"a": [1_u64 << 53, (1_u64 << 53) + 1, u64::MAX, -3], "b": [], "c": {}});
        let mut out = Vec::new();
        value.serialize(&mut Serializer::with_formatter(&mut out, Exact::default())).expect("a list");
        let mut expected = serde_json::to_string_pretty(&value).expect("JSON");
        for large in ["9007199254740993", "18446744073709551615"] {
            expected = expected.replace(large, &format!("\"{large}\""));
        }
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn no_cause_is_said_twice() {
        let causes = ["no such file", "cannot open a: no such file", "cannot open a", "recording failed"];
        let mut error = anyhow::Error::msg(causes[0]);
        for cause in &causes[1..] {
            error = error.context(*cause);
        }
        assert_eq!(message(&error), "recording failed: cannot open a: no such file");
    }
}
