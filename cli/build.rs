//! Compiles the kernel of `warptrace demo` for GPUs.

fn main() {
    warptrace_build::compile("src/demo/kernels.rs");
}
