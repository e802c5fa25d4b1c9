fn main() {
    warptrace_build::compile("src/kernels.rs");
}
