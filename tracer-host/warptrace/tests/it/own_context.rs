//! A program with its own CUDA context, if a GPU is present.

use warptrace::cudarc::driver::CudaContext;
use warptrace::host::CudaDevice;
use warptrace::{Device, LaunchConfig};
use warptrace_decoder::TraceFile;

#[warptrace::kernels]
mod steps {
    use warptrace::device::{DisjointSlice, thread};

    #[kernel]
    pub fn collatz(starts: &[u32], steps: DisjointSlice<u32>) {
        let Some((index, count)) = steps.own(thread::index()) else { return };
        let mut value = starts[index];
        while value > 1 {
            value = if value.is_multiple_of(2) { value / 2 } else { 3 * value + 1 };
            *count += 1;
        }
    }
}

#[test]
fn the_programs_own_arrays_are_arguments() -> Result<(), Box<dyn std::error::Error>> {
    if CudaDevice::list().map_or(true, |gpus| gpus.is_empty()) {
        eprintln!("not run: this machine has no GPU");
        return Ok(());
    }
    // Two handles of one context.
    let (stream, other) = (CudaContext::new(0)?.new_stream()?, CudaContext::new(0)?.default_stream());
    let device = Device::from_cudarc(&stream)?;
    let (mut starts, mut steps) = (stream.clone_htod(&[27u32, 1, 8])?, other.alloc_zeros::<u32>(3)?);
    let refused = Device::gpu(0)?.adopt(&mut starts).expect_err("this device has not been made of a stream");
    assert!(refused.to_string().contains("Device::from_cudarc"), "{refused}");
    let path = tempfile::tempdir()?.path().with_extension("wtrc");
    {
        let (starts, steps) = (device.adopt(&mut starts)?, device.adopt(&mut steps)?);
        if steps::MODULE.ptx.is_empty() {
            // The tests of this package compile no device code, so the call returns an error.
            let error = device.trace(&path).start(&steps::MODULE).expect_err("there is no device code");
            assert!(error.to_string().contains("device code"), "{error}");
            return Ok(());
        }
        let mut trace = device.trace(&path).start(&steps::MODULE)?;
        trace.launch(&steps::collatz(&starts, &steps), &LaunchConfig::for_elements(3))?;
        trace.finish()?;
    }
    assert_eq!(stream.clone_dtoh(&steps)?, [111, 0, 3]);
    assert!(TraceFile::open(&path)?.verify().is_ok());
    Ok(())
}
