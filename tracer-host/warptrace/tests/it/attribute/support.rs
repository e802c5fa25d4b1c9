//! Recordings of one warp on the simulator.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use warptrace_decoder::TraceFile;
use warptrace_device::{Global, KernelCall, KernelModule};
use warptrace_format::Counting;
use warptrace_format::Event;
use warptrace_format::codec::CodecSpec;
use warptrace_host::{LaunchShape, MemorySize, Recorder, RecordingSpec, SimDevice, SimOptions};

/// Runs one warp of a kernel of `module`; returns its events in order.
///
/// # Safety
/// The call's arguments name memory that is valid for the kernel's accesses.
pub(crate) unsafe fn record(module: &KernelModule, call: &KernelCall, counting: Counting) -> Vec<Event> {
    let mut device = SimDevice::new(SimOptions::default());
    let options =
        RecordingSpec { counting, memory: Some(MemorySize(64 << 20)), ..RecordingSpec::new(CodecSpec::Raw) };
    let mut recorder = Recorder::start_modules(&mut device, &[module], &options, Vec::new()).unwrap();
    // SAFETY: guaranteed by the caller; the device uses host addresses.
    unsafe { recorder.record(&mut device, call, &LaunchShape::linear(32, 32)) }.unwrap();
    let (bytes, _, report) = recorder.finish(&mut device).unwrap();
    assert_eq!((report.lost, report.recorded), (0, report.attempted));
    let file = TraceFile::from_bytes(bytes).unwrap();
    assert!(file.verify().is_ok(), "{}", file.verify());
    assert_eq!(file.metadata().locations.len(), module.locations.len());
    file.decode_warp(0, 0, 0).unwrap().map(|event| event.unwrap()).collect()
}

/// Returns a host array as an argument for the simulator's kernels.
pub(crate) fn global(values: &mut [u32]) -> Global<u32> {
    Global::new(values.as_mut_ptr().expose_provenance() as u64, values.len() as u64)
}

/// Returns the locations of each lane, in order.
pub(crate) fn lanes(events: &[Event]) -> Vec<Vec<u16>> {
    let of = |lane: u32| events.iter().filter(move |event| event.mask >> lane & 1 != 0);
    (0..32).map(|lane| of(lane).map(|event| event.location).collect()).collect()
}

/// Returns the masks of the events at the location with this name, in order.
pub(crate) fn named(events: &[Event], module: &KernelModule, name: &str) -> Vec<u32> {
    let location = module.locations.iter().find(|location| location.name == name);
    let id = location.unwrap_or_else(|| panic!("no location is named `{name}`")).id;
    events.iter().filter(|event| event.location == id).map(|event| event.mask).collect()
}
