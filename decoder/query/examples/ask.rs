//! Runs an SQL query without the tool and prints its time.
//!
//! ```text
//! cargo run --release -p warptrace-query --example ask -- "SELECT location, count(*) FROM events GROUP BY
//! location" run.wtrc
//! ```

use std::io::{Write, stdout};
use std::time::Instant;

use warptrace_decoder::TraceFile;
use warptrace_query::{Database, Format, Writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let sql = arguments.next().ok_or("ask SQL FILES...")?;
    let traces = arguments.map(|file| Ok((file.clone(), TraceFile::open(file)?)));
    let traces = traces.collect::<Result<Vec<_>, Box<dyn std::error::Error>>>()?;
    let begun = Instant::now();
    let database = Database::new(traces, 512 << 20)?;
    let mut answer = database.ask(&sql)?;
    let mut writer = Writer::new(stdout(), Format::Table, &answer.schema())?;
    while let Some(batch) = answer.next_batch()? {
        writer.write(&batch)?;
    }
    writer.finish()?.flush()?;
    let (rows, masks) = (database.made_rows(), database.made_masks());
    eprintln!("{:.2} s; {rows} rows made of events, {masks} values of masks", begun.elapsed().as_secs_f64());
    Ok(())
}
