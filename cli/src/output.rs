//! Words and numbers for people.

use std::time::Duration;

use warptrace_format::codec::CodecSpec;

/// `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// `1.2 MiB`.
pub(crate) fn bytes(number: u64) -> String {
    indicatif::BinaryBytes(number).to_string()
}

/// `12.3 ms`.
pub(crate) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// How many times `less` goes into `more`: `38.2`, or `1,234`.
pub(crate) fn times(more: u64, less: u64) -> String {
    let ratio = more as f64 / less.max(1) as f64;
    if ratio < 99.95 { format!("{ratio:.1}") } else { count(ratio.round() as u64) }
}

/// A codec with its parameters.
pub(crate) fn codec(codec: CodecSpec) -> String {
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

/// Prints a line on standard output and answers how that went. A reader that has seen enough (`warptrace info
/// … | head`) is an error here, which `main` takes for the end; `println!` would panic.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        writeln!(std::io::stdout(), $($text)*)
    }};
}
pub(crate) use say;
