//! Words and numbers for people.

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

/// How many characters a line of the terminal has; `None` if standard output is none.
pub fn terminal_width() -> Option<usize> {
    Term::stdout().size_checked().map(|(_, width)| usize::from(width))
}

/// `1,234,567`.
pub fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// `1.2 MiB`.
pub fn bytes(number: u64) -> String {
    indicatif::BinaryBytes(number).to_string()
}

/// `12.3 ms`.
pub fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// How many times `less` goes into `more`: `38.2`, or `1,234`.
pub fn times(more: u64, less: u64) -> String {
    let ratio = more as f64 / less.max(1) as f64;
    if ratio < 99.95 { format!("{ratio:.1}") } else { count(ratio.round() as u64) }
}

/// A codec with its parameters.
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

/// Makes a progress bar over a number of things, drawn on standard error where that is a terminal.
///
/// # Panics
/// Never: the template is a constant.
pub fn progress_bar(message: &'static str, things: &str, total: u64) -> ProgressBar {
    let template = format!("{{msg:>12}} [{{bar:40}}] {{human_pos}}/{{human_len}} {things}{{left}}");
    let left = |state: &ProgressState, out: &mut dyn fmt::Write| {
        // Nothing is known before the first thing is done.
        if state.pos() > 0 && !state.eta().is_zero() {
            // A bar that cannot be drawn is no error.
            let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
        }
    };
    let style = ProgressStyle::with_template(&template).expect("a constant template").with_key("left", left);
    ProgressBar::new(total).with_style(style).with_message(message)
}

/// Returns an error and its causes, each said once: some errors of the libraries say their cause themselves.
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

/// Largest integer up to which all readers of JSON keep each one, 2^53.
const EXACT_INTEGER: u64 = 1 << 53;

/// Prints JSON on standard output, in lines. Integers above 2^53 are texts of their digits, since many
/// readers keep no more bits of a number.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_json(value: &impl Serialize) -> io::Result<()> {
    write_json(StandardOutput, value)
}

/// As [`print_json`], into `out`.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_json(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    value.serialize(&mut Serializer::with_formatter(&mut out, Exact::default()))?;
    writeln!(out)?;
    out.flush()
}

/// As [`PrettyFormatter`], but for the integers of [`print_json`].
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

/// A path, a URL or an argument as it may be printed, on one line, without what of a URL is secret.
pub fn shown_name(text: impl AsRef<OsStr>) -> String {
    warptrace_store::shown_url(&text.as_ref().to_string_lossy())
}

/// The last part of the name of a file or of a URL, as it may be printed.
pub fn last_name(path: &Path) -> String {
    Path::new(&shown_name(path))
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The URL, if that is what a path is: it is opened by `warptrace_store`.
pub fn url_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| warptrace_store::is_url(text))
}

thread_local! {
    /// Standard output and standard error of this thread, while [`kept`] keeps them.
    static KEPT: RefCell<Option<[Vec<u8>; 2]>> = const { RefCell::new(None) };
}

/// Returns what `run` returns, and what it writes to standard output and standard error on this thread.
pub(crate) fn kept<T>(run: impl FnOnce() -> T) -> (T, [Vec<u8>; 2]) {
    KEPT.set(Some(Default::default()));
    let value = run();
    (value, KEPT.take().unwrap_or_default())
}

/// Adds `bytes` to standard output (0) or standard error (1) of this thread, and returns true, if these are kept.
fn keeps(stream: usize, bytes: &[u8]) -> bool {
    KEPT.with_borrow_mut(|kept| kept.as_mut().map(|kept| kept[stream].extend_from_slice(bytes))).is_some()
}

/// Returns whether what this thread prints is kept.
pub(crate) fn is_kept() -> bool {
    keeps(0, &[])
}

/// Standard output, whose errors say that it is that.
#[derive(Clone, Copy, Debug)]
pub struct StandardOutput;

/// Has an error of standard output say so.
///
/// # Errors
/// The one given.
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

/// Writes lines in which nothing acts on a terminal, wherever their text is from.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_lines(mut out: impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "{}", shown_lines(text))
}

/// Prints a line on standard output and returns how that went. A reader that has seen enough (`warptrace info
/// … | head`) is an error here, which `main` takes for the end; `println!` would panic.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::output::write_lines($crate::output::StandardOutput, &format!($($text)*)) };
}
pub use crate::{say, tell};

/// Prints a line on standard error, where that can be written: `eprintln!` would panic where it cannot.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::output::write_errors(&format!($($text)*)) };
}

/// Whether standard output can be told what standard error cannot; unset: standard error can.
static DIVERTED: OnceLock<bool> = OnceLock::new();

/// From now on nothing is written to standard error, which is a file that is read, but to standard output, if
/// that is another one.
pub fn divert_errors(to_output: bool) {
    // What was said first stays.
    let _ = DIVERTED.set(to_output);
}

/// Has errors told elsewhere if standard error is redirected to a trace, which they would damage: to standard
/// output, if that is none.
pub fn keep_errors_from_traces() {
    let is_trace = |stream: &str| {
        let starts = || {
            // Opening a pipe would be one more reader of it.
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

/// Writes lines to standard error, or where they are diverted to, if that can be written.
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

/// Whether the reader of standard output has seen enough (`warptrace decode … | head`), which is no error.
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
