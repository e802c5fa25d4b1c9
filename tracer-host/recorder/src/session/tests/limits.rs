use warptrace_abi::log::{FirstSegments, MAX_ENTRIES};
use warptrace_format::file::Metadata;

use super::fake::{FakeDevice, script};
use super::output::Shared;
use super::{PROGRAM, launch_warps, options};
use crate::Session;
use crate::session::SessionError;
use crate::session::memory::Division;
use crate::{DeviceError, MemorySize, RecordingSpec};
use warptrace_format::file::{MEMORY_LIMIT, MEMORY_PEAK};

fn recorded(warps: u64, options: &RecordingSpec) -> Result<(u64, u64), SessionError> {
    let mut device = FakeDevice::new([script(&[(0, 0, 1)])]);
    let outcome =
        Session::start(&mut device, &PROGRAM, options, Shared::default()).and_then(|mut session| {
            launch_warps(&mut session, "k", warps, 32)?;
            Ok(session.finish()?.2.memory)
        });
    assert!(device.memory.is_empty(), "all memory is given back");
    let memory = outcome?;
    assert_eq!(memory.peak, device.peak, "the session knows what it takes");
    assert!(memory.filled <= memory.peak && memory.peak <= memory.limit, "{memory:?}");
    Ok((memory.limit, memory.peak))
}

#[test]
fn what_is_taken_is_the_limit() {
    for kib in [1024, 3001, 16 << 10, 64 << 10, 256 << 10] {
        for dual in [false, true] {
            let (limit, peak) = recorded(2, &RecordingSpec { dual, ..options(kib) }).unwrap();
            assert_eq!((limit, peak), (kib << 10, kib << 10));
        }
    }
}

#[test]
fn without_a_limit_an_eighth_of_what_is_free_is_taken() {
    let options = RecordingSpec { memory: None, ..options(0) };
    assert_eq!(recorded(2, &options).unwrap().0, 8 << 20);
}

#[test]
fn a_launch_that_cannot_be_recorded_says_what_it_needs() {
    for (warps, dual) in [(5000, false), (40_000, false), (20_000, true), (90_000, false)] {
        let with = |bytes| RecordingSpec { dual, memory: Some(MemorySize(bytes)), ..options(0) };
        let error = recorded(warps, &with(2 << 20)).unwrap_err();
        let SessionError::Memory { streams, needed: Some(needed), limit } = error else { panic!("{error}") };
        assert_eq!((streams, limit), (warps * if dual { 2 } else { 1 }, 2 << 20));
        let (said, kib) = (error.to_string(), needed >> 10);
        assert!(said.contains(&format!("--memory {kib}KiB")) && said.contains("2 MiB"), "{said}");
        recorded(warps, &with(needed)).unwrap();
        let error = recorded(warps, &with(needed - (1 << 20))).unwrap_err();
        assert!(matches!(error, SessionError::Memory { .. }), "{error}");
        // Accounts of 32 bytes get a 16th of it; logs of 128 bytes get more than they need.
        assert!(needed < streams * 32 * 16 * 10 / 9 + (1 << 20), "{}", MemorySize(needed));
    }
}

#[test]
fn a_limit_for_nothing_is_refused_before_anything_runs() {
    for (bytes, chunk_bytes) in [(0, 1024), (1, 1024), (100 << 10, 1024), (2 << 20, 1 << 20)] {
        let options = RecordingSpec { memory: Some(MemorySize(bytes)), chunk_bytes, ..options(0) };
        let error = recorded(1, &options).unwrap_err();
        let SessionError::Memory { needed: Some(needed), limit, .. } = error else { panic!("{error}") };
        assert!(limit == bytes && needed > bytes && needed <= 4 << 20, "{error}");
        recorded(1, &RecordingSpec { memory: Some(MemorySize(needed)), ..options }).unwrap();
    }
}

#[test]
fn what_is_launched_before_one_that_is_too_large_is_written() {
    let mut device = FakeDevice::new(vec![script(&[(0, 0, 1)]); 2]);
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &options(2048), file.clone()).unwrap();
    launch_warps(&mut session, "k", 4, 32).unwrap();
    let error = launch_warps(&mut session, "k", 40_000, 32).unwrap_err();
    assert!(matches!(error, SessionError::Memory { .. }), "{error}");
    drop(session);
    assert_eq!(file.contents().0.len(), 1);
}

#[test]
fn more_logs_than_entries_can_name_are_refused_whatever_the_limit() {
    // The first segments of 500 million warps have more entries than the maximum of log memory.
    let error = recorded(500_000_000, &options(1024)).unwrap_err();
    assert!(matches!(error, SessionError::Memory { needed: None, .. }), "{error}");
    assert!(error.to_string().contains("launch smaller grids"), "{error}");
    // A larger limit is not used up.
    let division = Division::new(u64::MAX, 4096, 1, FirstSegments::of_streams(8)).unwrap();
    assert!(division.log_entries == MAX_ENTRIES && division.total() < division.limit);
}

#[test]
fn a_device_without_so_much_says_so_and_gets_all_back() {
    let mut device = FakeDevice::new([]);
    device.largest = 1 << 20;
    let error = Session::start(&mut device, &PROGRAM, &options(4096), Shared::default()).unwrap_err();
    assert!(matches!(error, SessionError::Device(DeviceError::OutOfMemory { .. })), "{error}");
    assert!(device.memory.is_empty() && device.peak > 0, "all memory is given back");
}

#[test]
fn the_file_tells_the_limit_and_what_was_taken() {
    let mut device = FakeDevice::new([]);
    let mut options = options(4096);
    options.properties.push(("width".to_owned(), "7".to_owned()));
    let session = Session::start(&mut device, &PROGRAM, &options, Shared::default()).unwrap();
    let (file, _, report) = session.finish().unwrap();
    let bytes = file.bytes();
    let header = warptrace_format::file::SECTION_HEADER_BYTES;
    let section = warptrace_format::file::SectionHeader::parse(&bytes[24..], 0).unwrap();
    let body = &bytes[24 + header..][..section.length as usize];
    let metadata = Metadata::decode(body, 0).unwrap();
    let expected = [("width", 7), (MEMORY_LIMIT, 4 << 20), (MEMORY_PEAK, report.memory.peak)];
    for (name, value) in expected {
        assert_eq!(metadata.property(name), Some(value.to_string().as_str()));
    }
    assert_eq!(metadata.counting(), Some(options.counting));
    let command = metadata.property(warptrace_format::file::COMMAND).unwrap();
    assert!(command == crate::command_line() && !command.starts_with('/'), "{command}");
    assert_eq!(metadata.properties.len(), 5);
}
