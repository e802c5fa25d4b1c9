//! Unused results are warnings; here they are errors.
#![deny(unused_must_use)]
#![allow(deprecated, reason = "these are not compiled for a GPU")]

#[warptrace::kernels]
mod ones {
    use warptrace::device::{DisjointSlice, thread};

    #[kernel]
    pub fn write(out: DisjointSlice<u32>) {
        let Some((_, out)) = out.own(thread::index()) else { return };
        *out = 1;
    }
}

fn main() -> Result<(), warptrace::Error> {
    let device = warptrace::Device::simulator();
    let out = device.zeros::<u32>(4)?;
    device.trace("unstarted.wtrc").dual();
    device.trace("unused.wtrc").start(&ones::MODULE)?;
    ones::write(&out);
    Ok(())
}
