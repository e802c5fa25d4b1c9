//! Markers: the comments that trace points leave in a compiled kernel.
//!
//! ```text
//! // warptrace.loc 3            an event at location 3, with the lanes that execute it
//! // warptrace.loop.enter 3     a loop begins whose iterations are events at location 3
//! // warptrace.loop.tick 3 4    four iterations of the loop begin
//! // warptrace.loop.leave 3     the loop ends
//! ```
//! A wait has two markers. They record only if they are [replaced by event markers](EVENT_AT_WAIT):
//! ```text
//! // warptrace.wait 9            the lanes begin to wait, or have waited
//! ```
//! [`marker!`](crate::marker!) and [`Marker`]'s `Display` output are this text; [`Marker::parse`] reads it.
//!
//! A marker of data names the operand to record for each lane; it makes no event ([`DataMarker`]):
//! ```text
//! // warptrace.data 7 [%rd3+16]            the address that the next instruction uses
//! // warptrace.data 8 [%rd4] @!%p1         ... in the lanes where %p1 is false
//! // warptrace.data 9 %r5                  the value of a register
//! // warptrace.data 10 [%rd3+20] = 7       an address derived from site 7: nothing is recorded
//! ```
//! A marker of a value states that a register holds a value that the source names ([`ValueMarker`]). If
//! values are recorded, a marker of data is inserted before it.
//! ```text
//! // warptrace.value 12 f32 %f5             value 12 of a module of `#[warptrace::kernels]`
//! .pragma "WARPTRACE_VALUE f32 %f5 residual";  a value named in C++; a comment has the same form
//! ```

mod value;

use core::fmt;

pub use self::value::{ValueMarker, ValueName};
use crate::data::MAX_SITE;

/// Prefix of a marker's text, after `//`.
pub const PREFIX: &str = "warptrace.";

/// Expands to the inline assembly template of a marker: `marker!(loc)`, `marker!(enter)`, `marker!(tick)`,
/// `marker!(leave)`, `marker!(wait)`. The operands are the location and, for `tick`, the number of
/// iterations; for `marker!(value f32)`, of a [type](crate::data::ValueType), the value's id and a register.
#[macro_export]
macro_rules! marker {
    (loc) => {
        "// warptrace.loc {}"
    };
    (enter) => {
        "// warptrace.loop.enter {}"
    };
    (tick) => {
        "// warptrace.loop.tick {} {}"
    };
    (leave) => {
        "// warptrace.loop.leave {}"
    };
    (wait) => {
        "// warptrace.wait {}"
    };
    (value $of:ident) => {
        concat!("// warptrace.value {} ", stringify!($of), " {}")
    };
}

/// Prefix of a marker at a wait, and the prefix that replaces it if waits are recorded.
pub const EVENT_AT_WAIT: [&str; 2] = ["// warptrace.wait ", "// warptrace.loc "];

/// Comment that a trace point leaves in a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// An event at a location.
    Event(u16),
    /// The beginning of a loop.
    Enter(u16),
    /// Iterations of a loop: location and number.
    Tick(u16, u16),
    /// The end of a loop.
    Leave(u16),
}

