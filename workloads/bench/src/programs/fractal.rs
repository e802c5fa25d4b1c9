//! Fractal.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::Args;
use warptrace_cli::numbers::parse_numbers;
use warptrace_cli::whole_file::Target;
use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Launcher;
use warptrace_kernels::fractal::at;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::fractal::{self, FractalOptions, Paths, Region};

use crate::subject::{Case, LaneReference, RunResult, Subject, SubjectRun};

/// The thesis's three depths.
const FULL: [(u32, &str); 3] = [
    (1024, "fractal 2048, depth 1024"),
    (2048, "fractal 2048, depth 2048"),
    (4096, "fractal 2048, depth 4096"),
];

const QUICK: [u32; 3] = [64, 128, 256];

pub(super) fn cases(quick: bool) -> Vec<Case> {
    let cases = sizes(quick).into_iter().map(|(width, depth)| case(width, depth));
    if quick {
        return cases.collect();
    }
    cases.zip(FULL).map(|(case, (_, thesis))| case.like(thesis)).collect()
}

pub(crate) fn sizes(quick: bool) -> Vec<(u32, u32)> {
    if quick { QUICK.map(|depth| (128, depth)).into() } else { FULL.map(|(depth, _)| (2048, depth)).into() }
}

/// Returns a picture that takes a GPU a quarter of a second.
pub(super) fn long(quick: bool) -> Case {
    if quick { case(128, 1024) } else { case(2048, 131_072) }
}

pub(super) fn twin(quick: bool) -> Case {
    if quick { case(96, 64) } else { case(512, 256) }
}

pub(crate) fn case(width: u32, depth: u32) -> Case {
    let options = FractalOptions::new(width, depth);
    Case::new(&fractal::PROGRAM, format!("{width} x {width}, depth {depth}"), move || {
        Ok(Fractal::new(options))
    })
}

/// Options of `record fractal`.
#[derive(Debug, Args)]
pub(crate) struct Options {
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

impl Options {
    pub(crate) fn case(&self) -> Case {
        let Self { width, depth, region: [left, top, side], ref picture } = *self;
        let options =
            FractalOptions { region: Region { left, top, side }, ..FractalOptions::new(width, depth) };
        let region = format!("{left},{top},{side}");
        let picture = picture.clone();
        Case::new(&fractal::PROGRAM, format!("{width} x {width}, depth {depth}"), move || {
            Ok(Fractal { picture: picture.clone(), ..Fractal::new(options) })
        })
        .with(&[("width", &width), ("depth", &depth), ("region", &region)])
        .file(self.picture.as_deref())
    }
}

fn parse_region(text: &str) -> Result<[f64; 3], String> {
    parse_numbers(text)
        .filter(|found: &[f64; 3]| found.iter().all(|number| number.is_finite()) && found[2] > 0.0)
        .ok_or_else(|| {
            "three numbers are needed, the side above 0, as in -0.74395,-0.10461,0.00578".to_owned()
        })
}

struct Fractal {
    options: FractalOptions,
    /// Paths of all pixels on the CPU, computed once: they take ten billion steps at full size.
    paths: OnceLock<Paths>,
    picture: Option<PathBuf>,
}

impl Fractal {
    fn new(options: FractalOptions) -> Self {
        Self { options, paths: OnceLock::new(), picture: None }
    }

    fn paths(&self) -> &Paths {
        self.paths.get_or_init(|| Paths::new(&self.options))
    }
}

impl Subject for Fractal {
    fn program(&self) -> &'static ProgramInfo {
        &fractal::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
        let outcome = fractal::run(launcher, &self.options)?;
        let result = Picture { subject: self, image: outcome.image };
        Ok(SubjectRun { kernel: outcome.kernel, launches: 1, result: Box::new(result) })
    }

    fn lanes(&self) -> Option<&dyn LaneReference> {
        // Computes the paths before callers request lanes in parallel: a task that did so would deadlock.
        self.paths();
        Some(self)
    }
}

impl LaneReference for Fractal {
    fn lane(&self, _: u32, thread: u64) -> LaneDigest {
        LaneDigest::new(self.paths().lane_locations(thread))
    }
}

struct Picture<'s> {
    subject: &'s Fractal,
    image: Vec<u32>,
}

impl RunResult for Picture<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(bytemuck::cast_slice(&self.image))
    }

    fn check(&self) -> Result<String, String> {
        self.subject.paths().check(&self.image)
    }

    fn expected_events(&self) -> Option<u64> {
        Some(self.subject.paths().expected_events())
    }

    fn write(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.subject.picture else { return Ok(None) };
        let FractalOptions { width, depth, .. } = self.subject.options;
        Target::new(path, &[])?.write(|out| write_png(out, &self.image, width, depth))?;
        Ok(Some(format!("picture    {}", path.display())))
    }

    fn expected_rounds(&self) -> Option<(u16, u64)> {
        Some((at::ITERATE, self.subject.paths().expected_rounds()))
    }
}

/// Writes `image` (`width` pixels per row) as an 8-bit greyscale PNG. Pixels that reached the depth are
/// black, others the darker the sooner they escaped, on a logarithmic scale.
fn write_png(
    output: impl std::io::Write,
    image: &[u32],
    width: u32,
    depth: u32,
) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(output, width, width);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    let scale = 255.0 / f64::from(depth).max(2.0).ln();
    let pixels: Vec<u8> = image
        .iter()
        .map(|&steps| if steps >= depth { 0 } else { (f64::from(steps.max(1)).ln() * scale) as u8 })
        .collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()
}
