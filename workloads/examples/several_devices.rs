//! Records on all GPUs of the machine at once, in one process: a session on each.
//!
//! ```text
//! cargo run --release -p warptrace-workloads --example several_devices -- [sim]
//! ```
//!
//! First launches go to the devices in turn, from one thread; then each device has a thread of its own. Every
//! result and every trace is checked. With `sim`, or without a GPU, two simulators take the GPUs' part.

use std::error::Error;

use warptrace_decoder::TraceFile;
use warptrace_format::codec::CodecSpec;
use warptrace_host::{
    CudaDevice, DEVICE_PREDICT, Device, Launcher, MemorySize, Policy, RecordingSpec, Session, SimDevice,
    SimOptions,
};
use warptrace_workloads::stress::{self, StressOptions};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Checks a trace, whose events are known; answers how many there are.
fn verify(bytes: Vec<u8>) -> Outcome<u64> {
    let verified = TraceFile::from_bytes(bytes)?.verify();
    if !verified.is_ok() || verified.lost_events != 0 {
        return Err(format!("{verified:?}").into());
    }
    Ok(verified.events)
}

/// Runs a program of so many walks and checks its result.
fn walk(launcher: &mut dyn Launcher, walks: u32) -> Outcome {
    let options = StressOptions::new(walks, 8);
    stress::check(&options, &stress::run(launcher, &options)?.result)?;
    Ok(())
}

/// Records two runs on a device.
fn record(device: &mut dyn Device, walks: u32, policy: Policy) -> Outcome<u64> {
    let options = RecordingSpec {
        policy,
        dual: true,
        memory: Some(MemorySize(256 << 20)),
        ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT))
    };
    let mut session = Session::start(device, &stress::PROGRAM.traced(), &options, Vec::new())?;
    for _ in 0..2 {
        walk(&mut session, walks)?;
    }
    verify(session.finish()?.0)
}

/// Has sessions on all devices at the same time, and launches on them in turn.
fn in_turn(devices: &mut [Box<dyn Device + Send>], policy: Policy) -> Outcome<Vec<u64>> {
    let options = RecordingSpec {
        policy,
        memory: Some(MemorySize(256 << 20)),
        ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT))
    };
    let program = stress::PROGRAM.traced();
    let mut sessions = Vec::new();
    for device in devices {
        sessions.push(Session::start(&mut **device, &program, &options, Vec::new())?);
    }
    for turn in 1..=3 {
        for (session, number) in sessions.iter_mut().zip(1..) {
            walk(session, 256 * turn * number)?;
        }
    }
    sessions.into_iter().map(|session| verify(session.finish()?.0)).collect()
}

fn devices(simulated: bool) -> Outcome<Vec<Box<dyn Device + Send>>> {
    let count = if simulated { 0 } else { CudaDevice::list().map_or(0, |list| list.len()) };
    let mut devices: Vec<Box<dyn Device + Send>> = Vec::new();
    for ordinal in 0..count {
        devices.push(Box::new(CudaDevice::open(u32::try_from(ordinal)?, warptrace_workloads::ptx()?)?));
    }
    while count == 0 && devices.len() < 2 {
        devices.push(Box::new(SimDevice::new(SimOptions::default())));
    }
    Ok(devices)
}

fn main() -> Outcome {
    let mut devices = devices(std::env::args().nth(1).as_deref() == Some("sim"))?;
    for device in &devices {
        println!("{}", device.info().name);
    }
    for policy in [Policy::Stop, Policy::Stream] {
        println!("{policy:?}, in turn: {:?} events, no problem found", in_turn(&mut devices, policy)?);
        let at_once = std::thread::scope(|scope| {
            let threads: Vec<_> = (devices.iter_mut().zip(1..))
                .map(|(device, number)| scope.spawn(move || record(&mut **device, 512 * number, policy)))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Outcome<Vec<_>>>()
        })?;
        println!("{policy:?}, at once, beside raw: {at_once:?} events, no problem found");
    }
    Ok(())
}
