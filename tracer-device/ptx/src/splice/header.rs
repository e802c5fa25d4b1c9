//! PTX version and architecture that the sequences need.

use super::{Recording, SpliceError};
use crate::{Edits, ItemKind, Module, Span};

/// The oldest PTX version with `activemask`.
const FIRST_VERSION: (u32, u32) = (6, 2);
/// The oldest architecture with `activemask`. PTX for older targets is assembled for later ones only.
const FIRST_ARCHITECTURE: u32 = 30;
/// The oldest architecture with `red.max.u64`, which updates the end of spans.
const FIRST_WITH_SPANS: u32 = 32;
/// The oldest architecture with `nanosleep`, for lanes that wait for memory. Older targets are not raised to
/// it: the assembler would no longer keep the lanes of a warp in lockstep, which programs may rely on.
const FIRST_STREAMED: u32 = 70;

/// The oldest architecture with independent thread scheduling. It also has `match`.
const FIRST_APART: u32 = 70;

/// Checks that the architecture of a module supports a recording.
pub(super) fn check(module: &Module<'_>, recording: Recording) -> Result<(), SpliceError> {
    match older_target(module, FIRST_STREAMED) {
        Some(target) if recording.logs.is_streamed() => {
            Err(SpliceError::Streamed { target: target.to_owned(), needed: FIRST_STREAMED })
        }
        _ => Ok(()),
    }
}

/// Returns true if diverged lanes run independently. On older architectures they stay in lockstep.
pub(super) fn lanes_run_apart(module: &Module<'_>) -> bool {
    older_target(module, FIRST_APART).is_none()
}

/// Returns the architecture of a module if it is older than `first`.
fn older_target<'a>(module: &Module<'a>, first: u32) -> Option<&'a str> {
    let is_older = |target: &&str| {
        let number = target.strip_prefix("sm_").and_then(|number| number.parse::<u32>().ok());
        number.is_some_and(|number| number < first)
    };
    module.targets().iter().copied().find(is_older)
}

/// Raises version and architecture of a module to the minimum for recording.
pub(super) fn raise(module: &Module<'_>, recording: Recording, edits: &mut Edits) {
    let items = |kind| module.items.iter().filter(move |item| item.kind == kind);
    if module.version() < FIRST_VERSION {
        let (major, minor) = FIRST_VERSION;
        items(ItemKind::Version)
            .for_each(|item| edits.replace(item.span, format!(".version {major}.{minor}")));
    }
    let first = if recording.spans { FIRST_WITH_SPANS } else { FIRST_ARCHITECTURE };
    let Some(target) = older_target(module, first) else { return };
    for item in items(ItemKind::Target) {
        if let Some(at) = item.span.text(module.text).find(target) {
            let start = item.span.start + at;
            edits.replace(Span::new(start, start + target.len()), format!("sm_{first}"));
        }
    }
}
