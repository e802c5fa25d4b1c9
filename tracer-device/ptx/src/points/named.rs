//! Points that the source names.
//!
//! `tracer-host/include/warptrace.cuh` makes of `WARPTRACE("name")` a directive in the PTX, by inline assembly:
//! `.pragma "WARPTRACE name";`. It costs nothing untraced. What optimisation does with it is what it does with
//! the code around: it may stand at several places, or at none. A comment, `// WARPTRACE name`, says the same,
//! but nvcc leaves comments out of the PTX that it puts into programs.

use crate::Statement;

/// What it begins with.
const PREFIX: &str = "WARPTRACE ";

/// Returns the name that a statement gives to a point.
pub(super) fn name_of<'a>(statement: &Statement<'a>) -> Option<&'a str> {
    let said = statement.comment()?;
    let text = said.strip_prefix("//").unwrap_or(said).trim().strip_prefix(PREFIX)?.trim();
    (!text.is_empty()).then_some(text)
}
