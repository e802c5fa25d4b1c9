//! Points that the source names. `WARPTRACE("name")` of `tracer-host/include/warptrace.cuh` expands to
//! `.pragma "WARPTRACE name";` by inline assembly, without cost untraced. The optimiser may duplicate or
//! remove it with the code around it. A comment `// WARPTRACE name` has the same meaning, but nvcc removes
//! comments from the PTX in programs.

use crate::Statement;

const PREFIX: &str = "WARPTRACE ";

pub(super) fn name_of<'a>(statement: &Statement<'a>) -> Option<&'a str> {
    let said = statement.comment()?;
    let text = said.strip_prefix("//").unwrap_or(said).trim().strip_prefix(PREFIX)?.trim();
    (!text.is_empty()).then_some(text)
}
