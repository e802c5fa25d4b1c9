//! Register limits of kernels.

use std::collections::HashMap;

use crate::{Body, Edits, Function};

/// Inserts a register limit into a kernel without one. `start` is the offset of the kernel's text.
pub(super) fn limit_registers(
    edits: &mut Edits,
    function: &Function<'_>,
    start: usize,
    limits: &HashMap<&str, u32>,
    limits_bounded: bool,
) {
    let (Some(registers), Some(body)) = (limits.get(function.name), &function.body) else { return };
    // Only kernels may have the directive.
    if function.is_entry() && !says_registers(function, limits_bounded) && !moves_registers(body) {
        edits.insert(body.open - start, format!("\n.maxnreg {registers}\n"));
    }
}

/// Returns true if a kernel moves registers between its warps. The assembler allows this only if the kernel
/// has a register limit, so a limit that is not in the source would enable it.
pub(super) fn moves_registers(body: &Body<'_>) -> bool {
    body.instructions().any(|(_, instruction)| instruction.name() == "setmaxnreg")
}

fn says_registers(function: &Function<'_>, limits_bounded: bool) -> bool {
    let limits = [".maxnreg", ".maxntid", ".reqntid", ".minnctapersm"];
    limits[..if limits_bounded { 1 } else { limits.len() }]
        .iter()
        .any(|limit| function.directive(limit).is_some())
}
