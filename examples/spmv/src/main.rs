//! Multiplies a sparse matrix with a vector, records how, and checks the result.

mod kernels;

use kernels::spmv;
use warptrace::{Device, LaunchConfig};

const ROWS: usize = 10_000;

fn main() -> Result<(), warptrace::Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "spmv.wtrc".to_owned());
    let device = Device::auto()?;
    if let Some(reason) = device.no_gpu() {
        println!("on the simulator: {reason}");
    }

    // Most rows are short, every hundredth is long.
    let (mut offsets, mut columns) = (vec![0], Vec::new());
    for row in 0..ROWS {
        let length = if row % 100 == 7 { 200 } else { row % 9 };
        columns.extend((0..length).map(|k| ((row * 31 + k * 97) % ROWS) as u32));
        offsets.push(columns.len() as u32);
    }
    let values: Vec<f32> = (0..columns.len()).map(|k| (k % 5) as f32).collect();
    let x: Vec<f32> = (0..ROWS).map(|k| (k % 7) as f32).collect();

    let (device_offsets, device_columns) = (device.upload(&offsets)?, device.upload(&columns)?);
    let (device_values, device_x) = (device.upload(&values)?, device.upload(&x)?);
    let y = device.zeros::<f32>(ROWS)?;
    let mut trace = device.trace(&path).start(&spmv::MODULE)?;
    let call = spmv::multiply(&device_offsets, &device_columns, &device_values, &device_x, &y);
    trace.launch(&call, &LaunchConfig::for_elements(ROWS))?;
    println!("{}", trace.finish()?);

    let found = y.download()?;
    for row in 0..ROWS {
        let entries = offsets[row] as usize..offsets[row + 1] as usize;
        let expected: f32 = entries.map(|k| values[k] * x[columns[k] as usize]).sum();
        assert_eq!(found[row], expected, "row {row}");
    }
    println!("every row is as on the CPU");
    Ok(())
}
