//! Measures the encoded size of whole warps' accesses, for the table in `results/accesses-size.md`.
//!
//! `cargo run -p warptrace-format --example accesses_size -- USA-road-d.NY.pace.gr`: the argument is a road
//! network in the format of the 9th DIMACS challenge, unpacked. Needs `xz` in `PATH`. Without a graph, the
//! sparse matrices are left out.

use std::io::Write;
use std::process::{Command, Stdio};

use warptrace_format::data::MAX_SITE;
use warptrace_format::data::native::WarpRecorder;
use warptrace_format::data::tile::MAX_TILE_ENTRIES;
use warptrace_format::file::Compression;
use warptrace_format::file::data::{DataChunk, Tile, cut_into_tiles, encode_data};

const ARRAYS: u64 = 0x7f00_0000_0000;
const CHUNK_BYTES: usize = 16_384;

/// A request: site, lanes and their addresses.
type Request = (u16, Vec<(u32, u64)>);

/// A program: its name, and the requests of each warp.
struct Program {
    name: &'static str,
    /// Last recorded site. The sites after it are derived.
    recorded: u16,
    warps: Vec<Vec<Request>>,
}

fn array(number: u64) -> u64 {
    ARRAYS + (number << 32)
}

fn all(address: impl Fn(u64) -> u64) -> Vec<(u32, u64)> {
    (0..32).map(|lane| (lane, address(u64::from(lane)))).collect()
}

/// Generator with the same sequence on every platform.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

fn matmul() -> Program {
    let n = 256;
    let warp = |warp: u64| {
        let (row, column) = (warp / (n / 32), warp % (n / 32) * 32);
        let steps = (0..n).flat_map(|k| {
            let a = all(|_| array(0) + 4 * (row * n + k));
            [(1, a), (2, all(|lane| array(1) + 4 * (k * n + column + lane)))]
        });
        steps.chain([(3, all(|lane| array(2) + 4 * (row * n + column + lane)))]).collect()
    };
    Program { name: "matmul (naive), 3 sites", recorded: MAX_SITE, warps: (0..64).map(warp).collect() }
}

/// Dot products as unrolled by nvcc: 4 of 33 sites are recorded, the others are derived.
fn unrolled() -> Program {
    let (n, times) = (256, 16);
    let warp = |warp: u64| {
        let (row, column) = (warp / (n / 32), warp % (n / 32) * 32);
        let steps = (0..n).flat_map(|k| {
            // The first two of a row have separate sites: their addresses are not known to be neighbours.
            let (a, b) = match k % times {
                0 => (1, 3),
                1 => (2, 5),
                at => (4 + 2 * at as u16, 5 + 2 * at as u16),
            };
            let load = all(|_| array(0) + 4 * (row * n + k));
            [(a, load), (b, all(|lane| array(1) + 4 * (k * n + column + lane)))]
        });
        steps.chain([(4, all(|lane| array(2) + 4 * (row * n + column + lane)))]).collect()
    };
    let name = "matmul (naive), unrolled 16 times, 4 of 33 sites recorded";
    Program { name, recorded: 4, warps: (0..64).map(warp).collect() }
}

fn nbody() -> Program {
    let warp = |_| (0..1024).map(|j| (1, all(|_| array(0) + 16 * j))).collect();
    Program { name: "N-body, one site", recorded: MAX_SITE, warps: (0..32).map(warp).collect() }
}

fn transpose() -> Program {
    let n = 512;
    let warp = |warp: u64| {
        let (x, first) = (warp % (n / 32) * 32, warp / (n / 32) * 8);
        let rows = (first..first + 64).flat_map(|y| {
            let load = all(|lane| array(0) + 4 * (y * n + x + lane));
            [(1, load), (2, all(|lane| array(1) + 4 * ((x + lane) * n + y)))]
        });
        rows.collect()
    };
    Program { name: "transpose", recorded: MAX_SITE, warps: (0..64).map(warp).collect() }
}

