//! Committed traces, with which recordings are compared. They contain nothing that depends on the machine.

use std::collections::BTreeMap;
use std::path::Path;

use warptrace_build::Compiler;
use warptrace_format::file::{
    Began, Compression, HostTimes, Origin, PREAMBLE_BYTES, SECTION_HEADER_BYTES, SectionHeader, SectionKind,
    TRAILER_BYTES, Trailer, decode_index, encode_index, encode_section,
};

/// Start of the host's clocks in a committed trace.
const REALTIME_NS: u64 = 1_790_000_000_000_000_000;

pub(crate) fn without_host(bytes: &[u8]) -> Vec<u8> {
    let mut file = bytes[..PREAMBLE_BYTES].to_vec();
    let (mut at, mut moments) = (PREAMBLE_BYTES, (0..).map(|moment| 1_000_000 * moment));
    // New offsets of sections, by old offset.
    let mut moved = BTreeMap::new();
    while at < bytes.len() {
        let header = SectionHeader::parse(&bytes[at..], at as u64).unwrap();
        let section = &bytes[at..at + usize::try_from(header.total_bytes()).unwrap()];
        let (body, place) = (&section[SECTION_HEADER_BYTES..], file.len() as u64);
        moved.insert(at as u64, place);
        let changed = match &header.tag.0 {
            b"ORIG" => {
                let began = Some(Began { realtime_ns: REALTIME_NS, monotonic_ns: 0, error_ns: 40 });
                let host = Some("host".to_owned());
                Origin { host, process: Some(1), began, ..Origin::default() }.encode_section()
            }
            b"HOST" => {
                let mut times = HostTimes::decode(body, 0, usize::MAX).unwrap();
                for reading in &mut times.readings {
                    reading.monotonic = moments.next().unwrap();
                    (reading.realtime, reading.width) = (REALTIME_NS + reading.monotonic, 80);
                }
                for launch in &mut times.launches {
                    launch.begin = REALTIME_NS + moments.next().unwrap();
                    launch.nanoseconds = launch.nanoseconds.map(|_| 500_000);
                }
                times.encode_section(Compression::None).unwrap()
            }
            b"INDX" => {
                let (first, mut entries) = decode_index(body, 0).unwrap();
                entries.iter_mut().for_each(|entry| entry.offset = moved[&entry.offset]);
                let body = encode_index(first, &entries, Compression::default()).unwrap();
                encode_section(SectionKind::Index, &body)
            }
            b"TAIL" => {
                let trailer = Trailer::parse(section, at as u64).unwrap();
                let index_offset = moved[&trailer.index_offset];
                let file_length = place + TRAILER_BYTES as u64;
                Trailer { index_offset, file_length, ..trailer }.encode().to_vec()
            }
            _ => section.to_vec(),
        };
        file.extend(changed);
        at += section.len();
    }
    file
}

pub(crate) fn overwrites() -> bool {
    std::env::var_os("WARPTRACE_OVERWRITE_GOLDEN").is_some_and(|value| value == "1")
}

/// With another device compiler, kernels have other instructions; this is printed.
pub(crate) fn can_be_compared() -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let hashes = std::fs::read_to_string(root.join("workloads/programs/tests/it/ptx/hashes.txt")).unwrap();
    let of = hashes.lines().next().and_then(|line| line.strip_prefix("# compiled by ")).unwrap();
    let compiler = Compiler::find().map_or_else(|error| error.to_string(), |compiler| compiler.version);
    if of != compiler {
        eprintln!("skipped: committed traces have instructions of PTX of {of}, this is: {compiler}");
    }
    of == compiler
}
