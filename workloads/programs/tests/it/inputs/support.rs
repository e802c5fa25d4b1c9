//! Helpers of the tests.

use std::io::{Read, Write};
use std::path::PathBuf;
use warptrace_workloads::inputs::{Graph, GraphReport, LoadError, LoadOptions, load_graph_bytes};

pub(crate) fn load(name: &str, bytes: impl AsRef<[u8]>) -> Result<(Graph, GraphReport), LoadError> {
    load_graph_bytes(name, bytes.as_ref(), &LoadOptions::default())
}

pub(crate) fn load_error(name: &str, bytes: impl AsRef<[u8]>) -> String {
    load(name, bytes).expect_err("this input is wrong").to_string()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    liblzma::read::XzEncoder::new(bytes, 6).read_to_end(&mut compressed).unwrap();
    compressed
}

pub(crate) fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns `WARPTRACE_INPUTS` or `shared/inputs` next to the checkout; without it, prints a message.
pub(crate) fn real_inputs(test: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("WARPTRACE_INPUTS") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/inputs"),
    };
    if folder.is_dir() {
        return Some(folder);
    }
    println!("{test}: skipped, no real inputs in {} (set WARPTRACE_INPUTS)", folder.display());
    None
}

/// FNV-1a over words: a fingerprint that does not depend on a library.
pub(crate) fn fingerprint(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

pub(crate) fn graph_fingerprint(graph: &Graph) -> u64 {
    let arrays = [graph.offsets(), graph.neighbours(), graph.weights().unwrap_or_default()];
    fingerprint(arrays.into_iter().flat_map(|array| {
        std::iter::once(array.len() as u64).chain(array.iter().map(|word| u64::from(*word)))
    }))
}
