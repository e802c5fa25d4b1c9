//! Fractal on the simulator: same picture traced and untraced, event counts as the picture implies.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use warptrace_device::DEVICE_ECL;
use warptrace_host::{Session, SessionOptions, SimDevice, SimOptions, Untraced};
use warptrace_workloads::fractal::{self, FractalOptions};

use warptrace_format::codec::{CodecSpec, PredictParams};

fn record(options: &FractalOptions, codec: CodecSpec, dual: bool) -> (Vec<u32>, Vec<u8>) {
    let mut device = SimDevice::new(SimOptions::default());
    let settings = SessionOptions { dual, ..SessionOptions::new(codec) };
    let mut session = Session::start(&mut device, &fractal::PROGRAM.traced(), &settings, Vec::new()).unwrap();
    let outcome = fractal::run(&mut session, options).unwrap();
    let (file, _, report) = session.finish().unwrap();
    assert_eq!(report.lost, 0);
    assert_eq!(report.attempted, report.recorded);
    assert_eq!(report.recorded, fractal::expected_events(&outcome.image, options));
    (outcome.image, file)
}

#[test]
fn the_picture_is_the_references_traced_and_untraced() {
    let options = FractalOptions::new(100, 200);
    let expected = fractal::reference(&options);
    let mut device = SimDevice::new(SimOptions::default());
    let untraced = fractal::run(&mut Untraced(&mut device), &options).unwrap();
    assert_eq!(untraced.image, expected);
    for (codec, dual) in
        [(CodecSpec::Raw, false), (CodecSpec::Ecl(DEVICE_ECL), false), (CodecSpec::Ecl(DEVICE_ECL), true)]
    {
        assert_eq!(record(&options, codec, dual).0, expected, "{codec:?} dual {dual}");
    }
}

#[test]
fn a_codec_that_kernels_do_not_know_is_refused() {
    let mut device = SimDevice::new(SimOptions::default());
    let settings = SessionOptions::new(CodecSpec::Predict(PredictParams::DEFAULT));
    let error = Session::start(&mut device, &fractal::PROGRAM.traced(), &settings, Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "kernels record with `raw` or `ecl`, not yet with `predict`");
}
