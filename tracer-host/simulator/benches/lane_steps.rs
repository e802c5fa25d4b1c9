//! Lane steps per second: the rate at which lanes reach operations and resume.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warptrace_device::simt;
use warptrace_sim::{Interaction, Launch, Simulator};

const ITERATIONS: u32 = 200;

/// All lanes of each warp stay together.
fn converged() {
    for _ in 0..ITERATIONS {
        black_box(simt::active_mask());
    }
}

/// Each lane leaves the loop after a different number of rounds, as in the fractal.
fn ragged() {
    for _ in 0..ITERATIONS * (simt::lane() + 1) / 32 {
        black_box(simt::active_mask());
    }
    black_box(simt::active_mask());
}

/// Two groups with separate operations, which reconverge in each round.
#[expect(clippy::if_same_then_else, reason = "two places that wait for each other")]
fn branching() {
    for round in 0..ITERATIONS / 2 {
        if (simt::lane() ^ round) & 1 == 0 {
            black_box(simt::active_mask());
        } else {
            black_box(simt::active_mask());
        }
        black_box(simt::active_mask());
    }
}

/// One lane of each warp continues alone.
fn alone() {
    if simt::lane() == 0 {
        for _ in 0..ITERATIONS * 32 {
            black_box(simt::active_mask());
        }
    }
}

fn shuffles() {
    let mut value = simt::lane();
    for _ in 0..ITERATIONS {
        // SAFETY: all lanes execute this.
        value = unsafe { simt::shuffle_xor(u32::MAX, value, 1) };
    }
    black_box(value);
}

fn barriers() {
    for _ in 0..ITERATIONS {
        // SAFETY: all threads execute this.
        unsafe { simt::sync_threads() };
    }
}

fn lane_steps(criterion: &mut Criterion) {
    let simulator = Simulator::new();
    let mut group = criterion.benchmark_group("lane steps, one thread");
    let kernels: [(&str, &(dyn Fn() + Sync)); 6] = [
        ("converged", &converged),
        ("ragged", &ragged),
        ("branching", &branching),
        ("alone", &alone),
        ("shuffles", &shuffles),
        ("barriers", &barriers),
    ];
    let mut measure = |name: &str, launch: Launch<'_>, kernel: &(dyn Fn() + Sync)| {
        let steps = simulator.launch(&launch, kernel).expect("a correct kernel").lane_steps;
        group.throughput(Throughput::Elements(steps));
        group.bench_function(name, |bencher| {
            bencher.iter(|| simulator.launch(&launch, kernel).expect("a correct kernel"));
        });
    };
    for (name, kernel) in kernels {
        measure(name, Launch::new([16, 1, 1], [256, 1, 1]).threads(1), kernel);
    }
    measure("empty kernel", Launch::new([16, 1, 1], [256, 1, 1]).threads(1), &|| {});
    let resident = Launch::new([192, 1, 1], [256, 1, 1]).interaction(Interaction::Global);
    measure("converged, 49,152 lanes resident", resident, &converged);
    group.finish();
}

/// The fractal of the ECL-Tracer thesis without its tracer: one thread per pixel, one operation per round,
/// which is the cost of a trace point.
fn fractal(criterion: &mut Criterion) {
    const WIDTH: u32 = 512;
    const DEPTH: u32 = 256;
    let kernel = || {
        let pixel = simt::global_thread_x();
        let side = 0.005_78 / f64::from(WIDTH);
        let (cx, cy) =
            (-0.743_95 + f64::from(pixel % WIDTH) * side, -0.104_61 - f64::from(pixel / WIDTH) * side);
        let (mut x, mut y, mut rounds) = (cx, cy, DEPTH);
        loop {
            black_box(simt::active_mask());
            let (x2, y2) = (x * x, y * y);
            (x, y) = (x2 - y2 + cx, 2.0 * x * y + cy);
            rounds -= 1;
            if rounds == 0 || x2 + y2 > 5.0 {
                break;
            }
        }
        black_box(simt::active_mask());
    };
    let simulator = Simulator::new();
    let mut group = criterion.benchmark_group("fractal 512 x 512, depth 256");
    for threads in [1, 2] {
        let launch = Launch::new([WIDTH * WIDTH / 256, 1, 1], [256, 1, 1]).threads(threads);
        let steps = simulator.launch(&launch, &kernel).expect("a correct kernel").lane_steps;
        group.throughput(Throughput::Elements(steps));
        group.bench_function(format!("{threads} threads, {steps} lane steps"), |bencher| {
            bencher.iter(|| simulator.launch(&launch, &kernel).expect("a correct kernel"));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = lane_steps, fractal
}
criterion_main!(benches);
