//! Records a kernel of a program that creates its CUDA context, stream and arrays itself. Without a GPU, the
//! simulator runs the same kernel.

mod kernels;

use kernels::histogram;
use warptrace::cudarc::driver::CudaContext;
use warptrace::{Device, LaunchConfig};

const VALUES: u32 = 1 << 16;
const BINS: usize = 16;
const THREADS: u32 = 1 << 12;

fn values() -> Vec<u32> {
    (0..VALUES).map(|at| if at % 3 == 0 { 0 } else { at.wrapping_mul(2_654_435_761) >> 9 }).collect()
}

fn reference(values: &[u32]) -> Vec<u32> {
    let mut bins = vec![0; BINS];
    for value in values.iter().filter(|value| **value != 0) {
        bins[*value as usize % BINS] += 1;
    }
    bins
}

/// Counts on a stream that the program has created.
fn count_on_stream(values: &[u32], path: &str) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    let stream = CudaContext::new(0)?.new_stream()?;
    let mut device_values = stream.clone_htod(values)?;
    let mut bins = stream.alloc_zeros::<u32>(BINS)?;

    let device = Device::from_cudarc(&stream)?;
    {
        let (device_values, bins) = (device.adopt(&mut device_values)?, device.adopt(&mut bins)?);
        let mut trace = device.trace(path).start(&histogram::MODULE)?;
        let call = histogram::count(&device_values, &bins, THREADS);
        trace.launch(&call, &LaunchConfig::for_elements(THREADS as usize))?;
        println!("{}", trace.finish()?);
    }
    Ok(stream.clone_dtoh(&bins)?)
}

/// Counts with memory that warptrace allocates.
fn count_on(device: &Device, values: &[u32], path: &str) -> Result<Vec<u32>, warptrace::Error> {
    let (device_values, bins) = (device.upload(values)?, device.zeros::<u32>(BINS)?);
    let mut trace = device.trace(path).start(&histogram::MODULE)?;
    let call = histogram::count(&device_values, &bins, THREADS);
    trace.launch(&call, &LaunchConfig::for_elements(THREADS as usize))?;
    println!("{}", trace.finish()?);
    bins.download()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "own_context.wtrc".to_owned());
    let values = values();
    let device = Device::auto()?;
    let bins = match device.no_gpu() {
        Some(reason) => {
            println!("on the simulator: {reason}");
            count_on(&device, &values, &path)?
        }
        None => count_on_stream(&values, &path)?,
    };
    assert_eq!(bins, reference(&values));
    println!("{BINS} bins are as on the CPU");
    Ok(())
}
