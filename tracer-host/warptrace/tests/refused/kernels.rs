use warptrace_macros::kernels;

#[kernels(device = warptrace_device)]
mod wrong {
    #[kernel]
    fn generic<T>(x: T) {}

    #[kernel]
    fn answers() -> u32 {
        1
    }

    #[kernel]
    unsafe fn is_unsafe() {}

    #[kernel]
    fn borrows(x: &mut [u32]) {}

    #[kernel]
    fn unpacks((x, y): (u32, u32)) {}

    #[kernel(conditions)]
    fn has_arguments() {}

    fn marks(x: u32) {
        trace!(x > 1);
        trace!("many", x > 1); // A value.
        let inside = |x: u32| {
            trace!("closure");
            x
        };
        inside(x);
        trace!("twice");
        trace!("twice", if x > 1);
        trace!("");
    }

    fn other(x: u32) {
        // Belongs to another function, so its full name differs.
        trace!("twice", if x > 1);
    }
}

#[kernels(device = warptrace_device, first_id = 65534)]
mod too_high {
    #[kernel]
    fn three(x: u32) {
        if x > 1 {}
    }
}

#[kernels(device = warptrace_device, first_id = 0)]
mod zero {}

#[kernels(crate_path = warptrace_device)]
mod misnamed {}

#[kernels]
struct NoModule;

fn main() {}
