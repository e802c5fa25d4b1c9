//! Commands of the tool, one module each.

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
#[cfg(unix)]
pub(crate) mod whereabouts;
#[cfg(feature = "query")]
pub(crate) mod worker;

/// Returns the error for a feature that is not in this build.
#[cfg(not(all(feature = "parquet", feature = "tui")))]
pub(crate) fn left_out(feature: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "this warptrace was built without {feature}: install the Python wheel, or build it with \
         `cargo install --path cli/tool --features full`"
    )
}
