//! One file for each command.

pub(crate) mod answers;
pub(crate) mod decode;
pub(crate) mod devices;
pub(crate) mod export;
pub(crate) mod info;
mod interrupt;
pub(crate) mod manual;
pub(crate) mod new;
pub(crate) mod record;
pub(crate) mod report;
#[cfg(unix)]
pub(crate) mod run;
#[cfg(feature = "tui")]
pub(crate) mod tui;
pub(crate) mod verify;
