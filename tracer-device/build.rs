//! Names for what the features mean together. On the host everything is there: the simulator chooses at run time.
//!
//! - `cfg(recording)`: trace points record.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(recording)");
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var_os(name).is_some();
    let gpu = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "nvptx64");
    let tables = !gpu || set("CARGO_FEATURE_CODEC_ECL") || set("CARGO_FEATURE_CODEC_PREDICT");
    if tables || set("CARGO_FEATURE_CODEC_RAW") {
        println!("cargo::rustc-cfg=recording");
    }
}
