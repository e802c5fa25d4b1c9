//! Markers: the comments that trace points leave in a compiled kernel.
//!
//! ```text
//! // warptrace.loc 3            the lanes that come here make an event at location 3
//! // warptrace.loop.enter 3     a loop begins whose iterations are events at location 3
//! // warptrace.loop.tick 3 4    four iterations of it begin
//! // warptrace.loop.leave 3     it is over
//! ```
//!
//! [`marker!`](crate::marker!) is the text for the assembler, [`Marker::parse`] reads it from PTX, and a
//! [`Marker`] prints as it.

use core::fmt;

/// What the text of a marker begins with, behind `//`.
pub const PREFIX: &str = "warptrace.";

/// The template of inline assembly that makes a marker: `marker!(loc)`, `marker!(enter)`, `marker!(tick)`,
/// `marker!(leave)`. Its operands are the location, and for `tick` the number of iterations.
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
}

/// A marker: a comment that a trace point leaves in a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// An event at a location.
    Event(u16),
    /// The beginning of a loop.
    Enter(u16),
    /// Iterations of a loop: its location, and how many.
    Tick(u16, u16),
    /// The end of a loop.
    Leave(u16),
}

/// Why a comment that begins as markers do is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerError<'a> {
    /// Something that each marker of the kind has is missing.
    Missing(&'static str),
    /// A word is not the number that stands there.
    Number {
        /// What the number is.
        what: &'static str,
        /// The word.
        word: &'a str,
    },
    /// No marker of this name is known.
    Unknown(&'a str),
    /// A word follows the marker.
    Follows(&'a str),
}

impl fmt::Display for MarkerError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(what) => write!(f, "{what} is missing"),
            Self::Number { what, word } => write!(f, "`{word}` is not {what}, a number from 1 to 65,535"),
            Self::Unknown(kind) => write!(f, "`{PREFIX}{kind}` is no marker that this version knows"),
            Self::Follows(word) => write!(f, "`{word}` follows the marker"),
        }
    }
}

impl core::error::Error for MarkerError<'_> {}

impl Marker {
    /// Reads a comment; `None` if it is no marker.
    ///
    /// # Errors
    /// What is wrong with a comment that begins as markers do.
    pub fn parse(comment: &str) -> Option<Result<Self, MarkerError<'_>>> {
        let text = comment.strip_prefix("//")?.trim();
        Some(Self::parse_words(text.strip_prefix(PREFIX)?))
    }

    fn parse_words(text: &str) -> Result<Self, MarkerError<'_>> {
        let mut words = text.split_ascii_whitespace();
        let kind = words.next().unwrap_or_default();
        let mut number = |what| match words.next() {
            None => Err(MarkerError::Missing(what)),
            Some(word) => match word.parse::<u16>() {
                Ok(0) | Err(_) => Err(MarkerError::Number { what, word }),
                Ok(number) => Ok(number),
            },
        };
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

    /// Returns the location, and how many events of it the marker stands for where each iteration is one;
    /// `None` at a loop's begin and end.
    pub const fn events(self) -> Option<(u16, u32)> {
        match self {
            Self::Event(location) => Some((location, 1)),
            Self::Tick(location, count) => Some((location, count as u32)),
            Self::Enter(_) | Self::Leave(_) => None,
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
    fn what_begins_as_a_marker_and_is_none_is_an_error() {
        for (text, says) in [
            ("// warptrace.loc", "the location is missing"),
            ("// warptrace.loc 0", "`0` is not the location"),
            ("// warptrace.loc 65536", "a number from 1 to 65,535"),
            ("// warptrace.loc 3 4", "`4` follows"),
            ("// warptrace.loop.tick 3", "the number of iterations is missing"),
            ("// warptrace.value 3", "`warptrace.value` is no marker"),
        ] {
            let error = Marker::parse(text).expect("a marker").expect_err("a bad one").to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
