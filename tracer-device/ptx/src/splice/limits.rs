//! How many registers a kernel may have.

use std::collections::HashMap;

use crate::{Body, Edits, Function};

/// States how many registers a kernel may have, if that was asked for and it does not state so itself; its
/// copy begins at `start`.
pub(super) fn limit_registers(
    edits: &mut Edits,
    function: &Function<'_>,
    start: usize,
    limits: &HashMap<&str, u32>,
    limits_bounded: bool,
) {
    let (Some(registers), Some(body)) = (limits.get(function.name), &function.body) else { return };
    // Only kernels may state it.
    if function.is_entry() && !says_registers(function, limits_bounded) && !moves_registers(body) {
        edits.insert(body.open - start, format!("\n.maxnreg {registers}\n"));
    }
}

/// Whether a kernel moves registers between its warps. The assembler lets it only if the kernel's limits say
/// how many it has, so a limit that its source does not state would switch that on.
pub(super) fn moves_registers(body: &Body<'_>) -> bool {
    body.instructions().any(|(_, instruction)| instruction.name() == "setmaxnreg")
}

/// Whether a kernel says itself what registers it may have.
fn says_registers(function: &Function<'_>, limits_bounded: bool) -> bool {
    let limits = [".maxnreg", ".maxntid", ".reqntid", ".minnctapersm"];
    limits[..if limits_bounded { 1 } else { limits.len() }]
        .iter()
        .any(|limit| function.directive(limit).is_some())
}