/// Reason why a comment that begins like a marker is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerError<'a> {
    /// A required part is missing.
    Missing(&'static str),
    /// A word is not the expected number.
    Number {
        /// Meaning of the number.
        what: &'static str,
        /// The word.
        word: &'a str,
        /// Maximum of the number; the minimum is 1.
        most: u16,
    },
    /// A word is not an operand that can be recorded.
    Operand(&'a str),
    /// A word is not a type of a value.
    Type(&'a str),
    /// The marker's name is unknown.
    Unknown(&'a str),
    /// A word follows the marker.
    Follows(&'a str),
}

impl fmt::Display for MarkerError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(what) => write!(f, "{what} is missing"),
            Self::Number { what, word, most } => {
                write!(f, "`{word}` is not {what}, a number from 1 to {},{:03}", most / 1000, most % 1000)
            }
            Self::Operand(word) => write!(f, "`{word}` is no address in brackets and no register"),
            Self::Type(word) => write!(f, "`{word}` is none of the types u32, i32, u64, i64, f32 and f64"),
            Self::Unknown(kind) => write!(f, "`{PREFIX}{kind}` is no marker that this version knows"),
            Self::Follows(word) => write!(f, "`{word}` follows the marker"),
        }
    }
}

impl core::error::Error for MarkerError<'_> {}

impl Marker {
    /// Parses a comment. Returns `None` for no marker, and for one of [data](DataMarker), of a
    /// [value](ValueMarker) or at a [wait](EVENT_AT_WAIT). Returns an error for a malformed marker.
    pub fn parse(comment: &str) -> Option<Result<Self, MarkerError<'_>>> {
        let (kind, words) = words_of(comment)?;
        (![DATA, WAIT, VALUE].contains(&kind)).then(|| Self::parse_words(kind, words))
    }

    fn parse_words<'a>(
        kind: &'a str,
        mut words: impl Iterator<Item = &'a str>,
    ) -> Result<Self, MarkerError<'a>> {
        let mut number = |what| parse_number(words.next(), what, u16::MAX);
        let marker = match kind {
            "loc" => Self::Event(number("the location")?),
            "loop.enter" => Self::Enter(number("the location")?),
            "loop.tick" => Self::Tick(number("the location")?, number("the number of iterations")?),
            "loop.leave" => Self::Leave(number("the location")?),
            other => return Err(MarkerError::Unknown(other)),
        };
        match words.next() {
            None => Ok(marker),
            Some(word) => Err(MarkerError::Follows(word)),
        }
    }

    /// Returns the location.
    pub const fn location(self) -> u16 {
        match self {
            Self::Event(location)
            | Self::Enter(location)
            | Self::Tick(location, _)
            | Self::Leave(location) => location,
        }
    }

    /// Returns the location and number of events, one per iteration; `None` at a loop's begin or end.
    pub const fn events(self) -> Option<(u16, u32)> {
        match self {
            Self::Event(location) => Some((location, 1)),
            Self::Tick(location, count) => Some((location, count as u32)),
            Self::Enter(_) | Self::Leave(_) => None,
        }
    }
}

const DATA: &str = "data";
const WAIT: &str = "wait";
const VALUE: &str = "value";

/// Returns the name of a marker and the words after it; `None` if the comment does not begin like a marker.
fn words_of(comment: &str) -> Option<(&str, core::str::SplitAsciiWhitespace<'_>)> {
    let text = comment.strip_prefix("//")?.trim();
    let mut words = text.strip_prefix(PREFIX)?.split_ascii_whitespace();
    Some((words.next().unwrap_or_default(), words))
}

fn parse_number<'a>(word: Option<&'a str>, what: &'static str, most: u16) -> Result<u16, MarkerError<'a>> {
    let word = word.ok_or(MarkerError::Missing(what))?;
    match word.parse::<u16>() {
        Ok(number) if number != 0 && number <= most => Ok(number),
        _ => Err(MarkerError::Number { what, word, most }),
    }
}

/// Marker of data: the operand to record for each lane that executes it ([`crate::data`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataMarker<'a> {
    /// The site, 1 to [`MAX_SITE`].
    pub site: u16,
    /// An address in brackets as in PTX but without blanks, or a register.
    pub operand: &'a str,
    /// The predicate of the lanes that record; `None` if all record.
    pub guard: Option<DataGuard<'a>>,
    /// The source site, if the accesses are derived from another site and nothing is recorded.
    pub root: Option<u16>,
}

/// Predicate of a marker of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataGuard<'a> {
    /// The register.
    pub predicate: &'a str,
    /// True if the lanes record whose predicate is false.
    pub negated: bool,
}

