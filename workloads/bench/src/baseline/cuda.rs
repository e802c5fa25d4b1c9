//! Runs a baseline in CUDA C++ (`workloads/baseline`) and reads the line that it prints.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::table::Timing;

/// Runs `program` of `folder` with its arguments, the number of runs, and perhaps a last argument.
pub(super) fn run(
    folder: &Path,
    program: &str,
    arguments: &[u32],
    runs: u32,
    last: Option<u32>,
) -> anyhow::Result<Timing> {
    let path = folder.join(program);
    let shown = path.display();
    let numbers = arguments.iter().chain([&runs]).chain(&last).map(ToString::to_string);
    let output = Command::new(&path)
        .args(numbers)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {shown}: compile it from workloads/baseline/{program}.cu"))?;
    ensure!(output.status.success(), "{shown} failed ({})", output.status);
    let line = String::from_utf8_lossy(&output.stdout);
    parse(&line, program, arguments, runs)
        .with_context(|| format!("{shown} printed `{}`, which is not its line", line.trim()))
}

/// Reads `program,arguments...,runs,median,least`, in milliseconds, and perhaps the work done.
fn parse(line: &str, program: &str, arguments: &[u32], runs: u32) -> Option<Timing> {
    let mut fields = line.trim().split(',');
    (fields.next()? == program).then_some(())?;
    for expected in arguments.iter().chain([&runs]) {
        (fields.next()?.parse() == Ok(*expected)).then_some(())?;
    }
    let mut milliseconds = || fields.next()?.parse::<f64>().ok().filter(|time| *time > 0.0);
    let (median, least) = (milliseconds()? / 1e3, milliseconds()? / 1e3);
    let work = match fields.next() {
        Some(work) => Some(work.parse().ok()?),
        None => None,
    };
    Some(Timing { median, least, runs, work })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baselines_lines_are_read() {
        let fractal =
            parse("fractal,2048,1024,256,9,2.5,2.25,3659000126\n", "fractal", &[2048, 1024, 256], 9);
        assert_eq!(
            fractal,
            Some(Timing { median: 2.5e-3, least: 2.25e-3, runs: 9, work: Some(3_659_000_126) })
        );
        let nbody = parse("nbody,50000,2,128,9,7.2951,7.2852", "nbody", &[50_000, 2, 128], 9).unwrap();
        assert_eq!(nbody.work, None);
    }

    #[test]
    fn a_line_of_another_run_is_refused() {
        for line in [
            "",
            "fractal",
            "nbody,2048,1024,256,9,2.1,2.1,3",
            "fractal,2048,1024,256,8,2.1,2.1,3",
            "fractal,2048,512,256,9,2.1,2.1,3",
            "fractal,2048,1024,256,9,2.1",
            "fractal,2048,1024,256,9,0,0,3",
            "fractal,2048,1024,256,9,2.1,2.1,many",
        ] {
            assert_eq!(parse(line, "fractal", &[2048, 1024, 256], 9), None, "{line}");
        }
    }
}
