//! Points that the source names.
//!
//! `tracer-host/include/warptrace.cuh` makes of `WARPTRACE("name")` a comment in the PTX, by inline assembly:
//! `// WARPTRACE name`. It costs nothing untraced. What optimisation does with it is what it does with the
//! code around: it may stand at several places, or at none.

use crate::Statement;

/// What such a comment begins with.
const PREFIX: &str = "WARPTRACE ";

/// Returns the name that a comment gives to a point.
pub(super) fn name_of<'a>(statement: &Statement<'a>) -> Option<&'a str> {
    let text = statement.comment()?.strip_prefix("//")?.trim().strip_prefix(PREFIX)?.trim();
    (!text.is_empty()).then_some(text)
}
