//! Searches a graph breadth-first, records the kernel, and checks the distances.

mod kernels;

use std::collections::VecDeque;

use kernels::search::{self, UNKNOWN};
use warptrace::{Device, LaunchConfig};

const VERTICES: usize = 20_000;

/// Returns a graph in which some vertices have many neighbours: offsets and targets.
fn graph() -> (Vec<u32>, Vec<u32>) {
    let (mut offsets, mut targets) = (vec![0], Vec::new());
    let mut random = 1u32;
    for vertex in 0..VERTICES {
        let degree = if vertex % 500 == 3 { 300 } else { 2 + vertex % 5 };
        for _ in 0..degree {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            targets.push((random >> 8) % VERTICES as u32);
        }
        offsets.push(targets.len() as u32);
    }
    (offsets, targets)
}

/// Computes the distances from vertex 0 on the CPU.
fn reference(offsets: &[u32], targets: &[u32]) -> Vec<u32> {
    let mut distances = vec![UNKNOWN; VERTICES];
    distances[0] = 0;
    let mut queue = VecDeque::from([0]);
    while let Some(vertex) = queue.pop_front() {
        for &neighbour in &targets[offsets[vertex] as usize..offsets[vertex + 1] as usize] {
            let neighbour = neighbour as usize;
            if distances[neighbour] == UNKNOWN {
                distances[neighbour] = distances[vertex] + 1;
                queue.push_back(neighbour);
            }
        }
    }
    distances
}

fn main() -> Result<(), warptrace::Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "worklist.wtrc".to_owned());
    let device = Device::auto()?;
    if let Some(reason) = device.no_gpu() {
        println!("on the simulator: {reason}");
    }

    let (offsets, targets) = graph();
    let mut start = vec![UNKNOWN; VERTICES];
    start[0] = 0;
    let (device_offsets, device_targets) = (device.upload(&offsets)?, device.upload(&targets)?);
    let (distances, tail) = (device.upload(&start)?, device.upload(&[1u32])?);
    // Each vertex is appended once. The queue already contains vertex 0.
    let queue = device.zeros::<u32>(VERTICES)?;

    let mut trace = device.trace(&path).start(&search::MODULE)?;
    let (mut first, mut end) = (0, 1);
    while first < end {
        let call = search::expand(&device_offsets, &device_targets, &queue, &tail, &distances, first, end);
        trace.launch(&call, &LaunchConfig::for_elements((end - first) as usize))?;
        (first, end) = (end, tail.download()?[0]);
    }
    println!("{}", trace.finish()?);

    assert_eq!(distances.download()?, reference(&offsets, &targets), "distances");
    println!("{end} vertices are as far as on the CPU");
    Ok(())
}
