//! Prints an outline of PTX files, and how long reading each took: `outline FILE.ptx...`
//!
//! Also checks what the library promises of any PTX, such as spans in order with only blanks between them.

use std::process::ExitCode;
use std::time::Instant;

use warptrace_ptx::{Cfg, Module, fuzzing};

fn main() -> ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        if let Err(message) = outline(&path) {
            eprintln!("{path}: {message}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn outline(path: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let start = Instant::now();
    let module = Module::parse(&text).map_err(|error| error.to_string())?;
    let parsed = start.elapsed();
    let (major, minor) = module.version();
    println!(
        "{path}: PTX {major}.{minor} for {}, {} KiB in {:.1} ms",
        module.target(),
        text.len() >> 10,
        parsed.as_secs_f64() * 1e3
    );
    for function in module.definitions() {
        let Some(body) = &function.body else { continue };
        let cfg = Cfg::new(body).map_err(|error| format!("{}: {error}", function.name))?;
        println!(
            "  {:?} {}: {} params, {} statements, {} instructions, {} blocks, {} loops",
            function.kind,
            function.name,
            function.params.len(),
            body.statements.len(),
            body.instructions().count(),
            cfg.blocks().len(),
            cfg.loops().len()
        );
    }
    println!("  with control flow in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    // Panics on a finding.
    fuzzing::check(&text);
    Ok(())
}
