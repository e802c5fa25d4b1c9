//! Version and architecture of the text: `activemask`, which the sequences need, is not in the oldest ones.

use crate::{Edits, ItemKind, Module, Span};

/// The oldest PTX version that has it.
const FIRST_VERSION: (u32, u32) = (6, 2);
/// The oldest architecture that has it. Texts for older ones are assembled for later ones only.
const FIRST_ARCHITECTURE: u32 = 30;

/// Raises version and architecture of a module to those that recording needs.
pub(super) fn raise(module: &Module<'_>, edits: &mut Edits) {
    let items = |kind| module.items.iter().filter(move |item| item.kind == kind);
    if module.version() < FIRST_VERSION {
        let (major, minor) = FIRST_VERSION;
        items(ItemKind::Version)
            .for_each(|item| edits.replace(item.span, format!(".version {major}.{minor}")));
    }
    let is_older = |target: &&str| {
        let number = target.strip_prefix("sm_").and_then(|number| number.parse::<u32>().ok());
        number.is_some_and(|number| number < FIRST_ARCHITECTURE)
    };
    let Some(target) = module.targets().iter().copied().find(is_older) else { return };
    for item in items(ItemKind::Target) {
        if let Some(at) = item.span.text(module.text).find(target) {
            let start = item.span.start + at;
            edits.replace(Span::new(start, start + target.len()), format!("sm_{FIRST_ARCHITECTURE}"));
        }
    }
}
