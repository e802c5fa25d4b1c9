//! Errors of sessions, and behavior after failures.

use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use warptrace_device::{KernelModule, LocationKind, SourceLocation};
use warptrace_format::chunk::SPLIT;
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};

use super::fake::{FakeDevice, Script, event, script};
use super::output::{Full, Shared};
use super::{PROGRAM, launch, launch_warps, options};
use crate::session::{SessionError, TracedProgram};
use crate::{DeviceError, RecordingSpec, Session};

#[test]
fn what_was_drained_before_a_launch_that_fails_is_in_the_file() {
    let failing = Script { fails: true, ..script(&[(0, 0, 9)]) };
    let mut device = FakeDevice::new([script(&[(1, 0, 1)]), failing]);
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &options(1024), file.clone()).unwrap();
    launch(&mut session, "k").unwrap();
    session.flush().unwrap();
    assert!(matches!(launch(&mut session, "other"), Err(SessionError::Device(_))));
    assert!(matches!(launch(&mut session, "k"), Err(SessionError::Unusable)));
    assert!(matches!(session.flush(), Err(SessionError::Unusable)));
    drop(session);
    assert_eq!(device.launched, ["k", "encode 1 of 2", "other"], "what failed is not encoded");
    assert!(device.memory.is_empty(), "all memory is given back");
    assert_eq!(file.contents(), (vec![(0, 1, 0, event(1))], 1));
}

#[test]
fn a_drain_is_written_though_its_accounts_cannot_be_packed() {
    let mut device = FakeDevice::new([script(&[(1, 0, 1)])]);
    device.gives_up = true;
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &options(1024), file.clone()).unwrap();
    launch(&mut session, "k").unwrap();
    assert!(matches!(session.flush(), Err(SessionError::Device(DeviceError::GivenUp))));
    drop(session);
    assert_eq!(file.contents(), (vec![(0, 1, 0, event(1))], 1));
}

/// A file whose writes panic once the flag is set.
struct Panics(Arc<AtomicBool>);

impl Write for Panics {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        assert!(!self.0.load(Ordering::Relaxed), "as the test asks");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_queue_of_a_writer_that_panics_keeps_nobody_waiting() {
    let (mut device, flag) = (FakeDevice::new([script(&[(1, 0, 1)])]), Arc::new(AtomicBool::new(false)));
    let mut session =
        Session::start(&mut device, &PROGRAM, &options(4096), Panics(Arc::clone(&flag))).unwrap();
    // The accounts alone are more than the queue takes at once.
    launch_warps(&mut session, "k", 2048, 64).unwrap();
    flag.store(true, Ordering::Relaxed);
    let flushed = std::panic::catch_unwind(AssertUnwindSafe(|| session.flush()));
    assert_eq!(flushed.unwrap_err().downcast_ref(), Some(&"as the test asks"));
    assert!(matches!(session.flush(), Err(SessionError::Unusable)));
}

#[test]
fn trace_points_that_the_codec_cannot_carry_are_refused_before_anything_runs() {
    let refused = |codec, ids: [u16; 2]| {
        let location = |id, name, line| SourceLocation {
            id,
            name,
            function: "k",
            kind: LocationKind::Marked,
            line,
            column: 1,
            parent: 0,
            rejoin_line: line,
            rejoin_column: 1,
        };
        let locations = Vec::leak(vec![location(ids[0], "FIRST", 1), location(ids[1], "SECOND", 3)]);
        let module = KernelModule {
            name: "m",
            file: "k.rs",
            kernels: &["k"],
            locations,
            waits: &[],
            values: &[],
            source: "",
            ptx: "",
            without_ptx: "",
        };
        let program = TracedProgram { kernels: &[], modules: &[module], ptx: "" };
        let mut device = FakeDevice::new([]);
        let options = RecordingSpec { codec, ..options(1024) };
        let file = Shared::default();
        let started = Session::start(&mut device, &program, &options, file.clone()).map(|session| {
            session.finish().unwrap();
        });
        if started.is_err() {
            assert!(device.launched.is_empty() && device.memory.is_empty(), "the device was not used");
            assert!(file.bytes().is_empty(), "nothing was written");
        }
        started.err().map(|error| error.to_string())
    };
    assert_eq!(
        refused(CodecSpec::Ecl(EclParams::DEFAULT), [255, 256]).unwrap(),
        "trace point `SECOND` (k.rs:3) has the id 256, but the codec `ecl` carries ids up to 255: give it a smaller id, \
         or record with a codec that carries larger ones (`raw` and `predict` do, up to 65535)"
    );
    let wide = [CodecSpec::Raw, CodecSpec::Predict(PredictParams::DEFAULT)];
    for codec in wide {
        assert_eq!(refused(codec, [256, 65_535]), None);
    }
    for codec in wide.into_iter().chain([CodecSpec::Ecl(EclParams::DEFAULT)]) {
        assert_eq!(
            refused(codec, [7, 7]).unwrap(),
            "trace points `FIRST` (k.rs:1) and `SECOND` (k.rs:3) both have the id 7; \
             an id is unique in a program, over all of its kernels: give each its own"
        );
    }
}

#[test]
fn damaged_chunks_are_named() {
    let long = Script { chunks: vec![(1, 0, vec![1; 993])], ..Script::default() };
    let timed = [2, 1 | SPLIT, SPLIT, u32::MAX].map(|runs: u32| {
        (Script { runs, ..script(&[(1, 0, 1)]) }, format!("the times of {} runs", runs & !SPLIT))
    });
    for (script, claim) in timed.into_iter().chain([(long, "993 bytes".to_owned())]) {
        let mut device = FakeDevice::new([script]);
        let mut session = Session::start(&mut device, &PROGRAM, &options(1024), Shared::default()).unwrap();
        launch(&mut session, "k").unwrap();
        let error = session.flush().unwrap_err().to_string();
        assert!(error.contains(&format!("launch 0, warp 1, is damaged: it claims {claim}")), "{error}");
        assert!(matches!(session.finish(), Err(SessionError::Unusable)));
    }
}

#[test]
fn a_full_disk_ends_the_session_and_gives_the_memory_back() {
    let mut device = FakeDevice::new([script(&[(1, 0, 1)])]);
    // Space for the start of a file, whose length depends on the machine's name.
    let begun = Shared::default();
    let session = Session::start(&mut device, &PROGRAM, &options(1024), begun.clone()).unwrap();
    let room = Full(begun.bytes().len() + 8);
    drop(session);
    let mut device = FakeDevice::new([script(&[(1, 0, 1)])]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(1024), room).unwrap();
    launch(&mut session, "k").unwrap();
    assert!(matches!(session.finish(), Err(SessionError::Write(_))));
    assert!(device.memory.is_empty(), "all memory is given back");
}
