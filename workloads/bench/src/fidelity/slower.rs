//! Untraced kernels with an intentional slowdown.

use std::fmt;
use std::str::FromStr;

const MOST_EACH: u32 = 1000;
const MOST_AT_START: u32 = 100_000;

/// Additional instructions of an untraced kernel that only take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slower {
    /// Instructions for each event.
    Each(u32),
    /// Instructions at the kernel's start.
    AtStart(u32),
}

impl Slower {
    /// Returns the value of `WARPTRACE_MARKS`.
    pub(super) fn marks(self) -> String {
        match self {
            Self::Each(more) => (1 + more).to_string(),
            Self::AtStart(more) => format!("1+{more}"),
        }
    }
}

impl fmt::Display for Slower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each(more) => write!(f, "{more} for each event"),
            Self::AtStart(more) => write!(f, "{more} at its start"),
        }
    }
}

impl FromStr for Slower {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, most, make): (_, _, fn(u32) -> Self) = match text.strip_prefix('+') {
            Some(number) => (number, MOST_AT_START, Self::AtStart),
            None => (text, MOST_EACH, Self::Each),
        };
        match number.parse() {
            Ok(more)
                if number.starts_with(|first: char| first.is_ascii_digit()) && (1..=most).contains(&more) =>
            {
                Ok(make(more))
            }
            _ => Err(format!("`{text}` is neither 1 to {MOST_EACH} nor +1 to +{MOST_AT_START}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_for_each_event_and_a_plus_is_for_the_start() {
        assert_eq!("8".parse(), Ok(Slower::Each(8)));
        assert_eq!("+2000".parse(), Ok(Slower::AtStart(2000)));
        assert_eq!(["8", "+2000"].map(|text| text.parse::<Slower>().unwrap().marks()), ["9", "1+2000"]);
        for wrong in ["", "+", "0", "+0", "1001", "+100001", "++5", "-1", "x"] {
            assert!(wrong.parse::<Slower>().is_err(), "{wrong}");
        }
    }
}
