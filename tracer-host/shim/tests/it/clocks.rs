//! Tests of the tracer's kernel that reads the device's clocks, and of clocks in traces.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use warptrace_format::file::{CLOCK_STEP, TIMER_STEP};
use warptrace_host::CLOCKS_PTX;
use warptrace_ptx::interpret::{Launch, Memory, Program, Schedule, run};
use warptrace_spec::Times;

use crate::{RUN_SPEC, both_with, data, spec};

const AT: u64 = 1 << 20;
const START: u64 = 1 << 30;

/// Interprets the kernel. Returns the steps of clock and timer, and the timer's value at the end.
fn interpreted(samples: u32, mut schedule: Schedule) -> [u64; 3] {
    let program = Program::parse(CLOCKS_PTX).unwrap();
    let mut memory = Memory::new();
    memory.declare(AT, vec![0; 24]);
    let launch = Launch {
        kernel: "warptrace_clocks",
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared: 0,
        parameters: vec![AT.to_le_bytes().to_vec(), samples.to_le_bytes().to_vec()],
        clock: START,
        multiprocessors: 1,
        max_steps: 10_000_000,
    };
    run(&program, &launch, &mut memory, &mut schedule).unwrap();
    let (words, _) = memory.region(AT).unwrap().as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

#[test]
fn the_kernel_finds_the_steps_of_clocks() {
    // An instruction takes 2 to 6 cycles.
    let [cycles, nanoseconds, timer] = interpreted(200, Schedule::random(1));
    assert_eq!((cycles, nanoseconds), (1, 1));
    assert!(timer > START);
    // An instruction takes 3 cycles and one nanosecond.
    assert_eq!(interpreted(200, Schedule::switches(&[], true))[..2], [3, 1]);
    let [cycles, nanoseconds, timer] = interpreted(0, Schedule::random(1));
    assert!(cycles == 0 && nanoseconds == 0 && (START..START + 100).contains(&timer), "{timer}");
}

#[test]
fn a_trace_has_the_steps_and_the_hosts_clocks() {
    for times in [Times::Off, Times::Runs, Times::All] {
        let spec = spec(|spec| spec.recording.times = times);
        let Some(traced) = both_with(&["dlsym", &data("kernels.ptx"), "twice"], &[(RUN_SPEC, &spec)]) else {
            return;
        };
        traced.verified();
        let trace = traced.trace();
        let steps = [CLOCK_STEP, TIMER_STEP].map(|name| trace.metadata().property(name));
        let noted: Vec<u32> = trace.host_launches().map(|ran| ran.launch).collect();
        if times == Times::Off {
            assert_eq!((steps, noted.len(), trace.clock_readings().len()), ([None, None], 0, 0));
            continue;
        }
        assert_eq!(steps, [Some("1"), Some("1")]);
        assert_eq!(noted, trace.launches().map(|info| info.number()).collect::<Vec<_>>());
        let [first, last] = trace.clock_readings() else { panic!("{:?}", trace.clock_readings()) };
        for reading in [first, last] {
            assert!(reading.timer.is_some() && reading.width > 0, "{reading:?}");
        }
        assert!(first.monotonic < last.monotonic && first.realtime < last.realtime);
        for ran in trace.host_launches() {
            let end = ran.begin + ran.nanoseconds.expect("it was seen to have ended");
            assert!(first.realtime <= ran.begin && end <= last.realtime, "{ran:?}");
        }
    }
}
