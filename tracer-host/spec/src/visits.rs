//! Start of recording in lanes, as text.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use warptrace_format::chosen::After;
use warptrace_format::file::LocationInfo;

use crate::{SpecError, WindowError};

/// Maximum locations that an error names.
const MAX_NAMED: usize = 50;

/// Visits of a location: `LOCATION:COUNT`. The location is a name or id from the list of `warptrace info`, or
/// `FILE:LINE`, where the file is the end of its path. A number is always an id.
///
/// ```
/// use warptrace_spec::Visits;
/// let visits: Visits = "main.rs:12:1000".parse()?;
/// assert_eq!((visits.location.as_str(), visits.count.get()), ("main.rs:12", 1000));
/// assert!("STEP:0".parse::<Visits>().is_err());
/// # Ok::<(), warptrace_spec::WindowError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Visits {
    /// The location.
    pub location: String,
    /// The visit from which lanes are recorded, starting at 1.
    pub count: NonZeroU32,
}

impl FromStr for Visits {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, WindowError> {
        let parts = text.rsplit_once(':').filter(|(location, _)| !location.is_empty());
        let visits = parts.and_then(|(location, count)| {
            Some(Self { location: location.to_owned(), count: count.parse().ok()? })
        });
        visits.ok_or_else(|| WindowError::Visits { text: text.to_owned() })
    }
}

impl fmt::Display for Visits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.location, self.count)
    }
}

impl From<After> for Visits {
    fn from(After { location, count }: After) -> Self {
        Self { location: location.to_string(), count }
    }
}

impl Visits {
    /// Finds the location among a program's locations. Fails if no location matches, or several do.
    pub fn among(&self, locations: &[LocationInfo]) -> Result<After, SpecError> {
        let Self { location, count } = self;
        let meant: Vec<&LocationInfo> = locations.iter().filter(|info| info.is_named(location)).collect();
        let location = location.clone();
        match meant[..] {
            [info] => Ok(After { location: info.id, count: *count }),
            [] => {
                let known = locations.iter().take(MAX_NAMED).map(|info| info.name.as_str());
                let mut known: Vec<String> = known.map(str::to_owned).collect();
                if let Some(more) = locations.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
                    known.push(format!("and {more} more"));
                }
                Err(SpecError::NoLocation { location, known: known.join(", ") })
            }
            _ => {
                let ids: Vec<String> =
                    meant.iter().map(|info| format!("{} ({})", info.id, info.name)).collect();
                Err(SpecError::SeveralLocations { location, ids: ids.join(", ") })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_is_one_of_a_location_that_the_program_has() {
        let location = |id, name: &str, file: &str, line| LocationInfo {
            file: file.to_owned(),
            line,
            ..LocationInfo::new(id, name, "")
        };
        let locations = [
            location(3, "STEP", "src/main.rs", 12),
            location(4, "END", "src/main.rs", 12),
            location(5, "DOMAIN", "src/domain.rs", 7),
            location(6, "4", "src/four.rs", 1),
        ];
        let found = |text: &str| text.parse::<Visits>().unwrap().among(&locations);
        for (text, id) in [("STEP:9", 3), ("4:9", 4), ("domain.rs:7:9", 5), ("src/domain.rs:7:9", 5)] {
            assert_eq!(found(text), Ok(After { location: id, count: NonZeroU32::new(9).unwrap() }), "{text}");
        }
        for (text, problem) in [
            (
                "main.rs:12:9",
                "`after`: `main.rs:12` is several locations: give one of the ids 3 (STEP), 4 (END)",
            ),
            ("ain.rs:7:9", "`after`: the program has no location `ain.rs:7`; it has STEP, END, DOMAIN, 4"),
            ("7:9", "`after`: the program has no location `7`; it has STEP, END, DOMAIN, 4"),
        ] {
            assert_eq!(found(text).unwrap_err().to_string(), problem);
        }
    }

    #[test]
    fn what_is_no_visit_is_told() {
        for text in ["", "STEP", "STEP:", ":5", "STEP:-1", "STEP:0", "STEP:4294967296"] {
            assert_eq!(text.parse::<Visits>(), Err(WindowError::Visits { text: text.to_owned() }));
        }
    }
}
