//! Kernels and locations added during a recording.

use warptrace_format::file::LocationInfo;

use super::fake::{FakeDevice, event, script};
use super::output::Shared;
use super::{launch, options};
use crate::RecordingSpec;
use crate::Session;
use crate::Window;
use crate::session::{SessionError, TracedProgram};

const NOTHING: TracedProgram<'static> = TracedProgram { kernels: &[], modules: &[], ptx: "" };

#[test]
fn a_session_that_knows_nothing_at_its_start_is_told_later() {
    let mut device = FakeDevice::new([script(&[(0, 0, 1)]), script(&[(1, 0, 2)])]);
    let window = Window { kernels: vec!["late*".to_owned()], ..Window::default() };
    let options = RecordingSpec { window, ..options(1024) };
    let file = Shared::default();
    let mut session = Session::start(&mut device, &NOTHING, &options, file.clone()).unwrap();
    session.recorder.add_kernels(&[], Vec::new()).unwrap();
    session.recorder.add_kernels(&[("late", "late.cu")], vec![LocationInfo::new(3, "entry", "")]).unwrap();
    launch(&mut session, "late").unwrap();
    // A refused addition leaves the session unchanged.
    let error =
        session.recorder.add_kernels(&[("twin", "")], vec![LocationInfo::new(3, "twin", "")]).unwrap_err();
    assert!(matches!(error, SessionError::Metadata(_)), "{error}");
    session.recorder.add_kernels(&[("later", "")], vec![LocationInfo::new(4, "entry", "")]).unwrap();
    launch(&mut session, "later").unwrap();
    session.finish().unwrap();
    assert_eq!(file.contents(), (vec![(0, 0, 0, event(1)), (1, 1, 0, event(2))], 2));
}
