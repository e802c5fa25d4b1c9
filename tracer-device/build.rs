//! Sets `cfg(recording)`: on the host always (the simulator chooses at run time), on the GPU with a codec.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(recording)");
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var_os(name).is_some();
    let gpu = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "nvptx64");
    if !gpu || set("CARGO_FEATURE_CODEC_RAW") || set("CARGO_FEATURE_CODEC_ECL") {
        println!("cargo::rustc-cfg=recording");
    }
}
