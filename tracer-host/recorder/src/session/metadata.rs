//! Metadata of a file, written before the first launch.

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

/// Name of the writing program in the file.
const TOOL: &str = concat!("warptrace ", env!("CARGO_PKG_VERSION"));

const MAX_COMMAND_BYTES: usize = 16 << 10;

/// Returns the [command line](command_of) of this process.
pub fn command_line() -> String {
    command_of(std::env::args_os())
}

/// Returns a command line in shell syntax, of 16 KiB at most, without the program's folder or invalid UTF-8.
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

/// Returns the hashes of module sources with known text, as properties for a file.
pub(super) fn source_hashes<'a>(modules: impl Iterator<Item = &'a KernelModule>) -> Vec<(String, String)> {
    let texts = modules.map(|module| (module.file, module.source));
    // One per file: several modules may be in one file.
    let texts: BTreeMap<&str, &str> = texts.filter(|(_, text)| !text.is_empty()).collect();
    let property =
        |(file, text)| (format!("{SOURCE_HASH_PREFIX}{file}"), format!("{:016x}", source_hash(text)));
    texts.into_iter().map(property).collect()
}

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
    // `warptrace run` sets the command of the traced program.
    if metadata.property(COMMAND).is_none() {
        metadata.properties.push((COMMAND.to_owned(), command_line()));
    }
    metadata.properties.extend(hashes);
    for (name, bytes) in [(MEMORY_LIMIT, division.limit), (MEMORY_PEAK, division.total())] {
        metadata.properties.push((name.to_owned(), bytes.to_string()));
    }
    metadata
}
