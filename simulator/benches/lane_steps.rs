//! Lane-steps a second: how often a lane can reach an operation and be run on.

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

/// Each lane leaves the loop after a number of rounds of its own, as in the fractal.
fn ragged() {
    for _ in 0..ITERATIONS * (simt::lane() + 1) / 32 {
        black_box(simt::active_mask());
    }
    black_box(simt::active_mask());
}

/// Two groups, each with operations of its own, that meet again in each round.
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

/// One lane of each warp goes on alone.
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
        value = simt::shuffle_xor(u32::MAX, value, 1);
    }
    black_box(value);
}

fn barriers() {
    for _ in 0..ITERATIONS {
        simt::sync_threads();
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

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = lane_steps
}
criterion_main!(benches);
