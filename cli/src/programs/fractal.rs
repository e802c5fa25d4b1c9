//! `record fractal`.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::fractal::{self, FractalOptions, FractalOutcome, Region};

use super::Program;
use crate::arguments::parse_numbers;
use crate::output::count;

/// Options of `record fractal`.
#[derive(Debug, Args)]
pub(crate) struct Fractal {
    /// Pixels of a side
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=i64::from(fractal::MAX_WIDTH)))]
    width: u32,

    /// Most steps a pixel
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,

    /// The square to compute: left edge, upper edge, side
    #[arg(long, value_name = "LEFT,TOP,SIDE", value_parser = parse_region, allow_hyphen_values = true,
        default_value = "-0.74395,-0.10461,0.00578")]
    region: [f64; 3],

    /// Also write the picture, as PNG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

impl Fractal {
    fn options(&self) -> FractalOptions {
        let [left, top, side] = self.region;
        FractalOptions { region: Region { left, top, side }, ..FractalOptions::new(self.width, self.depth) }
    }
}

impl Program for Fractal {
    type Input = ();
    type Outcome = FractalOutcome;

    fn info(&self) -> &'static ProgramInfo {
        &fractal::PROGRAM
    }

    fn input(&self) -> anyhow::Result<()> {
        Ok(())
    }

    fn describe(&self, (): &()) -> String {
        format!("{0} x {0} pixels, depth {1}", count(self.width.into()), count(self.depth.into()))
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        let [left, top, side] = self.region;
        vec![
            ("width", self.width.to_string()),
            ("depth", self.depth.to_string()),
            ("region", format!("{left},{top},{side}")),
        ]
    }

    fn run(&self, launcher: &mut dyn Launcher, (): &()) -> anyhow::Result<FractalOutcome> {
        Ok(fractal::run(launcher, &self.options())?)
    }

    fn check(&self, (): &(), outcome: &FractalOutcome) -> anyhow::Result<String> {
        Ok(fractal::check(&self.options(), &outcome.image)?.to_string())
    }

    fn write(&self, outcome: &FractalOutcome) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.picture else { return Ok(None) };
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        fractal::write_png(BufWriter::with_capacity(1 << 20, file), &outcome.image, self.width, self.depth)
            .with_context(|| format!("cannot write the picture {}", path.display()))?;
        Ok(Some(format!("picture    {}", path.display())))
    }
}

fn parse_region(text: &str) -> Result<[f64; 3], String> {
    parse_numbers(text)
        .filter(|found: &[f64; 3]| found.iter().all(|number| number.is_finite()) && found[2] > 0.0)
        .ok_or_else(|| {
            "three numbers are needed, the side above 0, as in -0.74395,-0.10461,0.00578".to_owned()
        })
}
