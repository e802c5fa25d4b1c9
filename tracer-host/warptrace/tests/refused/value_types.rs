use warptrace_macros::kernels;

#[kernels(device = warptrace_device)]
mod types {
    #[kernel]
    fn walk(x: u32) {
        let pair = (x, x);
        trace!("pair", pair);
        trace!("reference", &x; "good", x);
        trace!("wide", u128::from(x));
    }
}

fn main() {}
