//! Locations at which the simulator's events are known to be others than the card's, and why.

/// Answers why a location's events differ; `None` if that is not known.
pub(super) fn reason(program: &str, location: Option<&String>) -> Option<&'static str> {
    let location = location?;
    KNOWN
        .iter()
        .find(|(of, names, _)| *of == program && (names.is_empty() || names.contains(&location.as_str())))
        .map(|(.., reason)| *reason)
}

/// Program, names of locations (all, if none is named), reason.
const KNOWN: &[(&str, &[&str], &str)] = &[];
