//! Markers: the comments that trace points leave in a compiled kernel.
//!
//! ```text
//! // warptrace.loc 3            the lanes that come here make an event at location 3
//! // warptrace.loop.enter 3     a loop begins whose iterations are events at location 3
//! // warptrace.loop.tick 3 4    four iterations of it begin
//! // warptrace.loop.leave 3     it is over
//! ```

/// What a comment that is a marker begins with.
const PREFIX: &str = "warptrace.";

/// A marker: a comment that a trace point leaves in a compiled kernel.
///
/// `// warptrace.loc 3`, `// warptrace.loop.enter 3`, `// warptrace.loop.tick 3 4`, `// warptrace.loop.leave
/// 3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// An event at a location.
    Event(u16),
    /// The beginning of a loop.
    Enter(u16),
    /// So many iterations of a loop.
    Tick(u16, u16),
    /// The end of a loop.
    Leave(u16),
}

impl Marker {
    /// Reads a comment; `None` if it is no marker.
    ///
    /// # Errors
    /// What is wrong with a comment that begins as markers do.
    pub fn parse(comment: &str) -> Option<Result<Self, String>> {
        let text = comment.strip_prefix("//")?.trim();
        let text = text.strip_prefix(PREFIX)?;
        Some(Self::parse_words(text))
    }

    fn parse_words(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let kind = words.next().unwrap_or_default();
        let mut number = |what: &str| match words.next() {
            None => Err(format!("{what} is missing")),
            Some(word) => match word.parse::<u16>() {
                Ok(0) | Err(_) => Err(format!("`{word}` is not {what}, a number from 1 to 65,535")),
                Ok(number) => Ok(number),
            },
        };
        let marker = match kind {
            "loc" => Self::Event(number("the location")?),
            "loop.enter" => Self::Enter(number("the location")?),
            "loop.tick" => Self::Tick(number("the location")?, number("the number of iterations")?),
            "loop.leave" => Self::Leave(number("the location")?),
            other => return Err(format!("`{PREFIX}{other}` is no marker that this version knows")),
        };
        match words.next() {
            None => Ok(marker),
            Some(word) => Err(format!("`{word}` follows the marker")),
        }
    }

    /// The location, and how many events of it the marker stands for where each iteration is one.
    pub(crate) fn events(self) -> Option<(u16, u32)> {
        match self {
            Self::Event(location) => Some((location, 1)),
            Self::Tick(location, count) => Some((location, u32::from(count))),
            Self::Enter(_) | Self::Leave(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read() {
        let read = |text: &str| Marker::parse(text);
        assert_eq!(read("// warptrace.loc 65535"), Some(Ok(Marker::Event(65535))));
        assert_eq!(read("//warptrace.loop.tick 3 4"), Some(Ok(Marker::Tick(3, 4))));
        assert_eq!(read("// warptrace.loop.enter 9 "), Some(Ok(Marker::Enter(9))));
        assert_eq!(read("// warptrace.loop.leave 9"), Some(Ok(Marker::Leave(9))));
        assert_eq!(read("// begin inline asm"), None);
        assert_eq!(read("/* warptrace.loc 3 */"), None);
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
            let error = Marker::parse(text).expect("a marker").expect_err("a bad one");
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