fn stencil() -> Program {
    let n = 512u64;
    let warp = |warp: u64| {
        let (x, first) = (warp % (n / 32) * 32, warp / (n / 32) * 16 + 1);
        let rows = (first..first + 64).flat_map(|y| {
            let offsets = (1..).zip([0, -1, 1, -(n as i64), n as i64]);
            offsets.map(move |(site, offset)| {
                (site, all(|lane| (array(0) + 4 * (y * n + x + lane)).wrapping_add_signed(4 * offset)))
            })
        });
        rows.collect()
    };
    Program { name: "5-point stencil", recorded: MAX_SITE, warps: (0..128).map(warp).collect() }
}

fn histogram() -> Program {
    let (warps, mut random) = (200, Random(1));
    let mut warp = |warp: u64| {
        let turns = (0..64).flat_map(|turn| {
            let bins: Vec<u64> = (0..32).map(|_| random.next() % 256).collect();
            let load = all(|lane| array(0) + 4 * ((turn * warps + warp) * 32 + lane));
            [(1, load), (2, all(|lane| array(1) + 4 * bins[lane as usize]))]
        });
        turns.collect()
    };
    Program {
        name: "histogram (random bins)",
        recorded: MAX_SITE,
        warps: (0..warps).map(&mut warp).collect(),
    }
}

struct Graph {
    rows: Vec<u64>,
    columns: Vec<u64>,
}

impl Graph {
    fn new(mut edges: Vec<(u64, u64)>, nodes: u64) -> Self {
        edges.sort_unstable();
        let mut rows = vec![0; nodes as usize + 1];
        edges.iter().for_each(|(from, _)| rows[*from as usize + 1] += 1);
        (1..rows.len()).for_each(|row| rows[row] += rows[row - 1]);
        Self { rows, columns: edges.into_iter().map(|(_, to)| to).collect() }
    }

    fn road(text: &str) -> Self {
        let number = |word: &str| word.parse::<u64>().ok().and_then(|number| number.checked_sub(1));
        let edge = |line: &str| {
            let mut words = line.split_whitespace().filter_map(number);
            Some((words.next()?, words.next()?))
        };
        let edges: Vec<(u64, u64)> = text.lines().skip(1).filter_map(edge).collect();
        let nodes = edges.iter().map(|(from, to)| from.max(to) + 1).max().unwrap_or(1);
        Self::new(edges.iter().flat_map(|&(from, to)| [(from, to), (to, from)]).collect(), nodes)
    }

    fn rmat(scale: u32, edges_a_node: u64) -> Self {
        let mut random = Random(2);
        let nodes = 1 << scale;
        let edge = |_| {
            let (mut from, mut to) = (0, 0);
            for _ in 0..scale {
                let part = random.next() % 100;
                (from, to) = (
                    2 * from + u64::from(part >= 76),
                    2 * to + u64::from((57..76).contains(&part) || part >= 95),
                );
            }
            (from, to)
        };
        Self::new((0..nodes * edges_a_node).map(edge).collect(), nodes)
    }

    /// Product with a vector, one row per lane.
    fn product(&self, name: &'static str, warps: u64) -> Program {
        let warp = |warp: u64| {
            let row = |lane: u64| ((warp * 32 + lane) as usize).min(self.rows.len() - 2);
            let mut requests = vec![(1, all(|lane| array(0) + 4 * row(lane) as u64))];
            let length = |lane| self.rows[row(lane) + 1] - self.rows[row(lane)];
            for k in 0..(0..32).map(length).max().unwrap_or(0) {
                let of = |address: &dyn Fn(u64) -> u64| {
                    let lanes = (0..32u32).filter(|lane| k < length(u64::from(*lane)));
                    lanes.map(|lane| (lane, address(self.rows[row(u64::from(lane))] + k))).collect::<Vec<_>>()
                };
                requests.push((2, of(&|entry| array(1) + 4 * entry)));
                requests.push((3, of(&|entry| array(2) + 4 * entry)));
                requests.push((4, of(&|entry| array(3) + 4 * self.columns[entry as usize])));
            }
            requests.push((5, all(|lane| array(4) + 4 * row(lane) as u64)));
            requests
        };
        Program { name, recorded: MAX_SITE, warps: (0..warps).map(warp).collect() }
    }
}

