//! Kernels with the trace points of `#[kernels]` beside the same kernels with those placed by hand: same
//! results, and each lane takes the same decisions in the same order.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fractal;
mod stress;

use std::collections::BTreeMap;

use warptrace_decoder::TraceFile;
use warptrace_device::{KernelCall, KernelModule, TracePoints};
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_host::{Buffer, LaunchShape, Session, SessionOptions, SimDevice, SimOptions};
use warptrace_workloads::fractal::FractalOptions;
use warptrace_workloads::stress::{StressOptions, StressResult};

/// Which location placed by hand each of the macro's stands for: the one that the line behind it names. Those
/// that no line names say what a person did not find worth a trace point.
fn by_hand(module: &KernelModule, source: &str, points: TracePoints) -> BTreeMap<u16, u16> {
    let lines: Vec<&str> = source.lines().collect();
    let named = |line: usize| -> Option<u16> {
        let (_, rest) = lines.get(line)?.split_once("at::")?;
        let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
        points.points.iter().find(|point| point.name == name).map(|point| point.id)
    };
    // Lines count from 1, so this is the one behind.
    let found =
        module.locations.iter().filter_map(|location| Some((location.id, named(location.line as usize)?)));
    found.collect()
}

/// Runs a kernel traced, and checks each lane's way, in the words of the trace points placed by hand.
fn check_lanes(
    module: &KernelModule,
    call: &KernelCall,
    (device, shape): (&mut SimDevice, LaunchShape),
    by_hand: &BTreeMap<u16, u16>,
    expected: impl Fn(u64) -> Vec<u16>,
) {
    for counted in [false, true] {
        let predict = CodecSpec::Predict(PredictParams::DEFAULT);
        let options = SessionOptions { counted, dual: true, ..SessionOptions::new(predict) };
        let mut session = Session::start_module(device, module, &options, Vec::new()).unwrap();
        // SAFETY: the caller's buffers are what the kernel expects, and outlive the launch.
        unsafe { session.record(call, &shape) }.unwrap();
        let (bytes, _, report) = session.finish().unwrap();
        assert_eq!((report.lost, report.recorded), (0, report.attempted));
        let file = TraceFile::from_bytes(bytes).unwrap();
        assert!(file.verify().is_ok(), "{}", file.verify());
        for warp in 0..shape.warps() as u32 {
            for lane in 0..32 {
                let found = file.lane_locations(0, warp, 0, lane).unwrap();
                let found = found.map(|location| location.unwrap());
                let found: Vec<u16> = found.filter_map(|id| by_hand.get(&id).copied()).collect();
                let thread = u64::from(warp) * 32 + u64::from(lane);
                assert_eq!(found, expected(thread), "thread {thread}, counted {counted}");
            }
        }
    }
}

#[test]
fn fractal_takes_the_same_decisions() {
    let options = FractalOptions::new(50, 60);
    let mut device = SimDevice::new(SimOptions::default());
    let pixels = 50 * 50;
    let image = Buffer::<u32>::filled(&mut device, pixels, 0).unwrap();
    let region = options.region;
    let pixel = region.side / f64::from(options.width);
    let call = fractal::automatic::fractal(image.global(), 50, 60, region.left, region.top, pixel);
    let module = &fractal::automatic::MODULE;
    let points = warptrace_kernels::fractal::at::POINTS;
    let by_hand = by_hand(module, include_str!("fractal.rs"), points);
    assert_eq!(by_hand.len(), points.points.len());
    let shape = LaunchShape::linear(pixels as u64, options.block);
    check_lanes(module, &call, (&mut device, shape), &by_hand, |thread| {
        warptrace_workloads::fractal::lane_locations(&options, thread)
    });
    assert_eq!(image.download(&mut device).unwrap(), warptrace_workloads::fractal::reference(&options));
}

#[test]
fn stress_takes_the_same_decisions() {
    let options = StressOptions { block: 64, seed: 7, ..StressOptions::new(150, 12) };
    let expected = warptrace_workloads::stress::reference(&options);
    let mut device = SimDevice::new(SimOptions::default());
    let blocks = options.walks.div_ceil(options.block) as usize;
    let [sums, passed, bins, counts] =
        [150, 150, 256, blocks * 8].map(|length| Buffer::<u32>::filled(&mut device, length, 0).unwrap());
    let call = stress::automatic::stress(
        sums.global(),
        passed.global(),
        bins.global(),
        counts.global(),
        options.seed,
        options.rounds,
    );
    let module = &stress::automatic::MODULE;
    let points = warptrace_kernels::stress::at::POINTS;
    let mut by_hand = by_hand(module, include_str!("stress.rs"), points);
    let entry = module.locations.iter().find(|location| location.name == "stress").unwrap();
    by_hand.insert(entry.id, warptrace_kernels::stress::at::ENTER.id());
    let mut covered: Vec<u16> = by_hand.values().copied().collect();
    covered.sort_unstable();
    assert_eq!(covered, (1..=points.points.len() as u16).collect::<Vec<_>>(), "each stands for one");
    let shape = LaunchShape::linear(options.walks.into(), options.block);
    check_lanes(module, &call, (&mut device, shape), &by_hand, |thread| {
        warptrace_workloads::stress::lane_locations(&options, thread)
    });
    let [sums, passed, counts] = [sums, passed, counts].map(|buffer| buffer.download(&mut device).unwrap());
    // The bins have been added to by each of the two launches.
    let bins: Vec<u32> = bins.download(&mut device).unwrap().iter().map(|count| count / 2).collect();
    assert_eq!(StressResult { sums, passed, bins, counts }, expected);
}
