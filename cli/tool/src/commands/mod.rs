//! One file for each command.

pub(crate) mod answers;
mod buffers;
pub(crate) mod decode;
mod decode_accesses;
pub(crate) mod devices;
pub(crate) mod export;
pub(crate) mod info;
pub(crate) mod manual;
pub(crate) mod new;
#[cfg(feature = "query")]
pub(crate) mod query;
pub(crate) mod report;
#[cfg(unix)]
pub(crate) mod run;
#[cfg(unix)]
mod shim;
pub(crate) mod table;
pub(crate) mod timeline;
#[cfg(feature = "tui")]
pub(crate) mod tui;
pub(crate) mod verify;
#[cfg(feature = "query")]
pub(crate) mod worker;

/// The error of a command whose feature this tool was built without.
#[cfg(not(feature = "tui"))]
pub(crate) fn left_out(feature: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "this tool was built without `{feature}`: build it with `cargo build --release -p warptrace-cli --features {feature}`"
    )
}
