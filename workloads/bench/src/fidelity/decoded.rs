//! Counts per trace point from a trace.

use anyhow::Context;
use warptrace_decoder::{Completeness, TraceFile, WarpFilter};

use super::counts::{Counts, Passed};

/// Returns the counts of one track of a trace, over its first `launches` launches.
pub(super) fn counts(trace: &TraceFile, track: u32, launches: usize) -> anyhow::Result<Counts> {
    anyhow::ensure!(
        matches!(trace.completeness(), Completeness::Complete),
        "the trace is not whole: {}",
        trace.completeness()
    );
    let mut counts = Counts::default();
    for info in trace.launches().take(launches) {
        let kernel = trace.metadata().kernels.get(info.kernel() as usize);
        let kernel = kernel.with_context(|| format!("launch {} has no kernel", info.number()))?;
        for (location, passed) in trace.location_counts(info.number(), track, &WarpFilter::all())? {
            counts.add(&kernel.name, location, Passed { events: passed.events, lanes: passed.lanes });
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use warptrace_host::{Session, SimDevice, SimOptions};
    use warptrace_workloads::fractal::{self, FractalOptions};

    use super::*;
    use crate::codecs::CODECS;
    use crate::runs;

    #[test]
    fn counts_are_those_of_the_events_on_each_track() {
        let codec = CODECS.iter().find(|codec| codec.name == "predict").unwrap();
        let mut device = SimDevice::new(SimOptions::default());
        let options = runs::session_options(codec, true, 16 << 20);
        let mut session =
            Session::start(&mut device, &fractal::PROGRAM.traced(), &options, Vec::new()).unwrap();
        fractal::run(&mut session, &FractalOptions::new(64, 64)).unwrap();
        let (bytes, _, report) = session.finish().unwrap();

        let trace = TraceFile::from_bytes(bytes.clone()).unwrap();
        for track in 0..2 {
            let mut expected = Counts::default();
            let _ = trace
                .decode_all(0, track, &WarpFilter::all(), &mut |block| {
                    for event in block.events {
                        let passed = Passed { events: 1, lanes: event.mask.count_ones().into() };
                        expected.add("fractal", event.location, passed);
                    }
                    ControlFlow::Continue(())
                })
                .unwrap();
            let found = counts(&trace, track, 1).unwrap();
            assert_eq!(found, expected, "track {track}");
            assert_eq!(found.total().events, report.recorded, "track {track}");
        }

        assert!(counts(&trace, 0, 0).unwrap().is_empty());
        let cut = TraceFile::from_bytes(bytes[..bytes.len() - 1].to_vec()).unwrap();
        assert!(counts(&cut, 0, 1).unwrap_err().to_string().starts_with("the trace is not whole"));
    }
}
