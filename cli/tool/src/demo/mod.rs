//! `warptrace demo`: records a built-in kernel.

mod picture;

use std::process::ExitCode;

use crate::output::{count, say};
use crate::recording::{Finished, Recordable};
use anyhow::bail;
use warptrace_host::{Buffer, LaunchShape, Launcher, TracedProgram};

use self::picture::mandelbrot;
use crate::arguments::Demo;
use crate::exit;

/// Upper left corner and side of the computed square, at the edge of the set, where lanes of a warp diverge.
const CORNER: (f64, f64) = (-0.74395, -0.10461);
const SIDE: f64 = 0.00578;
/// Threads per block.
const BLOCK: u32 = 256;

/// PTX of the kernels; empty if the tool was built without a device compiler.
pub(crate) const PTX: &str = mandelbrot::MODULE.ptx;

/// Computes the picture while recording, and compares it with the CPU's result.
pub(crate) fn run(command: &Demo) -> anyhow::Result<ExitCode> {
    let program = Recordable {
        name: "mandelbrot",
        kernels: TracedProgram { kernels: &[], modules: &[mandelbrot::MODULE], ptx: "" },
        properties: [("width", command.width), ("depth", command.depth)]
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .into(),
        files: Vec::new(),
    };
    let prepared = command.recording.prepare(&program)?;
    let (picture, recorded) = prepared.record(|| Ok(PTX), |launcher| compute(launcher, command))?;
    let checked = check(&picture, command)?;
    recorded.warning().into_iter().for_each(|warning| crate::output::tell!("{warning}"));
    let input =
        format!("{0} x {0} pixels, at most {1} steps each", command.width, count(command.depth.into()));
    let finished = Finished { recorded: &recorded, of: "", input: &input, result: Some(&checked) };
    // The trace may be on standard output.
    let printed = if recorded.is_printed() {
        crate::output::tell!("{finished}");
        Ok(())
    } else {
        say!("{finished}")
    };
    exit::verdict(if recorded.is_complete() { 0 } else { exit::FINDINGS }, printed.map_err(Into::into))
}

fn pixel_side(command: &Demo) -> f64 {
    SIDE / f64::from(command.width)
}

fn compute(launcher: &mut dyn Launcher, command: &Demo) -> anyhow::Result<Vec<u32>> {
    let Demo { width, depth, .. } = *command;
    let pixels = width as usize * width as usize;
    let picture = Buffer::<u32>::filled(launcher.device(), pixels, 0)?;
    let (left, top) = CORNER;
    let call = mandelbrot::mandelbrot(&picture, width, depth, left, top, pixel_side(command));
    // SAFETY: the kernel writes only to `picture`, which is memory of this device.
    unsafe { launcher.launch(&call, &LaunchShape::linear(pixels as u64, BLOCK)) }?;
    let computed = picture.download(launcher.device())?;
    picture.free(launcher.device())?;
    Ok(computed)
}

/// Compares each pixel with the CPU's result of the same function. The error names the first that differs.
fn check(picture: &[u32], command: &Demo) -> anyhow::Result<String> {
    let ((left, top), side) = (CORNER, pixel_side(command));
    for (pixel, found) in (0_u32..).zip(picture) {
        let (row, column) = (pixel / command.width, pixel % command.width);
        let (x, y) = (left + f64::from(column) * side, top - f64::from(row) * side);
        let expected = mandelbrot::steps_of(x, y, command.depth);
        if *found != expected {
            bail!("the kernel's result is wrong: pixel {column}, {row} is {found}, on the CPU {expected}");
        }
    }
    Ok(format!("every pixel as on the CPU ({})", count(picture.len() as u64)))
}
