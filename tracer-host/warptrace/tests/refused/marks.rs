use warptrace_macros::kernels;

#[kernels(device = warptrace_device, only_marked)]
mod marked {
    #[kernel]
    fn walk(x: u32) {
        trace!("ENTER");
        if x > 1 {
            trace!("MORE" = 7);
        } else {
            trace!("LESS" = 1);
        }
        trace!("NONE" = 0);
        let mut steps = trace_loop!("STEP", if x > 1);
        for _ in 0..x {
            steps.tick();
        }
        trace!("MORE");
    }
}

#[kernels(device = warptrace_device)]
mod all {
    #[kernel]
    fn walk(x: u32) {
        let mut steps = trace_loop!("STEP");
        for _ in 0..x {
            steps.tick();
        }
    }
}

#[kernels(device = warptrace_device, automatic = 0)]
mod zero {}

fn main() {}