fn xz(bytes: &[u8]) -> usize {
    let mut child = Command::new("xz")
        .args(["-9", "--stdout", "-T1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("xz is in PATH");
    let mut input = child.stdin.take().expect("it is piped");
    let given = bytes.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&given));
    let output = child.wait_with_output().expect("xz runs").stdout.len();
    writer.join().expect("it does not panic").expect("xz reads");
    output
}

fn measure(Program { name, recorded, warps }: &Program) {
    let (mut raw, mut streams) = (Vec::new(), Vec::new());
    let (mut accesses, mut forms, mut requests) = (0, [0u64; 3], 0u64);
    let mut random = Random(3);
    // Site by site, as in the file: this order suits the baselines.
    for requests in warps {
        let mut sites: Vec<&Request> = requests.iter().collect();
        sites.sort_by_key(|(site, _)| *site);
        for (_, lanes) in sites {
            let mut vector = [0u64; 32];
            lanes.iter().for_each(|(lane, address)| vector[*lane as usize] = *address);
            raw.extend(vector.into_iter().flat_map(u64::to_le_bytes));
        }
    }
    for of_warp in warps {
        let mut recorder = WarpRecorder::new(usize::MAX);
        let mut time = random.next() as u32 >> 8;
        for (site, lanes) in of_warp {
            // Some hundred cycles, as loads take, with variation.
            time += 20 + (random.next() % 12) as u32;
            accesses += lanes.len();
            if site <= recorded {
                recorder.access(*site, time, lanes);
            }
            requests += 1;
            forms[form(lanes)] += 1;
        }
        recorder.leave(time + 9, u32::MAX);
        let entries = recorder.finish().concat();
        streams.push(entries.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    }
    let chunks: Vec<DataChunk<'_>> = (0..)
        .zip(&streams)
        .flat_map(|(warp, stream)| {
            let chunks = (0..).zip(stream.chunks(CHUNK_BYTES));
            chunks.map(move |(sequence, entries)| DataChunk { warp, sequence, entries })
        })
        .collect();
    let entries: usize = streams.iter().map(Vec::len).sum();
    let tiles: Vec<Tile<'_>> = cut_into_tiles(&chunks).map(Tile::encode).collect();
    let section = |compression| {
        // Cut like the writer, after 2^17 entries.
        let sections = tiles.chunks((1 << 17) / MAX_TILE_ENTRIES as usize);
        sections.map(|tiles| encode_data(0, tiles, compression).expect("it fits").0.len()).sum::<usize>()
    };
    let zstd = |level| zstd::bulk::compress(&raw, level).expect("zstd works").len();
    let bits = |bytes: usize| {
        let bits = bytes as f64 * 8.0 / accesses as f64;
        if bits < 0.1 { format!("{bits:.4}") } else { format!("{bits:.2}") }
    };
    let share = |form: usize| (100.0 * forms[form] as f64 / requests as f64).round();
    println!(
        "| {name} | {accesses} | {} / {} / {} | {} | {} | {} | {} | {} |",
        share(0),
        share(1),
        share(2),
        bits(zstd(19)),
        bits(xz(&raw)),
        bits(entries),
        bits(section(Compression::None)),
        bits(section(Compression::Suited)),
    );
}

/// Returns the form: uniform, affine or generic.
fn form(lanes: &[(u32, u64)]) -> usize {
    let (first, last) = (lanes[0], lanes[lanes.len() - 1]);
    let (width, spread) = (i128::from(last.0 - first.0), i128::from(last.1) - i128::from(first.1));
    let is_line = lanes.iter().all(|(lane, address)| {
        (i128::from(*address) - i128::from(first.1)) * width == spread * i128::from(lane - first.0)
    });
    if !is_line { 2 } else { usize::from(spread != 0) }
}

fn main() {
    println!(
        "| access stream | accesses | uniform / affine / generic, % | zstd -19 | xz -9 | entries | columns | file |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |");
    for program in [matmul(), unrolled(), nbody(), transpose(), stencil(), histogram()] {
        measure(&program);
    }
    match std::env::args().nth(1) {
        Some(path) => {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            measure(&Graph::road(&text).product("SpMV, road network, a row a lane", 400));
        }
        None => println!("(no graph was given)"),
    }
    measure(&Graph::rmat(14, 8).product("SpMV, R-MAT 2^14", 200));
}
