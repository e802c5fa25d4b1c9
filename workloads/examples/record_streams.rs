//! Records the event streams of the programs on the simulator, for offline studies of codecs.
//!
//! ```text
//! cargo run --release -p warptrace-workloads --example record_streams -- FOLDER [NAME ...]
//! ```
//!
//! Each program goes to `FOLDER/NAME.streams`: the number of streams, then for each warp of each launch the
//! bytes of its events and the events in the CUT form, five bytes each (all numbers are 32 bits,
//! little-endian). Without names every program is recorded. New York's road network and the mesh are read
//! from the real inputs (`WARPTRACE_INPUTS`, or `../shared/inputs` beside the checkout).

use std::error::Error;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::codec::CodecSpec;
use warptrace_host::{Launcher, MemorySize, RecordingSpec, Session, SimDevice, SimOptions};
use warptrace_workloads::dmr::{self, DmrOptions};
use warptrace_workloads::fractal::{self, FractalOptions};
use warptrace_workloads::inputs::generate::{self, Rmat, THESIS_WEIGHTS, random_weights, rmat};
use warptrace_workloads::inputs::{Graph, Limits, LoadOptions, load_graph, load_mesh};
use warptrace_workloads::matmul::{self, Matrices};
use warptrace_workloads::mis::{self, MisOptions};
use warptrace_workloads::mst::{self, MstOptions};
use warptrace_workloads::nbody::{self, NbodyOptions};
use warptrace_workloads::stress::{self, StressOptions};
use warptrace_workloads::{Grid, ProgramInfo};

const SEED: u64 = 1;

type Outcome = Result<(), Box<dyn Error>>;
type Run = fn(&mut dyn Launcher, &Path) -> Outcome;

const PROGRAMS: [(&str, &ProgramInfo, Run); 10] = [
    ("fractal", &fractal::PROGRAM, |launcher, _| {
        fractal::run(launcher, &FractalOptions::new(512, 1024))?;
        Ok(())
    }),
    ("nbody", &nbody::PROGRAM, |launcher, _| {
        nbody::run(launcher, &nbody::plummer(2_000, SEED), &NbodyOptions::new(2))?;
        Ok(())
    }),
    ("mis-road", &mis::PROGRAM, |launcher, inputs| run_mis(launcher, &road(inputs)?)),
    ("mis-rmat", &mis::PROGRAM, |launcher, _| run_mis(launcher, &rmat16()?)),
    ("mst-road", &mst::PROGRAM, |launcher, inputs| run_mst(launcher, road(inputs)?)),
    ("mst-rmat", &mst::PROGRAM, |launcher, _| run_mst(launcher, generate::rmat12(SEED)?)),
    ("dmr-633", &dmr::PROGRAM, |launcher, inputs| run_dmr(launcher, &inputs.join("meshes/633.2.ele.gz"))),
    ("dmr-10000", &dmr::PROGRAM, |launcher, inputs| {
        run_dmr(launcher, &inputs.join("meshes/ttimeu10000.2.ele.gz"))
    }),
    ("matmul", &matmul::PROGRAM, |launcher, _| {
        matmul::run(launcher, &Matrices::random(1_024, SEED)?)?;
        Ok(())
    }),
    ("stress", &stress::PROGRAM, |launcher, _| {
        stress::run(launcher, &StressOptions::new(8_192, 16))?;
        Ok(())
    }),
];

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("give the folder for the streams")?);
    let names: Vec<String> = arguments.collect();
    let inputs = std::env::var_os("WARPTRACE_INPUTS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/inputs")),
        PathBuf::from,
    );
    for (name, program, run) in PROGRAMS {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            let streams = record(program, |launcher| run(launcher, &inputs))?;
            let events: usize = streams.iter().map(|stream| stream.len() / 5).sum();
            println!("{name}: {} streams, {events} events", streams.len());
            write(&folder.join(format!("{name}.streams")), &streams)?;
        }
    }
    Ok(())
}

/// The thesis's grid, so that streams are as long as the thesis's.
fn thesis_grid() -> Option<Grid> {
    Grid::new(192, 256).ok()
}

fn road(inputs: &Path) -> Result<Graph, Box<dyn Error>> {
    Ok(load_graph(inputs.join("graphs/USA-road-d.NY.pace.gr.xz"), &LoadOptions::default())?.0)
}

fn rmat16() -> Result<Graph, Box<dyn Error>> {
    Ok(rmat(&Rmat { scale: 16, edges: 500_000, a: 0.55, b: 0.1, c: 0.1, d: 0.25 }, SEED)?)
}

fn run_mis(launcher: &mut dyn Launcher, graph: &Graph) -> Outcome {
    mis::run(launcher, graph, &MisOptions { grid: thesis_grid(), ..MisOptions::default() })?;
    Ok(())
}

fn run_mst(launcher: &mut dyn Launcher, graph: Graph) -> Outcome {
    let graph = random_weights(graph, THESIS_WEIGHTS, SEED)?;
    mst::run(launcher, &graph, &MstOptions { grid: thesis_grid() })?;
    Ok(())
}

fn run_dmr(launcher: &mut dyn Launcher, mesh: &Path) -> Outcome {
    let (mesh, _) = load_mesh(mesh, &Limits::default())?;
    dmr::run(launcher, &mesh, &DmrOptions { grid: thesis_grid(), ..DmrOptions::default() })?;
    Ok(())
}

/// The CUT bytes of each warp that has events, launch by launch.
fn record(
    program: &ProgramInfo,
    run: impl FnOnce(&mut dyn Launcher) -> Outcome,
) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut device = SimDevice::new(SimOptions { seed: SEED, ..SimOptions::default() });
    let options = RecordingSpec { memory: Some(MemorySize(4 << 30)), ..RecordingSpec::new(CodecSpec::Raw) };
    let mut session = Session::start(&mut device, &program.traced(), &options, Vec::new())?;
    run(&mut session)?;
    let (bytes, _, report) = session.finish()?;
    if report.lost != 0 {
        return Err(format!("{} of {} events found no room", report.lost, report.attempted).into());
    }
    let file = TraceFile::from_bytes(bytes)?;
    let mut streams: Vec<Vec<u8>> = Vec::new();
    for launch in file.launches() {
        let mut last = None;
        let _all = file.decode_all(launch.number(), 0, &WarpFilter::all(), &mut |block| {
            if last != Some(block.warp) {
                streams.push(Vec::new());
                last = Some(block.warp);
            }
            if let Some(stream) = streams.last_mut() {
                stream.extend(block.events.iter().flat_map(|event| event.cut()));
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(streams)
}

fn write(path: &Path, streams: &[Vec<u8>]) -> Outcome {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(&u32::try_from(streams.len())?.to_le_bytes())?;
    for stream in streams {
        file.write_all(&u32::try_from(stream.len())?.to_le_bytes())?;
        file.write_all(stream)?;
    }
    file.flush()?;
    Ok(())
}
