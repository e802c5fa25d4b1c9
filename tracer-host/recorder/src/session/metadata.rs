//! What a file says of a recording before the first launch.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use warptrace_device::KernelModule;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{
    ACCESSES, COMMAND, COUNTING, LocationInfo, MEMORY_LIMIT, MEMORY_PEAK, Metadata, RecordedPolicy, TIMES,
    WINDOW,
};
use warptrace_format::location::{SOURCE_HASH_PREFIX, source_hash};

use super::memory::Division;
use crate::{Device, Policy, RecordingSpec, Times};

/// The file's name for the program that wrote it.
const TOOL: &str = concat!("warptrace ", env!("CARGO_PKG_VERSION"));

/// Longest command line that a file keeps, in bytes.
const MAX_COMMAND_BYTES: usize = 16 << 10;

/// Returns the [command line](command_of) of this process.
pub fn command_line() -> String {
    command_of(std::env::args_os())
}

/// Returns a command line as a shell takes it, with the program's name without its folder; the rest of one
/// that is longer than 16 KiB is left out. What is no UTF-8 is replaced.
pub fn command_of(words: impl IntoIterator<Item = OsString>) -> String {
    let words = words.into_iter().enumerate().map(|(number, word)| {
        let name = Path::new(&word).file_name().filter(|_| number == 0);
        name.unwrap_or(&word).to_string_lossy().into_owned()
    });
    let mut text = shell_words::join(words);
    if text.len() > MAX_COMMAND_BYTES {
        text.truncate(text.floor_char_boundary(MAX_COMMAND_BYTES));
        text.push('…');
    }
    text
}

/// Tells by their hashes which sources modules have, as far as their texts are known: properties for a file.
pub(super) fn source_hashes<'a>(modules: impl Iterator<Item = &'a KernelModule>) -> Vec<(String, String)> {
    let texts = modules.map(|module| (module.file, module.source));
    // By file: several modules may be in one.
    let texts: BTreeMap<&str, &str> = texts.filter(|(_, text)| !text.is_empty()).collect();
    let property =
        |(file, text)| (format!("{SOURCE_HASH_PREFIX}{file}"), format!("{:016x}", source_hash(text)));
    texts.into_iter().map(property).collect()
}

/// Makes the metadata of a file.
pub(super) fn metadata(
    device: &dyn Device,
    kernels: &[(&str, &str)],
    locations: Vec<LocationInfo>,
    (spec, hashes): (&RecordingSpec, Vec<(String, String)>),
    division: &Division,
) -> Metadata {
    let mut tracks = vec![spec.codec];
    if spec.dual {
        tracks.push(CodecSpec::Raw);
    }
    let mut metadata =
        Metadata::new(TOOL, device.facts().info, tracks).with_pool(spec.chunk_bytes, division.chunk_count);
    metadata.policy = match spec.policy {
        Policy::Stop => RecordedPolicy::Stop,
        Policy::Ring => RecordedPolicy::Ring,
        Policy::Stream => RecordedPolicy::Stream,
    };
    for (name, source) in kernels {
        metadata = metadata.with_kernel(*name, *source);
    }
    metadata.locations = locations;
    metadata.properties = spec.properties.clone();
    if !spec.window.is_all() {
        metadata.properties.push((WINDOW.to_owned(), spec.window.to_string()));
    }
    metadata.properties.push((COUNTING.to_owned(), spec.counting.name().to_owned()));
    if spec.times != Times::Off {
        metadata.properties.push((TIMES.to_owned(), spec.times.name().to_owned()));
    }
    if let Some(spaces) = spec.accesses {
        metadata.properties.push((ACCESSES.to_owned(), spaces.to_string()));
    }
    // Of `run` it is the tool's, not that of the program in which this is.
    if metadata.property(COMMAND).is_none() {
        metadata.properties.push((COMMAND.to_owned(), command_line()));
    }
    metadata.properties.extend(hashes);
    for (name, bytes) in [(MEMORY_LIMIT, division.limit), (MEMORY_PEAK, division.total())] {
        metadata.properties.push((name.to_owned(), bytes.to_string()));
    }
    metadata
}