impl<'a> DataMarker<'a> {
    /// Parses a comment. Returns `None` if it is no marker of data, and an error if it is a malformed one.
    pub fn parse(comment: &'a str) -> Option<Result<Self, MarkerError<'a>>> {
        let (kind, words) = words_of(comment)?;
        (kind == DATA).then(|| Self::parse_words(words))
    }

    fn parse_words(mut words: impl Iterator<Item = &'a str>) -> Result<Self, MarkerError<'a>> {
        let site = parse_number(words.next(), "the site", MAX_SITE)?;
        let operand = words.next().ok_or(MarkerError::Missing("what is recorded"))?;
        let name = match operand.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').unwrap_or_default(),
            None => operand,
        };
        if !Self::is_written(name) {
            return Err(MarkerError::Operand(operand));
        }
        let mut next = words.next();
        let guard = match next {
            None | Some("=") => None,
            Some(word) => {
                next = words.next();
                let name = word.strip_prefix('@').ok_or(MarkerError::Follows(word))?;
                let (negated, predicate) = match name.strip_prefix('!') {
                    Some(name) => (true, name),
                    None => (false, name),
                };
                if !Self::is_written(predicate) {
                    return Err(MarkerError::Operand(word));
                }
                Some(DataGuard { predicate, negated })
            }
        };
        let root = match next {
            Some("=") => Some(parse_number(words.next(), "the site from which it follows", MAX_SITE)?),
            Some(word) => return Err(MarkerError::Follows(word)),
            None => None,
        };
        match words.next() {
            None => Ok(Self { site, operand, guard, root }),
            Some(word) => Err(MarkerError::Follows(word)),
        }
    }

    /// Returns true if a marker can hold this name, or this address without its brackets.
    #[must_use]
    pub fn is_written(name: &str) -> bool {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_$%.+-".contains(&byte);
        !name.is_empty() && name.bytes().all(is_part)
    }
}

impl fmt::Display for DataMarker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "// {PREFIX}{DATA} {} {}", self.site, self.operand)?;
        if let Some(DataGuard { predicate, negated }) = self.guard {
            write!(f, " @{}{predicate}", if negated { "!" } else { "" })?;
        }
        match self.root {
            None => Ok(()),
            Some(root) => write!(f, " = {root}"),
        }
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(location) => write!(f, marker!(loc), location),
            Self::Enter(location) => write!(f, marker!(enter), location),
            Self::Tick(location, count) => write!(f, marker!(tick), location, count),
            Self::Leave(location) => write!(f, marker!(leave), location),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read_as_they_print() {
        for marker in [Marker::Event(65535), Marker::Enter(9), Marker::Tick(3, 4), Marker::Leave(9)] {
            let text = marker.to_string();
            assert_eq!(Marker::parse(&text), Some(Ok(marker)), "{text}");
            assert!(text.starts_with(&format!("// {PREFIX}")));
        }
        assert_eq!(Marker::parse("//warptrace.loop.tick 3 4 "), Some(Ok(Marker::Tick(3, 4))));
        assert_eq!(Marker::parse("// begin inline asm"), None);
        assert_eq!(Marker::parse("/* warptrace.loc 3 */"), None);
    }

    #[test]
    fn a_marker_at_a_wait_is_none_until_it_is_made_an_event() {
        let text = "// warptrace.wait 9";
        assert_eq!(Marker::parse(text), None);
        let [wait, event] = EVENT_AT_WAIT;
        assert_eq!(Marker::parse(&text.replace(wait, event)), Some(Ok(Marker::Event(9))));
        assert!(marker!(wait).starts_with(wait) && marker!(loc).starts_with(event));
    }

    #[test]
    fn markers_of_data_are_read_as_they_print() {
        let guard = |negated| Some(DataGuard { predicate: "%p1", negated });
        for marker in [
            DataMarker { site: 1, operand: "[%rd3+16]", guard: None, root: None },
            DataMarker { site: MAX_SITE, operand: "[$sums$+-4]", guard: guard(true), root: Some(7) },
            DataMarker { site: 9, operand: "%r5", guard: guard(false), root: None },
            DataMarker { site: 10, operand: "[%rd3+20]", guard: None, root: Some(MAX_SITE) },
        ] {
            let text = marker.to_string();
            assert_eq!(DataMarker::parse(&text), Some(Ok(marker)), "{text}");
            assert_eq!(Marker::parse(&text), None, "{text}");
        }
        assert_eq!(DataMarker::parse("// warptrace.loc 3"), None);
        for (text, says) in [
            ("// warptrace.data", "the site is missing"),
            ("// warptrace.data 32768 %r1", "a number from 1 to 32,767"),
            ("// warptrace.data 3", "what is recorded is missing"),
            ("// warptrace.data 3 [%r1", "`[%r1` is no address"),
            ("// warptrace.data 3 {%r1}", "`{%r1}` is no address"),
            ("// warptrace.data 3 %r1 %p1", "`%p1` follows"),
            ("// warptrace.data 3 %r1 @!", "`@!` is no address"),
            ("// warptrace.data 3 %r1 @%p1 4", "`4` follows"),
            ("// warptrace.data 3 [%r1] =", "the site from which it follows is missing"),
            ("// warptrace.data 3 [%r1] @%p1 = 0", "`0` is not the site from which it follows"),
            ("// warptrace.data 3 [%r1] = 4 @%p1", "`@%p1` follows"),
        ] {
            let error = DataMarker::parse(text).expect("a marker").expect_err("a bad one").to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn what_begins_as_a_marker_and_is_none_is_an_error() {
        for (text, says) in [
            ("// warptrace.loc", "the location is missing"),
            ("// warptrace.loc 0", "`0` is not the location"),
            ("// warptrace.loc 65536", "a number from 1 to 65,535"),
            ("// warptrace.loc 3 4", "`4` follows"),
            ("// warptrace.loop.tick 3", "the number of iterations is missing"),
            ("// warptrace.values 3", "`warptrace.values` is no marker"),
        ] {
            let error = Marker::parse(text).expect("a marker").expect_err("a bad one").to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
