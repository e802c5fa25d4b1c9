//! Sums numbers, records the kernel, and checks the sum.

mod kernels;

use kernels::reduction;
use warptrace::{Device, LaunchConfig};

const NUMBERS: usize = 100_000;
const BLOCKS: u32 = 24;

fn main() -> Result<(), warptrace::Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "reduction.wtrc".to_owned());
    let device = Device::auto()?;
    if let Some(reason) = device.no_gpu() {
        println!("on the simulator: {reason}");
    }

    let numbers: Vec<u32> =
        (0..NUMBERS as u32).map(|number| number.wrapping_mul(2_654_435_761) >> 8).collect();
    let device_numbers = device.upload(&numbers)?;
    let sums = device.zeros::<u32>(BLOCKS as usize)?;
    let mut trace = device.trace(&path).start(&reduction::MODULE)?;
    let shape = LaunchConfig::grid([BLOCKS, 1, 1], [reduction::THREADS, 1, 1]);
    trace.launch(&reduction::sum(&device_numbers, &sums), &shape)?;
    println!("{}", trace.finish()?);

    let found = sums.download()?.into_iter().fold(0, u32::wrapping_add);
    let expected = numbers.into_iter().fold(0, u32::wrapping_add);
    assert_eq!(found, expected, "the sum");
    println!("the sum is as on the CPU");
    Ok(())
}
