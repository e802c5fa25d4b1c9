//! Writes random functions. `WARPTRACE_RANDOM_FUNCTIONS` sets their number, `WARPTRACE_RANDOM_SEED` the seed.

#[path = "generate.rs"]
mod generate;

fn main() {
    let number = |name: &str, otherwise: u64| {
        println!("cargo::rerun-if-env-changed={name}");
        let given = std::env::var(name).ok().filter(|value| !value.is_empty());
        given.map_or(otherwise, |value| value.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    let functions = number("WARPTRACE_RANDOM_FUNCTIONS", 300);
    let seed = number("WARPTRACE_RANDOM_SEED", 1);
    println!("cargo::rerun-if-changed=build.rs");
    for source in ["generate.rs", "prelude.rs", "statements.rs"] {
        println!("cargo::rerun-if-changed={source}");
    }
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let text = generate::modules(functions, seed);
    std::fs::write(out.join("random.rs"), text).expect("the folder of outputs can be written");
}
