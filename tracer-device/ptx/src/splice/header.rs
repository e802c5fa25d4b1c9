//! Version and architecture of the text: what the sequences need is not in the oldest ones.

use super::{Recording, SpliceError};
use crate::{Edits, ItemKind, Module, Span};

/// The oldest PTX version that has `activemask`.
const FIRST_VERSION: (u32, u32) = (6, 2);
/// The oldest architecture that has `activemask`. Texts for older ones are assembled for later ones only.
const FIRST_ARCHITECTURE: u32 = 30;
/// The oldest architecture that has `red.max.u64`, by which warps say when they ended.
const FIRST_WITH_SPANS: u32 = 32;
/// The oldest architecture that has `nanosleep`, with which lanes wait for memory. Texts for older ones are
/// not raised to it: the assembler would no longer keep the lanes of their warps in lock step, on which they
/// may rely.
const FIRST_STREAMED: u32 = 70;

/// The oldest architecture on which lanes of a warp run apart; it has `match` as well.
const FIRST_APART: u32 = 70;

/// Checks that the architecture of a module has what a recording needs.
pub(super) fn check(module: &Module<'_>, recording: Recording) -> Result<(), SpliceError> {
    match older_target(module, FIRST_STREAMED) {
        Some(target) if recording.logs.is_streamed() => {
            Err(SpliceError::Streamed { target: target.to_owned(), needed: FIRST_STREAMED })
        }
        _ => Ok(()),
    }
}

/// Returns whether lanes of a warp run apart where the program parts them, and may meet anywhere: for older
/// architectures the assembler keeps them in lock step.
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

/// Raises version and architecture of a module to those that recording needs.
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
