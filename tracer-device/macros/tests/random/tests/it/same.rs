//! Random functions compute the same with and without trace points, as host functions and as kernels on the
//! simulator.

use warptrace::{Device, LaunchConfig};
use warptrace_random_kernels::{FUNCTIONS, plain, traced};

#[test]
fn on_the_host() {
    for number in 0..FUNCTIONS {
        for seed in 0..8 {
            assert_eq!(
                traced::call(number, seed),
                plain::call(number, seed),
                "function {number}, seed {seed}"
            );
        }
    }
}

#[test]
fn on_the_simulator_while_they_are_recorded() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("warptrace-random-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let device = Device::simulator();
    let out = device.zeros::<u32>(32)?;
    let mut events = 0;
    // Ids of a file end at 65,535, which allows a few thousand functions.
    for (first, module) in traced::MODULES {
        let path = folder.join("random.wtrc");
        let mut trace = device.trace(&path).memory(64 << 20).start(module)?;
        for number in *first..FUNCTIONS.min(first + traced::PER_MODULE) {
            trace.launch(&traced::launch(number, &out), &LaunchConfig::for_elements_in_blocks(32, 32))?;
            let expected: Vec<u32> = (0..32).map(|seed| plain::call(number, seed)).collect();
            assert_eq!(out.download()?, expected, "function {number}");
        }
        let summary = trace.finish()?;
        assert_eq!(summary.lost, 0);
        events += summary.recorded;
    }
    assert!(events > u64::from(FUNCTIONS) * 10, "{events} events");
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
