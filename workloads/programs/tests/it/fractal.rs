//! Fractal on the simulator: traced and untraced pictures are equal, and the event counts match the picture.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use warptrace_host::{DEVICE_ECL, RecordingSpec, Session, SimDevice, SimOptions, Untraced};
use warptrace_workloads::fractal::{self, FractalOptions};

use warptrace_format::Counting;
use warptrace_format::codec::{CodecSpec, PredictParams};

fn record(options: &FractalOptions, codec: CodecSpec, dual: bool, counting: Counting) -> Vec<u32> {
    let mut device = SimDevice::new(SimOptions::default());
    let settings = RecordingSpec { dual, counting, ..RecordingSpec::new(codec) };
    let mut session = Session::start(&mut device, &fractal::PROGRAM.traced(), &settings, Vec::new()).unwrap();
    let outcome = fractal::run(&mut session, options).unwrap();
    let (_, _, report) = session.finish().unwrap();
    assert_eq!(report.lost, 0);
    assert_eq!(report.attempted, report.recorded);
    assert_eq!(report.recorded, fractal::expected_events(&outcome.image, options));
    outcome.image
}

#[test]
fn the_picture_is_the_references_traced_and_untraced() {
    let options = FractalOptions::new(100, 200);
    let expected = fractal::reference(&options);
    let mut device = SimDevice::new(SimOptions::default());
    let untraced = fractal::run(&mut Untraced(&mut device), &options).unwrap();
    assert_eq!(untraced.image, expected);
    let predict = CodecSpec::Predict(PredictParams::DEFAULT);
    for (codec, dual, counting) in [
        (CodecSpec::Raw, false, Counting::Never),
        (CodecSpec::Ecl(DEVICE_ECL), false, Counting::Never),
        (CodecSpec::Ecl(DEVICE_ECL), true, Counting::Never),
        (predict, false, Counting::Never),
        (predict, false, Counting::All),
        (predict, true, Counting::All),
    ] {
        let picture = record(&options, codec, dual, counting);
        assert_eq!(picture, expected, "{codec:?}, dual {dual}, {counting:?}");
    }
}
