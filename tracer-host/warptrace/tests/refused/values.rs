use warptrace_macros::kernels;

#[kernels(device = warptrace_device)]
mod names {
    #[kernel]
    fn walk(x: u32) {
        trace!("", x);
        trace!("two\nlines", x);
        trace!("äääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää", x);
        trace!("x" = 7, x);
        trace!("x", x; y);
        trace!("x", x, x);
    }
}

fn main() {}
